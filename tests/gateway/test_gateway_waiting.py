"""Pops that wait: the store wakes them, they do not poll, and a client that has disconnected is leased no jobs."""

import asyncio
import time
from typing import Any

import httpx
import pytest
from callers import Verbs, served

from holdfast import AsyncClient, Client
from holdfast.commands.jobs import JobGet
from holdfast.commands.leases import WILL_WAIT, Pop
from holdfast.testing.store import ScratchStore
from holdfast.web import User, create_app
from holdfast.web.gateway import waiting
from holdfast.web.gateway.waiting import WaitingPops
from waiting import until, until_async

WES = {"Authorization": "Bearer wes"}


def pop(
    http: httpx.AsyncClient, address: str, wait: float = 20, worker: str = "w", queue: str = "q", **more: Any
) -> "asyncio.Task[Any]":
    """Start a request that pops, in a task."""

    async def popped() -> Any:
        body = {"worker": worker, "queues": [queue], "wait": wait, **more}
        found = await http.post(address + "pop", json=body, headers=WES, timeout=60)
        assert found.status_code == 200, found.text
        return found.json()["result"]

    return asyncio.create_task(popped())


async def blocked(store: ScratchStore, count: int = 1) -> None:
    """Wait until the store has clients that wait for a wake-up."""

    def is_blocked() -> bool:
        return f"blocked_clients:{count}" in store.ask("INFO", "clients").split()

    await until_async(is_blocked, f"{count} connections wait")


def calls(store: ScratchStore) -> int:
    """How many functions the store has run."""
    lines = [line for line in store.ask("INFO", "commandstats").split() if line.startswith("cmdstat_fcall:")]
    return int(lines[0].partition("calls=")[2].partition(",")[0]) if lines else 0


@pytest.fixture
def own() -> Any:
    """A store of this test alone, whose counters it reads."""
    with ScratchStore() as store:
        yield store


@pytest.fixture
def own_address(own: ScratchStore, namespace: str) -> Any:
    """The gateway on that store; every request is one of a worker."""
    client = Client(own.url, namespace=namespace)
    with served(create_app(client, auth=lambda _: User("wes", "worker"))) as address:
        yield address


async def test_a_waiting_pop_gets_a_job_that_is_put_and_asks_the_store_for_nothing_meanwhile(
    own: ScratchStore, own_address: str, namespace: str
) -> None:
    client = AsyncClient(own.url, namespace=namespace)
    async with httpx.AsyncClient() as http:
        task = pop(http, own_address)
        await blocked(own)
        before = calls(own)
        await asyncio.sleep(1.2)
        assert calls(own) == before
        await client.queues["q"].put("K", {"n": 1})
        [job] = await asyncio.wait_for(task, 30)
    assert job["data"] == {"n": 1}
    await client.close()


async def test_a_pop_ends_with_no_jobs_when_its_time_is_over(address: str) -> None:
    async with httpx.AsyncClient() as http:
        began = time.monotonic()
        assert await pop(http, address, wait=0.3) == []
        assert time.monotonic() - began >= 0.3


async def test_a_delayed_job_and_one_whose_lease_ends_come_without_a_wake_up(
    address: str, client: Client
) -> None:
    queue = client.queues["q"]
    await asyncio.to_thread(queue.put, "K", {}, delay=0.4, jid="late")
    async with httpx.AsyncClient() as http:
        [late] = await pop(http, address, worker="lost", ttl=1)
        assert late["jid"] == "late"
        await asyncio.to_thread(client.config.set, "grace-period", 0)
        [again] = await pop(http, address, worker="next")
    assert (again["jid"], again["losses"], again["worker"]) == ("late", 1, "next")


@pytest.mark.full
async def test_a_hundred_waiting_pops_of_as_many_queues_share_one_connection_and_each_gets_its_job(
    own: ScratchStore, own_address: str, namespace: str
) -> None:
    client = AsyncClient(own.url, namespace=namespace)
    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=None)) as http:
        tasks = [pop(http, own_address, worker=f"w{at}", queue=f"q{at}") for at in range(100)]
        await until_async(lambda: waiting_count() == 100, "all wait")
        await blocked(own)
        names = own.ask("CLIENT", "LIST").count("cmd=blpop")
        for at in range(100):
            await client.queues[f"q{at}"].put("K", at)
        found = await asyncio.wait_for(asyncio.gather(*tasks), 60)
    assert (names, [[job["data"] for job in jobs] for jobs in found]) == (1, [[at] for at in range(100)])
    await client.close()


def waiting_count() -> int:
    """How many pops wait in this process."""
    import gc

    return sum(len(group.waiters) for group in gc.get_objects() if type(group) is waiting._Group)


