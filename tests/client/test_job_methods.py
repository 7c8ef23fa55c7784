"""python-api 4.4: what a job can be told, what it answers, and who is told of it in this program."""

import logging
import time

import pytest
from sync_async import Async

from holdfast import (
    DependencyRefused,
    HoldfastError,
    JobNotFound,
    LeaseLost,
    LostLockError,
    QueueFull,
    UsageError,
    WrongState,
)


def put(do, jid, queue="mail", **options):
    return do(lambda: do.client.queues[queue].put("app.K", {"n": 1}, jid=jid, **options))


def popped(do, jid="j", queue="mail", **options):
    put(do, jid, queue, **options)
    return do(do.client.queues[queue].pop)


def fetched(do, jid="j"):
    return do(lambda: do.client.jobs[jid])


def tell(do, act, jid="j"):
    job = fetched(do, jid)
    return do(lambda: act(job))


def test_each_call_is_made_under_the_name_the_job_was_popped_with(do):
    job = popped(do)
    before = job.worker_name
    do.client.worker_name = "renamed"
    assert do(job.heartbeat) > time.time()
    assert do(job.retry) == 4
    job = do(do.client.queues["mail"].pop)
    assert (job.worker_name, before == "renamed") == ("renamed", False)
    do.client.worker_name = before
    assert do(lambda: job.fail("g", "m")) == "j"


def test_complete_answers_its_state_or_true_when_the_job_goes_on(do):
    job = popped(do, tags=["red"], priority=3)
    job["n"] = 2
    assert do(lambda: job.complete("ship")) is True
    later = do(do.client.queues["ship"].pop)
    assert (later.jid, later["n"], later.retries_left, later.tags, later.priority) == ("j", 2, 5, ["red"], 3)
    assert do(later.complete) == "complete"


def test_a_job_goes_on_in_the_named_queue_with_its_delay_and_dependencies(do):
    put(do, "p", "other")
    job = popped(do)
    assert do(lambda: job.complete("ship", delay=60, depends=["p"])) is True
    waiting = fetched(do)
    assert (waiting.queue_name, waiting.state, waiting.dependencies) == ("ship", "depends", ["p"])
    parent = do(do.client.queues["other"].pop)
    do(parent.complete)
    assert fetched(do).state == "scheduled"
    assert "next" not in do(lambda: do.client.queues.names)


@pytest.mark.parametrize("extra", [{"delay": 0}, {"delay": 5}, {"depends": ["p"]}])
def test_delay_and_dependencies_need_a_next_queue(do, extra):
    job = popped(do)
    with pytest.raises(UsageError, match="next queue"):
        do(lambda: job.complete(**extra))
    assert fetched(do).state == "running"


def test_who_lost_a_job_cannot_settle_it_and_changes_nothing(do):
    old = popped(do)
    tell(do, lambda job: job.move("post"))
    new = do(do.client.queues["post"].pop)
    for act in (old.complete, lambda: old.complete("x"), lambda: old.fail("g"), old.retry, old.heartbeat):
        with pytest.raises(LeaseLost) as refused:
            do(act)
        assert isinstance(refused.value, LostLockError)
        assert isinstance(refused.value, HoldfastError)
        assert "j" in str(refused.value)
    assert (fetched(do).state, fetched(do).token) == ("running", new.token)
    assert not old.state_changed


def test_a_job_that_was_not_popped_or_is_gone_cannot_be_settled(do):
    put(do, "j")
    job = fetched(do)
    for act in (job.complete, lambda: job.fail("g"), job.retry, job.heartbeat):
        with pytest.raises(HoldfastError):
            do(act)
    do(job.cancel)
    for act in (job.complete, lambda: job.fail("g"), job.retry, job.heartbeat):
        with pytest.raises(HoldfastError):
            do(act)


def test_fail_saves_the_data_warns_and_keeps_the_job(do, caplog):
    job = popped(do)
    job.data = {"n": 9}
    with caplog.at_level(logging.WARNING, "holdfast"):
        assert do(lambda: job.fail("mail-Error", "it broke")) == "j"
    assert "j" in caplog.text
    assert "mail-Error" in caplog.text
    failed = fetched(do)
    assert (failed.state, failed["n"]) == ("failed", 9)
    assert (failed.failure["group"], failed.failure["message"]) == ("mail-Error", "it broke")
    assert failed.failure["worker"] == do.client.worker_name
    assert failed.failure["when"] == pytest.approx(time.time(), abs=25)
    put(do, "j")
    assert fetched(do).state == "waiting"


