"""The hunt for lost wake-ups: workers that would sleep for a minute if a bell rang for nobody.

Real workers hesitate at random where a wake-up could fall between two chairs. In each round a few jobs are put in
some way, and all of them must be done long before anybody's wait would end by itself.
"""

import asyncio
import json
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import pytest
from crew import Crew
from twins import say

from holdfast import AsyncClient, Client
from holdfast.commands.jobs import Put
from holdfast.commands.queues import CountQueues, ThrottleSet
from holdfast.models import Counts
from holdfast.testing.store import ScratchStore
from holdfast.wire.aio import AsyncWakeUp
from holdfast.wire.sync import WakeUp
from waiting import LONGER, pause, until

BLOCK = "60"
STUCK = 40.0  # less than BLOCK, after which a lost wake heals by itself
QUEUES = ("q", "r")


class Layout(NamedTuple):
    """How many workers: `parents` of `children` processes with `slots` each, which know their queues by name or find them
    by a pattern.
    """

    pool: str
    parents: int
    children: int
    slots: int = 1
    max_jobs: int = 0
    finds: bool = False

    def __str__(self) -> str:
        """The name of a test."""
        return f"{self.pool}-{self.parents}x{self.children}x{self.slots}{'-finds' * self.finds}"


class Rounds:
    """Puts jobs in rounds, each when the last one is done.

    A woken worker works off all there is, so many a lost wake would be healed by the next one. Hence two kinds of
    rounds that heal nothing: a lone job, and as many jobs as there are seats, each of which waits for all others.
    """

    def __init__(self, client: Client, layout: Layout, seed: int) -> None:
        self._client = client
        self._prefix = "a" if layout.pool == "asyncio" else ""
        self._slots = layout.parents * layout.children * layout.slots
        self._dice = random.Random(seed)
        self.put = 0

    def burst(self, dice: random.Random) -> None:
        """What one producer does: some jobs, alone and together, now and later."""
        for _ in range(dice.randint(1, 3)):
            self.put_some(dice, f"errands.{self._prefix}nothing", b"{}", dice.choice((1, 1, 1, 2, 7)))
            pause(dice.choice((0.0, dice.uniform(0.0, 0.004))))

    def meeting(self, dice: random.Random, name: str, jobs: int, of: int) -> None:
        """Some of `of` jobs that wait until all of them run."""
        data = json.dumps({"args": [name, of]}).encode()
        while jobs:
            count = dice.randint(1, jobs)
            self.put_some(dice, f"errands.{self._prefix}meet", data, count)
            jobs -= count

    def put_some(self, dice: random.Random, klass: str, data: bytes, count: int) -> None:
        queue, delay = dice.choice(QUEUES), dice.choice((0, 0, 0, dice.randint(1, 30)))
        if count == 1:
            self._client.run(Put(queue, klass, data, delay_ms=delay))
        else:
            jobs = [(klass, json.loads(data))] * count
            self._client.queues[queue].put_many(jobs, delay=delay / 1000)
        self.put += count

    def round(self, more: Callable[[random.Random], None] | None) -> None:
        """Two producers (or one), and whatever `more` does, together; returns when all jobs are done."""
        kind = self._dice.choice(("lone", "burst", "meeting"))
        works: list[Callable[[random.Random], None]] = [self.burst, self.burst]
        if kind == "lone":
            works = [lambda dice: self.put_some(dice, f"errands.{self._prefix}nothing", b"{}", 1)]
        elif kind == "meeting" and more is not limiting:
            here, name = self._dice.randint(0, self._slots), f"{self.put}"
            works = [
                partial(self.meeting, name=name, jobs=jobs, of=self._slots)
                for jobs in (here, self._slots - here)
            ]
        if more is not None:
            works.append(partial(more, client=self._client))
        threads = [
            threading.Thread(target=work, args=(random.Random(self._dice.randrange(1 << 32)),))
            for work in works
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        deadline = monotonic() + STUCK
        while not self.is_done():
            assert monotonic() < deadline, (
                f"stuck in a round of kind {kind}, {self.put} put\n{self.explain()}"
            )
            pause(0.002)

    def is_done(self) -> bool:
        return all(not (row.waiting or row.running or row.scheduled or row.throttled) for row in self.look())

    def explain(self) -> str:
        """Who waits for which bell, and what the queues know of it."""
        lines = [repr(row) for row in self.look()]
        for queue in QUEUES:
            sequence = int(say(self._client, "GET", f"{self._client.root}s:{queue}") or 0)
            token = say(self._client, "EXISTS", self._client.shard.wake_key(queue))
            lines.append(f"{queue}: somebody waits: {sequence >> 45 & 1}, a token lies there: {token}")
        root = self._client.root
        lines += [f"{key}: {say(self._client, 'ZRANGE', root + key, 0, -1, 'WITHSCORES')}" for key in "RTN"]
        clients = say(self._client, "CLIENT", "LIST").decode().splitlines()
        return "\n".join(lines + [line for line in clients if "cmd=blpop" in line or "cmd=fcall" in line])

    def look(self) -> list[Counts]:
        return list(self._client.run(CountQueues(QUEUES)))


def pausing(dice: random.Random, client: Client) -> None:
    """Also: a queue is paused, and goes on."""
    queue = client.queues[dice.choice(QUEUES)]
    queue.pause()
    pause(dice.uniform(0.0, 0.01))
    queue.unpause()


def limiting(dice: random.Random, client: Client) -> None:
    """Also: a limit on the jobs that run at once is set, changed, and now and then lifted."""
    for maximum in (dice.randint(1, 3), dice.choice((0, 1, 2))):
        client.run(ThrottleSet(f"ql:q:{dice.choice(QUEUES)}", maximum))
        pause(dice.uniform(0.0, 0.01))


FLAVOURS: dict[str, Any] = {"plain": None, "pauses": pausing, "limits": limiting}


@contextmanager
def at_work(layout: Layout, url: str, namespace: str, here: Path) -> Iterator[None]:
    queues = ["-q", "*"] if layout.finds else ["-q", "q", "-q", "r"]
    flags = [*queues, "--pool", layout.pool, "-w", str(layout.children)]
    flags += ["--concurrency", str(layout.slots), "--interval", BLOCK, "--max-jobs", str(layout.max_jobs)]
    with Crew(here, url, namespace, {"HESITATE": "0.005", "ERRANDS_HERE": str(here)}) as crew:
        for _ in range(layout.parents):
            crew.start(*flags, "--setup", "hesitant:install", "-m", "errands")
        yield
        assert all(worker.lives for worker in crew.workers)


def hunt(layout: Layout, flavour: str, jobs: int, store: ScratchStore, namespace: str, here: Path) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    with Client(store.url, namespace=namespace) as client, at_work(layout, store.url, namespace, here):
        rounds = Rounds(client, layout, seed)
        while rounds.put < jobs:
            rounds.round(FLAVOURS[flavour])
        assert client.jobs.failed() == {}
        assert len(client.jobs.complete(0, rounds.put + 1)) == rounds.put


@pytest.mark.full
@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("layout", "flavour"),
    [
        (Layout("process", 1, 3), "pauses"),
        (Layout("asyncio", 2, 1, 2), "limits"),
        (Layout("thread", 2, 1, 2), "limits"),
        (Layout("process", 1, 2, max_jobs=5), "plain"),
        (Layout("process", 1, 3, finds=True), "limits"),
        (Layout("asyncio", 2, 1, 2, finds=True), "pauses"),
    ],
)
def test_no_wake_up_is_lost_in_a_short_hunt(
    layout: Layout, flavour: str, store: ScratchStore, namespace: str, tmp_path: Path
) -> None:
    hunt(layout, flavour, 200, store, namespace, tmp_path)


