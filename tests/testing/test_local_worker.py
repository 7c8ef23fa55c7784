"""Workers for tests: they perform on demand, in this process, what a real worker would."""

import asyncio

import pytest

from holdfast import AsyncClient, Client, JobFailed, UsageError, WorkError, current_job
from holdfast.testing import AsyncLocalWorker, LocalWorker, StoppedClock, all_put
from holdfast.worker.performing.outcome import Failed, Retry


class Letter:
    """A class job of this test module."""

    sent: list[object] = []

    @staticmethod
    def perform(job):
        Letter.sent.append(job["to"])

    @staticmethod
    def letters(job):
        Letter.sent.append((job["to"], "by the queue's method"))
        job.complete()


class Careless:
    """A class job that forgets to complete its job."""

    @staticmethod
    def process(job):
        pass


def jids(performed):
    return [each.jid for each in performed]


def test_one_job_is_performed_at_a_time_and_none_is_none(crew):
    done = []

    @crew.client.job(queue="mail", name="local_worker.note41")
    def note(number):
        done.append(number)

    handles = [crew(lambda n=n: note.put(n)) for n in (1, 2)]
    first = crew(lambda: crew.worker.run_one())
    assert (first.jid, first.queue, first.state, first.error) == (handles[0].jid, "mail", "complete", None)
    assert done == [1]
    assert crew(lambda: crew.worker.run_one()).jid == handles[1].jid
    assert crew(lambda: crew.worker.run_one()) is None


def test_drain_performs_what_jobs_put_too_and_leaves_delayed_jobs(crew):
    done = []

    @crew.client.job(queue="second", name="local_worker.second56")
    async def second(number):
        done.append(number)

    @crew.client.job(queue="first", name="local_worker.first60")
    async def first(number):
        return (
            await current_job()
            ._client.queues["second"]
            .put(second.registered.name, {"args": [number], "kwargs": {}})
        )

    crew(lambda: first.put(1))
    crew(lambda: first.options(delay=60).put(2))
    performed = crew(lambda: crew.worker.drain())
    assert [each.queue for each in performed] == ["first", "second"]
    assert done == [1]
    assert crew(lambda: crew.worker.drain()) == []


def test_queues_can_be_named_and_are_taken_in_that_order(hire):
    crew = hire(queues=("b", "a"))
    for queue in ("a", "b", "c"):
        crew(lambda queue=queue: crew.client.queues[queue].put("builtins.nothing", jid=queue))
    assert jids(crew(lambda: crew.worker.drain(raises=False))) == ["b", "a"]


def test_plain_and_async_functions_answer_their_results(crew):
    @crew.client.job(queue="sums", name="local_worker.add84")
    def add(a: int, b: int = 1) -> int:
        return a + b

    @crew.client.job(queue="sums", name="local_worker.multiply88")
    async def multiply(a: int, b: int) -> int:
        await asyncio.sleep(0)
        return a * b

    one, two = crew(lambda: add.put(1)), crew(lambda: multiply.put(3, b=4))
    crew(lambda: crew.worker.drain())
    assert crew(lambda: one.result(30)) == 2
    assert crew(lambda: two.result(30)) == 12


def test_a_class_of_a_test_module_is_performed(crew):
    Letter.sent.clear()
    crew(lambda: crew.client.queues["mail"].put(Letter, {"to": "ann"}))
    [performed] = crew(lambda: crew.worker.drain())
    assert Letter.sent == ["ann"]
    assert performed.state == "complete"


def test_a_method_named_like_its_queue_is_taken_where_all_queues_are(crew):
    Letter.sent.clear()
    crew(lambda: crew.client.queues["letters"].put(Letter, {"to": "bob"}))
    [performed] = crew(lambda: crew.worker.drain())
    assert Letter.sent == [("bob", "by the queue's method")]
    assert performed.state == "complete"


def test_a_class_job_that_does_not_settle_stays_as_it_would_in_production(hire):
    crew = hire()
    crew(lambda: crew.client.queues["mail"].put(Careless))
    assert crew(lambda: crew.worker.run_one()).state == "running"
    kind = hire(auto_complete=True)
    crew(lambda: crew.client.queues["mail"].put(Careless))
    assert kind(lambda: kind.worker.run_one()).state == "complete"


def test_a_job_that_fails_is_raised_with_what_its_code_raised(crew):
    @crew.client.job(queue="mail", name="local_worker.broken125")
    def broken():
        raise LookupError("no such letter")

    handle = crew(lambda: broken.put())
    with pytest.raises(JobFailed, match="no such letter") as caught:
        crew(lambda: crew.worker.drain())
    assert caught.value.group == "mail-LookupError"
    assert isinstance(caught.value.__cause__, LookupError)
    assert crew(lambda: crew.client.jobs[handle.jid]).state == "failed"


