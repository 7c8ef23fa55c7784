"""Leases that are given back before their jobs have ended: what it costs, who is next, what is said."""

from typing import Any

import pytest

from holdfast.client.explanation import explanation
from holdfast.commands.admin import ConfigSet, SettingSet
from holdfast.commands.failures import Unfail
from holdfast.commands.jobs import JobGet, Move, SetPriority
from holdfast.commands.leases import Complete, Heartbeat, Lease, Pop
from holdfast.commands.options import ExtraOptions, JobWithOptions, PutWithOptions, PutX
from holdfast.commands.outcomes import Release, Retry
from holdfast.commands.queues import QueueSet, ThrottleSet
from holdfast.commands.views import Explain
from holdfast.errors import LeaseLost
from holdfast.models import JobFacts
from native_door import Door, StoreMessage

WAYS = ("preempted", "crashed", "lost", "timed-out", "unknown")


def popped(core, worker="w", queue="q") -> JobFacts:
    [job] = core(Pop(worker, [queue]))
    return job


def facts(core, jid="j") -> JobFacts:
    return core(JobGet([jid]))[0]


def whats(core, jid="j"):
    return [line.what for line in facts(core, jid).history]


def back(how, *jobs: JobFacts, cause="", group="", worker="w") -> Release:
    return Release([Lease(job.jid, job.token, worker) for job in jobs], how, cause, group)


@pytest.mark.parametrize("how", WAYS)
def test_a_lease_is_given_back_once_and_a_repeat_finds_nothing(how, core, clock, door: Door):
    door.put("q", "j")
    job = popped(core)
    group = "q-G" if how == "unknown" else ""
    assert core(back(how, job, group=group)) == 1
    before = door.dump()
    words = ("release", "", 0, how, "", group, "w", "j", job.token)
    assert (door(*words), door.dump()) == (0, before)
    clock.advance(seconds=60)
    again = popped(core, "v")
    assert again.token > job.token
    assert core(back(how, job, group=group)) == 0
    with pytest.raises(LeaseLost):
        core(Complete("w", job))
    core(Complete("v", again))


def test_only_leases_that_are_held_are_given_back(core, door: Door):
    door.put("q", "a", "b")
    a, b = core(Pop("w", ["q"], limit=2))
    leases = [
        Lease("a", a.token + 1, "w"),
        Lease("b", b.token, "v"),
        Lease("gone", 1, "w"),
        Lease("b", b.token, "w"),
    ]
    assert core(Release(leases, "preempted", "TERM")) == 1
    assert (facts(core, "a").state, facts(core, "b").state) == ("running", "waiting")


def test_preempted_jobs_are_next_in_their_order_with_all_they_had(core, clock, door: Door):
    door.put("q", "a", "b", "c", retries=2)
    first, second = core(Pop("w", ["q"], limit=2))
    door.put("q", "higher", priority=1)
    clock.advance(seconds=1)
    assert core(back("preempted", second, cause="TERM")) == 1
    assert core(back("preempted", first, cause="HUP")) == 1
    jobs = core(Pop("v", ["q"], limit=4))
    assert [job.jid for job in jobs] == ["higher", "a", "b", "c"]
    assert [(job.remaining, job.losses, job.attempts) for job in jobs[1:3]] == [(2, 0, 2), (2, 0, 2)]
    [line] = [line for line in facts(core, "a").history if line.what == "preempted"]
    assert (line.reason, line.worker, line.attempt, line.name) == ("HUP", "w", 1, "")


def test_a_hundred_preemptions_cost_nothing(core, clock, door: Door):
    door.put("q", "j", retries=0)
    for _ in range(100):
        core(back("preempted", popped(core), cause="TERM"))
    job = popped(core)
    assert (job.remaining, job.losses, job.attempts) == (0, 0, 101)


def test_a_preempted_job_goes_before_those_whose_priority_became_its_own(core, door: Door):
    door.put("q", "j", "other")
    job = popped(core)
    core(SetPriority(5, ["j"]))
    door.put("q", "five", priority=5)
    core(back("preempted", job))
    assert [one.jid for one in core(Pop("w", ["q"], limit=3))] == ["j", "five", "other"]


def test_a_preempted_job_goes_before_older_ones_of_the_class_to_which_it_fell(core, door: Door):
    door.put("q", "old")
    door.put("q", "j", priority=5)
    job = popped(core)
    core(SetPriority(0, ["j"]))
    core(back("preempted", job))
    assert [one.jid for one in core(Pop("w", ["q"], limit=2))] == ["j", "old"]


def test_a_job_is_preempted_again_and_stays_the_first(core, door: Door):
    door.put("q", "a", "b")
    for _ in range(3):
        job = popped(core)
        assert job.jid == "a"
        core(back("preempted", job))


