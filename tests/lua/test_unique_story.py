"""unique: keys of which one job at a time may stand."""

from hashlib import sha1
from typing import Any

import pytest

from holdfast.commands.admin import Sweep
from holdfast.commands.failures import Unfail
from holdfast.commands.jobs import Cancel, Move, Put
from holdfast.commands.operations import Act
from holdfast.commands.options import ExtraOptions, JobWithOptions, PutWithOptions, PutX
from holdfast.commands.outcomes import Retry
from holdfast.commands.queues import Pause, ThrottleSet
from holdfast.errors import DependencyRefused, NotUnique, QueueFull
from native_door import Door

pytestmark = pytest.mark.each


def unique(
    jid: str,
    klass: str = "k",
    data: bytes = b"{}",
    queue: str = "q",
    delay: int = 0,
    priority: int = 0,
    **options: Any,
):
    options.setdefault("unique_key", "a")
    job = JobWithOptions(klass, data, jid, ExtraOptions(**options))
    return PutWithOptions(queue, job, priority=priority, delay_ms=delay)


def chosen(jid: str, **options: Any):
    return PutWithOptions("q", JobWithOptions("k", b"{}", jid, ExtraOptions(**options)), mode="move")


def end(door: Door, *jids: str, fails: bool = False) -> None:
    """Run the jobs that wait, and end those that are named."""
    for job in door.pop("w", "q", n=500):
        if job.jid in jids and fails:
            door("fail", "w", "g", "m", job.jid, job.token, "")
        elif job.jid in jids:
            door("complete", "w", job.jid, job.token, "", 0, "")


def open_jobs(door: Door, *jids: str) -> list[str]:
    return [jid for jid in jids if door.state(jid) not in ("absent", "complete", "failed")]


def many(*jids: str, key: str = "") -> PutX:
    return PutX("q", [JobWithOptions("k", b"{}", jid, ExtraOptions(unique_key=key or jid)) for jid in jids])


def test_a_second_put_is_the_job_that_stands(core, door: Door):
    assert core(unique("one")) == "one"
    found = core(unique("two"))
    assert (found, found.is_new) == ("one", False)
    assert door.job("two") is None
    assert core(unique("three", klass="other")) == "three"
    assert core(unique("four", unique_key="b")) == "four"


def test_a_put_that_is_sent_again_is_itself(core):
    assert core(unique("one")) == core(unique("one")) == "one"


@pytest.mark.parametrize("end", ["complete", "fail", "cancel"])
def test_the_key_is_free_when_its_job_has_ended(core, door: Door, end: str):
    core(unique("one"))
    if end == "cancel":
        core(Cancel(["one"]))
    else:
        [job] = door.pop("w", "q")
        assert core(unique("two")) == "one"
        words = (
            ("complete", "w", "one", job.token, "", 0, "")
            if end == "complete"
            else ("fail", "w", "g", "m", "one", job.token, "")
        )
        door(*words)
    assert core(unique("two")) == "two"
    assert core(unique("three")) == "two"


def test_a_key_may_be_held_until_the_start_alone(core, door: Door):
    core(unique("one", unique_for="start"))
    assert core(unique("two", unique_for="start")) == "one"
    door.pop("w", "q")
    assert core(unique("two", unique_for="start")) == "two"


def test_a_key_may_be_held_for_a_time_whatever_becomes_of_the_job(core, door: Door, clock):
    core(unique("one", unique_for="5000"))
    [job] = door.pop("w", "q")
    door("complete", "w", "one", job.token, "", 0, "")
    clock.advance(seconds=4)
    assert core(unique("two", unique_for="5000")) == "one"
    clock.advance(seconds=1)
    assert core(unique("two", unique_for="5000")) == "two"


def test_the_holder_is_named_where_that_is_an_error(core):
    core(unique("one"))
    with pytest.raises(NotUnique, match="one"):
        core(unique("two", on_conflict="raise"))


