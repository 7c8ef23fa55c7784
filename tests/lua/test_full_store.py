"""A store without memory left refuses new work untouched, and lets what it holds be worked off."""

from collections.abc import Iterator

import pytest

from holdfast.client.sync import Client
from holdfast.testing.clock import START_MS, StoppedClock
from holdfast.testing.store import Engine, ScratchStore
from native_door import Door, StoreMessage, rows


@pytest.fixture
def full(engine: Engine, namespace: str) -> Iterator[Door]:
    """Nine jobs in `q`, three of them running, and no memory left."""
    with ScratchStore(engine) as store, Client(store.url, namespace=namespace) as client:
        StoppedClock(client, START_MS).advance(seconds=0)
        door = Door(client)
        door.put("q", *[f"j{n}" for n in range(9)])
        door.pop("w", "q", n=3)
        door("recur", "", 0, "set", "q", "daily", "k", "{}", 60_000, 60_000, 0, 0, 0, 0)
        door.ask("CONFIG", "SET", "maxmemory", "1")
        yield door


ADDING = [
    ("put", "", 0, "new", "q", 0, 5, 0, "new", "k", "{}"), ("move", "", 0, "q", 0, "j0", "", ""), ("priority", 5, "j5"),
    ("config_set", "heartbeat", "5"), ("config_unset", "", 0, "heartbeat"), ("throttle_set", "", 0, "ql:q:q", 1, 0),
    ("recur", "", 0, "set", "q", "r", "k", "{}", 1000, 0, 0, 0, 0, 0), ("clock", 5),
    ("recur_run", "", 0, "daily"),
]  # fmt: skip


@pytest.mark.parametrize("call", ADDING, ids=lambda call: call[0])
def test_what_adds_work_is_refused_untouched(call, full: Door):
    before = full.dump()
    with pytest.raises(StoreMessage, match=r"^OOM"):
        full(*call)
    assert full.dump() == before


def test_what_is_there_can_be_worked_off(full: Door):
    a, b, c = [full.job(f"j{n}") for n in range(3)]
    assert full("heartbeat", 0, "w", "j0", a.token, "")[0] > 0
    assert full("complete", "w", "j0", a.token, "", 60_000, b"1") == [1]
    assert full("fail", "w", "G", "m", "j1", b.token, "") == [1]
    assert full("retry", "w", 0, "", "", "j2", c.token, "") == [4]
    [next_job] = rows(full("pop", "w", "l", 1, 1, 0, "q", 1))
    reply = full("complete_pop", "w", "l", 2, 1, 0, 1, "q", 0, next_job.jid, next_job.token, "", 0, "")
    [held] = rows(reply, at=1)
    assert full("advance", "w", "next", 0, held.jid, held.token, "") == [1]
    [held] = full.pop("w", "q")
    assert full("expire", "w", held.jid, held.token) == 1
    [held] = full.pop("w", "q")
    assert full("timeout", "", 0, held.jid) == 1
    assert full("cancel", "", 0, held.jid) == [1]
    assert full("pause", "", 0, 1, "me", "full", 0, "next") == 1
    assert full("await", "j0") == [b"done", b"1"]
    assert full("sweep", "", 0) == 0
    assert full("info", "", 0)[5] == 1


def test_what_looks_works_in_any_case(full: Door):
    for look in (
        ("counts",),
        ("queues",),
        ("peek", "q", 0, 5),
        ("job_get", "j0"),
        ("stats", "q", 0),
        ("failures", 0, 10),
    ):
        assert full.look(*look) is not None


def test_operators_change_many_jobs_and_are_noted(full: Door):
    """What they do makes room, or frees what waits: it needs a little memory, and gets it."""
    _, size, *row = full.look("scan", "waiting", "q", "", "", 5, "dte")
    assert (size, row[0][0]) == (6, b"j3")
    start = ("o", "bee", 5000, "{}", "start")
    assert full("audited", "", 0, "ann", "bulk delete", "o", "", "operation_set", "", 0, *start) == 1
    step = ("", "ann", "o", "bee", 5000, "here", 6, 6)
    assert (
        full("act", "", 0, "delete", *step, *[word for n in range(3, 7) for word in (f"j{n}", "")]) == [1] * 4
    )
    assert full("act", "", 0, "delay", "5000", "ann", "o", "bee", 5000, "there", 1, 1, "j7", "") == [1]
    assert full("act", "", 0, "run", *step, "j7", "") == [1]
    assert full("act", "", 0, "expire", *step, "j0", "") == [1]
    assert full("operation_set", "", 0, "o", "bee", 0, "done", "finish") == 1
    [[id, facts]] = full.look("operations", 0, 9)
    assert (id, dict(zip(facts[::2], facts[1::2], strict=True))[b"changed"]) == (b"o", b"7")
    assert [name for name, *_ in full.look("operation_get", "o", 0, 9)[3]] == [b"j3", b"j7", b"j7", b"j0"]
    assert full("recur_pause", "", 0, 1, "daily") == 1
    assert (
        full("audited", "", 0, "ann", "resume recurring", "daily", "", "recur_pause", "", 0, 0, "daily") == 1
    )
    assert [line[3] for line in full.look("audit_list", "", 9)] == [b"resume recurring", b"bulk delete"]
    assert full.state("j3") == "absent"