def test_a_preempted_job_whose_lease_was_noticed_as_lost_pays_nothing(core, clock, door: Door):
    door.put("q", "j", retries=0)
    job = popped(core)
    clock.advance(seconds=60)
    assert core(Pop("v", ["q"])) == []
    core(back("preempted", job, cause="TERM"))
    again = popped(core)
    assert (again.remaining, again.losses) == (0, 0)
    assert core(Heartbeat("w", again)) > clock.now_ms


def test_a_preempted_job_wakes_a_sleeper_and_frees_its_slots(core, door: Door):
    core(ThrottleSet("db", 1))
    for jid in ("a", "b"):
        core(PutX("q", [JobWithOptions("k", b"{}", jid, ExtraOptions(throttles=["db"]))]))
    job = popped(core)
    assert door("pop", "v", "", 0, 1, 0, "q", 1)[1:] == []
    core(back("preempted", job))
    assert door.ask("LLEN", door.key("n:q")) == 1
    assert [one.jid for one in core(Pop("v", ["q"], limit=2))] == ["a"]


def test_a_preempted_job_of_a_paused_queue_waits_like_others(core, door: Door):
    door.put("q", "j")
    job = popped(core)
    door("pause", "", 0, 1, "", "", 0, "q")
    core(back("preempted", job))
    assert (facts(core).state, core(Pop("w", ["q"]))) == ("waiting", [])


@pytest.mark.parametrize("how", ["crashed", "lost"])
def test_a_lost_job_goes_before_everything_and_a_class_job_pays_with_a_retry(how, core, clock, door: Door):
    door.put("q", "j", retries=1)
    job = popped(core)
    door.put("q", "higher", priority=9)
    core(back(how, job, cause="SIGSEGV" if how == "crashed" else ""))
    again = popped(core)
    assert (again.jid, again.remaining, again.losses) == ("j", 0, 1)
    assert whats(core) == ["put", "popped", how, "popped"]
    assert core(back(how, again, cause="SIGSEGV")) == 1
    failed = facts(core)
    assert (failed.state, failed.remaining, failed.losses) == ("failed", -1, 2)
    message = 'Job exhausted retries in queue "q"'
    if how == "crashed":
        message += ": process died by SIGSEGV (worker w, attempt 2)"
    assert (failed.failure.group, failed.failure.message) == ("failed-retries-q", message)
    assert whats(core)[-3:] == ["popped", how, "failed"]


def test_a_loss_that_was_noticed_before_its_cause_was_known_has_both_lines(core, clock, door: Door):
    door.put("q", "j", retries=1)
    job = popped(core)
    clock.advance(seconds=60)
    assert core(Pop("v", ["q"])) == []
    core(back("crashed", job, cause="SIGSEGV"))
    assert whats(core) == ["put", "popped", "timed-out", "crashed"]


def test_a_job_that_took_too_long_pays_with_a_retry_and_waits_by_its_backoff(core, clock, door: Door):
    wish = ExtraOptions(backoff="fixed:7000:7000:0")
    core(PutX("q", [JobWithOptions("k", b"{}", "j", wish)], retries=1))
    core(back("timed-out", popped(core), cause="2 s"))
    waits = facts(core)
    assert (waits.state, waits.remaining, waits.losses) == ("scheduled", 0, 0)
    assert waits.due_ms == clock.now_ms + 7_000
    assert waits.failure.group == "q-TimedOut"
    clock.advance(seconds=7)
    core(back("timed-out", popped(core), cause="2 s"))
    failed = facts(core)
    assert (failed.state, failed.failure.group) == ("failed", "q-TimedOut")
    assert failed.failure.message == "took longer than its timeout of 2 s (worker w, attempt 2)"


def test_unknown_work_goes_back_with_a_growing_delay_until_nobody_knew_it_for_too_long(
    core, clock, door: Door
):
    door.put("q", "j", retries=0)
    error = "ModuleNotFoundError: No module named 'x'"
    delays = []
    began = clock.now_ms
    while True:
        core(back("unknown", popped(core), cause=error, group="q-ModuleNotFoundError"))
        job = facts(core)
        if job.state == "failed":
            break
        assert (job.state, job.remaining, job.losses) == ("scheduled", 0, 0)
        delays.append(job.due_ms - clock.now_ms)
        clock.advance(seconds=delays[-1] / 1000)
    assert delays[:8] == [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]
    assert clock.now_ms - began == 600_000
    assert job.failure.group == "q-ModuleNotFoundError"
    assert job.failure.message == f"{error}; no worker knew it for 600 s"
    assert job.failure.worker == "w"
    [*_, line] = [line for line in job.history if line.what == "unknown"]
    assert (line.reason, line.worker) == (error, "w")
    core(Unfail("q", "q-ModuleNotFoundError", 1))
    core(back("unknown", popped(core), cause=error, group="G"))
    assert facts(core).state == "scheduled"  # a new life, a new wait


