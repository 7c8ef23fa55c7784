"""Pauses that end by themselves, and queues that are forgotten."""

import pytest

from holdfast.commands.admin import ConfigSet
from holdfast.commands.leases import WILL_WAIT, Complete, Pop
from holdfast.commands.outcomes import Fail
from holdfast.commands.queues import CountQueues, Pause, QueueForget, QueueNames, ThrottleSet
from holdfast.errors import QueueNotEmpty
from native_door import Door

IDLE = 1 << 45


def due_of(door: Door, *queues: str, mode: int = 0) -> int:
    return door("pop", "w", "", 0, 1, 0, *[word for queue in queues for word in (queue, mode)])[0]


def test_a_pause_ends_by_itself_when_its_time_is_over(core, clock, door: Door):
    door.put("q", "a")
    assert core(Pause(["q"], who="me", why="deploy", length_ms=60_000)) == 1
    kept = door.ask("HGETALL", door.key("o:q"))
    assert kept[-2:] == [b"paused-until", b"%d" % (clock.now_ms + 60_000)]
    clock.advance(seconds=59.999)
    assert core(Pop("w", ["q"])) == []
    clock.advance(seconds=0.001)
    assert [job.jid for job in core(Pop("w", ["q"]))] == ["a"]
    assert not core(CountQueues(["q"]))[0].paused
    assert "o:q" not in door.names()


def test_who_finds_a_paused_queue_learns_when_it_goes_on(core, clock, door: Door):
    door.put("q", "a")
    door.put("soon", "b", delay=90_000)
    core(Pause(["q"], length_ms=60_000))
    assert due_of(door, "q", "soon") == 60_000
    clock.advance(seconds=20)
    assert due_of(door, "q", "soon", mode=WILL_WAIT) == 40_000
    core(Pause(["q"]))
    assert due_of(door, "q") == -1
    assert due_of(door, "q", "soon") == 70_000


def test_the_end_of_a_pause_is_told_to_one_more_who_waits(core, clock, door: Door):
    core(Pop("idle", ["q"], mode=WILL_WAIT))
    core(Pause(["q"], length_ms=1000))
    door.put("q", "a", "b")
    door.ask("DEL", door.key("n:q"))
    clock.advance(seconds=1)
    core(Pop("w", ["q"]))
    assert door.ask("LLEN", door.key("n:q")) == 1


def test_a_pause_without_an_end_takes_the_place_of_one_with_an_end(core, clock, door: Door):
    door.put("q", "a")
    core(Pause(["q"], length_ms=1000))
    assert core(Pause(["q"], who="her")) == 0
    clock.advance(seconds=2)
    assert core(Pop("w", ["q"])) == []
    assert core(Pause(["q"], on=False)) == 1


def test_a_repeated_pop_learns_the_end_of_a_pause_too(core, door: Door):
    door.put("q", "a")
    door.put("r", "b")
    core(Pause(["q"], length_ms=5000))
    words = ("pop", "w", "line", 1, 1, 0, "q", 0, "r", 0)
    first = door(*words)
    again = door(*words)
    assert (first[1], again[1]) == (b"b", b"b")
    assert again[0] == 5000


def test_a_queue_with_jobs_is_not_forgotten_and_an_empty_one_is(core, clock, door: Door):
    door.put("empty", "a")
    door.put("full", "b")
    core(Complete("w", core(Pop("w", ["empty"]))[0]))
    with pytest.raises(QueueNotEmpty, match="full has 1 jobs"):
        core(QueueForget(["empty", "full"]))
    assert core(QueueNames()) == ["empty", "full"]
    assert core(QueueForget(["empty", "unknown"])) == 1
    assert core(QueueNames()) == ["full"]
    clock.advance(seconds=1)
    door.put("empty", "c")
    assert core(QueueNames()) == ["full", "empty"]


@pytest.mark.parametrize("state", ["scheduled", "running", "failed", "throttled", "depends"])
def test_a_job_in_any_state_keeps_its_queue(state: str, core, door: Door):
    if state == "throttled":
        core(ThrottleSet("ql:q:q", 1))
        door.put("q", "first")
        core(Pop("w", ["q"]))
    if state == "depends":
        door.put("other", "parent")
        door("put_x", "", 0, "new", "q", 0, 5, 0, "j", "k", "{}", 1, "depends", "parent")
    else:
        door.put("q", "j", delay=1000 if state == "scheduled" else 0)
    if state in ("running", "failed"):
        [job] = core(Pop("w", ["q"]))
        if state == "failed":
            core(Fail("w", job, "G", "m"))
    assert door.state("j") == state
    with pytest.raises(QueueNotEmpty):
        core(QueueForget(["q"]))


def test_a_forgotten_queue_leaves_nothing_behind(core, clock, door: Door):
    door.put("q", "a")
    core(Complete("w", core(Pop("w", ["q"], mode=WILL_WAIT))[0]))
    clock.advance(seconds=86_400)
    door.put("q", "b")
    core(Complete("w", core(Pop("w", ["q"]))[0]))
    core(Pause(["q"], why="over"))
    core(QueueForget(["q"]))
    assert {name for name in door.names() if name[:2] not in ("", "c", "j:", "i:")} == set()
    door.put("q", "c")
    assert [job.jid for job in core(Pop("w", ["q"]))] == ["c"]


def test_a_forgotten_queue_comes_back_without_its_limit(core, door: Door):
    core(ThrottleSet("ql:q:q", 1))
    core(QueueForget(["q"]))
    door.put("q", "a", "b")
    assert len(core(Pop("w", ["q"], limit=9))) == 2


def test_who_waits_for_a_forgotten_queue_is_still_woken(core, door: Door):
    core(Pop("idle", ["q"], mode=WILL_WAIT))
    core(QueueForget(["q"]))
    door.put("q", "a")
    assert door.ask("LLEN", door.key("n:q")) == 1
    # The token that lies there lowers the bit, and is on its way to somebody who is going to wait now.
    door.put("q", "b")
    assert int(door.ask("GET", door.key("s:q"))) & IDLE == 0
    door("cancel", "", 0, "a", "b")
    core(QueueForget(["q"]))
    assert int(door.ask("GET", door.key("s:q"))) == IDLE
    door.put("q", "c")
    assert door.ask("LLEN", door.key("n:q")) == 1


def test_a_lease_length_that_was_configured_outlives_its_queue(core, door: Door):
    core(ConfigSet("q-heartbeat", "30"))
    door.put("q", "a")
    door("cancel", "", 0, "a")
    core(QueueForget(["q"]))
    door.put("q", "b")
    assert core(Pop("w", ["q"]))[0].lease_ms == 30_000