LAYOUTS = [
    Layout("process", 1, 1),
    Layout("process", 2, 4),
    Layout("process", 3, 15),
    Layout("process", 2, 3, max_jobs=7),
    Layout("asyncio", 1, 1, 1),
    Layout("asyncio", 2, 2, 3),
    Layout("asyncio", 3, 5, 3),
    Layout("asyncio", 2, 2, 1, max_jobs=7),
    Layout("thread", 2, 2, 3),
    Layout("thread", 2, 2, 1, max_jobs=7),
    Layout("gevent", 2, 2, 3),
    Layout("process", 3, 5, finds=True),
    Layout("asyncio", 2, 2, 3, finds=True),
    Layout("thread", 2, 2, 1, max_jobs=7, finds=True),
    Layout("gevent", 2, 2, 3, finds=True),
]


@pytest.mark.full
@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_no_wake_up_is_lost(
    layout: Layout, flavour: str, engine_store: ScratchStore, namespace: str, tmp_path: Path
) -> None:
    hunt(layout, flavour, 500 * LONGER, engine_store, namespace, tmp_path)


@pytest.mark.parametrize("pool", ["process", "asyncio", "gevent"])
def test_a_timer_is_handed_on_by_the_worker_that_is_busy_now(
    pool: str, store: ScratchStore, namespace: str, tmp_path: Path
) -> None:
    layout = Layout(pool, 1, 2)
    with Client(store.url, namespace=namespace) as client, at_work(layout, store.url, namespace, tmp_path):
        rounds = Rounds(client, layout, 0)
        rounds.put_some(random.Random(), f"errands.{rounds._prefix}nothing", b"{}", 1)
        until(rounds.is_done, "the workers are there")
        # Whoever waits for the first of the two is busy when the second comes due.
        for delay in (60, 180):
            client.run(Put("r", f"errands.{rounds._prefix}meet", b'{"args":["two",2]}', delay_ms=delay))
        until(rounds.is_done, "both have met", 30)


def leave(wake_up: WakeUp) -> None:
    wake_up.send(["bell"], 10)
    wake_up.leave()


async def leave_async(wake_up: AsyncWakeUp) -> None:
    waiting = asyncio.create_task(wake_up.wait(["bell"], 30))
    await asyncio.sleep(0.0005)
    waiting.cancel()
    with suppress(asyncio.CancelledError):
        await waiting


@pytest.mark.full
@pytest.mark.parametrize("colour", ["sync", "async"])
def test_no_token_is_given_to_a_bell_that_was_left(colour: str, engine_store: ScratchStore) -> None:
    with Client(engine_store.url) as client, asyncio.Runner() as loop, busy(engine_store):
        link = AsyncClient(engine_store.url).link
        wake_up, async_bell = client.link.wake_up(), link.wake_up()
        for _ in range(300):
            if colour == "sync":
                leave(wake_up)
            else:
                loop.run(leave_async(async_bell))
            say(client, "RPUSH", "bell", "token")
            assert say(client, "DEL", "bell") == 1
        wake_up.close()


@contextmanager
def busy(store: ScratchStore) -> Iterator[None]:
    """The store has other things to do, so that what happens to connections comes late to it."""
    ended = threading.Event()

    def ask() -> None:
        with Client(store.url) as client:
            while not ended.is_set():
                say(client, "LRANGE", "long", 0, -1)

    with Client(store.url) as client:
        say(client, "RPUSH", "long", *["x" * 100] * 500)
    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    yield
    ended.set()
    for thread in threads:
        thread.join()
