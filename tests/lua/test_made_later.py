"""What the library makes when it is loaded, and what later."""

import pytest

from holdfast.core.library import AT_ONCE, CoreBroken, assemble, library
from holdfast.core.sources import in_order
from holdfast.testing.store import ScratchStore

ROOT = "hf:{test-made}:"
WITHIN = 'redis.register_function({ function_name = "unmade", callback = function()\n'
WITHIN += (
    "  local names = {}\n  for name in pairs(texts) do names[#names + 1] = name end\n  return names\nend })\n"
)


@pytest.fixture
def store(engine):
    with ScratchStore(engine) as made:
        made.ask("FUNCTION", "LOAD", library().text + WITHIN)
        yield made


def call(store, verb, *words):
    return store.ask("FCALL", f"hf1_{verb}", "1", ROOT, *map(str, words))


def unmade(store):
    return set(store.ask("FCALL", "unmade", "0").split())


@pytest.mark.full
def test_the_usual_life_of_a_job_needs_what_is_made_at_once(store):
    """A name that is missing here belongs into `AT_ONCE`."""
    call(store, "info", "test", 1_700_000_000_000)
    call(store, "config_set", "jobs-history-count", 1)
    before = unmade(store)
    for n in range(600):
        call(store, "clock", 1_700_000_000_000 + 60_000 * n)
        call(store, "put", "", 0, "new", "q", 0, 5, 0, f"a{n}", "k", "{}", f"b{n}", "k", "{}")
        call(store, "pop", "w", "line", n + 1, 2, 0, "q", 1)
        call(store, "heartbeat", 0, "w", f"a{n}", 1_700_000_000_000 + 60_000 * n, "")
        words = [
            word for jid in (f"a{n}", f"b{n}") for word in (jid, 1_700_000_000_000 + 60_000 * n, "", 0, "")
        ]
        call(store, "complete", "w", *words)
    assert before - unmade(store) == set()


def test_what_is_not_usual_is_made_when_it_is_used(store):
    call(store, "info", "test", 1_700_000_000_000)
    assert "verbs.cancel" in unmade(store)
    call(store, "cancel", "", 0, "nobody")
    assert "verbs.cancel" not in unmade(store)
    assert unmade(store)


def test_every_module_made_at_once_exists():
    assert set(in_order("doors.native")) >= AT_ONCE


def test_a_module_made_at_once_takes_nothing_out_of_one_made_later():
    with pytest.raises(CoreBroken, match="takes something of"):
        assemble("doors.native", AT_ONCE - {"doors.checks", "base.record"})