def test_a_job_that_has_not_started_is_replaced(core, door: Door, clock):
    core(unique("one", data=b"1", queue="first"))
    clock.advance(seconds=3)
    assert core(unique("two", data=b"2", queue="second", on_conflict="replace", tags=["t"])) == "one"
    job = door.job("one")
    assert job is not None
    assert (job.data, job.queue, job.tags, job.state) == (b"2", "first", ("t",), "waiting")
    assert job.created_ms == clock.now_ms - 3000
    assert door.job("two") is None


def settle(door: Door, job: Any, end: str) -> None:
    """Let the job of a lease end."""
    if end == "cancel":
        door("cancel", "", 0, job.jid)
    elif end == "complete":
        door("complete", "w", job.jid, job.token, "", 0, "")
    else:
        door("fail", "w", "g", "m", job.jid, job.token, "")


@pytest.mark.parametrize("end", ["complete", "fail", "cancel"])
def test_beside_a_job_that_has_started_one_more_waits_for_its_end(core, door: Door, end: str):
    core(unique("one"))
    [running] = door.pop("w", "q")
    assert core(unique("two", data=b"2", on_conflict="replace")) == "two"
    assert core(unique("three", data=b"3", on_conflict="replace")) == "two"
    assert core(unique("four")) == "two"
    assert door.pop("w", "q") == []
    job = door.job("two")
    assert job is not None
    assert (job.state, job.data, job.dependencies) == ("depends", b"3", ("one",))
    settle(door, running, end)
    [second] = door.pop("w", "q")
    assert second.jid == "two"


def test_a_job_that_is_tried_again_runs_before_the_one_that_waits_for_its_end(core, door: Door):
    core(unique("one", data=b"1"))
    [running] = door.pop("w", "q")
    core(unique("two", on_conflict="replace"))
    door("retry", "w", 0, "", "", "one", running.token, "")
    [again] = door.pop("w", "q", n=5)
    assert again.jid == "one"
    core(unique("three", data=b"3", on_conflict="replace"))
    settle(door, again, "complete")
    [second] = door.pop("w", "q", n=5)
    assert (second.jid, second.data) == ("two", b"3")


def test_one_that_waits_for_any_end_keeps_no_job_from_being_cancelled(core, door: Door):
    core(unique("one"))
    door.pop("w", "q")
    core(unique("two", on_conflict="replace"))
    assert core(unique("three", on_conflict="cancel")) == "three"
    assert (door.job("two"), door.state("one"), door.state("three")) == (None, "running", "waiting")
    assert core(Cancel(["one"])) == [True]
    assert core(unique("four", unique_key="b")) == "four"


def test_a_delay_counts_after_the_end_too(core, door: Door, clock):
    core(unique("one"))
    [running] = door.pop("w", "q")
    core(unique("two", on_conflict="replace", delay=5000))
    settle(door, running, "complete")
    assert door.state("two") == "scheduled"
    clock.advance(seconds=5)
    assert [job.jid for job in door.pop("w", "q")] == ["two"]


def test_where_a_key_outlives_its_job_the_new_one_is_ready(core, door: Door):
    core(unique("one", unique_for="5000"))
    [running] = door.pop("w", "q")
    settle(door, running, "complete")
    assert core(unique("two", unique_for="5000", on_conflict="replace")) == "two"
    assert door.state("two") == "waiting"


def test_two_jobs_that_would_wait_for_each_other_are_refused(core, door: Door):
    core(Put("q", "k", jid="parent"))
    core(unique("one", priority=1))
    [running] = door.pop("w", "q")
    assert running.jid == "one"
    door("retry", "w", 0, "", "", "one", running.token, "")
    core(Move("q", "one", depends=["parent"]))
    options = ExtraOptions(unique_key="a", on_conflict="replace")
    with pytest.raises(DependencyRefused):
        core(PutWithOptions("q", JobWithOptions("k", b"{}", "parent", options), mode="move"))
    assert (door.state("one"), door.state("parent")) == ("depends", "waiting")
    assert core(unique("two")) == "one"


