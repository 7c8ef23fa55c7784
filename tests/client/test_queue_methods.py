"""python-api 9.2 and 9.3: what a queue can be told and asked."""

import time
from datetime import UTC, date, datetime

import pytest
from sync_async import Async

import holdfast
from holdfast import (
    AsyncQueue,
    Client,
    JobExists,
    JobNotFound,
    LeaseLost,
    Queue,
    RecurringJob,
    Throttle,
    UsageError,
)
from holdfast.client.plans import stopped
from holdfast.client.recurring import AsyncRecurringJob
from holdfast.client.throttles import AsyncThrottle
from holdfast.commands.views import ListSet
from holdfast.testing import StoppedClock
from holdfast.testing.clock import START_MS


class Sync:
    """The snippet of 9.2."""

    @staticmethod
    def default_job_options(data):
        return {"priority": 10, "delay": 100}


class Choosy:
    """Says everything that a class can say."""

    @staticmethod
    def default_job_options(data):
        return {
            "jid": f"choosy-{data['id']}", "delay": 60, "priority": 7, "tags": ["a"], "retries": 2, "depends": [],
            "throttles": ["gpu"], "offset": 30, "backlog": 3,
        }  # fmt: skip


class Wrong:
    default_job_options = staticmethod(lambda data: ["priority", 10])


class Unknown:
    default_job_options = staticmethod(lambda data: {"prioritie": 10})


def found(do, jid):
    return do(lambda: do.client.jobs[jid])


def jids(jobs):
    return [job.jid for job in jobs]


def test_a_queue_can_be_made_by_name_client_and_worker_name(do):
    kind = AsyncQueue if isinstance(do, Async) else Queue
    queue = kind("mail", do.client)
    assert (queue.name, queue.worker_name) == ("mail", do.client.worker_name)
    do.client.worker_name = "box-7"
    assert queue.worker_name == "box-7"
    assert kind("mail", do.client, "own").worker_name == "own"
    queue.worker_name = "pinned"
    do.client.worker_name = "box-8"
    do(lambda: queue.put("K"))
    assert do(queue.pop).worker_name == queue.worker_name == "pinned"


def test_queues_are_equal_by_name_and_client_and_to_their_name(do):
    queue, again = do.client.queues["mail"], do.client.queues["mail"]
    assert queue == again == "mail"
    assert hash(queue) == hash(again) == hash("mail")
    assert queue != do.client.queues["post"]
    assert queue != type(queue)("mail", object())
    assert queue != 7
    assert (str(queue), "mail" in repr(queue), len(repr(queue)) < 40) == ("mail", True, True)


def test_counts_are_one_mapping_of_all_states(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.put("K"))
    counts = do(lambda: queue.counts)
    expected = {"name": "mail", "waiting": 1, "running": 0, "stalled": 0, "throttled": 0, "scheduled": 0,
                "depends": 0, "recurring": 0, "paused": False}  # fmt: skip
    assert {name: counts[name] for name in expected} == expected


def test_the_heartbeat_of_a_queue_is_its_own_or_that_of_all_or_a_minute(do):
    queue = do.client.queues["mail"]
    assert do(lambda: queue.heartbeat) == 30
    do(lambda: do.client.config.set("heartbeat", 30))
    assert do(lambda: queue.heartbeat) == 30
    if isinstance(do, Async):
        do(lambda: queue.set_heartbeat(15))
    else:
        queue.heartbeat = 15
    assert do(lambda: queue.heartbeat) == 15
    do(lambda: queue.put("K"))
    assert do(queue.pop).ttl == pytest.approx(15, abs=3)
    assert do(lambda: do.client.queues["post"].heartbeat) == 30


def test_the_jobs_of_a_queue_are_viewed_by_state(do):
    queue, views = do.client.queues["mail"], do.client.queues["mail"].jobs
    do(lambda: queue.put("K", jid="run"))
    do(queue.pop)
    do(lambda: queue.put_many([{"klass": "K", "jid": f"later-{n}", "delay": 60 + n} for n in range(4)]))
    do(lambda: queue.put("K", jid="child", depends=["run"]))
    do(lambda: queue.recur("K", interval=60, offset=60, jid="often"))
    do(lambda: queue.throttle.set_maximum(1))
    do(lambda: queue.put("K", jid="aside"))
    assert views.name == "mail"
    assert queue.jobs is queue.jobs
    assert do(views.running) == ["run"]
    assert do(views.stalled) == []
    assert do(views.scheduled) == [f"later-{n}" for n in range(4)]
    assert do(lambda: views.scheduled(1, 2)) == ["later-1", "later-2"]
    assert do(lambda: views.scheduled(offset=4)) == do(lambda: views.scheduled(0, 0)) == []
    assert (do(views.depends), do(views.recurring), do(views.throttled)) == (["child"], ["often"], ["aside"])
    assert not hasattr(views, "waiting")


