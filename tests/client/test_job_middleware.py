"""python-api.md 13.2 and workers.md 9.2, 9.3: middleware of job classes, for both clients."""

import asyncio
import logging
import sys
from contextlib import contextmanager
from typing import Any

import pytest
import redis

import holdfast
from holdfast import AsyncClient, LeaseLost, UsageError
from holdfast.code.middleware import within
from holdfast.middleware import (
    InvalidTimeoutError,
    JobMetrics,
    JobTimedOutError,
    MemoryUsageMonitor,
    MiddlewareMisconfiguredError,
    RedisReconnect,
    RequeueExceptions,
    RetryExceptions,
    SupportsMiddleware,
    Timeout,
    exponential,
)
from holdfast.worker.middleware.limits import memory_used

SEEN: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_seen():
    SEEN.clear()


class Noting:
    """A middleware as a user writes it."""

    @classmethod
    def around_perform(cls, job):
        SEEN.append("outer begins")
        answer = super().around_perform(job)
        SEEN.append("outer ends")
        return answer


class Inner:
    @classmethod
    def around_perform(cls, job):
        SEEN.append("inner begins")
        try:
            return super().around_perform(job)
        finally:
            SEEN.append("inner ends")


class Awaiting:
    @classmethod
    async def around_perform(cls, job):
        SEEN.append("awaiting begins")
        answer = await super().around_perform(job)
        SEEN.append("awaiting ends")
        return answer


class Forgetful:
    @classmethod
    def around_perform(cls, job):
        super().around_perform(job)


class Skipping:
    @classmethod
    def around_perform(cls, job):
        return "skipped"


class Job:
    @staticmethod
    def process(job):
        SEEN.append("process")
        return "value"


class AsyncJob:
    @staticmethod
    async def process(job):
        await asyncio.sleep(0)
        SEEN.append("process")
        return "value"


class Worn(Noting, Inner, Job, SupportsMiddleware): ...


class Bare(Job, SupportsMiddleware): ...


class Lossy(Forgetful, Job, SupportsMiddleware): ...


class Skipped(Skipping, Job, SupportsMiddleware): ...


class Awaited(Awaiting, AsyncJob, SupportsMiddleware): ...


class Unawaited(Forgetful, AsyncJob, SupportsMiddleware): ...


class NoBase(Noting, Job): ...


class BaseNotLast(SupportsMiddleware, Noting, Job): ...


class Plain:
    def around_perform(self, job): ...


class NotOfTheClass(Plain, Job, SupportsMiddleware): ...


class Failing:
    """Raises what its test says."""

    error: Exception = ConnectionError("down")

    @classmethod
    def process(cls, job):
        raise cls.error


class AsyncFailing:
    error: Exception = ConnectionError("down")

    @classmethod
    async def process(cls, job):
        await asyncio.sleep(0)
        raise cls.error


class Decorated:
    process = staticmethod(holdfast.retry(ConnectionError)(Failing.process))


class Retried(RetryExceptions, Failing, SupportsMiddleware):
    @classmethod
    def on_retry(cls, error, job):
        SEEN.append((error, job.jid))


class AsyncRetried(RetryExceptions, AsyncFailing, SupportsMiddleware):
    @classmethod
    async def on_retry(cls, error, job):
        await asyncio.sleep(0)
        SEEN.append((error, job.jid))


Retried.retry_on(ConnectionError)
AsyncRetried.retry_on(ConnectionError)


class Requeued(RequeueExceptions, Failing, SupportsMiddleware):
    @classmethod
    def on_requeue(cls, error, job):
        SEEN.append((error, job.jid))


class AsyncRequeued(RequeueExceptions, AsyncFailing, SupportsMiddleware):
    @classmethod
    async def on_requeue(cls, error, job):
        await asyncio.sleep(0)
        SEEN.append((error, job.jid))


for kind in (Requeued, AsyncRequeued):
    kind.requeue_on(OSError, delay_range=(0, 0), max_attempts=1)
    kind.requeue_on(ConnectionError, delay_range=(0, 0), max_attempts=2)


