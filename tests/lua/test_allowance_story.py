"""What a queue was told to put up with: so many waiting jobs, so many lost leases."""

from holdfast.commands.admin import ConfigSet
from holdfast.commands.leases import Complete, Pop
from holdfast.commands.queues import QueueGet, QueueSet, ThrottleSet
from native_door import Door

FULL = b"HF_QUEUE_FULL"


def test_a_full_queue_refuses_puts_and_nothing_is_written(core, door: Door):
    core(QueueSet("q", "max-waiting", 2))
    assert core(QueueGet("q")) == {"max-waiting": 2}
    reply = door.put("q", "a", "b", "c")
    assert (reply[0], reply[1], reply[2].partition(b" ")[0]) == (2, 2, FULL)
    before = door.dump()
    assert door.put("q", "d")[2].startswith(FULL)
    assert door.put("q", "d", mode="move")[2].startswith(FULL)
    assert door.put("q", "d", delay=5000)[2].startswith(FULL)
    assert door("put_x", "", 0, "new", "q", 0, 5, 0, "d", "k", "{}", 0)[2].startswith(FULL)
    assert door.put("q", "a")[2] == b"again"
    assert door.dump() == before
    core(Pop("w", ["q"]))
    assert door.put("q", "d") == [1]


def test_whatever_does_not_run_yet_counts(core, door: Door):
    core(QueueSet("q", "max-waiting", 3))
    core(ThrottleSet("ql:q:q", 1))
    door.put("q", "runs")
    [runs] = core(Pop("w", ["q"]))
    door.put("q", "aside")
    door.put("q", "later", delay=5000)
    door("put_x", "", 0, "new", "q", 0, 5, 0, "child", "k", "{}", 1, "depends", "runs")
    assert door.put("q", "one more")[2].startswith(FULL)
    assert door.put("q", "later", mode="move") == [1, 0, b"again"]  # it waited here before
    assert door.put("other", "one more") == [1]
    assert door.put("q", "one more", mode="move")[2].startswith(FULL)
    core(Complete("w", runs))


def test_a_bound_goes_and_puts_are_taken_again(core, door: Door):
    core(QueueSet("q", "max-waiting", 1))
    door.put("q", "a")
    core(QueueSet("q", "max-waiting", None))
    assert (door.put("q", "b"), core(QueueGet("q"))) == ([1], {})
    core(QueueSet("q", "max-waiting", 2))
    core(ThrottleSet("ql:q:q", 1))
    core(ThrottleSet("ql:q:q", 0))
    assert door.put("q", "c")[2].startswith(FULL)


def test_a_job_that_kills_its_workers_is_stopped_sooner_than_its_retries_say(core, clock, door: Door):
    core(ConfigSet("grace-period", "0"))
    core(QueueSet("q", "max-losses", 1))
    door.put("q", "killer", retries=5)
    core(Pop("w", ["q"]))
    clock.advance(seconds=61)
    assert [job.losses for job in core(Pop("w", ["q"]))] == [1]
    clock.advance(seconds=61)
    assert core(Pop("w", ["q"])) == []
    job = door.job("killer")
    assert (job.state, job.failure.group, job.losses) == ("failed", "failed-retries-q", 2)
    assert "2 times" in job.failure.message