@pytest.mark.full
async def test_a_thousand_waiting_pops_of_one_queue_share_one_connection_and_each_gets_one_job(
    own: ScratchStore, own_address: str, namespace: str
) -> None:
    client = AsyncClient(own.url, namespace=namespace)
    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=None)) as http:
        tasks = [pop(http, own_address, worker=f"w{at}") for at in range(1000)]
        await until_async(lambda: waiting_count() == 1000, "all wait", 120)
        await blocked(own)
        connections = own.ask("CLIENT", "LIST").count("\n") + 1
        await client.queues["q"].put_many([("K", at) for at in range(1000)])
        found = await asyncio.wait_for(asyncio.gather(*tasks), 120)
    assert connections < 40
    assert sorted(job["data"] for jobs in found for job in jobs) == list(range(1000))
    assert {len(jobs) for jobs in found} == {1}
    await client.close()


async def test_a_client_that_disconnects_while_it_waits_gets_no_job(
    own: ScratchStore, own_address: str, namespace: str
) -> None:
    client = AsyncClient(own.url, namespace=namespace)
    async with httpx.AsyncClient() as http:
        task = pop(http, own_address)
        await blocked(own)
        task.cancel()
        await asyncio.wait([task])
    await until_async(lambda: waiting_count() == 0, "the gateway notices")
    await client.queues["q"].put("K", {}, jid="a")
    await until_async(lambda: "blocked_clients:0" in own.ask("INFO", "clients").split(), "nobody waits")
    [facts] = await client.run(JobGet(["a"]))
    assert facts is not None
    assert (facts.state, facts.attempts) == ("waiting", 0)
    await client.close()