def put_and_pop(do, klass, data=None, **options):
    jid = do(lambda: do.client.queues["q"].put(klass, data or {}, **options))
    return pop(do, jid)


def pop(do, jid):
    job = do(lambda: do.client.queues["q"].pop())
    assert job.jid == jid
    return job


def of_kind(do, plain, awaited):
    return awaited if isinstance(do.client, AsyncClient) else plain


def again(do, job):
    return do(lambda: do.client.jobs[job.jid])


# The chain.


def test_the_first_base_is_outermost_and_the_method_innermost(do):
    assert do(put_and_pop(do, Worn).perform) == "value"
    assert SEEN == ["outer begins", "inner begins", "process", "inner ends", "outer ends"]


def test_the_base_alone_changes_nothing(do):
    assert do(put_and_pop(do, Bare).perform) == "value"


def test_middleware_that_does_not_return_what_the_method_returned_loses_nothing(do):
    assert do(put_and_pop(do, Lossy).perform) == "value"


def test_middleware_may_keep_the_method_from_running(do):
    assert do(put_and_pop(do, Skipped).perform) == "skipped"
    assert SEEN == []


def test_middleware_may_be_called_by_hand(do):
    job = put_and_pop(do, Worn)
    assert Worn.around_perform(job) == "value"
    assert SEEN == ["outer begins", "inner begins", "process", "inner ends", "outer ends"]


def test_around_an_async_method_middleware_is_async_too(aclient):
    async def story():
        await aclient.queues["q"].put(Awaited)
        assert await (await aclient.queues["q"].pop()).perform() == "value"
        await aclient.close()

    asyncio.run(story())
    assert SEEN == ["awaiting begins", "process", "awaiting ends"]


def test_middleware_that_does_not_await_its_method_is_found_out(aclient):
    async def story():
        await aclient.queues["q"].put(Unawaited)
        job = await aclient.queues["q"].pop()
        with pytest.raises(MiddlewareMisconfiguredError, match="await"):
            await job.perform()
        await aclient.close()

    asyncio.run(story())
    assert SEEN == []


@pytest.mark.parametrize(
    ("klass", "message"),
    [
        (NoBase, "NoBase has middleware without its base: name SupportsMiddleware last"),
        (BaseNotLast, "SupportsMiddleware must be the last base of BaseNotLast, behind Noting"),
        (NotOfTheClass, "around_perform of Plain must be a class method"),
    ],
)
def test_a_class_whose_middleware_cannot_work_fails_its_jobs(do, klass, message):
    job = put_and_pop(do, klass)
    do(lambda: job.process())
    failure = again(do, job).failure
    assert failure["group"] == "q-MiddlewareMisconfigured"
    assert failure["message"].startswith(message)
    assert SEEN == []


def test_middleware_without_its_base_says_so_when_it_is_called_by_hand():
    class Bare(RetryExceptions):
        @staticmethod
        def process(job): ...

    with pytest.raises(
        MiddlewareMisconfiguredError, match=r"Bare has middleware without its base: name SupportsM"
    ):
        Bare.around_perform(None)


# RetryExceptions.


def test_a_named_exception_gives_the_job_back_with_its_failure_and_calls_on_retry(do):
    klass = of_kind(do, Retried, AsyncRetried)
    job = put_and_pop(do, klass, retries=3)
    do(lambda: job.process())
    back = again(do, job)
    assert (back.state, back.retries_left) == ("waiting", 2)
    assert back.failure["group"] == "q-ConnectionError"
    assert "down" in back.failure["message"]
    assert [(klass.error, job.jid)] == SEEN


def test_plain_code_of_an_async_job_is_retried_and_requeued_too(aclient):
    async def story():
        for klass in (Retried, Requeued, Decorated):
            jid = await aclient.queues["q"].put(klass, {}, retries=3)
            await (await aclient.queues["q"].pop()).process()
            back = await aclient.jobs[jid]
            assert back.state == "waiting", klass
            assert await back.cancel() == [jid]
        await aclient.close()

    asyncio.run(story())
    assert len(SEEN) == 2


