"""Middleware of workers (workers.md 9.1): objects around every job, the first outermost, plain or `async def`."""

import asyncio
from types import SimpleNamespace

import pytest
from worker_kit import until

from holdfast import JobFailed
from holdfast.code.current import RunningJob
from holdfast.code.resolver import CodeTarget
from holdfast.errors import MiddlewareMisconfigured, UsageError
from holdfast.middleware import JobMetrics, Sentry
from holdfast.models import JobFacts
from holdfast.worker.performing.chain import (
    Chain,
    Mixable,
    around_fork,
    beside_the_loop,
    checked_middleware,
    own_middleware,
)
from holdfast.worker.settings import WorkerSettings

AROUND = """
import asyncio, inspect, os
import chores
from holdfast import current_job
from holdfast.middleware import JobMetrics, SupportsMiddleware, RetryExceptions


class Plain:
    def __init__(self, name):
        self.name = name

    def after_fork(self):
        chores.note(f"forked {self.name} {os.getpid()}")

    def around_perform(self, job, call_next):
        chores.note(f"{job.klass_name.split('.')[-1]}: {self.name} begins")
        value = call_next(job)
        if inspect.isawaitable(value):
            return self.awaited(job, value)
        chores.note(f"{job.klass_name.split('.')[-1]}: {self.name} ends")
        return value

    async def awaited(self, job, value):
        value = await value
        chores.note(f"{job.klass_name.split('.')[-1]}: {self.name} ends")
        return value


class Awaiting:
    async def around_perform(self, job, call_next):
        chores.note(f"{job.klass_name.split('.')[-1]}: awaiting begins")
        await asyncio.sleep(0)
        value = await call_next(job)
        await asyncio.sleep(0)
        chores.note(f"{job.klass_name.split('.')[-1]}: awaiting ends")
        return value


class Forgetting:
    def around_perform(self, job, call_next):
        call_next(job)


class Guarding:
    \"\"\"Fails jobs that are named so, before or after their code; raises what it raises.\"\"\"

    def around_perform(self, job, call_next):
        if job.klass_name.endswith("before"):
            raise PermissionError("not this one")
        value = call_next(job)
        if job.klass_name.endswith("after"):
            raise PermissionError("not like this")
        return value


class Telling(Guarding):
    def around_perform_in_parent(self, job, call_next):
        name = job.klass_name.split(".")[-1]
        if name == "refused":
            raise PermissionError("not here")
        chores.note(f"parent {os.getpid()}: {name} begins")
        chores.note(f"parent {os.getpid()}: {name} {call_next(job)}")


telling = Telling()
counting = JobMetrics(counter=lambda klass: chores.note(f"counted {klass}"))
first, second, guarding, retrying = Plain("first"), Plain("second"), Guarding(), RetryExceptions(ConnectionError)


@chores.app.job(queue="q", result_keep=60)
def plain(number: int) -> int:
    chores.note("plain: job")
    asyncio.run(asyncio.sleep(0))  # it may have a loop of its own, whoever awaits it
    return number


@chores.app.job(queue="q", result_keep=60)
async def awaited(number: int) -> int:
    await asyncio.sleep(0)
    chores.note("awaited: job")
    return number


class Around:
    @classmethod
    def around_perform(cls, job):
        chores.note("Worn: class begins")
        value = super().around_perform(job)
        chores.note("Worn: class ends")
        return value


class Worn(Around, SupportsMiddleware):
    @staticmethod
    def perform(job):
        chores.note("Worn: job")


@chores.app.job(queue="q")
def before() -> None:
    chores.note("before: job")


@chores.app.job(queue="q")
def refused() -> None:
    chores.note("refused: job")


@chores.app.job(queue="q")
def after() -> None:
    chores.note("after: job")


@chores.app.job(queue="q", retries=5)
def shaky() -> int:
    chores.note(f"shaky: {current_job().attempt}")
    if current_job().attempt < 3:
        raise ConnectionError("down")
    return 3
"""


