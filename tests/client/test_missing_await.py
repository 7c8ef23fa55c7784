"""What an async handle returns has to be awaited: a RuntimeWarning names the method if it is dropped before."""

import asyncio
import gc
import re
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from holdfast import AsyncClient, AsyncJob
from holdfast.code.unawaited import advice
from waiting import until_async

CALLS: dict[str, Callable[[AsyncClient, Any], object]] = {
    "AsyncClient.run_all": lambda client, job: client.run_all([]),
    "AsyncClient.store_time": lambda client, job: client.store_time(),
    "AsyncConfig.get": lambda client, job: client.config.get("heartbeat"),
    "AsyncJob.complete": lambda client, job: job.complete(),
    "AsyncJob.depend": lambda client, job: job.depend("other"),
    "AsyncJob.heartbeat": lambda client, job: job.heartbeat(),
    "AsyncJob.load": lambda client, job: job.load(),
    "AsyncJob.log": lambda client, job: job.log("line"),
    "AsyncJob.progress": lambda client, job: job.progress(0.5),
    "AsyncJob.read_dependents": lambda client, job: job.read_dependents(),
    "AsyncJob.result": lambda client, job: job.result(),
    "AsyncJob.tag": lambda client, job: job.tag("late"),
    "AsyncJobs.__getitem__": lambda client, job: client.jobs["j"],
    "AsyncQueue.counts": lambda client, job: client.queues["q"].counts,
    "AsyncQueue.pop": lambda client, job: client.queues["q"].pop(),
    "AsyncQueue.put": lambda client, job: client.queues["q"].put("K"),
    "AsyncQueue.put_many": lambda client, job: client.queues["q"].put_many([("K", {})]),
    "AsyncQueues.counts": lambda client, job: client.queues.counts,
    "AsyncQueues.names": lambda client, job: client.queues.names,
    "AsyncTopic.put": lambda client, job: client.topics["t"].put("m", {}),
    "AsyncFunctionJob.put": lambda client, job: client.job(name="f")(print).put(),
}


def warned(found: list[warnings.WarningMessage]) -> list[str]:
    texts = [str(one.message).partition("\n")[0] for one in found if one.category is RuntimeWarning]
    return [re.fullmatch("coroutine '(.+)' was never awaited", text)[1] for text in texts]


def warnings_of(aclient: AsyncClient, call: Callable[[AsyncClient, Any], Any]) -> list[str]:
    """Drop what a call returns, and do one thing more on the same loop."""

    async def story() -> None:
        async with aclient:
            await aclient.queues["mine"].put("K")
            job = await aclient.queues["mine"].pop()
            call(aclient, job)
            await aclient.queues["mine"].length()
            gc.collect()

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        asyncio.run(story())
    return warned(found)


@pytest.mark.parametrize("method", CALLS)
def test_a_result_that_is_dropped_before_it_is_awaited_warns_with_the_name_of_its_method(aclient, method):
    assert warnings_of(aclient, CALLS[method]) == [method]


def test_the_last_call_before_a_loop_ends_warns_too(aclient):
    async def story() -> None:
        aclient.queues["q"].put("K")

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        asyncio.run(story())
    aclient.link.drop()
    assert warned(found) == ["AsyncQueue.put"]


def test_what_is_awaited_in_any_way_warns_of_nothing(aclient):
    async def story() -> None:
        async with aclient:
            queue, seen = aclient.queues["q"], []
            await asyncio.gather(*[queue.put("K", {"n": n}) for n in range(20)])
            first, second = queue.put("K"), queue.put("K")
            await second
            await first
            await asyncio.wait([queue.put("K"), queue.put("K")])
            await asyncio.wait_for(queue.put("K"), 30)
            await asyncio.shield(queue.put("K"))
            queue.put("K").add_done_callback(seen.append)
            await until_async(lambda: seen, "the callback is called")
            job: AsyncJob = await queue.pop()
            await asyncio.gather(job.tag("a"), job.progress(0.5), job.heartbeat())
            await asyncio.create_task(job.complete())
            task = asyncio.ensure_future(queue.length())
            assert await task == 26

    asyncio.run(story())
    gc.collect()


def test_a_warning_that_is_an_error_does_not_stop_the_calls_of_others(aclient):
    async def story() -> list[str]:
        async with aclient:
            queue = aclient.queues["q"]
            queue.put("K")
            return await asyncio.gather(queue.put("K"), queue.put("K"))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        raised: list[Any] = []
        before, sys.unraisablehook = sys.unraisablehook, raised.append
        try:
            assert len(asyncio.run(story())) == 2
        finally:
            sys.unraisablehook = before
    assert [type(one.exc_value) for one in raised] == [RuntimeWarning]


@pytest.mark.parametrize(
    ("method", "call"),
    [
        ("AsyncJob.progress", "job.progress(...)"),
        ("AsyncQueue.put", "queue.put(...)"),
        ("AsyncFunctionJob.put", "function.put(...)"),
        ("AsyncEvery.put", "function.every(...).put(...)"),
        ("AsyncJobs.__getitem__", "client.jobs[...]"),
        ("send", "send(...)"),
        ("main.<locals>.send", "send(...)"),
    ],
)
def test_the_advice_names_the_call_as_it_is_written(method, call):
    assert advice(method) == call
