"""Function jobs: what the decorator makes, what a put sends, in both colours and with their types."""

import asyncio
import datetime
import json
import logging

import pytest

import holdfast
from holdfast.code import registry
from holdfast.commands.jobs import Outcome
from holdfast.errors import CodecError, UsageError
from holdfast.settings import Settings


class Told:
    """Stands where a client's queues stand, and keeps what it is told. It shows what is sent, not what comes of it."""

    def __init__(self, answer: bytes | None = b"null") -> None:
        self.puts: list[tuple[str, str, object, dict[str, object]]] = []
        self.answer = answer
        self.queue = ""
        self.settings = Settings("redis://nowhere")

    @property
    def queues(self):
        return self

    def __getitem__(self, name):
        self.queue = name
        return self

    def put(self, klass, data, /, **options):
        self.puts.append((self.queue, klass, json.loads(bytes(data)), options))
        return "jid"

    def wait_for(self, jid, timeout=None):
        return Outcome("done", self.answer)


def decorated(function, told=None, **options):
    from holdfast.client.decorating import JobDecorator

    return JobDecorator(told or Told(), options)(function)


def welcome(user_id: int, lang: str = "en") -> str:
    """Say hello."""
    return f"{user_id} {lang}"


def test_a_function_job_is_still_the_function():
    job = decorated(welcome)
    assert job(7, lang="de") == "7 de"
    assert (job.__name__, job.__doc__, job.__module__) == ("welcome", "Say hello.", __name__)


def test_a_put_sends_arguments_and_options():
    told = Told()
    job = decorated(welcome, told, queue="mail", retries=3, priority=2, delay=1.5)
    assert job.put(7, lang="de").jid == "jid"
    job.options(delay=60, queue="slow", jid="mine").put(8)
    assert told.puts == [
        (
            "mail",
            f"{__name__}.welcome",
            {"args": [7], "kwargs": {"lang": "de"}},
            {"priority": 2, "delay": 1.5, "retries": 3, "max_losses": 3},
        ),
        (
            "slow",
            f"{__name__}.welcome",
            {"args": [8], "kwargs": {}},
            {"priority": 2, "delay": 60, "retries": 3, "max_losses": 3, "jid": "mine"},
        ),
    ]


def test_failures_and_losses_have_budgets_of_their_own_when_none_were_given():
    told = Told()
    decorated(welcome, told).put(7)
    assert told.puts[0][3] == {"retries": 0, "max_losses": 3}
    assert told.puts[0][0] == "default"


def test_a_wrong_argument_is_refused_before_anything_is_sent():
    told = Told()
    with pytest.raises(UsageError, match="user_id"):
        decorated(welcome, told).put("seven")
    assert told.puts == []


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"queues": "mail"}, "queues"),
        ({"queue": ""}, "queue"),
        ({"retries": -1}, "retries"),
        ({"retries": 10_000}, "retries"),
        ({"max_losses": -1}, "max_losses"),
        ({"max_losses": 255}, "max_losses"),
        ({"max_losses": "3"}, "max_losses"),
        ({"priority": 1.5}, "priority"),
        ({"delay": -1}, "delay"),
        ({"delay": float("nan")}, "delay"),
        ({"result_keep": -1}, "result_keep"),
        ({"backoff": -1}, "backoff"),
        ({"name": "a\nb"}, "name"),
    ],
)
def test_options_that_cannot_be_are_refused_by_name(options, word):
    with pytest.raises(UsageError, match=word):
        decorated(welcome, **options)


def test_changes_of_a_put_are_checked_by_name():
    with pytest.raises(UsageError, match="delya"):
        decorated(welcome).options(delya=3)


def test_a_job_is_known_by_its_name_or_the_one_it_was_given():
    job = decorated(welcome, name="greet")
    assert registry.find("greet") is job.registered
    assert registry.find("nobody") is None


def test_results_come_back_as_the_function_says_it_returns():
    def day() -> datetime.date: ...

    def nothing() -> None: ...

    assert decorated(day, Told(b'"2024-02-29"')).put().result() == datetime.date(2024, 2, 29)
    assert decorated(nothing, Told(b"null")).put().result() is None
    assert decorated(welcome, Told(None), result_keep=0).put(1).result() is None
    with pytest.raises(holdfast.JobNotFound, match="no result of it is kept"):
        decorated(welcome, Told(None)).put(1).result()
    with pytest.raises(CodecError, match="welcome"):
        decorated(welcome, Told(b"3")).put(1).result()


def test_both_clients_put_what_a_worker_can_read(url, namespace):
    client = holdfast.Client(url, namespace=namespace)
    jid = client.job(queue="mail")(welcome).put(7, "de").jid

    async def put() -> str:
        async with holdfast.AsyncClient(url, namespace=namespace) as other:
            return (await other.job(queue="mail")(welcome).put(7, "de")).jid

    jobs = client.jobs.get(jid, asyncio.run(put()))
    assert [json.loads(job.data) for job in jobs] == [{"args": [7, "de"], "kwargs": {}}] * 2
    assert {job.klass_name for job in jobs} == {f"{__name__}.welcome"}
    client.close()


def test_a_result_that_is_not_there_in_time_is_a_timeout(url, namespace):
    with holdfast.Client(url, namespace=namespace) as client:
        handle = client.job(queue="mail")(welcome).put(7)
        with pytest.raises(TimeoutError, match=handle.jid):
            handle.result(0.05)
        client.jobs.cancel(handle.jid)
        with pytest.raises(holdfast.JobCancelled):
            handle.result(0.05)


def test_data_that_json_cannot_say_is_refused(url, namespace):
    def anything(value: object) -> None: ...

    with holdfast.Client(url, namespace=namespace) as client, pytest.raises(UsageError):
        client.job(queue="mail")(anything).put(object())


def test_another_function_of_the_same_name_is_told_of_and_the_same_one_is_not(caplog):
    def first() -> None: ...
    def second() -> None: ...

    client = holdfast.Client("redis://127.0.0.1:1")
    with caplog.at_level(logging.WARNING, "holdfast"):
        client.job(name="tests.twice")(first)
        client.job(name="tests.twice", retries=2)(first)
        assert not caplog.text
        client.job(name="tests.twice")(second)
    assert "tests.twice" in caplog.text
    assert all(word in caplog.text for word in ("first", "second", __file__))
