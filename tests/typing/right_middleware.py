"""What type checkers must accept of job classes, their decorator and their middleware."""

from typing import assert_type

import holdfast
from holdfast.middleware import (
    ByKlass,
    JobTimedOutError,
    RequeueExceptions,
    RetryExceptions,
    SupportsMiddleware,
    Timeout,
    exponential,
    use_failure_formatter,
)


class Fetch(RetryExceptions, RequeueExceptions, SupportsMiddleware):
    @staticmethod
    @holdfast.retry(ConnectionError, TimeoutError)
    def process(job: holdfast.Job) -> str:
        return "done"

    @classmethod
    def on_retry(cls, error: Exception, job: holdfast.Job) -> None: ...

    @classmethod
    def on_requeue(cls, error: Exception, job: holdfast.Job) -> None: ...


Fetch.retry_on(ConnectionError, lambda error: "down" in str(error), delay=exponential(2))
Fetch.requeue_on(JobTimedOutError, delay_range=(1, 2), max_attempts=3)
RetryExceptions(OSError, delay=5).retry_on(KeyError, delay=lambda attempt, error: attempt * 2.0)
use_failure_formatter(ByKlass())


class Slow(Timeout, SupportsMiddleware):
    @classmethod
    def time_limit(cls, job: holdfast.Job) -> float | None:
        return job.ttl

    @staticmethod
    @holdfast.retry(ConnectionError)
    async def process(job: holdfast.AsyncJob) -> int:
        await job.complete()
        return 7


def by_hand(job: holdfast.Job) -> None:
    assert_type(Fetch.process(job), str)
    assert_type(job.process(), None)


async def awaited(job: holdfast.AsyncJob) -> None:
    assert_type(await Slow.process(job), int)
    assert_type(await job.process(), None)
    assert_type(Fetch.is_requeueable(KeyError), bool)