@pytest.mark.parametrize("how", ["plain", "awaited"])
def test_without_retries_left_the_exception_counts(do, how):
    klass = of_kind(do, Retried, AsyncRetried) if how == "awaited" else Retried
    job = put_and_pop(do, klass, retries=0)
    with pytest.raises(ConnectionError):
        do(lambda: job.perform())
    do(lambda: job.process())
    assert again(do, job).failure["group"] == "q-ConnectionError"
    assert SEEN == []


def test_other_exceptions_are_not_retried(do, monkeypatch):
    klass = of_kind(do, Retried, AsyncRetried)
    monkeypatch.setattr(klass, "error", KeyError("k"))
    job = put_and_pop(do, klass)
    do(lambda: job.process())
    assert again(do, job).state == "failed"


def retried(client, *matchers, klass=Failing, **options):
    """Pop and process a job whose class retries so; the seconds until it is ready again, as the store has it."""

    class Fetch(RetryExceptions, klass, SupportsMiddleware): ...

    sys.modules[__name__].Fetch = Fetch
    Fetch.__qualname__ = "Fetch"
    Fetch.retry_on(*matchers, **options)
    jid = client.queues["q"].put(Fetch, retries=5)
    job = client.queues["q"].pop()
    delays: list[float] = []
    retry = job.retry
    job.retry = lambda delay, group, message: delays.append(delay) or retry(delay, group, message)
    job.process()
    assert client.jobs[jid].retries_left == 4
    client.jobs[jid].cancel()
    return delays


def test_the_delay_is_none_a_number_or_what_a_strategy_says_of_attempt_and_error(client):
    told = []
    assert retried(client, ConnectionError) == [0]
    assert retried(client, ConnectionError, delay=7) == [7]
    assert retried(client, ConnectionError, delay=lambda *args: told.append(args) or 3) == [3]
    assert told == [(1, Failing.error)]


def test_a_strategy_that_cannot_be_used_costs_no_job(client, caplog):
    with caplog.at_level(logging.ERROR, "holdfast"):
        assert retried(client, ConnectionError, delay=lambda attempt, error: "soon") == [0]
        assert retried(client, ConnectionError, delay=lambda attempt, error: 1 / 0) == [0]
    assert caplog.text.count("cannot be used") == 2


def test_a_function_may_say_which_exceptions_are_meant(client):
    assert retried(client, lambda error: "down" in str(error), delay=2) == [2]


def test_exponential_grows_by_its_factor_which_is_its_delay_unless_given():
    error = ValueError()
    assert [exponential(2)(attempt, error) for attempt in (1, 2, 3)] == [2, 4, 8]
    assert [exponential(10, factor=3)(attempt, error) for attempt in (1, 2, 3)] == [10, 30, 90]
    strategy = exponential(100, factor=1, fuzz_factor=0.5)
    waits = [strategy(attempt, error) for attempt in range(1, 200)]
    assert 50 <= min(waits) < 75
    assert 125 < max(waits) <= 150


@pytest.mark.parametrize(
    "arguments", [{"delay": -1}, {"delay": 1, "factor": "x"}, {"delay": 1, "fuzz_factor": 2}]
)
def test_an_exponential_that_cannot_be_is_refused(arguments):
    with pytest.raises(UsageError):
        exponential(**arguments)


@pytest.mark.parametrize(
    ("matchers", "options"), [((), {}), ((7,), {}), ((KeyboardInterrupt,), {}), ((KeyError,), {"delay": "x"})]
)
def test_what_cannot_be_retried_is_refused_at_once(matchers, options):
    with pytest.raises(UsageError):
        RetryExceptions().retry_on(*matchers, **options)


def test_an_object_may_stand_among_the_bases_and_does_not_share_its_settings():
    class One(RetryExceptions(ConnectionError, delay=5), Failing, SupportsMiddleware): ...

    class Two(RetryExceptions(KeyError), Failing, SupportsMiddleware): ...

    assert [rule[0] for rule in One._retried] == [ConnectionError]
    assert [rule[0] for rule in Two._retried] == [KeyError]
    assert RetryExceptions._retried == ()