def test_a_view_answers_25_unless_told_otherwise_and_more_than_a_page(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.put_many([("K", n) for n in range(1100)], delay=60))
    first = do(queue.jobs.scheduled)
    everything = do(lambda: queue.jobs.scheduled(0, 2000))
    assert (len(first), len(everything), len(set(everything))) == (25, 1100, 1100)
    assert everything[:25] == first
    assert do(lambda: queue.jobs.scheduled(600, 3)) == everything[600:603]
    assert do(lambda: queue.jobs.scheduled(1099, 25)) == everything[1099:]
    with pytest.raises(UsageError, match="offset"):
        do(lambda: queue.jobs.scheduled(-1))


def test_a_lease_that_merely_ran_out_is_viewed_and_counted_as_stalled_while_its_job_says_running(
    do, url, namespace
):
    queue = do.client.queues["mail"]
    with Client(url, namespace=namespace) as other:
        clock = StoppedClock(other, START_MS)
        clock.start()
        do(lambda: queue.put("K", jid="j"))
        do(queue.pop)
        clock.advance(seconds=61)
        counts = do(lambda: queue.counts)
        assert (found(do, "j").state, counts["running"], counts["stalled"]) == ("running", 0, 1)
        assert (do(queue.jobs.running), do(queue.jobs.stalled)) == ([], ["j"])
        assert do(queue.length) == 1


def test_a_lease_that_was_taken_away_makes_a_stalled_job(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.put("K", jid="j"))
    do(lambda: queue.put("K", jid="k"))
    held = do(lambda: queue.pop(2))
    do(held[0].timeout)
    assert (found(do, "j").state, do(queue.jobs.running)) == ("stalled", ["k"])


def test_a_delayed_job_keeps_its_priority_and_a_timed_out_one_goes_to_the_front(do, url, namespace):
    queue = do.client.queues["mail"]
    with Client(url, namespace=namespace) as other:
        clock = StoppedClock(other, START_MS)
        clock.start()
        do(lambda: queue.put("K", jid="lost"))
        held = do(queue.pop)
        do(lambda: queue.put("K", jid="later", delay=10, priority=5))
        do(lambda: queue.put("K", jid="now", priority=1))
        assert do(queue.pop).jid == "now"
        clock.advance(seconds=11)
        do(lambda: queue.put("K", jid="soon", priority=4))
        do(held.timeout)
        assert jids(do(lambda: queue.pop(9))) == ["lost", "later", "soon"]


def test_the_throttle_of_a_queue_bounds_how_many_of_its_jobs_run(do):
    queue = do.client.queues["mail"]
    assert isinstance(queue.throttle, Throttle | AsyncThrottle)
    assert queue.throttle.name == "ql:q:mail"
    assert do(lambda: queue.max_concurrency) == 0
    if isinstance(do, Async):
        do(lambda: queue.set_max_concurrency(2))
    else:
        queue.max_concurrency = 2
    assert do(lambda: queue.max_concurrency) == do(lambda: queue.throttle.facts()).maximum == 2
    do(lambda: queue.put_many([("K", n) for n in range(3)]))
    assert len(do(lambda: queue.pop(3))) == 2
    with pytest.raises(UsageError, match="max_concurrency"):
        do(lambda: queue.set_max_concurrency(-1))


def test_put_answers_the_jid_given_or_a_new_one_and_knows_its_defaults(do):
    queue = do.client.queues["mail"]
    assert do(lambda: queue.put("K", "{}", jid="mine")) == "mine"
    job = found(do, do(lambda: queue.put("K", {"a": [1]})))
    assert (job.priority, job.tags, job.state, job.original_retries) == (0, [], "waiting", 5)
    assert (job.dependencies, job.throttles, job.data) == ([], ["ql:q:mail"], '{"a":[1]}')
    assert found(do, "mine").data == "{}"


def test_put_takes_its_options_by_place_too(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.put("K", "{}", 0, [], 0, 5, "p"))
    jid = do(lambda: queue.put("K", "{}", 3, ["red"], 0, 1, "j", ["p"], ["gpu"]))
    job = found(do, jid)
    assert (jid, job.priority, job.tags, job.original_retries) == ("j", 3, ["red"], 1)
    assert (job.dependencies, job.throttles) == (["p"], ["gpu", "ql:q:mail"])


