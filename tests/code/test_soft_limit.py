"""Soft limits: an exception in the job, where it is, in every way that a job may be performed (workers.md 13)."""

import asyncio
import signal
import threading
import time

import pytest

import holdfast
from holdfast.code.soft_limit import checked, limited
from holdfast.errors import JobTimedOutError, PerformTimeout, UsageError
from waiting import until

never = threading.Event()


def hang(done: list[str]) -> str:
    try:
        while True:
            never.wait(0.01)
    except PerformTimeout as error:
        done.append(str(error))
        return "in its own way"


def in_thread(call):
    """What `call` answers or raises in a thread of its own."""
    found = []

    def run():
        try:
            found.append(call())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    return found[0]


@pytest.mark.parametrize("where", [lambda call: call(), in_thread])
def test_code_that_takes_too_long_is_told_where_it_is_and_may_end_in_its_own_way(where):
    done = []
    assert where(lambda: limited(hang, 0.05)(done)) == "in its own way"
    assert done == ["the job ran longer than its soft limit of 0.05 seconds"]


def spin():
    while True:
        pass


def test_the_limit_of_a_class_job_is_caught_by_its_documented_name_wherever_it_runs():
    def job():
        try:
            spin()
        except JobTimedOutError:
            return "caught"

    async def coroutine():
        try:
            await asyncio.sleep(1000)
        except JobTimedOutError:
            return "caught"

    call = limited(job, 0.05, JobTimedOutError)
    assert call() == in_thread(call) == "caught"
    assert asyncio.run(limited(coroutine, 0.05, JobTimedOutError)()) == "caught"


def test_code_that_does_not_catch_it_ends_by_it():
    with pytest.raises(PerformTimeout, match="soft limit"):
        limited(spin, 0.05)()
    raised = in_thread(limited(spin, 0.05))
    assert type(raised).__name__ == "PerformTimeout"
    assert isinstance(raised, PerformTimeout)
    assert "soft limit of 0.05" in str(raised)


@pytest.mark.parametrize("where", [lambda call: call(), in_thread])
def test_code_that_ends_in_time_is_never_told(where):
    call = limited(lambda: time.sleep(0.005) or "done", 0.005)
    # Whether it comes just before the end or just after, it never comes later.
    for _ in range(50):
        found = where(lambda: (try_it(call), spin_a_little())[0])
        assert found in ("done", "told")


def try_it(call):
    try:
        return call()
    except PerformTimeout:
        return "told"


def spin_a_little():
    return sum(range(1000))


def test_an_alarm_that_was_running_goes_on_afterwards():
    rang = []
    before = signal.signal(signal.SIGALRM, lambda *_: rang.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        assert limited(lambda: "done", 5)() == "done"
        until(lambda: rang, "the alarm rang")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


async def ahang(done: list[str]) -> str:
    try:
        await asyncio.sleep(60)
    except PerformTimeout as error:
        done.append(str(error))
    await asyncio.sleep(0)
    return "in its own way"


async def agroup(done: list[str]) -> None:
    async def child() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            done.append("child")

    async with asyncio.TaskGroup() as group:
        group.create_task(child())


def test_a_coroutine_is_told_where_it_waits():
    done: list[str] = []
    assert asyncio.run(limited(ahang, 0.05)(done)) == "in its own way"
    assert "soft limit" in done[0]


def test_a_coroutine_that_does_not_catch_it_takes_its_tasks_along():
    done: list[str] = []
    with pytest.raises(PerformTimeout, match="soft limit"):
        asyncio.run(limited(agroup, 0.05)(done))
    assert done == ["child"]


def test_a_coroutine_that_is_cancelled_is_cancelled():
    async def story():
        task = asyncio.create_task(limited(ahang, 60)([]))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(story())


def test_what_a_coroutine_awaits_comes_through():
    async def add(a, b):
        await asyncio.sleep(0)
        try:
            await failing()
        except LookupError:
            return a + b

    async def failing():
        await asyncio.sleep(0)
        raise LookupError

    assert asyncio.run(limited(add, 5)(1, 2)) == 3


def test_a_soft_limit_is_shorter_than_the_hard_one():
    assert checked(None, 5.0) is None
    assert checked(2, 5.0) == 2
    app = holdfast.Client("redis://nowhere")
    for options in ({"soft_timeout": 6, "timeout": 5}, {"soft_timeout": 0}, {"soft_timeout": "1"}):
        with pytest.raises(UsageError, match="soft_timeout"):
            app.job(queue="q", name="soft", **options)(lambda: None)
