"""Coarse changes, told on one channel while somebody watches."""

from collections.abc import Iterator

import pytest

from holdfast import Client
from holdfast.commands.admin import Audit, ConfigSet, ConfigUnset, IdentifiersSet, Sweep, Watch
from holdfast.commands.jobs import Put
from holdfast.commands.operations import Act, Audited, OperationSet, Progress
from holdfast.commands.queues import Pause, QueueForget
from native_door import Door


class Watcher:
    """A subscriber of the channel of changes, and another of one that proves a message has arrived."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._listener = client.link.listener()
        self._listener.subscribe(client.root + "e:c")

    def heard(self, door: Door) -> list[str]:
        """What was said so far."""
        door.ask("PUBLISH", self._client.root + "e:c", "that is all")
        found: list[str] = []
        while True:
            said = self._listener.receive(5)
            assert said is not None
            text = said[-1] if isinstance(said, (list, tuple)) else said
            text = text.decode() if isinstance(text, bytes) else text
            if text == "that is all":
                return sorted(found)
            found.append(text)

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def watcher(door: Door) -> Iterator[Watcher]:
    made = Watcher(door._client)
    yield made
    made.close()


def test_changes_are_told_only_while_somebody_watches(core, clock, door: Door, watcher: Watcher):
    core(Pause(["q"]))
    assert watcher.heard(door) == []
    assert core(Watch(5000)) == clock.now_ms + 5000
    core(Pause(["q"], on=False))
    assert watcher.heard(door) == ["queue:q"]
    clock.advance(seconds=5)
    core(Pause(["q"]))
    assert watcher.heard(door) == []


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (Pause(["a", "b"]), ["queue:a", "queue:b"]),
        (QueueForget(["a", "b"]), ["queues"]),
        (ConfigSet("heartbeat", "30"), ["config"]),
        (ConfigUnset("heartbeat"), ["config"]),
        (IdentifiersSet({}), ["config"]),
        (Audit("ann", "pause", "q"), ["audit"]),
        (OperationSet("start", "o", "bee", 5000, "{}"), ["operation:o"]),
        (Audited("ann", "pause", "q", "", Pause(["q"])), ["audit", "queue:q"]),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, list) else "",
)
def test_a_change_is_told_by_its_name(command, told, core, door: Door, watcher: Watcher):
    core(Watch(60_000))
    core(command)
    assert watcher.heard(door) == told


def test_what_changes_in_an_operation_is_told_with_it(core, door: Door, watcher: Watcher):
    door.put("q", "a")
    core(OperationSet("start", "o", "bee", 5000, "{}"))
    core(Watch(60_000))
    core(Act("move", [("a", "r")], operation=Progress("o", "bee", 5000)))
    told = watcher.heard(door)
    assert {"operation:o", "job:a", "queue:r"} <= {*told}
    core(OperationSet("finish", "o", detail="stopped"))
    assert watcher.heard(door) == ["operation:o"]


def test_the_end_of_a_pause_by_itself_is_told(core, clock, door: Door, watcher: Watcher):
    core(Pause(["q"], length_ms=1000))
    core(Watch(60_000))
    clock.advance(seconds=1)
    door.pop("w", "q")
    assert "queue:q" in watcher.heard(door)


def test_the_later_of_two_watchers_counts(core, clock):
    assert core(Watch(60_000)) == clock.now_ms + 60_000
    assert core(Watch(5_000)) == clock.now_ms + 60_000
    clock.advance(seconds=58)
    assert core(Watch(5_000)) == clock.now_ms + 5_000


def test_a_clock_that_went_back_does_not_make_anybody_watch_for_ever(core, clock):
    core(Watch(60_000))
    clock.advance(seconds=-3600)
    assert core(Watch(1_000)) == clock.now_ms + 1_000


def test_a_sweep_lowers_the_flag_when_nobody_looks_any_more(core, clock, door: Door):
    core(Put("q", "K"))
    before = door.dump()[""]
    core(Watch(1000))
    assert door.dump()[""] != before
    core(Sweep())
    raised = door.ask("HGET", door.root, "h")
    assert raised[0] & 4
    clock.advance(seconds=1)
    core(Sweep())
    lowered = door.ask("HGET", door.root, "h")
    assert lowered[0] & 4 == 0