@pytest.fixture
def around(shop, monkeypatch):
    (shop.here / "around.py").write_text(AROUND)
    import sys

    import around

    yield around
    del sys.modules["around"]


def flags(*names: str) -> list[str]:
    return [word for name in names for word in ("--middleware", f"around:{name}")]


@pytest.mark.full
def test_the_first_middleware_is_outermost_then_that_of_the_class_then_the_job(shop, pool, around):
    worker = shop.start(pool, "-m", "around", *flags("first", "second"))
    assert around.plain.put(5).result(30) == 5
    jid = shop.q.put("around.Worn", {})
    until(lambda: shop.state(jid) == "complete", "the class job is complete")
    assert shop.notes("plain") == [
        "plain: first begins",
        "plain: second begins",
        "plain: job",
        "plain: second ends",
        "plain: first ends",
    ]
    assert shop.notes("Worn") == [
        "Worn: first begins",
        "Worn: second begins",
        "Worn: class begins",
        "Worn: job",
        "Worn: class ends",
        "Worn: second ends",
        "Worn: first ends",
    ]
    forked = (
        [] if pool == "serial" else [f"forked {name} {worker.children()[0]}" for name in ("first", "second")]
    )
    assert shop.notes("forked")[:2] == forked


@pytest.mark.full
def test_plain_and_async_middleware_go_around_plain_and_async_jobs(shop, pool, around):
    shop.start(pool, "-m", "around", *flags("first", "Awaiting", "second", "Forgetting"))
    assert around.plain.put(5).result(30) == 5
    with pytest.raises(JobFailed, match="Forgetting did not await its job") as caught:
        around.awaited.put(6).result(30)
    assert caught.value.group == "q-MiddlewareMisconfigured"
    assert shop.notes("plain") == [
        "plain: first begins",
        "plain: awaiting begins",
        "plain: second begins",
        "plain: job",
        "plain: second ends",
        "plain: awaiting ends",
        "plain: first ends",
    ]


@pytest.mark.full
def test_async_jobs_go_through_plain_and_async_middleware(shop, pool, around):
    shop.start(pool, "-m", "around", *flags("first", "Awaiting", "second"))
    assert around.awaited.put(6).result(30) == 6
    assert shop.notes("awaited") == [
        "awaited: first begins",
        "awaited: awaiting begins",
        "awaited: second begins",
        "awaited: job",
        "awaited: second ends",
        "awaited: awaiting ends",
        "awaited: first ends",
    ]


@pytest.mark.full
def test_an_exception_in_middleware_fails_the_job_and_what_ships_goes_around_functions_too(
    shop, pool, around
):
    shop.start(pool, "-m", "around", *flags("guarding", "retrying"))
    for job, text in ((around.before, "not this one"), (around.after, "not like this")):
        with pytest.raises(JobFailed, match=text) as caught:
            job.put().result(30)
        assert caught.value.group == "q-PermissionError"
    jid = around.shaky.put().jid
    until(lambda: shop.state(jid) == "complete", "it is retried until it works")
    assert shop.notes() == ["after: job", "shaky: 1", "shaky: 2", "shaky: 3"]


@pytest.mark.full
def test_middleware_goes_around_the_fork_in_the_parent_and_learns_how_the_job_ended(shop, around):
    worker = shop.start("fork", "-m", "around", *flags("telling", "first"))
    assert around.plain.put(5).result(30) == 5
    with pytest.raises(JobFailed, match="not this one"):
        around.before.put().result(30)
    with pytest.raises(JobFailed, match="not here") as caught:
        around.refused.put().result(30)
    assert caught.value.group == "q-PermissionError"
    [child] = worker.children()
    assert shop.notes("parent") == [
        f"parent {child}: plain begins",
        f"parent {child}: plain complete",
        f"parent {child}: before begins",
        f"parent {child}: before failed",
    ]
    assert shop.notes("refused") == []
    forked = [int(line.split()[-1]) for line in shop.notes("forked first")]
    assert len(forked) == 3
    assert forked[0] == child
    assert child not in forked[1:]