def test_an_object_performs_by_what_it_is_given(client):
    client.queues["q"].put(Failing, retries=2)
    job = client.queues["q"].pop()
    assert RetryExceptions(ConnectionError).around_perform(job, Failing.process) is None
    assert client.jobs[job.jid].retries_left == 1


class Settling(RetryExceptions(Exception), RequeueExceptions, SupportsMiddleware):
    """Ends in ways about which nothing can be done any more."""

    @staticmethod
    def process(job):
        if job["lost"]:
            raise LeaseLost("lost")
        job.complete()
        raise ConnectionError("after its end")


Settling.requeue_on(Exception, delay_range=(0, 0), max_attempts=9)


@pytest.mark.parametrize(("lost", "error"), [(True, LeaseLost), (False, ConnectionError)])
def test_what_a_job_raises_that_is_lost_or_settled_is_raised_on(client, lost, error):
    client.queues["q"].put(Settling, {"lost": lost})
    job = client.queues["q"].pop()
    with pytest.raises(error):
        job.perform()
    again = client.jobs[job.jid]
    assert again.state == ("running" if lost else "complete")
    assert "requeues_by_exception" not in again.data


# RequeueExceptions.


def test_a_named_exception_requeues_the_job_counts_it_and_costs_no_retry(do):
    klass = of_kind(do, Requeued, AsyncRequeued)
    job = put_and_pop(do, klass, {"to": "ann"}, retries=2)
    do(lambda: job.process())
    back = again(do, job)
    assert (back.state, back.queue_name, back.retries_left) == ("waiting", "q", 2)
    assert back["requeues_by_exception"] == {"ConnectionError": 1}
    assert back["to"] == "ann"
    assert [(klass.error, job.jid)] == SEEN


def test_after_so_many_attempts_the_exception_counts(do):
    klass = of_kind(do, Requeued, AsyncRequeued)
    job = put_and_pop(do, klass)
    for count in (1, 2):
        do(lambda job=job: job.process())
        assert again(do, job)["requeues_by_exception"] == {"ConnectionError": count}
        job = pop(do, job.jid)
    do(lambda: job.process())
    failed = again(do, job)
    assert failed.failure["group"] == "q-ConnectionError"
    assert failed["requeues_by_exception"] == {"ConnectionError": 2}


def test_subclasses_count_under_the_name_that_was_registered(do, monkeypatch):
    klass = of_kind(do, Requeued, AsyncRequeued)
    monkeypatch.setattr(klass, "error", FileNotFoundError("x"))
    job = put_and_pop(do, klass)
    do(lambda: job.process())
    assert again(do, job)["requeues_by_exception"] == {"OSError": 1}


def test_the_delay_is_random_within_the_range(client):
    worn = RequeueExceptions(ConnectionError, delay_range=(30, 60), max_attempts=1)
    client.queues["q"].put(Failing, {})
    job = client.queues["q"].pop()
    delays: list[float] = []
    move = job.move
    job.move = lambda queue, delay: delays.append(delay) or move(queue, delay)
    worn.around_perform(job, Failing.process)
    assert 30 <= delays[0] <= 60
    assert client.jobs[job.jid].state == "scheduled"


def test_a_job_whose_data_has_no_room_for_counts_is_not_requeued(do):
    klass = of_kind(do, Requeued, AsyncRequeued)
    for data in ([1], {"requeues_by_exception": "many"}):
        job = put_and_pop(do, klass, data)
        do(lambda job=job: job.process())
        assert again(do, job).failure["group"] == "q-ConnectionError"


def test_who_has_lost_the_job_does_not_take_it_from_its_new_holder(client):
    client.queues["q"].put(Requeued, {})
    late = client.queues["q"].pop()
    late.timeout()
    client.worker_name = "another"
    holder = client.queues["q"].pop()
    with pytest.raises(Exception, match=late.jid):
        late.process()
    assert client.jobs[late.jid].worker_name == "another"
    assert holder.heartbeat() > 0


