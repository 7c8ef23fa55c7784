"""Measure kinds of work in turn, slice by slice, in a namespace that is removed afterwards."""

import statistics
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, Final, NamedTuple

from holdfast.client.sync import Client
from holdfast.commands.admin import ConfigSet
from holdfast.commands.leases import CompleteMany, Done, Pop
from holdfast.models import JobFacts
from holdfast.wire.exchange import final_error
from holdfast.wire.plans import ErrorReply, Plan
from holdfast.wire.repeat import RetryTimer, send_until_done


class Scratch:
    """A namespace that only the benchmark uses."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def command(self, *call: Any) -> Any:
        """Run one command of the store and return its reply."""
        return self.client.runner.run(self._plan_of(call))

    def _plan_of(self, call: tuple[Any, ...]) -> Plan[Any]:
        patience = RetryTimer(
            self.client.settings.deadline, self.client.shard.clock, store=self.client.settings.store
        )
        [reply] = yield from send_until_done([call], patience)
        if isinstance(reply, ErrorReply):
            raise final_error(reply)
        return reply

    def info(self, section: str) -> dict[str, str]:
        """Return one section of INFO."""
        lines = self.command("INFO", section).decode().splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def server(self) -> str:
        """Return name and version of the server."""
        facts = self.info("server")
        name = facts.get("server_name", "redis")
        return f"{name} {facts.get(f'{name}_version') or facts.get('redis_version', '')}"

    def cpu(self) -> float:
        """Return the CPU seconds of the server's main thread, or of the whole server if it does not report threads."""
        facts = self.info("cpu")
        user = facts.get("used_cpu_user_main_thread") or facts["used_cpu_user"]
        system = facts.get("used_cpu_sys_main_thread") or facts["used_cpu_sys"]
        return float(user) + float(system)

    def memory(self) -> int:
        """Return the memory of the server in bytes."""
        return int(self.info("memory")["used_memory"])

    def clean(self) -> None:
        """Remove every key of the namespace."""
        cursor = b"0"
        while True:
            cursor, keys = self.command("SCAN", cursor, "MATCH", self.client.root + "*", "COUNT", 1000)
            if keys:
                self.command("UNLINK", *keys)
            if cursor == b"0":
                return


QUEUE: Final = "bench"
KLASS: Final = "bench.Job"
DATA: Final = {"user": 7, "lang": "de", "text": "x" * 66}  # 100 bytes of JSON
BODY: Final = b"x" * 100
MANY: Final = 100
ITEMS: Final = [(KLASS, DATA)] * MANY
ROUNDS: Final = 5
KEPT: Final = 1000
STOCK: Final = 5000


class Figure(NamedTuple):
    """One kind of work: jobs per second, µs of the store's CPU per job, and its speed relative to SET."""

    what: str
    per_second: float
    store_us: float
    times_set: float


Work = Callable[[], int]
"""Works once, and returns the number of jobs; 0 if none is left."""


class Bench:
    """Measures in one namespace of one store."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._client = client = scratch.client
        self._queue = client.queues[QUEUE]

    def run(self, seconds: float, advance: Callable[[int], None]) -> list[Figure]:
        """Measure each kind of work for its share of `seconds`; call `advance` after each slice."""
        self._client.run(ConfigSet("jobs-history-count", str(KEPT)))
        kinds = self._kinds()
        slice_length = seconds / ROUNDS / len(kinds)
        found: dict[str, list[tuple[float, float]]] = {what: [] for what in kinds}
        for _ in range(ROUNDS):
            for what, work in kinds.items():
                found[what].append(self._slice(work, slice_length))
                self._drain()
                advance(1)
        base = [rate for rate, _ in found[next(iter(kinds))]]
        return [_figure(what, slices, base) for what, slices in found.items()]

    def slices(self) -> int:
        """Return the number of slices of a run."""
        return ROUNDS * len(self._kinds())

    def _kinds(self) -> dict[str, Work]:
        return {
            "SET, one by one": self._set,
            "put, one by one": self._put,
            "pop, one by one": self._pop,
            "put, pop and complete, one by one": self._lifecycle,
            f"put, {MANY} at once": self._put_many,
            f"put, pop and complete, {MANY} at once": self._lifecycle_of_many,
        }

    def _slice(self, work: Work, length: float) -> tuple[float, float]:
        """Measure one slice: jobs per second, and µs of the store's CPU per job."""
        if work == self._pop:
            self._stock_up()
        cpu, begun = self._scratch.cpu(), perf_counter()
        done, took = 0, 0.0
        while took < length:
            step = work()
            done += step
            took = perf_counter() - begun
            if not step:
                break
        return done / took, (self._scratch.cpu() - cpu) * 1e6 / done

    def _set(self) -> int:
        self._scratch.command("SET", self._client.root + "bench", BODY)
        return 1

    def _put(self) -> int:
        self._queue.put(KLASS, DATA)
        return 1

    def _pop(self) -> int:
        return 0 if self._queue.pop() is None else 1

    def _lifecycle(self) -> int:
        self._queue.put(KLASS, DATA)
        job = self._queue.pop()
        if job is not None:
            job.complete()
        return 1

    def _put_many(self) -> int:
        self._queue.put_many(ITEMS)
        return MANY

    def _lifecycle_of_many(self) -> int:
        self._queue.put_many(ITEMS)
        self._complete(self._take())
        return MANY

    def _stock_up(self) -> None:
        """Put jobs to pop; a slice that empties the queue ends early."""
        self._queue.put_many([(KLASS, DATA)] * STOCK)

    def _take(self) -> Sequence[JobFacts]:
        return self._client.run(Pop(self._client.worker_name, (QUEUE,), MANY))

    def _complete(self, jobs: Sequence[JobFacts]) -> None:
        ends = [Done(job.jid, job.token) for job in jobs]
        self._client.run(CompleteMany(self._client.worker_name, ends))

    def _drain(self) -> None:
        """Complete the waiting jobs, so that the next slice starts empty; popped jobs are removed with the namespace."""
        while jobs := self._take():
            self._complete(jobs)


def _figure(what: str, slices: list[tuple[float, float]], base: list[float]) -> Figure:
    rates = [rate for rate, _ in slices]
    times = statistics.median(rate / one for rate, one in zip(rates, base, strict=True))
    return Figure(what, statistics.median(rates), statistics.median(cpu for _, cpu in slices), times)
