"""How much does putting cost the client? One by one beside SET, 512 a call, and coalesced by an event loop."""

import asyncio
import statistics
import subprocess
import sys
import time

from benchmarks.pace import Pace, pace, ratio, setting
from benchmarks.report import Row, Say, at_least, at_most, shown
from holdfast import AsyncClient, Client
from holdfast.testing.store import Durability, ScratchStore

DATA = {"user": 7, "lang": "de", "n": "x"}
PRODUCERS = 100


def one_by_one(client: Client, reference: object, rounds: int, seconds: float) -> list[tuple[Pace, Pace]]:
    """Slices of puts and of SETs in turn."""
    queue = client.queues["mail"]

    def step() -> int:
        for _ in range(20):
            queue.put("app.tasks.send", DATA)
        return 20

    return [(pace(step, seconds), pace(reference, seconds)) for _ in range(rounds)]  # type: ignore[arg-type]


def in_bulk(client: Client, rounds: int, jobs: int) -> list[Pace]:
    """put_many; ids and JSON included."""
    items = [("app.tasks.send", DATA)] * jobs
    queue = client.queues["bulk"]
    found = []
    for _ in range(rounds):
        begun, cpu = time.perf_counter(), time.process_time()
        queue.put_many(items)
        found.append(_pace(jobs, begun, cpu))
    return found


async def coalesced(url: str, rounds: int, jobs: int) -> list[Pace]:
    """100 tasks, each of which awaits one put after the other."""
    found = []
    async with AsyncClient(url, namespace="bench") as client:
        queue = client.queues["async"]

        async def produce(count: int) -> None:
            for _ in range(count):
                await queue.put("app.tasks.send", DATA)

        await produce(1)
        for _ in range(rounds):
            begun, cpu = time.perf_counter(), time.process_time()
            await asyncio.gather(*[produce(jobs // PRODUCERS) for _ in range(PRODUCERS)])
            found.append(_pace(jobs, begun, cpu))
    return found


def _pace(jobs: int, begun: float, cpu: float) -> Pace:
    return Pace(jobs / (time.perf_counter() - begun), (time.process_time() - cpu) * 1e6 / jobs)


def importing(rounds: int) -> tuple[float, float]:
    """Milliseconds of CPU to import redis, and what holdfast adds; interpreters of their own, in turn."""
    program = (
        "import time; a = time.process_time(); import redis.asyncio, redis; b = time.process_time()\n"
        "from holdfast import AsyncClient, Client; print(b - a, time.process_time() - b)"
    )
    found = []
    for _ in range(rounds):
        said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        found.append([float(word) * 1000 for word in said.stdout.split()])
    driver, ours = (statistics.median(column) for column in zip(*found, strict=True))
    return driver, ours


def putting(quick: bool, say: Say, durability: Durability, prefix: str = "") -> list[Row]:
    """The rows of one level of durability."""
    rounds, seconds, jobs = (3, 0.1, 2048) if quick else (15, 0.4, 20_480)
    with ScratchStore(durability=durability) as store, Client(store.url, namespace="bench") as client:
        client.queues["mail"].put("app.tasks.send", DATA)
        say(f"{prefix}put one by one beside SET")
        pairs = one_by_one(client, setting(store.url), rounds, seconds)
        say(f"{prefix}put_many")
        bulk = in_bulk(client, rounds, jobs)
        say(f"{prefix}coalesced puts")
        loop = asyncio.run(coalesced(store.url, rounds, jobs))
    put, reference = [put for put, _ in pairs], [reference for _, reference in pairs]
    put_rate, set_rate = (statistics.median(p.rate for p in paces) for paces in (put, reference))
    share = ratio([p.rate for p in put], [p.rate for p in reference])
    beside = f"{put_rate:,.0f}/s, SET {set_rate:,.0f}/s; CPU {_cpu(put):.1f} and {_cpu(reference):.1f} µs"
    return [
        at_least(f"{prefix}put one by one", share, 0.6, "× SET", beside),
        at_most(f"{prefix}put_many, 512 a call: client CPU", _cpu(bulk), 4, "µs a job", f"{_rate(bulk):,.0f}/s"),
        at_least(f"{prefix}put_many against one by one", _rate(bulk) / put_rate, 8, "×"),
        at_most(
            f"{prefix}coalesced puts of {PRODUCERS} producers: client CPU",
            _cpu(loop), 9, "µs a job", f"{_rate(loop):,.0f}/s",
        ),
    ]  # fmt: skip


def _cpu(paces: list[Pace]) -> float:
    return statistics.median(pace.cpu for pace in paces)


def _rate(paces: list[Pace]) -> float:
    return statistics.median(pace.rate for pace in paces)


def run(quick: bool, say: Say) -> list[Row]:
    rows = putting(quick, say, "memory")
    say("imports")
    driver, ours = importing(3 if quick else 11)
    return [
        *rows,
        shown("importing holdfast's clients, after the driver", ours, "ms CPU", f"redis {driver:.0f} ms"),
    ]
