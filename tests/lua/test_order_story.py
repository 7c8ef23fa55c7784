"""Who is next: priority, then the order of becoming ready, exactly."""

from random import Random

from holdfast.commands.jobs import Put, SetPriority
from holdfast.commands.leases import Pop
from holdfast.commands.outcomes import Timeout
from native_door import Door


def test_250_jobs_of_all_priorities_come_in_exact_order_whatever_the_pops_take(core, door: Door):
    random = Random(7)
    jobs = [(random.choice([-4095, -4000, -1, 0, 0, 1, 7, 4000, 4095]), f"j{n:03}") for n in range(250)]
    for priority, jid in jobs:
        core(Put("q", "k", jid=jid, priority=priority))
    expected = [jid for _, jid in sorted(jobs, key=lambda job: -job[0])]
    peeked = door.look("peek", "q", 0, 512)
    assert [row[0].decode() for row in peeked] == expected
    popped: list[str] = []
    while len(popped) < 250:
        popped += [job.jid for job in core(Pop("w", ["q"], limit=random.choice([1, 2, 3, 10, 37])))]
    assert popped == expected


def test_the_order_is_exact_when_the_counter_is_near_its_end(core, door: Door):
    core(Put("q", "k", jid="first", priority=4095))
    door.ask("INCRBY", door.key("s:q"), 2**39 - 10)
    for n in range(5):
        core(Put("q", "k", jid=f"j{n}", priority=4095))
        core(Put("q", "k", jid=f"low{n}", priority=-4095))
    order = [job.jid for job in core(Pop("w", ["q"], limit=20))]
    assert order == ["first", *[f"j{n}" for n in range(5)], *[f"low{n}" for n in range(5)]]


def test_a_changed_priority_puts_a_waiting_job_ahead_of_its_class(core, door: Door):
    door.put("q", "a", "b", "c", priority=5)
    door.put("q", "low")
    assert core(SetPriority(5, ["low", "nobody"])) == [True, False]
    assert core(SetPriority(5, ["c"])) == [True]
    # Both are ahead of the class; between them, the one that became ready first.
    assert [job.jid for job in door.pop("w", "q", n=9)] == ["c", "low", "a", "b"]


def test_a_changed_priority_is_kept_by_a_job_that_does_not_wait(core, door: Door):
    door.put("q", "a", "b")
    [job] = door.pop("w", "q")
    core(SetPriority(9, ["a"]))
    door("retry", "w", 0, "", "", "a", job.token, "")
    assert [(job.jid, job.priority) for job in door.pop("w", "q", n=2)] == [("a", 9), ("b", 0)]


def test_a_timed_out_job_goes_ahead_of_every_priority(core, door: Door):
    door.put("q", "a", "b")
    door.pop("w", "q", n=2)
    door.put("q", "urgent", priority=4095)
    core(Timeout(["b"]))
    core(Timeout(["a"]))
    assert [job.jid for job in door.pop("w", "q", n=3)] == ["b", "a", "urgent"]


def test_several_queues_are_tried_in_the_order_given(core, door: Door):
    door.put("one", "a", "b")
    door.put("two", "c", "d", priority=100)
    assert [job.jid for job in core(Pop("w", ["one", "two"], limit=3))] == ["a", "b", "c"]
    assert [job.jid for job in core(Pop("w", ["one", "two"], limit=3))] == ["d"]


def test_due_jobs_become_ready_in_the_order_of_their_times(core, clock, door: Door):
    door.put("q", "later", delay=2000)
    door.put("q", "sooner", delay=1000)
    clock.advance(seconds=3)
    door.put("q", "now")
    assert [job.jid for job in door.pop("w", "q", n=3)] == ["now", "sooner", "later"]