def test_retry_costs_a_retry_and_keeps_the_queue(do):
    job = popped(do, retries=1)
    assert do(lambda: job.retry(60)) == 0
    assert (fetched(do).state, fetched(do).queue_name) == ("scheduled", "mail")
    tell(do, lambda job: job.move("mail"))
    job = do(do.client.queues["mail"].pop)
    assert do(job.retry) == 0
    job = do(do.client.queues["mail"].pop)
    assert do(job.retry) < 0
    failed = fetched(do)
    assert (failed.state, failed.failure["group"]) == ("failed", "failed-retries-mail")


def test_retry_tells_the_failure_only_if_group_and_message_are_given(do):
    job = popped(do)
    assert do(lambda: job.retry(0, "mine", "why")) == 4
    assert fetched(do).failure["group"] == "mine"
    put(do, "k", "post")
    job = do(do.client.queues["post"].pop)
    assert do(lambda: job.retry(group="mine")) == 4
    assert fetched(do, "k").failure == {}
    job = do(do.client.queues["post"].pop)
    assert do(lambda: job.retry(message="why")) == 3
    assert fetched(do, "k").failure == {}


def test_heartbeat_saves_the_data_and_tells_the_new_end(do):
    job = popped(do)
    job.expires_at = 0.0
    job["n"] = 5
    end = do(job.heartbeat)
    assert end == job.expires_at == pytest.approx(time.time() + 30, abs=30)
    assert isinstance(end, float)
    assert fetched(do)["n"] == 5


def test_move_takes_a_job_from_any_state_and_keeps_what_it_has(do):
    job = popped(do, tags=["red"], throttles=["gpu"], priority=3, retries=2)
    job["n"] = 4
    assert do(lambda: job.move("post", delay=60)) == "j"
    moved = fetched(do)
    assert (moved.queue_name, moved.state, moved.klass_name, moved["n"]) == ("post", "scheduled", "app.K", 4)
    assert (moved.tags, moved.throttles, moved.priority) == (["red"], ["gpu", "ql:q:post"], 3)
    assert (moved.retries_left, moved.original_retries) == (2, 2)
    with pytest.raises(LeaseLost):
        do(job.heartbeat)


def test_move_takes_a_queue_dependencies_and_local_changes_along(do):
    put(do, "p", "other")
    put(do, "j", throttles=["gpu"])
    job = fetched(do)
    job.klass_name, job.throttles = "app.Other", ["cpu"]
    assert do(lambda: job.move(do.client.queues["post"], depends=["p"])) == "j"
    moved = fetched(do)
    assert (moved.klass_name, moved.throttles, moved.dependencies) == (
        "app.Other",
        ["cpu", "ql:q:post"],
        ["p"],
    )
    assert (moved.state, moved.queue_name) == ("depends", "post")


def test_a_job_that_waits_keeps_waiting_where_it_is_moved(do):
    put(do, "p", "other")
    put(do, "c", "other")
    put(do, "j", depends=["p"])
    tell(do, lambda job: job.move("post"))
    assert (fetched(do).state, fetched(do).dependencies) == ("depends", ["p"])
    tell(do, lambda job: job.requeue("post", depends=["c"]))
    assert fetched(do).dependencies == ["c"]
    assert (fetched(do, "p").dependents, fetched(do, "c").dependents) == ([], ["j"])


def test_requeue_changes_what_it_is_given_and_keeps_the_rest(do):
    put(do, "j", tags=["red"], throttles=["gpu"], priority=3, retries=2)
    job = fetched(do)
    assert do(lambda: job.requeue(do.client.queues["post"])) == "j"
    same = fetched(do)
    assert (same.tags, same.throttles, same.priority, same.original_retries) == (
        ["red"],
        ["gpu", "ql:q:post"],
        3,
        2,
    )
    assert (same.data, same.klass_name) == ('{"n":1}', "app.K")
    do(
        lambda: same.requeue(
            "mail", delay=60, data={"n": 2}, priority=0, tags=[], retries=0, throttles=["x", "y"]
        )
    )
    other = fetched(do)
    assert (other.tags, other.throttles, other.priority) == ([], ["x", "y", "ql:q:mail"], 0)
    assert (other.original_retries, other.retries_left, other["n"], other.state) == (0, 0, 2, "scheduled")
    do(lambda: other.requeue("mail", throttles=[]))
    assert fetched(do).throttles == ["ql:q:mail"]


