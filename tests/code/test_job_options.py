"""The options of a function job: which of them travel with each put, and what a worker makes of them."""

import pytest

from holdfast import Client, UsageError
from holdfast.commands.outcomes import OWN_BACKOFF, Retry
from holdfast.models.job import BUDGETED
from holdfast.worker.performing.outcome import Retry as RetryWish
from holdfast.worker.performing.outcome import granted, raised


def row(client: Client, jid: str):
    return client.jobs.get(jid)[0].facts


def shout(word: str) -> str:
    return word.upper()


def test_a_job_with_usual_options_is_put_plainly(client: Client):
    put = client.job(queue="q", retries=3, backoff=lambda attempt, error: 1.0)(shout).put("a")
    facts = row(client, put.jid)
    assert (facts.flags, facts.options, facts.retries, facts.max_losses) == (BUDGETED, {}, 3, 3)


def test_what_was_said_at_the_function_travels_with_each_put(client: Client):
    job = client.job(
        queue="q",
        retries=2,
        backoff=5,
        timeout=9,
        expires=60,
        result_keep=30,
        tags=["red"],
        priority=4,
        delay=7,
    )(shout)
    facts = row(client, job.put("a").jid)
    assert (facts.retries, facts.priority, facts.tags, facts.state) == (2, 4, ("red",), "scheduled")
    assert facts.options == {
        "backoff": "fixed:5000:5000:0", "limit": 9_000, "expires": facts.created_ms + 60_000, "keep": 30_000,
    }  # fmt: skip


def test_one_put_may_differ(client: Client):
    job = client.job(queue="q", backoff=5, timeout=9, tags=["red"])(shout)
    parent = client.queues["q"].put("K")
    changed = job.options(timeout=1, tags=["blue"], depends=[parent], result_keep=0, backoff="exponential")
    facts = row(client, changed.put("a").jid)
    assert facts.options == {"backoff": "exponential:1000:600000:25", "limit": 1_000, "keep": 0}
    assert (facts.tags, facts.dependencies) == (("blue",), (parent,))
    assert row(client, job.put("a").jid).options == {"backoff": "fixed:5000:5000:0", "limit": 9_000}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"backoff": "linear"}, "kind"),
        ({"timeout": -1}, "timeout"),
        ({"expires": "soon"}, "expires"),
        ({"result_keep": -1}, "result_keep"),
        ({"priority": 5_000}, "priority"),
        ({"timout": 1}, "did you mean 'timeout'"),
    ],
)
def test_an_option_that_cannot_be_is_refused_at_the_function(client: Client, options, why):
    with pytest.raises(UsageError, match=why):
        client.job(queue="q", **options)(shout)


def test_a_change_that_cannot_be_is_refused_at_the_put(client: Client):
    job = client.job(queue="q")(shout)
    with pytest.raises(UsageError, match="backoff"):
        job.options(backoff=lambda attempt, error: 1.0).put("a")
    with pytest.raises(
        UsageError, match=r"retries is the same for all puts of a function: give it to @app.job\(retries=…\)"
    ):
        job.options(retries=3)
    with pytest.raises(UsageError, match="no option 'prioritty'; did you mean 'priority'"):
        job.options(prioritty=3)


def popped(client: Client):
    return client.queues["q"].pop().facts


def test_the_job_s_own_backoff_wins_over_the_function_s(client: Client):
    job = client.job(queue="q", retries=5, backoff=lambda attempt, error: 7.0)(shout)
    job.put("a")
    command = raised(popped(client), job.registered, ValueError("no"))
    assert isinstance(command, Retry)
    assert command.delay_ms == 7_000
    job.options(backoff=3).put("b")
    facts = popped(client)
    command = raised(facts, job.registered, ValueError("no"))
    assert isinstance(command, Retry)
    assert command.delay_ms == OWN_BACKOFF
    assert granted(RetryWish(), facts, b"").delay_ms == OWN_BACKOFF
    assert granted(RetryWish(after=0), facts, b"").delay_ms == 0


def test_without_retries_a_function_fails_at_once_whatever_its_backoff(client: Client):
    job = client.job(queue="q", backoff=3)(shout)
    job.put("a")
    assert raised(popped(client), job.registered, ValueError("no")).verb == "fail"


@pytest.mark.parametrize(
    "option",
    [{"tags": "red"}, {"tags": [7]}, {"throttles": 7}, {"timeout": 0}, {"expires": -1}, {"delay": "soon"}],
    ids=repr,
)
def test_options_that_cannot_be_are_refused_where_the_function_is_made_a_job(client: Client, option):
    with pytest.raises(UsageError, match=next(iter(option))):
        client.job(queue="q", **option)(shout)
