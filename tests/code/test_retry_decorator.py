"""python-api.md 5.5: the retry decorator."""

import asyncio
import inspect
from types import SimpleNamespace

import pytest

import holdfast
from holdfast import UsageError, retry


class Job(SimpleNamespace):
    """What a decorated method is given; it shows what it is told, not what comes of it."""

    def __init__(self, error: Exception | None = None, settled: bool = False) -> None:
        super().__init__(jid="j1", error=error, state_changed=settled, told=[])

    def retry(self, *args: object) -> int:
        self.told.append(("retry", *args))
        self.state_changed = True
        return 4

    def complete(self) -> None:
        self.told.append(("complete",))


class AsyncJob(Job):
    async def retry(self, *args: object) -> int:
        return super().retry(*args)


def download(job):
    if job.error:
        raise job.error


class Fetch:
    @staticmethod
    @holdfast.retry(ConnectionError, TimeoutError)
    def process(job):
        """Fetch something."""
        download(job)
        job.complete()

    @classmethod
    @retry(ConnectionError)
    @retry(TimeoutError)
    def stacked(cls, job):
        download(job)

    @staticmethod
    @retry(ConnectionError)
    async def awaited(job):
        await asyncio.sleep(0)
        download(job)


@pytest.mark.parametrize("error", [ConnectionError(), ConnectionResetError(), TimeoutError()])
@pytest.mark.parametrize("method", [Fetch.process, Fetch.stacked])
def test_a_listed_error_and_its_subclasses_retry_the_job_once_and_without_a_delay(error, method):
    job = Job(error)
    method(job)
    assert job.told == [("retry",)]


def test_without_an_error_nothing_is_retried():
    job = Job()
    Fetch.process(job)
    assert job.told == [("complete",)]


def test_other_errors_propagate():
    job = Job(KeyError("k"))
    with pytest.raises(KeyError):
        Fetch.process(job)
    assert job.told == []


def test_an_async_method_is_retried_too():
    job = AsyncJob(ConnectionError())
    asyncio.run(Fetch.awaited(job))
    assert job.told == [("retry",)]


def test_name_signature_and_docstring_are_kept():
    assert Fetch.process.__name__ == "process"
    assert Fetch.process.__doc__ == "Fetch something."
    assert list(inspect.signature(Fetch.process).parameters) == ["job"]
    assert inspect.iscoroutinefunction(Fetch.awaited)


def test_an_error_after_the_job_has_settled_itself_propagates():
    with pytest.raises(ConnectionError):
        Fetch.process(Job(ConnectionError(), settled=True))


@pytest.mark.parametrize("errors", [(), (KeyError(),), ("KeyError",), (int,), (lambda job: None,)])
def test_what_is_no_exception_class_is_refused(errors):
    with pytest.raises(UsageError, match="retry"):
        retry(*errors)


def test_over_a_class_method_it_says_where_it_belongs():
    with pytest.raises(UsageError, match="staticmethod"):
        retry(KeyError)(classmethod(lambda cls, job: None))


def test_a_retried_job_is_back_in_its_queue(client):
    client.queues["q"].put("shop.Fetch", jid="one", retries=2)
    job = client.queues["q"].pop()
    job.error = ConnectionError()
    Fetch.process(job)
    again = client.jobs["one"]
    assert (again.state, again.retries_left) == ("waiting", 1)


def test_a_function_job_may_wear_it(client, namespace):
    @client.job(queue="q", name=f"{namespace}.fetch", retries=1)
    @retry(ConnectionError)
    def fetch(number: int) -> None:
        raise ConnectionError(number)

    fetch.put(7)
    job = client.queues["q"].pop()
    job.process()
    assert client.jobs[job.jid].state == "waiting"