def test_requeue_does_not_take_dependents_for_dependencies(do):
    put(do, "j")
    put(do, "child", depends=["j"])
    tell(do, lambda job: job.requeue("post"))
    assert (fetched(do).dependencies, fetched(do).dependents, fetched(do).state) == ([], ["child"], "waiting")


def test_a_cancelled_job_is_not_made_again_by_moving_it(do):
    put(do, "j")
    job = fetched(do)
    do(job.cancel)
    for act in (lambda: job.requeue("post"), lambda: job.move("post")):
        with pytest.raises(JobNotFound, match="does not exist"):
            do(act)
    assert fetched(do) is None
    put(do, "j")
    assert fetched(do).state == "waiting"


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"dely": 1}, "did you mean 'delay'"), ({"delay": -1}, "delay"), ({"priority": "high"}, "priority"),
        ({"tags": "red"}, "tags"), ({"retries": 1001}, "retries"), ({"throttles": [""]}, "throttles"),
        ({"depends": 3}, "depends"), ({"data": "text"}, "JSON"),
    ],
)  # fmt: skip
def test_what_a_requeue_cannot_take_is_named_and_nothing_changes(do, options, named):
    put(do, "j")
    with pytest.raises(UsageError, match=named):
        tell(do, lambda job: job.requeue("post", **options))
    assert fetched(do).queue_name == "mail"


def test_a_move_into_a_circle_is_refused(do):
    put(do, "j")
    put(do, "child", depends=["j"])
    for parents in (["j"], ["child"]):
        with pytest.raises(DependencyRefused):
            tell(do, lambda job, parents=parents: job.move("post", depends=parents))
    assert (fetched(do).queue_name, fetched(do).state) == ("mail", "waiting")


def test_cancel_answers_the_jids_asked_for_even_if_there_is_nothing_to_cancel(do):
    put(do, "j")
    job = fetched(do)
    assert do(job.cancel) == ["j"]
    assert fetched(do) is None
    assert do(job.cancel) == ["j"]
    done = popped(do, "d")
    do(done.complete)
    assert do(done.cancel) == ["d"]
    assert fetched(do, "d").state == "complete"


def test_a_job_for_which_another_one_waits_is_not_cancelled(do):
    put(do, "p")
    put(do, "c", depends=["p"])
    with pytest.raises(DependencyRefused):
        do(fetched(do, "p").cancel)
    assert fetched(do, "p") is not None


def test_a_cancelled_job_that_was_tracked_is_listed_as_expired(do):
    put(do, "j")
    job = fetched(do)
    assert [do(job.track), do(job.track)] == [True, False]
    do(job.cancel)
    assert do(do.client.jobs.tracked) == {"jobs": [], "expired": ["j"]}
    assert [do(job.untrack), do(job.untrack)] == [True, False]


def test_tags_are_added_and_removed_and_all_of_them_answered(do):
    put(do, "j")
    job = fetched(do)
    assert do(lambda: job.tag("a", "b")) == ["a", "b"]
    assert do(lambda: job.tag("a")) == ["a", "b"]
    assert do(lambda: job.untag("a", "c")) == ["b"]
    do(job.cancel)
    for act in (lambda: job.tag("x"), lambda: job.untag("x"), job.track, lambda: job.log("x")):
        with pytest.raises(JobNotFound):
            do(act)


def test_dependencies_change_only_while_the_job_waits_for_some(do):
    for jid in ("p", "q"):
        put(do, jid, "other")
    put(do, "j", depends=["p"])
    job = fetched(do)
    assert do(lambda: job.depend("q"))
    assert sorted(fetched(do).dependencies) == ["p", "q"]
    assert do(lambda: job.undepend("p"))
    assert fetched(do).state == "depends"
    assert do(lambda: job.undepend(all=True))
    assert fetched(do).state == "waiting"
    for act in (lambda: job.depend("q"), lambda: job.undepend("q"), lambda: job.undepend(all=True)):
        with pytest.raises(WrongState):
            do(act)