@pytest.mark.full
@pytest.mark.parametrize("at", range(12))
async def test_a_client_that_disconnects_in_the_moment_of_the_grant_costs_its_job_nothing(
    own_address: str, own: ScratchStore, namespace: str, at: int
) -> None:
    client = AsyncClient(own.url, namespace=namespace)
    host, port = own_address.removeprefix("http://").removesuffix("/v1/").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    body = b'{"worker":"gone","queues":["q"],"wait":20}'
    writer.write(
        b"POST /v1/pop HTTP/1.1\r\nHost: 127.0.0.1\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    )
    await blocked(own)
    putting = asyncio.ensure_future(client.queues["q"].put("K", {}, jid="a", retries=0))
    for _ in range(at * 3):
        await asyncio.sleep(0)
    writer.transport.abort()
    await putting
    async with httpx.AsyncClient() as http:
        found = await pop(http, own_address, worker="next")
        if (
            not found
        ):  # the response was written before the connection was cut: its lease is that of a lost worker
            facts = (await client.run(JobGet(["a"])))[0]
            assert facts is not None
            assert facts.worker == "gone"
        else:
            assert (found[0]["jid"], found[0]["remaining"], found[0]["losses"]) == ("a", 0, 0)
    await client.close()


async def test_the_end_of_the_server_ends_waits_with_no_jobs(client: Client) -> None:
    app = create_app(client, auth=lambda _: User("wes", "worker"))
    with served(app) as address:
        async with httpx.AsyncClient() as http:
            task = pop(http, address)
            await until_async(lambda: waiting_count() == 1, "it waits")
            loop_of(app).call_soon_threadsafe(app.end_waits)
            assert await asyncio.wait_for(task, 30) == []
            assert await asyncio.wait_for(pop(http, address), 30) == []  # later ones do not wait


def loop_of(app: Any) -> asyncio.AbstractEventLoop:
    [loop] = app._gateway._caller._waiters[next(iter(app._gateway._caller._waiters))]._found
    assert isinstance(loop, asyncio.AbstractEventLoop)
    return loop


async def test_await_waits_for_the_ends_of_jobs(address: str, client: Client) -> None:
    queue = client.queues["q"]
    for jid in ("a", "b"):
        await asyncio.to_thread(queue.put, "K", {}, jid=jid)
    async with httpx.AsyncClient(timeout=60) as http:
        body = {"jids": ["a", "b", "none"], "wait": 20}
        task = asyncio.create_task(http.post(address + "await", json=body, headers=WES))
        await asyncio.sleep(0.2)
        jobs = await asyncio.to_thread(queue.pop, 2)
        for job in jobs:
            await asyncio.to_thread(job.complete)
        found = (await asyncio.wait_for(task, 30)).json()["result"]
        assert [one["status"] for one in found] == ["done", "done", "gone"]
        body = {"jids": ["a"], "wait": 0.2}
        await asyncio.to_thread(queue.put, "K", {}, jid="c")
        found = (await http.post(address + "await", json={"jids": ["c"], "wait": 0.2}, headers=WES)).json()[
            "result"
        ]
        assert found[0]["status"] == "open"


def test_complete_pop_completes_and_waits_for_the_next(verbs: Verbs, client: Client) -> None:
    verbs("put", queue="q", klass="K", jid="a")
    [job] = verbs("pop", worker="w", queues=["q"])
    verbs("put", queue="q", klass="K", jid="b", delay=0.3)
    lease = {"jid": "a", "token": job["token"], "result": 5}
    lost = {"jid": "none", "token": 1}
    found = verbs("complete_pop", worker="w", queues=["q"], jobs=[lease, lost], wait=20)
    assert [job["jid"] for job in found["jobs"]] == ["b"]
    assert found["lost"]["none"]["code"] == "HF_JOB_NOT_FOUND"
    assert verbs("complete_pop", worker="w", queues=["q"], jobs=[], limit=1, wait=0.1) == {
        "lost": {},
        "jobs": [],
    }


def test_who_pops_is_listed_as_a_worker(verbs: Verbs, client: Client) -> None:
    verbs("pop", worker="curl-1", queues=["q"])
    until(lambda: [row["name"] for row in verbs("workers")] == ["curl-1"], "it is listed")


async def test_waits_go_on_after_the_store_was_away(
    own: ScratchStore, own_address: str, namespace: str
) -> None:
    async with httpx.AsyncClient() as http:
        task = pop(http, own_address)
        await blocked(own)
        own.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await blocked(own)
        client = AsyncClient(own.url, namespace=namespace)
        await client.queues["q"].put("K", {})
        assert len(await asyncio.wait_for(task, 30)) == 1
        await client.close()


async def test_a_worker_elsewhere_is_woken_for_a_queue_that_nobody_waits_for_here(
    own: ScratchStore, own_address: str, namespace: str
) -> None:
    """The shared connection follows a queue for a moment after the last pop: what wakes it then belongs to another worker."""
    client = AsyncClient(own.url, namespace=namespace)
    async with httpx.AsyncClient() as http:
        assert await pop(http, own_address, wait=0.2) == []
        task = pop(http, own_address, queue="other")  # the connection goes on with q for this
        await blocked(own)
        wake_up = client.link.wake_up()
        assert not await client.run(Pop("elsewhere", ["q"], 1, None, WILL_WAIT))
        waiting_there = asyncio.create_task(wake_up.wait([client.shard.wake_key("q")], 30))
        await asyncio.sleep(0.1)
        await client.queues["q"].put("K", {})
        assert await asyncio.wait_for(waiting_there, 30) is not None
        await client.queues["other"].put("K", {})
        await task
        await wake_up.close()
    await client.close()


async def test_a_wake_up_that_is_lost_with_the_connection_is_made_up_for(
    own: ScratchStore, own_address: str, namespace: str
) -> None:
    client = AsyncClient(own.url, namespace=namespace)
    async with httpx.AsyncClient() as http:
        task = pop(http, own_address)
        await blocked(own)
        own.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await client.queues["q"].put("K", {})
        own.ask("DEL", client.shard.wake_key("q"))  # as if the connection had taken it along
        assert len(await asyncio.wait_for(task, 15)) == 1
    await client.close()


async def test_a_pop_of_another_queue_is_woken_while_the_shared_connection_waits(
    own: ScratchStore, own_address: str, namespace: str
) -> None:
    client = AsyncClient(own.url, namespace=namespace)
    async with httpx.AsyncClient() as http:
        first = pop(http, own_address, queue="first")
        await blocked(own)
        second = pop(http, own_address, queue="second")
        await until_async(lambda: waiting_count() == 2, "both wait")
        await client.queues["second"].put("K", {})
        assert len(await asyncio.wait_for(second, 15)) == 1
        first.cancel()
        await asyncio.wait([first])
    await client.close()


@pytest.mark.parametrize("during", [1, 2])
async def test_a_pop_that_is_left_during_a_call_gives_its_job_back(
    store: ScratchStore, namespace: str, during: int
) -> None:
    """The first call is that of the pop itself, the second one that of a wake-up."""
    client = AsyncClient(store.url, namespace=namespace)
    waiters, called, done, calls = WaitingPops(client), asyncio.Event(), asyncio.Event(), 0

    def run(command: Any) -> "asyncio.Future[Any]":
        async def sent() -> Any:
            nonlocal calls
            calls += 1
            mine = calls
            result = await client.run(command)
            if mine == during:
                called.set()
                await done.wait()
            return result

        return asyncio.ensure_future(sent())

    queue = client.queues["q"]
    if during == 1:
        await queue.put("K", {}, jid="a", retries=0)
    task = asyncio.create_task(waiters.pop(Pop("gone", ["q"]), 20, run))
    if during == 2:
        await until_async(lambda: waiting_count() == 1, "it waits")
        await queue.put("K", {}, jid="a", retries=0)
    await called.wait()
    task.cancel()
    await asyncio.wait([task])
    done.set()
    [again] = await waiters.pop(Pop("next", ["q"]), 20, client.run)  # type: ignore[arg-type]
    assert (again.jid, again.worker, again.remaining, again.losses) == ("a", "next", 0, 0)
    [facts] = await client.run(JobGet(["a"]))
    assert facts is not None
    assert [line.reason for line in facts.history if line.what == "preempted"] == ["the client disconnected"]
    await waiters.close()
    await client.close()