def test_work_that_somebody_knew_in_between_is_unknown_anew(core, clock, door: Door):
    core(SettingSet("unknown-for", 3))
    door.put("q", "j")
    core(back("unknown", popped(core), cause="E", group="G"))
    clock.advance(seconds=5)
    core(Retry("w", popped(core)))
    core(back("unknown", popped(core), cause="E", group="G"))
    assert facts(core).state == "scheduled"
    core(Move("q", "j"))
    clock.advance(seconds=9)
    core(back("unknown", popped(core), cause="E", group="G"))
    assert facts(core).state == "scheduled"


def test_unknown_for_nothing_fails_at_once(core, door: Door):
    core(SettingSet("unknown-for", 0))
    door.put("q", "j")
    core(back("unknown", popped(core), cause="E", group="G"))
    assert facts(core).state == "failed"


def test_the_bounds_of_unknown_for(core, door: Door):
    for bad in ("abc", "-1", "2592001", "1.5"):
        with pytest.raises(StoreMessage, match="unknown-for: expected a whole number from 0 to 2592000"):
            door("setting", "", 0, "unknown-for", bad)
    door("setting", "", 0, "unknown-for", "86400")


def test_what_a_release_refuses(door: Door):
    words = ("w", "j", 1)
    for sentence, call in {
        "how: expected preempted, crashed": ("gone", "", "", *words), "group: expected 1 to 200 bytes": ("unknown", "", "", *words),
        "cause: expected at most 4096 bytes": ("lost", "x" * 4097, "", *words), "expected groups of 3": ("lost", "", "", "w", "j"),
        "at most 128 in one call": ("lost", "", "", *words * 129),
    }.items():  # fmt: skip
        with pytest.raises(StoreMessage, match=sentence):
            door("release", "", 0, *call)


def test_the_queue_s_own_bound_on_losses_holds_for_a_class_job(core, door: Door):
    core(QueueSet("q", "max-losses", "0"))
    core(ConfigSet("grace-period", "0"))
    door.put("q", "j", retries=5)
    core(back("crashed", popped(core), cause="exit status 3"))
    failed = facts(core)
    assert failed.failure.group == "failed-retries-q"
    assert failed.failure.message == (
        'Job lost its lease 1 times in queue "q": process died with exit status 3 (worker w, attempt 1)'
    )


def needing(jid: str, **more: Any) -> PutWithOptions:
    return PutWithOptions("q", JobWithOptions("k", b"{}", jid, ExtraOptions(needs=1, **more)))


OLDER, NEWER = 0, 4


def test_a_job_that_needs_a_newer_worker_waits_for_one_at_no_cost(core, clock, door: Door):
    core(needing("j"))
    door.put("q", "plain")
    clock.advance(seconds=1)
    assert [job.jid for job in door.pop("old", "q", n=5, mode=OLDER)] == ["plain"]
    job = door.job("j")
    assert job is not None
    assert (job.state, job.attempts, job.due_ms) == ("scheduled", 0, clock.now_ms + 1000)
    assert (job.history[-1].what, job.history[-1].reason) == (
        "unknown", "worker old has level 0, and the job needs level 1",
    )  # fmt: skip
    check = next(one for one in explanation(core(Explain("j"))).checks if one.check == "unknown")
    assert check.text == (
        "It needs a worker of a newer release of holdfast: worker old has level 0, and the job needs level 1 (0 ms ago)."
    )
    clock.advance(seconds=1)
    [job] = door.pop("new", "q", n=5, mode=NEWER)
    assert (job.jid, job.attempt) == ("j", 1)


def test_the_pauses_of_a_job_that_needs_a_newer_worker_grow_and_it_never_fails(core, clock, door: Door):
    core(needing("j"))
    pauses: list[int] = []
    for _ in range(9):
        assert door.pop("old", "q", n=5) == []
        job = door.job("j")
        assert job is not None
        pauses.append(job.due_ms - clock.now_ms)
        clock.advance(days=1)
    assert pauses == [1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000, 60000]
    assert [job.jid for job in door.pop("new", "q", mode=NEWER)] == ["j"]


def test_a_lost_job_is_left_to_a_worker_that_understands_it_and_gives_its_slots_back(core, clock, door: Door):
    core(needing("j", throttles=["t"]))
    core(ThrottleSet("t", 1))
    assert len(door.pop("new", "q", mode=NEWER, lease=1000)) == 1
    clock.advance(seconds=1)
    assert door.pop("old", "q") == []
    clock.advance(seconds=60)
    assert door.pop("old", "q") == []
    core(PutWithOptions("q", JobWithOptions("k", b"{}", "other", ExtraOptions(throttles=["t"]))))
    assert [job.jid for job in door.pop("old", "q", n=5)] == ["other"]
    assert door.state("j") == "scheduled"


def test_levels_that_are_none_are_refused(core, door: Door):
    with pytest.raises(StoreMessage, match="mode: expected"):
        door.pop("w", "q", mode=64)
    with pytest.raises(StoreMessage, match="needs"):
        door("put_x", "", 0, "new", "q", 0, 0, 0, "j", "k", "{}", 1, "needs", 16)
