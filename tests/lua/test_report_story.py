"""What a running job says of itself: progress and lines; and the data of earlier attempts."""

import pytest

from holdfast.commands.attributes import Report
from holdfast.commands.jobs import Move, Put
from holdfast.commands.leases import Heartbeat, Lease
from holdfast.commands.outcomes import Fail, Retry, Timeout
from holdfast.errors import LeaseLost
from holdfast.models import Progress
from native_door import Door


@pytest.fixture
def held(door: Door):
    door.put("q", "a")
    return door.pop("w", "q")[0]


def test_progress_shows_with_its_note_and_when(core, clock, door: Door, held):
    clock.advance(seconds=3)
    assert core(Report("w", held, 0.25, "a quarter"))
    job = door.job("a")
    assert job
    assert job.progress == Progress(0.25, "a quarter", clock.now_ms)
    core(Report("w", held, lines=["one"]))
    job = door.job("a")
    assert job
    assert (job.progress, job.log) == (Progress(0.25, "a quarter", clock.now_ms), ("one",))


def test_only_who_holds_the_lease_may_report(core, door: Door, held):
    before = door.dump()
    for worker, lease in (("other", held), ("w", Lease("a", held.token + 1)), ("w", Lease("gone", 1))):
        with pytest.raises(LeaseLost):
            core(Report(worker, lease, 1.0))
    assert door.dump() == before
    core(Timeout(["a"]))
    with pytest.raises(LeaseLost):
        core(Report("w", held, 1.0))


def test_of_all_lines_the_newest_hundred_and_eight_kilobytes_stay(core, door: Door, held):
    for first in range(0, 150, 50):
        core(Report("w", held, lines=[f"line {n}" for n in range(first, first + 50)]))
    job = door.job("a")
    assert job
    assert job.log == tuple(f"line {n}" for n in range(50, 150))
    core(Report("w", held, lines=["x" * 5_000, "y" * 5_000]))
    job = door.job("a")
    assert job
    assert job.log == ("y" * 5_000,)
    core(Report("w", held, lines=["z" * 9_000]))
    job = door.job("a")
    assert job
    assert job.log == ("z" * 8_192,)


def test_a_report_stays_over_retries_and_at_failure_and_goes_with_a_new_life(core, door: Door, held):
    core(Report("w", held, 0.5, "half", ["one"]))
    core(Retry("w", held))
    [again] = door.pop("w", "q")
    core(Fail("w", again, "G", "m"))
    job = door.job("a")
    assert job
    assert (job.progress and job.progress.fraction, job.log) == (0.5, ("one",))
    core(Move("q", "a"))
    job = door.job("a")
    assert job
    assert (job.progress, job.log) == (None, ())
    [third] = door.pop("w", "q")
    core(Report("w", third, 0.5, "half", ["one"]))
    core(Put("q", "k", b"{}", "a", mode="move"))
    job = door.job("a")
    assert job
    assert (job.progress, job.log) == (None, ())


def test_data_of_earlier_attempts_are_kept_where_that_is_wanted(core, door: Door):
    door("setting", "", 0, "keep-data", 1)
    core(Put("q", "k", b"[0]", "a"))
    [first] = door.pop("w", "q")
    core(Heartbeat("w", first, None, b"[1]"))
    core(Heartbeat("w", first, None, b"[2]"))
    core(Retry("w", first))
    [second] = door.pop("w", "q")
    core(Retry("w", second, 0, "", "", b"[2]"))
    [third] = door.pop("w", "q")
    core(Retry("w", third, 0, "", "", b"[3]"))
    job = door.job("a")
    assert job
    assert (job.data, job.earlier) == (b"[3]", ((1, b"[0]"), (3, b"[2]")))


def test_twenty_attempts_of_four_kilobytes_are_kept_and_nothing_without_the_setting(core, door: Door):
    for switch, expected in ((0, 0), (1, 20)):
        door("setting", "", 0, "keep-data", switch)
        jid = f"j{switch}"
        core(Put("q", "k", b"[0]", jid, retries=100))
        for n in range(25):
            [job] = door.pop("w", "q")
            core(Retry("w", job, 0, "", "", b'["%d%s"]' % (n, b"x" * 5_000)))
        job = door.job(jid)
        assert job
        assert len(job.earlier) == expected
        assert all(len(data) <= 4_096 for _, data in job.earlier)
        door("cancel", "", 0, jid)
    assert {name for name in door.names() if name[:1] in set("xjb")} == set()