def test_no_retries_are_honoured(do):
    queue = do.client.queues["mail"]
    jid = do(lambda: queue.put("K", retries=0))
    assert found(do, jid).original_retries == 0
    job = do(queue.pop)
    assert do(job.retry) < 0


def test_a_put_of_an_existing_jid_moves_it_and_replaces_what_it_had(do):
    first, second = do.client.queues["mail"], do.client.queues["post"]
    do(lambda: first.put("K", {"a": 1}, jid="j", priority=3, tags=["red"], retries=2, throttles=["gpu"]))
    held = do(first.pop)
    assert do(lambda: second.put("L", {"b": 2}, jid="j")) == "j"
    job = found(do, "j")
    assert (job.queue, job.klass_name, job.data, job.state) == ("post", "L", '{"b":2}', "waiting")
    assert (job.priority, job.tags, job.original_retries) == (0, [], 5)
    assert job.throttles == ["ql:q:post"]
    assert do(lambda: do.client.jobs.tagged("red"))["total"] == 0
    with pytest.raises(LeaseLost):
        do(held.complete)


def test_a_job_that_must_be_new_is_left_alone(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.put("K", {"a": 1}, jid="j", tags=["red"]))
    assert do(lambda: queue.put("K", {"a": 1}, jid="j", only_new=True, priority=9)) == "j"
    assert (found(do, "j").tags, found(do, "j").priority) == (["red"], 0)
    with pytest.raises(JobExists, match="j"):
        do(lambda: queue.put("K", {"a": 2}, jid="j", only_new=True))


def test_requeue_puts_a_job_that_exists_and_no_other(do):
    queue = do.client.queues["mail"]
    with pytest.raises(JobNotFound, match="does not exist"):
        do(lambda: queue.requeue("K", "{}", jid="j"))
    assert found(do, "j") is None
    do(lambda: queue.put("K", {"a": 1}, jid="j", tags=["red"], priority=3))
    job = do(queue.pop)
    do(lambda: job.fail("g", "m"))
    assert do(lambda: do.client.queues["post"].requeue("L", {"b": 2}, jid="j", retries=1)) == "j"
    job = found(do, "j")
    assert (job.state, job.queue, job.klass_name, job.data) == ("waiting", "post", "L", '{"b":2}')
    assert (job.tags, job.priority, job.original_retries) == ([], 0, 1)
    assert do(do.client.jobs.failed) == {}
    for options, named in (({}, "jid"), ({"jid": "j", "delai": 1}, "did you mean 'delay'")):
        with pytest.raises(UsageError, match=named):
            do(lambda options=options: queue.requeue("K", "{}", **options))


def test_recur_answers_the_jid_and_puts_by_its_interval(do):
    queue = do.client.queues["mail"]
    jid = do(lambda: queue.recur("K", {"a": 1}, 60, 0, 2, ["red"], 3, "daily", ["gpu"], 4))
    template = found(do, "daily")
    assert (jid, template.interval, template.priority, template.tags) == ("daily", 60, 2, ["red"])
    assert (template.retries, template.throttles, template.backlog) == (3, ["gpu", "ql:q:mail"], 4)
    job = do(queue.pop)
    assert (job.jid, job.data, job.priority, job.tags, job.retries_left) == (
        "daily-1",
        '{"a":1}',
        2,
        ["red"],
        3,
    )
    assert do(queue.pop) is None


def test_recur_knows_its_defaults_and_mints_a_jid(do):
    jid = do(lambda: do.client.queues["mail"].recur("K", interval=60))
    template = found(do, jid)
    assert len(jid) == 32
    assert (template.priority, template.tags, template.retries, template.backlog) == (0, [], 5, 0)
    assert (template.data, template.throttles) == ("{}", ["ql:q:mail"])
    assert template.next == pytest.approx(time.time(), abs=25)


@pytest.mark.parametrize(
    "options", [{}, {"interval": 0}, {"interval": -5}, {"interval": "often"}, {"interval": None}]
)
def test_recur_needs_an_interval(do, options):
    with pytest.raises(UsageError, match="interval"):
        do(lambda: do.client.queues["mail"].recur("K", "{}", **options))
    assert do(lambda: do.client.queues.names) == []


def test_a_negative_offset_makes_up_what_was_missed_up_to_the_backlog(do):
    one, two = do.client.queues["one"], do.client.queues["two"]
    do(lambda: one.recur("K", interval=60, offset=-150, jid="all"))
    do(lambda: two.recur("K", interval=60, offset=-150, jid="some", backlog=1))
    assert jids(do(lambda: one.pop(9))) == ["all-1", "all-2", "all-3"]
    assert len(do(lambda: two.pop(9))) < 3