@pytest.mark.full
def test_middleware_is_told_of_each_function_job_that_was_completed(shop, pool, around):
    shop.start(pool, "-m", "around", *flags("counting", "Awaiting"))
    assert [around.plain.put(5).result(30), around.awaited.put(6).result(30)] == [5, 6]
    until(lambda: len(shop.notes("counted")) == 2, "both are counted")
    assert sorted(shop.notes("counted")) == ["counted around.awaited", "counted around.plain"]


@pytest.mark.full
def test_a_command_is_told_which_middleware_cannot_be(shop, around):
    worker = shop.start("process", "-m", "around", "--middleware", "around:nothing")
    assert worker.wait() == 1
    assert "--middleware around:nothing" in worker.said()
    worker = shop.start("process", "-m", "around", "--middleware", "around:plain")
    assert worker.wait() == 2
    assert "has no method around_perform" in worker.said()


@pytest.mark.full
def test_middleware_are_objects_that_can_go_around_jobs():
    [made] = checked_middleware([Sentry])
    assert isinstance(made, Sentry)
    assert WorkerSettings(("q",), middleware=(Sentry,)).checked().middleware[0].around_perform
    for wrong in ("around", Sentry(), [object()], [int]):
        with pytest.raises(UsageError, match="middleware"):
            checked_middleware(wrong)

    class NeedsWords:
        def __init__(self, words: str) -> None:
            self.words = words

    with pytest.raises(UsageError, match="NeedsWords cannot be created"):
        checked_middleware([NeedsWords])
    assert checked_middleware([JobMetrics()])


class StoreMessage:
    said: list[str]

    def around_perform(self, job):
        self.said.append("mixin begins")
        value = super().around_perform(job)
        self.said.append("mixin ends")
        return value


class SaidAsync:
    said: list[str]

    async def around_perform(self, job):
        await asyncio.sleep(0)
        self.said.append("async mixin begins")
        value = await super().around_perform(job)
        self.said.append("async mixin ends")
        return value


def performed(*middleware: object) -> object:
    """What a plain job answers with this middleware around it."""
    target = CodeTarget(lambda job: "done", None, False, None)
    current = RunningJob(JobFacts("j", "K", "q"), lambda facts: SimpleNamespace(facts=facts))
    surrounded = Chain(middleware).around(target, current, beside_the_loop)
    value = surrounded.call(current.job())
    return asyncio.run(value) if surrounded.is_async else value


def test_mixins_of_a_worker_are_middleware():
    class Mixed(StoreMessage, Mixable):
        said = []

    assert performed(*own_middleware(Mixed())) == "done"
    assert Mixed.said == ["mixin begins", "mixin ends"]
    with pytest.raises(MiddlewareMisconfigured):
        Mixed().around_perform(object())
    assert own_middleware(Mixable()) == ()


@pytest.mark.full
def test_async_mixins_of_a_worker_are_middleware_too():
    class Mixed(SaidAsync, Mixable):
        said = []

    assert performed(*own_middleware(Mixed())) == "done"
    assert Mixed.said == ["async mixin begins", "async mixin ends"]


@pytest.mark.full
def test_middleware_in_the_parent_learns_how_the_job_ended():
    told = []

    class Telling:
        def around_perform_in_parent(self, job, call_next):
            told.append(f"{job} begins")
            told.append(call_next(job))
            told.append("over")

    class Refusing:
        def around_perform_in_parent(self, job, call_next):
            raise PermissionError("no fork")

    around_fork([Telling(), object(), Telling()], lambda: "j", lambda: "failed")
    assert told == ["j begins", "j begins", "failed", "over", "failed", "over"]
    around_fork([], lambda: told.clear(), lambda: told.append("forked") or "complete")
    assert told[-1] == "forked"
    with pytest.raises(PermissionError):
        around_fork([Refusing()], lambda: "j", lambda: told.append("never") or "")
    assert told[-1] == "forked"
