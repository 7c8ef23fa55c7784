"""Topics over connections that are cut, a store that is killed, and programs that are killed."""

import asyncio
import subprocess
import sys
import threading
from collections import Counter
from typing import Any

import pytest
from proxy import Proxy

from holdfast import AsyncClient, AsyncScheduler, Client, Scheduler
from holdfast.errors import HoldfastError
from holdfast.testing.store import ScratchStore
from waiting import until, until_async

MANY = 80
CUTS = [
    (cut, verb, nth)
    for verb in ("hf1_topic_reserve", "hf1_topic_release")
    for nth, cut in enumerate(("cut-reply", "cut-request", "cut-middle", "cut-reply", "cut-middle"), 1)
]


def messages(count: int = MANY) -> dict[str, str]:
    return {f"m{number:03}": "x" for number in range(count)}


def handled_blocking(url: str, namespace: str, proxy: Proxy) -> tuple[Counter[str], bool]:
    with Client(url, namespace=namespace) as client, Scheduler(client) as sched:
        sched["t"].put_many(messages())
        aims = [proxy.aim(cut, verb, 7 * nth) for cut, verb, nth in CUTS]
        got: Counter[str] = Counter()
        sched.subscribe("t", lambda item: got.update([item.id]))
        until(lambda: len(sched["t"]) == 0, "all are done", 30)
        return got, all(aim.hit.is_set() for aim in aims)


async def is_empty(topic: Any) -> bool:
    return await topic.length() == 0


def handled_awaited(url: str, namespace: str, proxy: Proxy) -> tuple[Counter[str], bool]:
    async def story() -> tuple[Counter[str], bool]:
        async with AsyncClient(url, namespace=namespace) as client, AsyncScheduler(client) as sched:
            await sched["t"].put_many(messages())
            aims = [proxy.aim(cut, verb, 7 * nth) for cut, verb, nth in CUTS]
            got: Counter[str] = Counter()
            await sched.subscribe("t", lambda item: got.update([item.id]))
            await until_async(lambda: is_empty(sched["t"]), "all are handled")
            return got, all(aim.hit.is_set() for aim in aims)

    return asyncio.run(story())


@pytest.mark.parametrize("handled", [handled_blocking, handled_awaited], ids=["sync", "async"])
def test_answers_that_are_cut_off_let_no_message_be_handled_twice_or_not_at_all(handled, namespace, proxy):
    got, hurt = handled(proxy.url, namespace, proxy)
    assert hurt
    assert got == Counter(messages().keys())


PROGRAM = """
import sys, threading
from holdfast import Client, Scheduler

client = Client(sys.argv[1], namespace=sys.argv[2], deadline=0.5)
sched = Scheduler(client, ttr=0.5, reserve_interval=0.2, requeue_interval=0.2)
sched.subscribe("t", to_queue="q", klass="K")
print("ready", flush=True)
threading.Event().wait()
"""


class Bridges:
    """Programs that bring the messages of a topic into a queue, one of which is killed and replaced."""

    def __init__(self, url: str, namespace: str, count: int) -> None:
        self._words = [sys.executable, "-c", PROGRAM, url, namespace]
        self._programs = [self._start() for _ in range(count)]

    def _start(self) -> subprocess.Popen[str]:
        program = subprocess.Popen(self._words, stdout=subprocess.PIPE, text=True)
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        return program

    def _kill(self, program: subprocess.Popen[str]) -> None:
        program.kill()
        program.communicate()

    def replace_one(self) -> None:
        self._kill(self._programs.pop(0))
        self._programs.append(self._start())

    def close(self) -> None:
        for program in self._programs:
            self._kill(program)


class Producer(threading.Thread):
    """Puts messages, each until it is known to be there."""

    def __init__(self, url: str, namespace: str) -> None:
        super().__init__()
        self._client = Client(url, namespace=namespace, deadline=0.3)
        self.stopping = threading.Event()
        self.put = 0

    def run(self) -> None:
        with self._client as client:
            while not self.stopping.is_set():
                try:
                    client.topics["t"].put(f"m{self.put}", {"n": self.put}, delay=self.put % 3 / 10)
                except HoldfastError:
                    continue
                self.put += 1
                self.stopping.wait(0.001)


@pytest.mark.full
def test_each_message_becomes_one_job_though_programs_and_the_store_are_killed(namespace):
    with ScratchStore(durability="fsync") as store:
        bridges = Bridges(store.url, namespace, 2)
        producer = Producer(store.url, namespace)
        producer.start()
        with Client(store.url, namespace=namespace) as client:
            for harm in (
                bridges.replace_one,
                store.restart,
                bridges.replace_one,
                store.restart,
                bridges.replace_one,
            ):
                before = producer.put
                until(lambda before=before: producer.put > before + 50, "more are put", 30)
                harm()
            producer.stopping.set()
            producer.join()
            until(lambda: len(client.topics["t"]) == 0, "all are jobs", 30)
            bridges.close()
            jobs = client.queues["q"].peek(count=10_000)
            assert sorted(job.jid for job in jobs) == sorted(f"m{number}" for number in range(producer.put))
            assert all(job["n"] == int(job.jid[1:]) for job in jobs)