def test_recurring_again_replaces_all_but_the_count(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.recur("K", interval=60, jid="r", tags=["red"]))
    do(queue.pop)
    do(lambda: queue.recur("L", interval=30, jid="r"))
    again = found(do, "r")
    assert (again.klass_name, again.interval, again.tags, again.count) == ("L", 30, [], 1)


def test_what_travels_with_a_job_travels_with_one_that_recurs(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.recur("K", interval=60, backoff=5, timeout=30, result_keep=10))
    job = do(queue.pop)
    assert (job.facts.options["limit"], job.facts.options["keep"]) == (30_000, 10_000)
    with pytest.raises(UsageError, match="only_new"):
        do(lambda: queue.recur("K", interval=60, only_new=True))


def test_pop_answers_a_job_or_none_or_a_list(do):
    queue = do.client.queues["mail"]
    assert do(queue.pop) is None
    assert do(lambda: queue.pop(3)) == []
    for jid in "abc":
        do(lambda jid=jid: queue.put("K", jid=jid))
    assert do(lambda: queue.pop(0)) == []
    assert do(queue.pop).jid == "a"
    assert jids(do(lambda: queue.pop(count=5))) == ["b", "c"]


def test_peek_looks_without_taking(do):
    queue = do.client.queues["mail"]
    assert do(queue.peek) is None
    assert do(lambda: queue.peek(count=3)) == []
    for jid in "abcd":
        do(lambda jid=jid: queue.put("K", jid=jid))
    assert (do(queue.peek).jid, do(lambda: queue.peek(1)).jid) == ("a", "b")
    assert jids(do(lambda: queue.peek(count=2))) == ["a", "b"]
    assert jids(do(lambda: queue.peek(1, 2))) == ["b", "c"]
    assert do(lambda: queue.peek(count=0)) == []
    assert do(queue.length) == 4


def test_a_paused_queue_hands_out_nothing(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.put("K"))
    assert do(lambda: queue.paused) is False
    do(queue.pause)
    assert do(lambda: queue.paused) is True
    assert do(queue.pop) is None
    do(queue.unpause)
    assert do(queue.pop)


def test_pausing_may_take_away_what_runs(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.put_many([("K", n) for n in range(300)]))
    held = do(lambda: queue.pop(300))
    do(held[0].complete)
    do(lambda: queue.pause(stop_jobs=True))
    counts = do(lambda: queue.counts)
    assert (counts["running"], counts["paused"]) == (0, True)
    with pytest.raises(LeaseLost):
        do(held[1].heartbeat)
    assert found(do, held[-1].jid).state == "stalled"
    do(queue.unpause)
    assert len(do(lambda: queue.pop(300)) + do(lambda: queue.pop(300))) == 299


def test_pausing_alone_lets_running_jobs_finish(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.put("K"))
    job = do(queue.pop)
    do(queue.pause)
    assert do(job.complete) == "complete"


def test_the_length_counts_what_waits_runs_and_is_scheduled(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.put("K", jid="run"))
    do(queue.pop)
    do(lambda: queue.put("K"))
    do(lambda: queue.put("K", delay=60))
    do(lambda: queue.put("K", depends=["run"]))
    do(lambda: queue.recur("K", interval=60, offset=60))
    assert do(queue.length) == 3
    if not isinstance(do, Async):
        assert len(queue) == 3
    assert bool(do.client.queues["empty"])


def test_class_string_names_what_a_put_would_store(do):
    queue = do.client.queues["mail"]
    assert queue.class_string(Sync) == f"{__name__}.Sync"
    assert queue.class_string("any.Name") == "any.Name"
    assert queue.class_string(holdfast.errors) == "holdfast.errors"
    with pytest.raises(UsageError):
        queue.class_string(7)


def test_the_snippet_of_default_job_options(do):
    q = do.client.queues["mail"]
    job = found(do, do(lambda: q.put(Sync, {"id": 4}, delay=10)))
    assert (job.priority, job.state) == (10, "scheduled")
    assert job.facts.due_ms / 1000 == pytest.approx(time.time() + 10, abs=9)


def test_a_class_says_all_options_of_its_jobs_and_arguments_win_one_by_one(do):
    queue = do.client.queues["mail"]
    job = found(do, do(lambda: queue.put(Choosy, {"id": 4})))
    assert (job.jid, job.state, job.priority, job.tags) == ("choosy-4", "scheduled", 7, ["a"])
    assert (job.original_retries, job.throttles) == (2, ["gpu", "ql:q:mail"])
    job = found(
        do, do(lambda: queue.put(Choosy, {"id": 5}, priority=0, tags=[], delay=0, retries=0, throttles=[]))
    )
    assert (job.state, job.priority, job.tags, job.original_retries) == ("waiting", 0, [], 0)
    assert job.throttles == ["ql:q:mail"]
    job = found(do, do(lambda: queue.put(Choosy, {"id": 6}, priority=None, jid="own")))
    assert (job.jid, job.priority) == ("own", 7)


