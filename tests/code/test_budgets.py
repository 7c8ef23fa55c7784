"""Job functions pay for failures from `retries` and for losses from `max_losses`, however they are put."""

from collections.abc import Callable

import pytest

from holdfast import Client, UsageError
from holdfast.client.function_jobs import FunctionJob
from holdfast.code.registry import find
from holdfast.commands.outcomes import Fail, Retry
from holdfast.models import JobFacts
from holdfast.worker.performing.outcome import raised


def shout(word: str) -> str:
    return word.upper()


class Chore:
    """A class job."""

    @staticmethod
    def perform(job: object) -> None: ...


@pytest.fixture
def job(client: Client) -> FunctionJob[..., str, str]:
    return client.job(queue="q", retries=2, max_losses=1)(shout)


def row(client: Client, jid: str) -> JobFacts:
    return client.jobs.get(jid)[0].facts


def recurring(client: Client, job: FunctionJob[..., str, str]) -> str:
    jid = job.every(60).put("a").jid
    client.queues["q"].pop()
    return f"{jid}-1"


def follow_up(client: Client, job: FunctionJob[..., str, str]) -> str:
    client.queues["other"].put("jobs.First")
    first = client.queues["other"].pop()
    with first.on_completion():
        handle = job.put("a")
    first.complete()
    return handle.jid


def follow_ups(client: Client, job: FunctionJob[..., str, str]) -> str:
    client.queues["other"].put("jobs.First")
    first = client.queues["other"].pop()
    with first.on_completion():
        handles = job.put_many([("a",), ("b",)])
    first.complete()
    return handles[1].jid


def in_a_batch(client: Client, job: FunctionJob[..., str, str]) -> str:
    with client.batch():
        client.queues["q"].put(Chore, retries=2)
        handle = job.put("a")
    return handle.jid


def put_again(client: Client, job: FunctionJob[..., str, str]) -> str:
    jid = client.queues["q"].put(Chore, jid="mine")
    return client.queues["q"].requeue(job, {"args": ["a"]}, jid=jid)


WAYS: dict[str, Callable[[Client, FunctionJob[..., str, str]], str]] = {
    "put": lambda client, job: job.put("a").jid,
    "put_in": lambda client, job: job.put_in(60, "a").jid,
    "put_at": lambda client, job: job.put_at(0.0, "a").jid,
    "options": lambda client, job: job.options(tags=["red"]).put("a").jid,
    "jid": lambda client, job: job.options(jid="mine").put("a").jid,
    "only_new": lambda client, job: job.options(jid="mine", only_new=True).put("a").jid,
    "put_many": lambda client, job: job.put_many([("a",), ("b",)])[1].jid,
    "put_many with tags": lambda client, job: job.options(tags=["red"]).put_many([("a",)])[0].jid,
    "every": recurring,
    "follow-up": follow_up,
    "follow-ups": follow_ups,
    "batch": in_a_batch,
    "queue.put": lambda client, job: client.queues["q"].put(job, {"args": ["a"]}),
    "queue.put_many": lambda client, job: client.queues["q"].put_many([(job, {"args": ["a"]})])[0],
    "queue.requeue": put_again,
}


@pytest.mark.parametrize("way", WAYS)
def test_every_put_of_a_function_brings_its_budgets(client: Client, job, way: str):
    facts = row(client, WAYS[way](client, job))
    assert (facts.retries, facts.remaining, facts.losses, facts.max_losses) == (2, 2, 0, 1)


def test_a_recurrence_that_is_put_by_its_queue_brings_them_too(client: Client, job):
    client.queues["q"].recur(job, {"args": ["a"]}, 60, jid="t")
    client.queues["q"].pop()
    assert (row(client, "t-1").retries, row(client, "t-1").max_losses) == (2, 1)


def test_without_a_word_a_function_has_no_retries_and_three_losses(client: Client):
    facts = row(client, client.job(queue="q")(shout).put("a").jid)
    assert (facts.retries, facts.max_losses, facts.options) == (0, 3, {})


def test_one_put_may_have_another_number_of_losses(client: Client, job):
    assert row(client, job.options(max_losses=0).put("a").jid).max_losses == 0
    jid = client.queues["q"].put(Chore, max_losses=7)
    assert (row(client, jid).retries, row(client, jid).max_losses) == (5, 7)
    assert client.queues["q"].put_many([("jobs.K", {})], max_losses=2, retries=1)
    [waiting] = [one for one in client.queues["q"].peek(count=9) if one.klass_name == "jobs.K"]
    assert (waiting.facts.retries, waiting.facts.max_losses) == (1, 2)


def test_a_class_job_pays_for_losses_with_its_retries(client: Client):
    assert row(client, client.queues["q"].put(Chore)).max_losses is None


@pytest.mark.parametrize("bad", [-1, 255, 1.5, "3", True])
def test_losses_that_cannot_be_are_refused_before_anything_is_put(client: Client, bad: object):
    for put in (
        lambda: client.job(queue="q", max_losses=bad)(shout),
        lambda: client.queues["q"].put(Chore, max_losses=bad),
        lambda: client.queues["q"].put_many([(Chore, {})], max_losses=bad),
        lambda: client.queues["q"].recur(Chore, {}, 60, max_losses=bad),
        lambda: client.job(queue="q")(shout).options(max_losses=bad).put("a"),
    ):
        with pytest.raises(UsageError, match="max_losses must be"):
            put()
    assert len(client.queues["q"]) == 0


def test_a_job_that_an_older_client_put_for_a_function_without_retries_fails_at_its_first_exception(
    client: Client,
):
    """0.1.0 sent five retries for losses, and no budgets."""
    function = client.job(queue="q")(shout)
    client.queues["q"].put(function.stored_name, {"args": ["a"]})
    facts = client.queues["q"].pop().facts
    assert (facts.remaining, facts.max_losses) == (5, None)
    assert isinstance(raised(facts, find(function.stored_name), ValueError("no")), Fail)


def test_retries_of_the_put_hold_even_where_the_worker_s_function_has_none(client: Client, job):
    job.put("a")
    facts = client.queues["q"].pop().facts
    function = client.job(queue="q", name=job.stored_name)(shout)
    assert isinstance(raised(facts, find(function.stored_name), ValueError("no")), Retry)
