"""Records that vanished break nothing, and nothing is left over when the work is done."""

import pytest

from holdfast.commands.admin import ConfigSet
from holdfast.commands.leases import WILL_WAIT, Pop
from holdfast.commands.queues import CountQueues, Peek
from native_door import Door


def lose(door: Door, *jids: str) -> None:
    door.ask("UNLINK", *[door.key(f"j:{jid}") for jid in jids])


@pytest.mark.parametrize("n", [1, 2, 9])
def test_a_waiting_job_without_a_record_is_passed_over(n: int, core, door: Door):
    door.put("q", *[f"lost{i}" for i in range(4)])
    door.put("q", "a", "b")
    lose(door, *[f"lost{i}" for i in range(4)])
    assert [job.jid for job in core(Peek("q", count=9))] == ["a", "b"]
    popped = core(Pop("w", ["q"], limit=n))
    assert [job.jid for job in popped] == ["a", "b"][:n]


def test_a_scheduled_job_and_a_lease_without_records_are_dropped(core, clock, door: Door):
    door.put("q", "leased", "a")
    core(Pop("w", ["q"]))
    door.put("q", "due", delay=1000)
    lose(door, "leased", "due")
    clock.advance(seconds=61)
    assert [job.jid for job in core(Pop("w", ["q"], limit=5))] == ["a"]
    [counts] = core(CountQueues(["q"]))
    assert (counts.length, counts.running) == (1, 1)


def test_a_job_set_aside_without_a_record_does_not_stop_the_next(core, door: Door):
    door("throttle_set", "", 0, "ql:q:q", 1, 0)
    door.put("q", "holder")
    [holder] = core(Pop("w", ["q"]))
    door.put("q", "gone", "next")
    lose(door, "gone")
    door("complete", "w", "holder", holder.token, "", 0, "")
    door("throttle_set", "", 0, "ql:q:q", 5, 0)
    assert [job.jid for job in core(Pop("w", ["q"], limit=5))] == ["next"]


def test_a_holder_without_a_record_frees_its_slot_when_its_lease_ends(core, clock, door: Door):
    door("throttle_set", "", 0, "ql:q:q", 1, 0)
    door.put("q", "holder")
    core(Pop("w", ["q"]))
    door.put("q", "aside")
    lose(door, "holder")
    clock.advance(seconds=61)
    assert [job.jid for job in core(Pop("w", ["q"]))] == ["aside"]


def test_failed_and_completed_jobs_without_records_can_still_be_listed_and_swept(core, clock, door: Door):
    door.put("q", "a", "b")
    a, b = door.pop("w", "q", n=2)
    door("fail", "w", "G", "m", "a", a.token, "")
    door("complete", "w", "b", b.token, "", 0, "")
    lose(door, "a", "b")
    assert door.look("failed", "G", 0, 9) == [1, b"a"]
    assert door.look("jobs_complete", 0, 9) == [b"b"]
    core(ConfigSet("jobs-history", "5"))
    clock.advance(seconds=6)
    assert door("sweep", "", 0) == 1


def test_nothing_is_left_when_all_work_is_done(core, clock, door: Door):
    """Law L17: roots, statistics, control, sequence registry and index, the replay record of a line, and no more."""
    core(ConfigSet("jobs-history-count", "0"))
    core(ConfigSet("grace-period", "0"))
    door("throttle_set", "", 0, "ql:q:q", 2, 0)
    door.put("q", *[f"j{n}" for n in range(30)], retries=3)
    door.put("q", *[f"d{n}" for n in range(10)], delay=3000)
    door("put", "", 0, "new", "r", 0, 5, 0, "long", "k", "x" * 900)
    for turn in range(400):
        jobs = core(Pop("w", ["q", "r"], limit=3, mode=WILL_WAIT))
        if not jobs and not sum(count.length + count.throttled for count in core(CountQueues())):
            break
        for n, job in enumerate(jobs):
            settle(door, turn + n, job)
        clock.advance(seconds=61 if turn % 5 == 0 else 1)
    else:
        pytest.fail("the work did not end")
    door(
        "cancel", "", 0, *[jid.decode() for group in ("G", "failed-retries-q") for jid in failed(door, group)]
    )
    left = {
        name for name in door.names() if not name.startswith(("z:", "aw:", "ar:", "i:", "k:", "m:", "E:"))
    }
    assert left <= {"", "C", "E", "H", "Q", "R", "T", "s:q", "s:r", "q:q", "q:r", "n:q", "n:r"}


def failed(door: Door, group: str) -> list[bytes]:
    return door.look("failed", group, 0, 100)[1:]


def settle(door: Door, turn: int, job) -> None:
    """End a lease in one of seven ways, or not at all."""
    words = (job.jid, job.token, "")
    ways = [
        ("complete", "w", *words, 0, ""), ("retry", "w", 500, "", "", *words), ("complete", "w", *words, 1000, "r"),
        ("advance", "w", "r", 0, *words), ("expire", "w", *words[:2]), ("fail", "w", "G", "m", *words),
        ("complete", "w", *words, 0, ""),
    ]  # fmt: skip
    if turn % 8 < len(ways):
        door(*ways[turn % 8])
        if ways[turn % 8][0] == "complete":
            door.ask("UNLINK", door.key(f"a:{job.jid}"))


def test_a_history_without_limit_can_be_longer_than_one_call_returns(core, door: Door):
    core(ConfigSet("max-job-history", "0"))
    door.put("q", "j")
    door("move", "", 0, "q", 0, "j", "", "")
    line = door.ask("HGET", door.key("x:j"), "h")
    door.ask("HSET", door.key("x:j"), "h", line * 5_000)
    [job] = core(Pop("w", ["q"]))
    assert door("retry", "w", 0, "", "", "j", job.token, "") == [4]
    assert door("retry", "w", 0, "", "", "j", job.token, "") == [4]
    assert len(door.job("j").history) == 10_002
    core(ConfigSet("max-job-history", "9000"))
    door("move", "", 0, "q", 0, "j", "", "")
    assert len(door.job("j").history) == 9_000