def test_a_class_says_the_options_of_its_recurring_jobs_too(do):
    queue = do.client.queues["mail"]
    template = found(do, do(lambda: queue.recur(Choosy, {"id": 4}, interval=60)))
    assert isinstance(template, RecurringJob | AsyncRecurringJob)
    assert (template.jid, template.priority, template.tags, template.retries) == ("choosy-4", 7, ["a"], 2)
    assert (template.backlog, template.throttles) == (3, ["gpu", "ql:q:mail"])
    assert template.next == pytest.approx(time.time() + 30, abs=25)
    template = found(do, do(lambda: queue.recur(Choosy, {"id": 5}, 60, offset=0, backlog=0, retries=0)))
    assert (template.backlog, template.retries) == (0, 0)
    assert template.next == pytest.approx(time.time(), abs=25)


def test_a_class_by_name_has_no_options(do):
    job = found(do, do(lambda: do.client.queues["mail"].put(f"{__name__}.Choosy", {"id": 4})))
    assert (job.priority, job.state) == (0, "waiting")


@pytest.mark.parametrize(
    ("klass", "named"), [(Wrong, "default_job_options"), (Unknown, "did you mean 'priority'")]
)
def test_options_of_a_class_that_cannot_be_are_named(do, klass, named):
    for ask in (
        lambda: do.client.queues["mail"].put(klass),
        lambda: do.client.queues["mail"].recur(klass, {}, 60),
    ):
        with pytest.raises(UsageError, match=named):
            do(ask)


def test_higher_priorities_come_first_then_the_order_of_the_puts(do):
    queue = do.client.queues["mail"]
    for jid, priority in (("a", 0), ("b", 5), ("c", 0), ("d", 5), ("e", -1)):
        do(lambda jid=jid, priority=priority: queue.put("K", jid=jid, priority=priority))
    assert jids(do(lambda: queue.pop(9))) == ["b", "d", "a", "c", "e"]


def test_statistics_tell_the_day_of_a_queue(do):
    queue = do.client.queues["mail"]
    for jid in ("a", "b", "c"):
        do(lambda jid=jid: queue.put("K", jid=jid))
    held = do(lambda: queue.pop(3))
    do(held[0].complete)
    do(lambda: held[1].fail("g", "m"))
    do(lambda: held[2].fail("g", "m"))
    do(lambda: queue.put("K", jid="c"))
    stats = do(queue.stats)
    assert sorted(stats) == ["failed", "failures", "lost", "retried", "retries", "run", "wait"]
    assert (stats["failures"], stats["failed"], stats["retries"]) == (2, 1, 0)
    for name, count in (("wait", 3), ("run", 1)):
        sample = stats[name]
        assert sorted(sample) == ["count", "histogram", "mean", "std"]
        assert (sample["count"], len(sample["histogram"]), sum(sample["histogram"])) == (count, 148, count)
        assert 0 <= sample["mean"] < 60


def test_statistics_are_asked_for_any_moment_of_a_utc_day(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.put("K"))
    do(queue.pop)
    today = datetime.now(UTC).date()
    for day in (time.time(), today, today.isoformat(), datetime.now(UTC)):
        assert do(lambda day=day: queue.stats(day))["wait"]["count"] == 1
    for day in (date(2001, 1, 1), "2001-01-01", datetime(2001, 1, 1, 23, tzinfo=UTC), 978_400_000.5):
        assert do(lambda day=day: queue.stats(day))["wait"] == {
            "count": 0, "mean": 0.0, "std": 0.0, "histogram": [0] * 148,
        }  # fmt: skip
    with pytest.raises(UsageError, match="date"):
        do(lambda: queue.stats("yesterday"))


def test_a_job_that_ends_while_a_queue_is_stopped_does_not_keep_the_others_running(url, namespace):
    with Client(url, namespace=namespace) as client:
        queue = client.queues["mail"]
        queue.put_many([("K", n) for n in range(5)])
        held = queue.pop(5)

        def ask(command):
            answer = yield from client._plan_of(command)
            if isinstance(command, ListSet) and command.set == "running":
                held[2].complete()
            return answer

        assert client.runner.run(stopped(ask, "mail")) == 4
        assert {found.state for found in client.jobs.get(*jids(held))} == {"stalled", "complete"}
