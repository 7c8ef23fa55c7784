"""Function jobs: what the decorator makes, what a put sends, in both colours and with their types."""

import asyncio
import datetime
import json

import pytest

import holdfast
from holdfast.code import registry
from holdfast.commands.jobs import Outcome
from holdfast.errors import CodecError, UsageError
from holdfast.settings import Settings


class Told:
    """Stands where a client's queues stand, and keeps what it is told. It shows what is sent, not what comes of it."""

    has_functions = False

    def __init__(self, answer: bytes | None = b"null") -> None:
        self.puts: list[tuple[str, str, object, dict[str, object]]] = []
        self.answer = answer
        self.queue = ""
        self.has_functions = False
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

    if "<locals>" in function.__qualname__:
        options.setdefault("name", f"{__name__}.{function.__name__}")
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
    with pytest.raises(holdfast.JobNotFound, match="its result is not kept"):
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
        client.job(queue="mail", name="tests.anything")(anything).put(object())


def test_a_second_function_of_a_name_is_refused_and_the_same_one_again_is_not():
    def first() -> None: ...
    def second() -> None: ...

    client = holdfast.Client("redis://127.0.0.1:1")
    kept = client.job(name="tests.twice")(first)
    client.job(name="tests.twice", retries=2)(first)
    with pytest.raises(UsageError, match=r"tests\.twice: .*first in .* and .*second in .*another name="):
        client.job(name="tests.twice")(second)
    assert registry.find("tests.twice").function is first is kept._function


def test_a_local_function_of_an_earlier_call_makes_way_and_it_is_logged(caplog):
    def define_one():
        def work() -> None: ...

        return work

    def define_other():
        def work() -> None: ...

        return work

    client = holdfast.Client("redis://127.0.0.1:1")
    client.job(name="tests.local")(define_one())
    client.job(name="tests.local")(define_one())
    assert not caplog.text
    other = define_other()
    client.job(name="tests.local")(other)
    assert registry.find("tests.local").function is other
    assert "define_one" in caplog.text
    assert "define_other" in caplog.text


@pytest.mark.parametrize("function", [lambda: 1, (lambda: welcome)()], ids=["lambda", "global"])
def test_a_function_that_no_worker_could_find_is_refused_when_it_is_decorated(function):
    client = holdfast.Client("redis://127.0.0.1:1")
    if function is welcome:
        assert client.job(function).registered.name == f"{__name__}.welcome"
        return
    with pytest.raises(UsageError, match="no worker could find a lambda"):
        client.job(function)
    assert client.job(name="tests.lambda")(function)() == 1


def test_a_function_inside_a_function_is_refused_unless_it_has_a_name_of_its_own():
    def inner() -> None: ...

    client = holdfast.Client("redis://127.0.0.1:1")
    with pytest.raises(UsageError, match=r"no worker could find inner inside a function: .*name="):
        client.job()(inner)
    assert client.job(name="tests.inner")(inner).registered.name == "tests.inner"


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("delay", "welcome.put"),
        ("send", "welcome.put"),
        ("apply_async", r"welcome.options\(delay=…\).put"),
        ("perform_in", r"welcome.put_in\(seconds"),
    ],
)
def test_a_method_of_another_library_is_refused_with_its_name_here(name, advice):
    with pytest.raises(AttributeError, match=f"no '{name}': write {advice}"):
        getattr(decorated(welcome), name)
    with pytest.raises(AttributeError, match=r"no 'nonsense'$"):
        getattr(decorated(welcome), "nonsense")  # noqa: B009


@pytest.mark.parametrize("kind", [holdfast.Client, holdfast.AsyncClient])
def test_a_text_in_place_of_options_is_refused_with_what_to_write(kind, url, namespace):
    with pytest.raises((UsageError, holdfast.JobNotFound), match=r"@client.job\(queue='mail'\)"):
        kind(url, namespace=namespace).job("mail")(welcome)
    with pytest.raises(UsageError, match=r"@client.job\(queue='mail'\)"):
        kind(url, namespace=namespace).job("mail", retries=3)
