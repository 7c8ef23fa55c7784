"""workers.md 9.3: what jobs raise is reported to Sentry, by its own package, and raised on; for both clients."""

import asyncio
import logging
import sys
from datetime import datetime
from types import SimpleNamespace

import pytest
import sentry_sdk
from sentry_sdk.transport import Transport

from holdfast import AsyncClient, ConnectionLost, JobNotFound
from holdfast.commands.jobs import Put
from holdfast.middleware import MiddlewareMisconfigured, RetryExceptions, Sentry, SupportsMiddleware


class Mailbox(Transport):
    """Keeps what would be sent."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[dict] = []

    def capture_envelope(self, envelope) -> None:
        self.events += [item.payload.json for item in envelope.items if item.type == "event"]


@pytest.fixture
def mailbox():
    box = Mailbox()
    with sentry_sdk.isolation_scope():
        sentry_sdk.init("http://key@localhost/1", transport=box, default_integrations=False)
        yield box
        sentry_sdk.init()


class Plain(Sentry, SupportsMiddleware):
    @staticmethod
    def process(job):
        raise ValueError("no stamp")


class Awaited(Sentry, SupportsMiddleware):
    @staticmethod
    async def process(job):
        await asyncio.sleep(0)
        raise ValueError("no stamp")


class Quiet(Sentry, RetryExceptions(ValueError), SupportsMiddleware):
    process = Plain.process


class Loud(RetryExceptions(ValueError), Sentry, SupportsMiddleware):
    process = Plain.process


@pytest.fixture
def klass(do):
    return Awaited if isinstance(do.client, AsyncClient) else Plain


def put_and_pop(do, klass, **options):
    do(lambda: do.client.queues["q"].put(klass, {"to": "Ann"}, **options))
    return do(lambda: do.client.queues["q"].pop())


@pytest.mark.full
def test_what_a_job_raises_is_reported_with_the_job_and_raised_on(do, klass, mailbox):
    job = put_and_pop(do, klass, tags=["letter"], priority=7)
    with pytest.raises(ValueError, match="no stamp"):
        do(lambda: job.perform())
    [event] = mailbox.events
    assert event["exception"]["values"][-1]["type"] == "ValueError"
    name = f"{__name__}.{klass.__name__}"
    assert event["tags"] == {"jid": job.jid, "klass": name, "queue": "q"}
    told = event["contexts"]["job"]
    assert (told["jid"], told["klass"], told["queue"]) == (job.jid, name, "q")
    assert (told["priority"], told["tags"], told["data"]) == (7, ["letter"], {"to": "Ann"})
    assert told["worker"] == job.worker_name
    assert told["history"][0]["what"] == "put"
    assert datetime.fromisoformat(told["history"][0]["when"]).tzinfo is not None


def test_the_job_fails_as_it_would_have_without(do, klass, mailbox):
    job = put_and_pop(do, klass)
    do(lambda: job.process())
    assert do(lambda: do.client.jobs[job.jid]).failure["group"] == "q-ValueError"


def test_a_report_that_cannot_be_made_hides_nothing(do, klass, mailbox, monkeypatch, caplog):
    monkeypatch.setattr(sentry_sdk, "capture_exception", lambda error: 1 / 0)
    job = put_and_pop(do, klass)
    with caplog.at_level(logging.ERROR, "holdfast"), pytest.raises(ValueError, match="no stamp"):
        do(lambda: job.perform())
    assert "could not be reported" in caplog.text


def test_what_the_store_cannot_say_any_more_is_left_out(do, klass, mailbox, monkeypatch):
    job = put_and_pop(do, klass)

    def refuse():
        raise JobNotFound("gone")

    monkeypatch.setattr(job, "load", refuse, raising=False)
    with pytest.raises(ValueError, match="no stamp"):
        do(lambda: job.perform())
    assert mailbox.events[0]["contexts"]["job"]["history"] == []


def test_a_store_that_cannot_be_reached_is_not_waited_for_once_more(client, mailbox, monkeypatch):
    client.queues["q"].put(Plain, {})
    job = client.queues["q"].pop()
    asked = []
    monkeypatch.setattr(job, "load", lambda: asked.append("load"), raising=False)

    def lose(job):
        raise ConnectionLost("no answer")

    with pytest.raises(ConnectionLost):
        Sentry().around_perform(job, lose)
    assert asked == []
    assert mailbox.events[0]["exception"]["values"][-1]["type"] == "ConnectionLost"


def test_its_place_among_the_bases_decides_whether_each_try_is_reported(client, mailbox):
    for klass, reports in ((Quiet, 0), (Loud, 1)):
        client.queues["q"].put(klass, {}, retries=1, jid=klass.__name__)
        client.queues["q"].pop().process()
        assert len(mailbox.events) == reports
        client.jobs[klass.__name__].cancel()


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentry_sdk", None)
    with pytest.raises(MiddlewareMisconfigured, match=r"holdfast-jobs\[sentry\]"):
        Sentry().around_perform(SimpleNamespace(), lambda job: None)


def test_a_job_whose_data_cannot_be_read_is_reported_too(do, klass, mailbox):
    do(lambda: do.client.run(Put("q", f"{klass.__module__}.{klass.__qualname__}", b"\xff")))
    job = do(lambda: do.client.queues["q"].pop())
    with pytest.raises(ValueError, match="no stamp"):
        do(lambda: job.perform())
    [event] = mailbox.events
    assert "not JSON" in event["contexts"]["job"]["data"]