def test_a_type_says_whether_it_is_requeueable_and_can_be_registered_again():
    worn = RequeueExceptions(OSError, delay_range=(1, 2), max_attempts=3)
    worn.requeue_on(KeyError, delay_range=(1, 2), max_attempts=3)
    worn.requeue_on(OSError, delay_range=(3, 4), max_attempts=5)
    assert worn.is_requeueable(FileNotFoundError)
    assert worn.is_requeueable(KeyError("k"))
    assert not worn.is_requeueable(ValueError)
    assert [(rule.name, rule.shortest, rule.max_attempts) for rule in worn._requeued] == [
        ("OSError", 3, 5),
        ("KeyError", 1, 3),
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"delay_range": (2, 1), "max_attempts": 1},
        {"delay_range": (1,), "max_attempts": 1},
        {"delay_range": ("a", "b"), "max_attempts": 1},
        {"delay_range": 5, "max_attempts": 1},
        {"delay_range": (1, 2), "max_attempts": 0},
        {"delay_range": (1, 2), "max_attempts": "many"},
    ],
)
def test_a_requeue_that_cannot_be_is_refused_at_once(options):
    with pytest.raises(UsageError):
        RequeueExceptions(KeyError, **options)


@pytest.mark.parametrize("options", [{"delay_range": (1, 2)}, {"max_attempts": 1}])
def test_both_options_of_a_requeue_are_required(options):
    with pytest.raises(TypeError):
        Requeued.requeue_on(KeyError, **options)


# Timeout, of code that awaits; what happens to other code is in tests/worker.


class Slow(Timeout(lambda job: job["limit"]), SupportsMiddleware):
    @staticmethod
    async def process(job):
        try:
            await asyncio.Event().wait()
        finally:
            SEEN.append("unwound")


class Overriding(Timeout, SupportsMiddleware):
    @classmethod
    def time_limit(cls, job):
        return 0.01

    process = Slow.process


class SlowAndRequeued(Timeout(0.01), RequeueExceptions, SupportsMiddleware):
    process = Slow.process


SlowAndRequeued.requeue_on(JobTimedOutError, delay_range=(0, 0), max_attempts=1)


class Patient(Timeout(60), SupportsMiddleware):
    @staticmethod
    async def process(job):
        raise TimeoutError("its own")


class Quick(Timeout(lambda job: job.ttl), SupportsMiddleware):
    @staticmethod
    def process(job):
        return job.complete()


def processed(aclient, klass, data=None):
    async def story():
        jid = await aclient.queues["q"].put(klass, data or {})
        job = await aclient.queues["q"].pop()
        try:
            await job.process()
            return await aclient.jobs[jid]
        finally:
            await aclient.close()

    return asyncio.run(story())


@pytest.mark.parametrize("klass", [Slow, Overriding])
def test_async_code_that_takes_too_long_is_cancelled_and_fails(aclient, klass):
    failure = processed(aclient, klass, {"limit": 0.01}).failure
    assert failure["group"] == "q-JobTimedOutError"
    assert "ran longer than 0.01 seconds" in failure["message"]
    assert SEEN == ["unwound"]


def test_a_job_that_took_too_long_is_requeued_if_its_class_says_so(aclient):
    job = processed(aclient, SlowAndRequeued)
    assert job.state == "waiting"
    assert job["requeues_by_exception"] == {"JobTimedOutError": 1}


def test_a_timeout_error_of_the_jobs_own_is_not_taken_for_ours(aclient):
    assert processed(aclient, Patient).failure["group"] == "q-TimeoutError"


def test_code_that_ends_in_time_is_left_alone(do):
    job = put_and_pop(do, Quick)
    do(lambda: job.process())
    assert again(do, job).state == "complete"


@pytest.mark.parametrize("limit", [0, -1, "soon", True, float("nan"), float("inf")])
def test_a_limit_that_is_none_fails_the_job(aclient, limit):
    worn = Timeout(lambda job: limit)
    with pytest.raises(InvalidTimeoutError):
        worn.around_perform(None, lambda job: None)
    with pytest.raises(InvalidTimeoutError):
        Timeout(limit)


