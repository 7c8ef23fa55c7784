"""What type checkers must find right about function jobs."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, time, timedelta
from typing import assert_type

import holdfast
from holdfast import AsyncHandle, Handle
from holdfast.client.calls import Call
from holdfast.client.function_jobs import AsyncRecurrence, Recurrence

app = holdfast.Client("redis://nowhere")
aapp = holdfast.AsyncClient("redis://nowhere")


@app.job(
    queue="mail",
    retries=5,
    priority=2,
    tags=["a"],
    throttles=["t"],
    timeout=9,
    expires=60,
    result_keep=0,
    max_losses=0,
)
def welcome(user_id: int, lang: str = "en") -> str:
    return f"{user_id} {lang}"


@app.job(backoff={"kind": "fixed", "first": 2}, name="mixed")
async def mixed(user_id: int) -> bool:
    return bool(user_id)


@aapp.job(backoff=lambda attempt, error: attempt * 2.0)
async def later(user_id: int, *, urgent: bool = False) -> list[int]:
    return [user_id]


@aapp.job()
def plain(*numbers: int, **named: float) -> None: ...


def blocking() -> None:
    assert_type(welcome(7), str)
    assert_type(welcome.put(7, lang="de"), Handle[str])
    assert_type(welcome.put(7, lang="de").result(timeout=10), str)
    assert_type(welcome.put(user_id=7).wait(3), bool)
    assert_type(mixed.put(7).result(), bool)
    assert_type(mixed.options(delay=3, queue="slow", jid="mine").put(7).result(), bool)
    assert_type(welcome.put_in(60, 7, "de").result(), str)
    assert_type(welcome.put_in(timedelta(hours=1), 7), Handle[str])
    assert_type(welcome.put_at(datetime.now(UTC), 7, lang="de"), Handle[str])
    assert_type(welcome.put_at(1e9, 7), Handle[str])
    assert_type(welcome.put_many([(7,), welcome.bind(8, lang="de")]), list[Handle[str]])
    assert_type(welcome.every(60).put(7, lang="de"), Recurrence)
    assert_type(welcome.every(timedelta(days=1), at=time(3), zone="Europe/Berlin").put(7), Recurrence)
    assert_type(welcome.call(8, lang="de"), Call[str])
    app.schedule(welcome.call(7), every=timedelta(hours=1), starting=1e9, jid="w")
    app.schedule(mixed.options(queue="slow").call(7), every="0 3 * * *", zone="Europe/Berlin", missed=3)
    assert_type(welcome.every("0 3 * * *", zone="Europe/Berlin").put(7), Recurrence)
    assert_type(welcome.every(timedelta(days=1), starting=1e9, backlog=3, jid="w").put(7).cancel(), bool)
    assert_type(welcome.put(7).state, str)
    assert_type(welcome.put(7).progress, float | None)
    assert_type(welcome.put(7).cancel(), bool)
    assert_type(app.jobs.handle("a", int), Handle[int])
    assert_type(app.jobs.handle("a", result_type=int).result(), int)
    assert_type(app.job("a").state, str)
    assert_type(app.job("a").retry(delay=timedelta(seconds=3)), int)
    app.queues["q"].put("a.B", depends=[welcome.put(7), app.job("a"), "jid"], delay=timedelta(1))
    welcome.options(depends=[welcome.put(7)], delay=timedelta(1), timeout=timedelta(hours=1)).put(7)
    assert_type(holdfast.gather(welcome.put(1), mixed.put(2)), tuple[str, bool])
    assert_type(holdfast.gather(welcome.put(1), mixed.put(2), welcome.put(1)), tuple[str, bool, str])
    handles = [welcome.put(1), welcome.put(2)]
    assert_type(holdfast.gather(*handles, timeout=3), list[str])
    assert_type(holdfast.as_completed(handles, timeout=3), Iterator[Handle[str]])
    for handle in holdfast.as_completed(handles):
        assert_type(handle.result(), str)


async def awaiting() -> None:
    handle = await later.put(7, urgent=True)
    assert_type(handle, AsyncHandle[list[int]])
    assert_type(await handle, list[int])
    assert_type(await handle.result(3), list[int])
    assert_type(await handle.wait(3), bool)
    assert_type(await later.put_in(5, 7), AsyncHandle[list[int]])
    assert_type(await later.put_at(1e9, 7, urgent=True), AsyncHandle[list[int]])
    assert_type(await later.put_many([(7,), later.bind(7)]), list[AsyncHandle[list[int]]])
    assert_type(await later.every(60).put(7), AsyncRecurrence)
    aapp.schedule(later.call(7, urgent=True), every=60)
    assert_type(await (await later.every(60).put(7)).cancel(), bool)
    assert_type(await later(7), list[int])
    assert_type(plain(1, 2, x=3), None)
    await plain.put(1, 2, 3, x=0.5)
    assert_type(await holdfast.gather(handle, handle), tuple[list[int], list[int]])
    assert_type(await holdfast.gather(handle, await plain.put(1)), tuple[list[int], None])
    assert_type(await handle.state, str)
    assert_type(await handle.progress, float | None)
    assert_type(await handle.cancel(), bool)
    assert_type((await aapp.job("a")).state, str)
    assert_type(await aapp.jobs.handle("a", int), int)

    assert_type(await asyncio.create_task(holdfast.gather(handle)), list[list[int]])
    assert_type(holdfast.as_completed([handle]), AsyncIterator[AsyncHandle[list[int]]])
    async for done in holdfast.as_completed([handle]):
        assert_type(await done, list[int])


def running() -> None:
    job = holdfast.current_job()
    job.progress(0.5, "half")
    mine: holdfast.Job = holdfast.current_job()
    assert_type(mine.attempt, int)


async def running_async() -> None:
    mine: holdfast.AsyncJob = holdfast.current_async_job()
    await mine.progress(0.5, "half")


@app.job
def bare(number: int) -> str:
    return str(number)


@aapp.job
async def bare_later(number: int) -> str:
    return str(number)


async def bare_ones() -> None:
    assert_type(bare(7), str)
    assert_type(bare.put(7).result(), str)
    assert_type(await (await bare_later.put(7)), str)


def both_are_object_handles(one: Handle[str]) -> Handle[object]:
    return one