def test_the_message_of_a_failure_holds_no_frame_of_the_worker(crew):
    @crew.client.job(queue="mail", name="local_worker.broken138")
    def broken():
        raise LookupError("no such letter")

    crew(lambda: broken.put())
    with pytest.raises(JobFailed) as caught:
        crew(lambda: crew.worker.drain())
    assert "holdfast/testing" not in caught.value.message
    assert "holdfast/work" not in caught.value.message


def test_a_failure_that_the_test_expects_is_answered_on_wish(crew):
    @crew.client.job(queue="mail", name="local_worker.broken150")
    async def broken():
        raise LookupError("no such letter")

    @crew.client.job(queue="mail", name="local_worker.refused154")
    def refused():
        return Failed("bounced", "no such address")

    crew(lambda: broken.put())
    crew(lambda: refused.put())
    first, second = crew(lambda: crew.worker.drain(raises=False))
    assert (first.state, first.group, str(first.error)) == ("failed", "mail-LookupError", "no such letter")
    assert (second.state, second.error) == ("failed", None)
    assert (second.group, second.message) == ("bounced", "no such address")


def test_a_job_that_will_be_tried_again_is_not_raised(crew):
    @crew.client.job(queue="mail", retries=2, backoff=0, name="local_worker.flaky167")
    def flaky():
        raise LookupError

    crew(lambda: flaky.put())
    assert crew(lambda: crew.worker.run_one()).state == "waiting"
    assert crew(lambda: crew.worker.run_one()).state == "waiting"
    with pytest.raises(JobFailed):
        crew(lambda: crew.worker.run_one())


def test_a_retry_without_retries_left_is_a_failure(crew):
    @crew.client.job(queue="mail", retries=0, name="local_worker.hopeless179")
    def hopeless():
        return Retry()

    crew(lambda: hopeless.put())
    with pytest.raises(JobFailed) as caught:
        crew(lambda: crew.worker.drain())
    assert caught.value.group == "mail-RetriesExhausted"


def test_code_outside_the_project_is_refused_as_in_production(crew):
    crew(lambda: crew.client.queues["mail"].put("json.dumps"))
    with pytest.raises(JobFailed) as caught:
        crew(lambda: crew.worker.drain())
    assert caught.value.group == "mail-NotAllowed"


def test_a_job_that_puts_itself_for_ever_comes_to_an_end(hire):
    crew = hire(most=50)

    @crew.client.job(queue="loop", retries=1000, backoff=0, name="local_worker.again199")
    def again():
        return Retry(after=0)

    crew(lambda: again.put())
    with pytest.raises(WorkError, match="50 jobs were run"):
        crew(lambda: crew.worker.drain())


def test_a_job_that_cancels_itself_is_a_failure_and_the_worker_goes_on(crew):
    @crew.client.job(queue="mail", name="local_worker.cancelled209")
    async def cancelled():
        raise asyncio.CancelledError

    crew(lambda: cancelled.put())
    with pytest.raises(JobFailed):
        crew(lambda: crew.worker.drain())
    assert crew(lambda: crew.worker.drain()) == []


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"queue": "a"}, "did you mean 'queues'"),
        ({"queues": [1]}, "queue must be text"),
        ({"most": 0}, "most must be from 1"),
        ({"queues": "mail"}, "queues must be a list"),
        ({"imports": "shop"}, "imports must be a list"),
    ],
)
def test_an_option_that_cannot_be_is_refused(hire, options, complaint):
    with pytest.raises(UsageError, match=complaint):
        hire(**options)


def test_a_worker_or_clock_for_a_client_of_the_other_colour_is_refused(url):
    blocking, awaited = Client(url), AsyncClient(url)
    for made, other, kind in (
        (LocalWorker, awaited, "Client"),
        (AsyncLocalWorker, blocking, "AsyncClient"),
        (StoppedClock, awaited, "Client"),
        (LocalWorker, 7, "Client"),
        (all_put, 7, "Client or AsyncClient"),
    ):
        with pytest.raises(UsageError, match=rf"client must be a holdfast\.{kind}, not"):
            made(other)


@pytest.mark.parametrize("fails", [False, True])
def test_what_a_job_keeps_back_is_put_when_it_completes_and_not_when_it_fails(crew, fails):
    done = []

    @crew.client.job(queue="later", name="local_worker.later251")
    def later():
        done.append("later")

    name = later.registered.name

    @crew.client.job(queue="first", name="local_worker.first257")
    async def first():
        with current_job().on_completion():
            await current_job()._client.queues["later"].put(name, {})
        done.append("first")
        if fails:
            raise LookupError

    crew(lambda: first.put())
    crew(lambda: crew.worker.drain(raises=False))
    assert done == (["first"] if fails else ["first", "later"])