def test_a_job_that_is_replaced_again_and_again_starts_in_time(core, door: Door, clock):
    core(unique("one", delay=5000, on_conflict="replace", debounce_max_ms=8000))
    for _ in range(3):
        clock.advance(seconds=2)
        core(unique("two", delay=5000, on_conflict="replace", debounce_max_ms=8000))
    job = door.job("one")
    assert job is not None
    assert job.due_ms == job.created_ms + 8000


def test_the_newest_may_win(core, door: Door):
    core(unique("one"))
    door.pop("w", "q")
    assert core(unique("two", on_conflict="cancel")) == "two"
    assert door.job("one") is None
    assert core(unique("three")) == "two"


def test_a_job_that_others_wait_for_is_not_cancelled_for_a_newer_one(core, door: Door):
    core(unique("one"))
    door.put_waiting("child", "one")
    with pytest.raises(DependencyRefused):
        core(unique("two", on_conflict="cancel"))
    assert door.state("one") == "waiting"


def test_a_put_that_is_refused_for_a_full_queue_changes_nothing(core, door: Door):
    core(unique("one"))
    door("queue_set", "", 0, "q", "max-waiting", 1)
    with pytest.raises(QueueFull):
        core(unique("two", on_conflict="cancel"))
    assert door.state("one") == "waiting"
    with pytest.raises(QueueFull):
        core(unique("three", unique_key="b"))
    door("queue_set", "", 0, "q", "max-waiting", 5)
    assert core(unique("four", unique_key="b")) == "four"


def test_keys_hold_within_one_call(core):
    jobs = [
        JobWithOptions("k", b"{}", jid, ExtraOptions(unique_key=key))
        for jid, key in (("a", "1"), ("b", "1"), ("c", "2"))
    ]
    assert core(PutX("q", jobs)) == ["a", "a", "c"]


def test_a_failed_job_whose_key_was_taken_stays_failed_and_others_go_on(core, door: Door):
    jids = [f"j{number}" for number in range(5)]
    for jid in jids:
        core(unique(jid, unique_key=jid))
    for job in door.pop("w", "q", n=5):
        door("fail", "w", "g", "m", job.jid, job.token, "")
    for jid in jids[:2]:
        core(unique(f"new-{jid}", unique_key=jid))
    assert core(Unfail("q", "g", 3)) == 3
    assert [door.state(jid) for jid in jids] == ["failed", "failed", "waiting", "waiting", "waiting"]
    for jid in jids[:2]:
        core(Cancel([f"new-{jid}"]))
    assert core(Unfail("q", "g", 3)) == 2
    assert core(unique("another", unique_key="j0")) == "j0"


def test_keys_of_jobs_that_ended_are_swept(core, door: Door):
    core(unique("one"))
    core(unique("two", unique_key="b"))
    core(Cancel(["one"]))
    for _ in range(300):
        core(Sweep())
    kept = [door.ask("HLEN", name) for name in door.ask("KEYS", door.key("X:*"))]
    assert sum(kept) == 1


def test_keys_of_ended_jobs_that_are_kept_are_not_swept(core, door: Door):
    core(unique("failed"))
    end(door, "failed", fails=True)
    for _ in range(300):
        core(Sweep())
    core(unique("new"))
    assert core(Unfail("q", "g", 5)) == 0
    assert open_jobs(door, "failed", "new") == ["new"]


def test_a_storm_of_keys_is_swept_in_few_calls(core, door: Door):
    for first in range(0, 6000, 200):
        jids = [f"j{number}" for number in range(first, first + 200)]
        core(many(*jids))
        for at in (0, 100):
            core(Cancel(jids[at : at + 100]))
    assert sum(core(Sweep()) for _ in range(40)) > 5900


@pytest.mark.parametrize("how", ["unfail", "act", "act reversed"])
def test_of_failed_jobs_of_one_key_one_is_retried(core, door: Door, how: str):
    for jid in ("one", "two", "three"):
        core(unique(jid))
        end(door, jid, fails=True)
    if how == "unfail":
        assert core(Unfail("q", "g", 5)) == 1
    else:
        jids = ["three", "two", "one"] if how == "act reversed" else ["one", "two", "three"]
        results = core(Act("retry", [(jid, "") for jid in jids]))
        assert sorted(type(one).__name__ for one in results) == ["NotUnique", "NotUnique", "bool"]
    assert len(open_jobs(door, "one", "two", "three")) == 1