def test_a_mixin_that_was_given_no_limit_says_so():
    with pytest.raises(MiddlewareMisconfiguredError, match="time_limit"):
        Timeout.around_perform(None, lambda job: None)


def test_what_stands_around_a_job_stands_there_until_its_code_has_ended():
    @contextmanager
    def around():
        SEEN.append("begin")
        try:
            yield
        finally:
            SEEN.append("end")

    async def code(job):
        await asyncio.sleep(0)
        SEEN.append("code")
        raise ValueError

    assert within(around(), lambda job: "plain", None) == "plain"
    with pytest.raises(ValueError):
        asyncio.run(within(around(), code, None))
    assert SEEN == ["begin", "end", "begin", "code", "end"]


# JobMetrics.

TOLD: list[tuple[Any, ...]] = []
measured = JobMetrics(lambda *words: TOLD.append(words), lambda *words: TOLD.append(words))


class Measured(measured, SupportsMiddleware):
    @staticmethod
    def process(job):
        if job["fails"]:
            raise ValueError
        return job.complete()


class MeasuredAwaited(measured, SupportsMiddleware):
    @staticmethod
    async def process(job):
        await asyncio.sleep(0.01)
        if job["fails"]:
            raise ValueError
        await job.complete()


class Unmeasurable(JobMetrics(lambda klass, seconds: 1 / 0, lambda klass: 1 / 0), SupportsMiddleware):
    process = Measured.process


@pytest.mark.parametrize("fails", [False, True])
def test_each_job_is_timed_and_each_completed_one_counted(do, fails):
    TOLD.clear()
    klass = of_kind(do, Measured, MeasuredAwaited)
    do(put_and_pop(do, klass, {"fails": fails}).process)
    name = f"{__name__}.{klass.__name__}"
    timed = [words for words in TOLD if len(words) == 2]
    assert [words[0] for words in timed] == [name]
    assert (0.01 if klass is MeasuredAwaited else 0) <= timed[0][1] < 5
    assert [words for words in TOLD if len(words) == 1] == ([] if fails else [(name,)])


def test_a_metric_that_cannot_be_told_costs_nothing_but_a_line_in_the_log(do, caplog):
    job = put_and_pop(do, Unmeasurable, {"fails": False})
    with caplog.at_level(logging.ERROR, "holdfast"):
        do(lambda: job.process())
    assert again(do, job).state == "complete"
    assert caplog.text.count("could not be reported") == 2


# MemoryUsageMonitor and RedisReconnect; what a worker does when it has grown too large is in tests/worker.


def test_what_a_process_uses_is_known_in_kilobytes():
    before = memory_used()
    assert 10_000 < before < 10_000_000
    block = bytearray(64 * 1024 * 1024)
    block[::4096] = b"x" * len(block[::4096])
    assert memory_used() - before > 32 * 1024


def test_a_program_that_is_no_worker_is_only_told_that_it_has_grown(client, caplog):
    client.queues["q"].put(Failing, {})
    with caplog.at_level(logging.WARNING, "holdfast"), pytest.raises(ConnectionError):
        MemoryUsageMonitor(1).around_perform(client.queues["q"].pop(), Failing.process)
    assert "more than 1 KB: it ends after its jobs" in caplog.text


@pytest.mark.parametrize("limit", [0, -1, "1 GB", None])
def test_a_limit_of_memory_that_cannot_be_is_refused(limit):
    with pytest.raises(UsageError, match="max_memory"):
        MemoryUsageMonitor(limit)


def test_the_given_clients_have_fresh_connections_for_each_job(client, url):
    other = redis.Redis.from_url(url)
    before = other.client_id()
    assert other.client_id() == before
    told = RedisReconnect(other, client).around_perform(None, lambda job: other.client_id())
    assert told != before
    other.close()


def test_clients_of_an_event_loop_and_what_has_no_connections_are_refused(aclient):
    with pytest.raises(UsageError, match="blocking"):
        RedisReconnect(aclient).around_perform(None, lambda job: None)
    with pytest.raises(UsageError, match="no connections"):
        RedisReconnect("redis://somewhere")