def test_timeout_takes_the_lease_and_offers_the_job_before_others(do):
    job = popped(do)
    put(do, "urgent", priority=9)
    assert do(job.timeout)
    assert fetched(do).state == "stalled"
    with pytest.raises(LeaseLost):
        do(job.heartbeat)
    assert do(do.client.queues["mail"].pop).jid == "j"
    with pytest.raises(WrongState):
        do(fetched(do, "urgent").timeout)


def test_a_logged_line_shows_its_data_in_the_history(do):
    put(do, "j")
    tell(do, lambda job: job.log("seen", {"by": "Ann", "count": 2}))
    entry = fetched(do).history[-1]
    assert (entry["what"], entry["by"], entry["count"]) == ("seen", "Ann", 2)
    assert entry["when"] == pytest.approx(time.time(), abs=25)


ACTS = {
    "complete": lambda job: job.complete(),
    "fail": lambda job: job.fail("g", "m"),
    "retry": lambda job: job.retry(),
    "cancel": lambda job: job.cancel(),
    "requeue": lambda job: job.requeue("post"),
}
ALSO = {
    "move": ("requeue", lambda job: job.move("post")),
    "go on": ("complete", lambda job: job.complete("post")),
}
EVENTS = [*((name, name, act) for name, act in ACTS.items()), *((name, *what) for name, what in ALSO.items())]


@pytest.mark.parametrize(("name", "event", "act"), EVENTS, ids=[event[0] for event in EVENTS])
def test_callbacks_run_around_what_settles_a_job(do, name, event, act):
    job, told = popped(do), []
    assert not job.state_changed
    for when in ("before", "after"):
        for number in (1, 2):

            def callback(given, when=when, number=number):
                told.append((when, number, given is job, given.state_changed))

            assert getattr(job, f"{when}_{event}")(callback) is callback
    for other in set(ACTS) - {event}:
        getattr(job, f"before_{other}")(lambda _: told.append("never"))
        getattr(job, f"after_{other}")(lambda _: told.append("never"))
    do(lambda: act(job))
    assert told == [("before", 1, True, False), ("before", 2, True, False),
                    ("after", 2, True, True), ("after", 1, True, True)]  # fmt: skip
    assert job.state_changed


@pytest.mark.parametrize("event", [name for name in ACTS if name != "cancel"])
def test_what_the_store_refuses_changes_no_state_and_calls_nobody_afterwards(do, event):
    job, told = popped(do), []
    do(lambda: do.client.jobs.cancel("j"))
    getattr(job, f"before_{event}")(lambda _: told.append("before"))
    getattr(job, f"after_{event}")(lambda _: told.append("after"))
    with pytest.raises(HoldfastError):
        do(lambda: ACTS[event](job))
    assert told == ["before"]
    assert not job.state_changed


def test_what_a_callback_changes_is_sent_and_what_it_raises_keeps_the_call_back(do):
    job = popped(do)

    def stamp(given):
        given["stamp"] = True

    job.before_retry(stamp)
    assert do(job.retry) == 4
    assert fetched(do)["stamp"] is True
    job = do(do.client.queues["mail"].pop)

    @job.before_complete
    def refuse(given):
        raise RuntimeError("not yet")

    with pytest.raises(RuntimeError, match="not yet"):
        do(job.complete)
    assert (fetched(do).state, job.state_changed) == ("running", False)


def test_callbacks_of_an_async_job_may_be_coroutines(do):
    job, told = popped(do), []
    if isinstance(do, Async):

        async def ask(given):
            told.append((await do.client.jobs[given.jid]).state)

        job.before_complete(ask)
        job.after_complete(ask)
        do(job.complete)
        assert told == ["running", "complete"]


def test_what_does_not_settle_a_job_leaves_it_unchanged(do):
    job = popped(do)
    for act in (job.heartbeat, job.track, lambda: job.tag("a"), lambda: job.log("x"), job.timeout):
        do(act)
    assert not job.state_changed


def test_a_move_is_not_held_up_by_a_full_queue(do):
    do(lambda: do.client.queues["post"].set_bound("max-waiting", 1))
    put(do, "first", "post")
    put(do, "j")
    with pytest.raises(QueueFull):
        put(do, "j", "post")
    assert tell(do, lambda job: job.move("post")) == "j"