@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.parametrize("how", ["move", "act"])
def test_an_ended_job_whose_key_was_taken_is_not_moved(core, door: Door, fails: bool, how: str):
    core(unique("one"))
    end(door, "one", fails=fails)
    core(unique("two"))
    if how == "move":
        with pytest.raises(NotUnique, match="two"):
            core(Move("other", "one"))
    else:
        assert isinstance(core(Act("move", [("one", "other")]))[0], NotUnique)
    core(Cancel(["two"]))
    assert core(Move("other", "one")) == "one"
    assert core(unique("three")) == "one"


def test_how_long_a_key_is_held_is_up_to_its_holder(core, door: Door):
    core(unique("until its end"))
    door.pop("w", "q")
    assert core(unique("two", unique_for="start")) == "until its end"
    core(unique("until its start", unique_key="b", unique_for="start"))
    door.pop("w", "q")
    assert core(unique("three", unique_key="b")) == "three"


def test_a_job_that_gave_up_its_key_at_its_start_may_be_retried(core, door: Door):
    core(unique("one", unique_for="start"))
    end(door, "one", fails=True)
    core(unique("two", unique_for="start"))
    assert core(Unfail("q", "g", 5)) == 1
    assert core(unique("three", unique_for="start")) == "two"


def test_a_complete_job_is_left_alone_where_its_key_is_taken_for_a_newer_one(core, door: Door):
    core(unique("one", unique_for="60000"))
    end(door, "one")
    assert core(unique("two", unique_for="60000", on_conflict="cancel")) == "two"
    assert door.state("one") == "complete"


def test_a_job_that_is_replaced_waits_neither_for_itself_nor_for_one_that_waits_for_it(core, door: Door):
    core(unique("one"))
    door.put_waiting("child", "one")
    for parent in ("one", "child"):
        with pytest.raises(DependencyRefused):
            core(unique("two", on_conflict="replace", depends=[parent]))
    assert door.state("one") == "waiting"


def test_a_replaced_job_holds_its_key_as_long_as_the_last_put_asked_for(core, door: Door):
    core(unique("one"))
    core(unique("two", on_conflict="replace", unique_for="start"))
    door.pop("w", "q")
    assert core(unique("three", unique_for="start")) == "three"


@pytest.mark.parametrize("key", ["b", ""])
def test_a_job_that_is_put_again_with_another_key_gives_back_the_first(core, door: Door, key: str):
    core(chosen("one", unique_key="a"))
    core(chosen("one", unique_key=key))
    assert core(unique("two", unique_key="a")) == "two"
    assert core(unique("three", unique_key=key or "c")) == ("one" if key else "three")


def test_a_job_that_is_put_again_with_its_key_keeps_it(core, door: Door):
    core(chosen("one", unique_key="a"))
    core(chosen("one", unique_key="a"))
    assert core(unique("two", unique_key="a")) == "one"
    core(Put("q", "k", jid="one", mode="only"))
    assert core(unique("two", unique_key="a")) == "one"


def test_many_jobs_with_keys_in_one_call_are_all_put_or_met(core, door: Door):
    jids = [f"j{number}" for number in range(100)]
    assert core(many(*jids)) == jids
    assert core(many(*jids)) == jids
    assert door.ask("ZCARD", door.key("w:q")) == 100
    assert core(many("new", "newer", key="j7")) == ["j7", "j7"]
    assert core(many("other", "j3")) == ["other", "j3"]
    assert [job.jid for job in door.pop("w", "q", n=101)] == [*jids, "other"]


