"""Backoff: how long a job waits before it is tried again, as it says itself."""

import pytest

from holdfast.commands.jobs import JobGet
from holdfast.commands.leases import Pop
from holdfast.commands.options import ExtraOptions, JobWithOptions, PutX
from holdfast.commands.outcomes import OWN_BACKOFF, Retry
from holdfast.errors import Refused
from native_door import Door


def put(core, backoff: str, jid: str = "j", retries: int = 20) -> None:
    core(PutX("q", [JobWithOptions("K", b"{}", jid, ExtraOptions(backoff=backoff))], retries=retries))


def pauses(core, clock, tries: int) -> list[int]:
    """Pops and gives back the job of the queue, so many times; the pauses in between, in ms."""
    found = []
    for _ in range(tries):
        [job] = core(Pop("w", ["q"]))
        core(Retry("w", job, OWN_BACKOFF))
        [row] = core(JobGet([job.jid]))
        found.append(row.due_ms - clock.now_ms)
        clock.advance(seconds=found[-1] / 1000)
    return found


def test_a_fixed_backoff_is_the_same_at_each_try(core, clock):
    put(core, "fixed:1500:600000:0")
    assert pauses(core, clock, 3) == [1_500, 1_500, 1_500]


def test_an_exponential_backoff_doubles_up_to_its_cap(core, clock):
    put(core, "exponential:1000:6000:0")
    assert pauses(core, clock, 5) == [1_000, 2_000, 4_000, 6_000, 6_000]


def test_the_thousandth_try_waits_no_longer_than_the_cap(core, clock, door: Door):
    put(core, "exponential:1000:2678400000:0", retries=1000)
    for _ in range(200):
        [job] = door.pop("w", "q")
        core(Retry("w", job))
    assert pauses(core, clock, 1) == [2_678_400_000]


def test_jitter_spreads_jobs_within_its_share_and_never_above_the_cap(core, clock, door: Door):
    for n in range(100):
        put(core, "fixed:1000:1200:50", f"j{n}")
    for job in door.pop("w", "q", n=100):
        core(Retry("w", job, OWN_BACKOFF))
    waits = [row.due_ms - clock.now_ms for row in core(JobGet([f"j{n}" for n in range(100)]))]
    assert min(waits) >= 500
    assert max(waits) == 1_200
    assert min(waits) < 650
    assert len(set(waits)) > 40


def test_the_jitter_of_a_job_and_a_try_is_the_same_whenever_it_is_asked_for(core, clock, door: Door):
    def once() -> list[int]:
        put(core, "exponential:1000:60000:25")
        found = pauses(core, clock, 3)
        door("cancel", "", 0, "j")
        return found

    first = once()
    assert once() == first
    assert first != [1_000, 2_000, 4_000]
    assert all(750 * 2**n <= wait <= 1_250 * 2**n for n, wait in enumerate(first))


def test_a_job_without_a_backoff_of_its_own_waits_a_second_and_doubles_it(core, clock, door: Door):
    door.put("q", "plain", retries=30)
    found = pauses(core, clock, 14)
    assert all(750 * 2**n <= wait <= 1_250 * 2**n for n, wait in enumerate(found[:9]))
    assert found[-3:] == [600_000, 600_000, 600_000] or all(450_000 <= wait <= 600_000 for wait in found[-3:])


@pytest.mark.parametrize(("delay", "due"), [(0, 0), (7_000, 7_000)])
def test_a_delay_that_is_said_wins_over_the_backoff(delay: int, due: int, core, clock, door: Door):
    put(core, "fixed:1500:1500:0")
    [job] = door.pop("w", "q")
    core(Retry("w", job, delay))
    [row] = core(JobGet(["j"]))
    assert (row.due_ms and row.due_ms - clock.now_ms) == due


def test_a_retry_by_backoff_that_is_sent_again_changes_nothing(core, clock, door: Door):
    put(core, "fixed:1500:1500:0")
    [job] = door.pop("w", "q")
    assert core(Retry("w", job, OWN_BACKOFF)) == 19
    before = door.dump()
    assert core(Retry("w", job, OWN_BACKOFF)) == 19
    assert door.dump() == before


def test_the_last_try_fails_whatever_the_backoff(core, clock, door: Door):
    put(core, "fixed:1500:1500:0", retries=0)
    [job] = door.pop("w", "q")
    assert core(Retry("w", job, OWN_BACKOFF)) == -1
    assert door.state("j") == "failed"


def test_a_lost_lease_knows_no_backoff(core, clock, door: Door):
    put(core, "fixed:1500000:1500000:0")
    door.pop("w", "q")
    clock.advance(seconds=60)
    assert door.pop("v", "q") == []
    clock.advance(seconds=10)
    [again] = door.pop("v", "q")
    assert (again.jid, again.losses) == ("j", 1)


def test_a_backoff_goes_with_the_job_from_life_to_life(core, clock, door: Door):
    put(core, "fixed:1500:1500:0")
    core(PutX("q", [JobWithOptions("K", b"[]", "j", ExtraOptions(tags=["red"]))], mode="move"))
    assert pauses(core, clock, 2) == [1_500, 1_500]


def test_the_backoff_of_its_code_applies_to_a_job_without_one(core, clock, door: Door):
    door.put("q", "plain", retries=5)
    put(core, "fixed:1500:1500:0", "own")
    for job in door.pop("w", "q", n=2):
        core(Retry("w", job, OWN_BACKOFF, backoff="fixed:7000:7000:0"))
    plain, own = core(JobGet(["plain", "own"]))
    assert (plain.due_ms - clock.now_ms, own.due_ms - clock.now_ms) == (7_000, 1_500)


@pytest.mark.parametrize("backoff", ["fixed:1", "soon:1:1:1", "fixed:1:2678400001:0", "fixed:1:1:101"])
def test_a_backoff_of_code_that_cannot_be_is_refused_and_the_job_stays_leased(backoff: str, core, door: Door):
    door.put("q", "j")
    [job] = door.pop("w", "q")
    with pytest.raises(Refused, match="backoff is fixed or exponential"):
        core(Retry("w", job, OWN_BACKOFF, backoff=backoff))
    assert door.state("j") == "running"