def test_a_program_that_is_limited_to_a_queue_meets_no_job_of_another(core, door: Door):
    core(unique("one", queue="secret"))
    for how in ("keep", "raise", "replace", "cancel"):
        with pytest.raises(NotUnique) as refused:
            core(unique("two", on_conflict=f"own {how}"))
        assert "one" not in str(refused.value).split()
    assert (door.state("one"), door.state("two")) == ("waiting", "absent")
    core(unique("three", unique_key="b"))
    assert core(unique("four", unique_key="b", on_conflict="own keep")) == "three"


@pytest.mark.parametrize(
    "how", ["scheduled", "depends", "throttled", "paused", "running", "stalled", "moved", "edited", "retried"]
)
def test_a_job_that_has_not_ended_keeps_its_key(core, door: Door, clock, how: str):
    delay, options = 60_000 * (how == "scheduled"), {}
    if how == "depends":
        door.put("q", "parent", delay=60_000)
        options["depends"] = ["parent"]
    if how == "throttled":
        core(ThrottleSet("t", 1))
        core(unique("other", unique_key="other", throttles=["t"]))
        door.pop("w", "q")
        options["throttles"] = ["t"]
    core(unique("one", delay=delay, **options))
    if how in ("throttled", "running", "stalled", "retried"):
        taken = door.pop("w", "q")
        if how == "retried":
            core(Retry("w", taken[0], delay_ms=5000))
    if how == "paused":
        core(Pause(["q"]))
    if how == "stalled":
        clock.advance(seconds=600)
    if how == "moved":
        core(Move("elsewhere", "one"))
    if how == "edited":
        core(Act("data", [("one", sha1(b"{}").hexdigest() + '{"n":1}')]))
    assert core(unique("two")) == "one"
    with pytest.raises(NotUnique, match="one"):
        core(unique("two", on_conflict="raise"))
    assert core(unique("two", on_conflict="cancel")) == "two"
    assert (door.state("one"), door.state("two")) == ("absent", "waiting")


def test_the_key_of_a_job_that_came_too_late_is_free(core, door: Door, clock):
    core(unique("one", expires_ms=1000))
    clock.advance(seconds=2)
    assert door.pop("w", "q") == []
    assert core(unique("two")) == "two"
    assert core(Unfail("q", "q-Expired", 5)) == 0


@pytest.mark.parametrize("how", ["unfail", "act"])
def test_of_five_hundred_failed_jobs_those_whose_key_was_taken_stay_and_no_other(core, door: Door, how: str):
    jids = [f"j{number}" for number in range(500)]
    for at in range(0, 500, 250):
        core(many(*jids[at : at + 250]))
    for _ in range(10):
        for job in door.pop("w", "q", n=50):
            door("fail", "w", "g", "m", job.jid, job.token, "")
    taken = jids[:100]
    core(
        PutX("new", [JobWithOptions("k", b"{}", f"new-{jid}", ExtraOptions(unique_key=jid)) for jid in taken])
    )
    if how == "unfail":
        assert [core(Unfail("q", "g", 200)) for _ in range(3)] == [200, 200, 0]
    else:
        left, results = [(jid, "") for jid in jids], []
        while left:
            found = core(Act("retry", left[:250]))
            results += found
            left = left[len(found) :]
        assert [jid for jid, one in zip(jids, results, strict=True) if isinstance(one, NotUnique)] == taken
    assert [jid for jid in jids if door.state(jid) == "failed"] == taken


def test_a_debounced_job_is_replaced_although_its_queue_is_paused_and_full(core, door: Door):
    core(unique("one", delay=5000, on_conflict="replace"))
    core(Pause(["q"]))
    door("queue_set", "", 0, "q", "max-waiting", 1)
    assert core(unique("two", data=b"2", delay=5000, on_conflict="replace")) == "one"
    with pytest.raises(QueueFull):
        core(unique("three", unique_key="b", delay=5000, on_conflict="replace"))
    job = door.job("one")
    assert job is not None
    assert (job.data, job.state) == (b"2", "scheduled")


def test_a_plain_put_knows_no_keys(core):
    core(unique("one"))
    assert core(Put("q", "k", jid="two")) == "two"
