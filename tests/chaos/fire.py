"""A load of jobs, workers that are killed, frozen and stopped meanwhile, and a store that is killed too."""

import json
import random
import re
import signal
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from crew import Crew, Worker, send, stop
from diary import Diary, entries, under_way
from laws import Harm, broken, history
from witness import Witness

from holdfast import Client
from holdfast.commands.admin import ConfigSet
from holdfast.commands.attributes import Tags
from holdfast.commands.jobs import JobGet, Put, PutMany
from holdfast.commands.options import ExtraOptions, JobWithOptions, PutX
from holdfast.commands.queues import ThrottleGet, ThrottleSet
from holdfast.commands.recurring import Recur, RecurCancel, RecurGet
from holdfast.errors import HoldfastError
from holdfast.ids import mint_jid
from holdfast.models import JobFacts
from holdfast.testing.store import ScratchStore
from waiting import pause, until

LEASE, GRACE = 1, 0.5
BACKLOG = 300
THROTTLE, SLOTS = "db", 2
TEMPLATE, INTERVAL = "turn", 250
REFUSED = re.compile(r"is not recorded|was refused")


class Producer(threading.Thread):
    """Puts jobs until told to stop; what it was told goes into the diary."""

    def __init__(self, fire: "Fire", seed: int) -> None:
        super().__init__(name=f"producer-{seed}")
        self._fire, self._dice = fire, random.Random(seed)
        # Impatient on purpose: what it gives up is unknown to it.
        self._client = Client(fire.store.url, namespace=fire.namespace, deadline=0.2)
        self.stopping = threading.Event()

    def run(self) -> None:
        while not self.stopping.is_set():
            delay = self._dice.choice((0, 0, 0, self._dice.randint(1, 400)))
            if self._dice.random() < 0.3:
                self.put_family(delay)
            else:
                self.put(self._dice.choice((1, 1, 1, 20)), delay)
            while not self.stopping.is_set() and self.backlog() > BACKLOG:
                pause(0.02)
        self._client.close()

    def backlog(self) -> int:
        try:
            return self._client.queues["q"].counts["waiting"]
        except HoldfastError:
            return 0

    def put(self, count: int, delay: int) -> None:
        words: list[str | bytes] = []
        for _ in range(count):
            jid = mint_jid()
            self._fire.diary.note("asked", jid=jid, delay_ms=delay, parents=[], throttle="")
            words += [jid, self._fire.klass, self.data()]
        # A job that loses its lease often is no failure here.
        command = (
            Put("q", str(words[1]), bytes(words[2]), str(words[0]), 0, 500, delay)  # type: ignore[arg-type]
            if count == 1
            else PutMany("q", words, 0, 500, delay)
        )
        self.run_and_note(command, [str(jid) for jid in words[::3]])

    def put_family(self, delay: int) -> None:
        """Two jobs under a throttle, and one that waits for both."""
        parents = [mint_jid(), mint_jid()]
        jobs: list[JobWithOptions] = []
        for jid in (*parents, mint_jid()):
            before = parents if jid not in parents else []
            throttle = THROTTLE if not before else ""
            self._fire.diary.note("asked", jid=jid, delay_ms=delay, parents=before, throttle=throttle)
            wish = ExtraOptions(tags=["family"], throttles=[throttle] if throttle else [], depends=before)
            jobs.append(JobWithOptions(self._fire.klass, self.data(), jid, wish))
        self.run_and_note(PutX("q", jobs, 0, 500, delay), [job.jid for job in jobs])

    def data(self) -> bytes:
        words = [self._fire.number(), round(self._dice.uniform(0, 0.02), 4)]
        return json.dumps({"args": words}).encode()

    def run_and_note(self, command: Any, jids: list[str]) -> None:
        try:
            self._client.run(command)
            outcome = "ok"
        except HoldfastError:
            outcome = "unknown"
        for jid in jids:
            self._fire.diary.note(outcome, jid=jid)


class Fire:
    """One run: start it, do harm, and let it `settle`, which checks everything."""

    def __init__(
        self, store: ScratchStore, crew: Crew, here: Path, namespace: str, pool: str, seed: int
    ) -> None:
        self.store, self.namespace, self._here, self._crew, self._pool = store, namespace, here, crew, pool
        self.diary = Diary(here)
        self.klass = "errands.atoil" if pool == "asyncio" else "errands.toil"
        self.client = Client(store.url, namespace=namespace)
        self._dice = random.Random(seed)
        self._count = 0
        self._lock = threading.Lock()
        self.harm: Counter[str] = Counter()
        self._producers: list[Producer] = []
        self.client.run(ConfigSet("heartbeat", str(LEASE)))
        self.client.run(ConfigSet("grace-period", str(GRACE)))
        self.client.run(ThrottleSet(THROTTLE, SLOTS))
        self.witness = Witness(store.url, namespace, LEASE / 5)
        self.harms: list[Harm] = []

    def number(self) -> int:
        with self._lock:
            self._count += 1
            return self._count

    def begin(self, workers: int) -> None:
        turn = b'{"args": [1, 0.001]}'
        self.client.run(Recur("q", self.klass, INTERVAL, turn, TEMPLATE, retries=500))
        self.witness.start()
        for _ in range(workers):
            self.start()
        self._producers = [Producer(self, self._dice.randrange(1 << 32)) for _ in range(2)]
        for producer in self._producers:
            producer.start()
        until(lambda: any(e["what"] == "end" for e in entries(self._here)), "the workers work", 30)

    def put_long(self, count: int, delay: int) -> None:
        """Put jobs that run for longer than a lease."""
        words: list[str | bytes] = []
        for _ in range(count):
            jid = mint_jid()
            self.diary.note("asked", jid=jid, delay_ms=delay, parents=[], throttle="")
            words += [jid, self.klass, json.dumps({"args": [1, LEASE * 1.5]}).encode()]
        self.client.run(PutMany("q", words, 0, 500, delay))

    def start(self) -> Worker:
        # Every second worker finds its queue by a pattern.
        flags = [
            "-q",
            "q*" if len(self._crew.workers) % 2 else "q",
            "--pool",
            self._pool,
            "-w",
            "2",
            "--interval",
            "0.5",
            "--term-timeout",
            "3",
        ]
        if self._pool in ("asyncio", "thread", "gevent"):
            flags += ["--concurrency", "10"]
        return self._crew.start(*flags, "-m", "errands")

    def one(self) -> Worker:
        """A worker that has begun to work: a newborn one knows no signals yet."""

        def ready() -> list[Worker]:
            return [one for one in self._crew.workers if one.lives and "started as process" in one.said()]

        return self._dice.choice(until(ready, "a worker lives", 20))

    def halted(self, worker: Worker, pids: Callable[[], list[int]]) -> list[int]:
        """Processes of a worker, stopped at a moment at which they work on something."""

        def caught() -> list[int]:
            found: list[int] = []
            # Also those that were forked meanwhile.
            while new := [pid for pid in pids() if pid not in found]:
                for pid in new:
                    stop(pid)
                found += new
            # By now none of them does anything: what has not ended in a diary was not reported to the store either.
            if under_way(self._here, found):
                return found
            for pid in found:
                send(pid, signal.SIGCONT)
            return []

        return until(caught, f"worker {worker.pid} is caught at work", 30)

    # The harm.

    def kill_child(self, worker: Worker) -> None:
        for pid in self.halted(worker, lambda: worker.workers()[:1]):
            send(pid, signal.SIGKILL)

    def kill_parent(self, worker: Worker) -> None:
        self.halted(worker, worker.family)
        worker.signal(signal.SIGKILL)
        worker.wait()
        for pid in worker.children():
            send(pid, signal.SIGCONT)
        self.start()
        until(lambda: not worker.children(), "children end when their parent is gone", 30)

    def kill_both(self, worker: Worker) -> None:
        for pid in self.halted(worker, worker.family):
            send(pid, signal.SIGKILL)
        worker.wait()
        self.start()

    def freeze(self, worker: Worker) -> None:
        frozen, held = until(
            lambda: self.stopped_in_a_lease(worker), "a worker is stopped that holds a lease", 30
        )
        until(lambda: self.is_granted_again(held), f"what the frozen one held is granted again: {held}", 30)
        before = self.refusals(worker)
        for pid in frozen:
            send(pid, signal.SIGCONT)
        until(lambda: self.refusals(worker) > before, "its result is refused, or its work stopped", 30)

    def stopped_in_a_lease(self, worker: Worker) -> tuple[list[int], list[tuple[str, int]]] | None:
        stopped = self.halted(worker, worker.processes)
        held = self.still_held(under_way(self._here, stopped))
        if held:
            return stopped, held
        for pid in stopped:  # what it did was settled just before
            send(pid, signal.SIGCONT)
        return None

    def refusals(self, worker: Worker) -> int:
        return len(REFUSED.findall(worker.said()))

    def still_held(self, held: list[tuple[str, int]]) -> list[tuple[str, int]]:
        """Those whose lease has not ended: of the others nothing is left to be refused."""
        found = self.client.run(JobGet([jid for jid, _ in held]))
        return [
            one
            for one, facts in zip(held, found, strict=True)
            # One that was settled keeps its token until it is granted again.
            if facts is not None and facts.state == "running" and facts.token == one[1]
        ]

    def is_granted_again(self, held: list[tuple[str, int]]) -> bool:
        found = self.client.run(JobGet([jid for jid, _ in held]))
        return any(
            facts is not None and any(line.token > token for line in facts.history)
            for facts, (_, token) in zip(found, held, strict=True)
        )

    def stop_politely(self, worker: Worker) -> None:
        self.start()
        worker.signal(self._dice.choice((signal.SIGTERM, signal.SIGQUIT)))
        code = worker.wait(30)
        assert code == 0, f"exit code {code}"
        assert not worker.children(), "a child outlives its parent"

    def kill_store(self) -> None:
        self.store.kill()
        pause(self._dice.uniform(0.3, 0.8))
        self.store.restart()

    def hurt(self, what: str) -> None:
        if what == "freeze":  # which takes as long as these
            self.put_long(2, 200)
        if what == "kill_store":
            self.kill_store()
        else:
            worker = self.one()
            # One that is stopped politely has to keep its leases until then.
            with nullcontext() if what == "stop_politely" else self.witness.harm(worker.name):
                getattr(self, what)(worker)
        self.harm[what] += 1

    # The end.

    def settle(self) -> "Outcome":
        for producer in self._producers:
            producer.stopping.set()
        for producer in self._producers:
            producer.join()
        self.turns = self.client.run(RecurGet((TEMPLATE,)))[0].count
        self.client.run(RecurCancel((TEMPLATE,)))
        until(self.is_quiet, "all jobs have ended", 90)
        # Idle workers take jobs in another way than busy ones: one for each child.
        self.put_long(4, 400)
        until(self.is_quiet, "all long jobs have ended", 90)
        for worker in self._crew.workers:
            worker.signal(signal.SIGTERM)
        for worker in self._crew.workers:
            worker.wait(30)
            assert not worker.children(), "a child outlives its parent"
        self.harms = self.witness.stop()
        outcome = Outcome(self)
        self.client.close()
        return outcome

    def is_quiet(self) -> bool:
        counts = self.client.queues["q"].counts
        return not any(counts[name] for name in ("waiting", "running", "stalled", "scheduled", "throttled"))


SOME = 64
"""So many jobs, with what they tried and failed at, are never too much to tell in one call."""


class Outcome:
    """What a fire left: the laws it broke (none, if all is well), and how much it hurt."""

    def __init__(self, fire: Fire) -> None:
        client = fire.client
        diaries = list(entries(fire._here))
        jids = [entry["jid"] for entry in diaries if entry["what"] == "asked"]
        # An occurrence or two may have come between the question for their number and the end of the template.
        jids += [f"{TEMPLATE}-{number}" for number in range(1, fire.turns + 10)]
        found = [
            facts
            for at in range(0, len(jids), SOME)
            for facts in client.run(JobGet(jids[at : at + SOME]))
            if facts is not None
        ]
        past = history(diaries, found)
        past.limits, past.templates = {THROTTLE: SLOTS}, {TEMPLATE: INTERVAL}
        past.harms = fire.harms
        self.broken = broken(past)
        self.put = len(jids)
        self.slow = sum(harm.end - harm.begin for harm in fire.harms if not harm.worker) / 1000
        self.states = Counter(facts.state for facts in found)
        self.outcomes = Counter(said.outcome for said in past.puts)
        self.redelivered = sum(facts.losses for facts in found)
        self.executions = len(past.begun)
        self.refused = sum(map(fire.refusals, fire._crew.workers))
        pages = [client.jobs.complete(at, 10_000) for at in range(0, self.put + 1, 10_000)]
        complete = sum(len(page) for page in pages)
        if (complete, sum(client.jobs.failed().values())) != (self.states["complete"], self.states["failed"]):
            self.broken.append(f"L12: {complete} complete, {client.jobs.failed()} failed, but {self.states}")
        self.check_sets(client, found)

    def check_sets(self, client: Client, found: list[JobFacts]) -> None:
        """At rest nobody holds a slot or waits for one, and sets are as large as there are jobs for them."""
        waiting, throttle = client.queues["q"].counts["depends"], client.run(ThrottleGet(THROTTLE))
        if waiting != self.states["depends"]:
            self.broken.append(f"L12: {waiting} wait for others, but {self.states}")
        if (throttle.used, throttle.pending) != (0, 0):
            self.broken.append(
                f"L17: {throttle.used} hold a slot of {THROTTLE}, {throttle.pending} wait for one"
            )
        tagged = sum(bool(facts.tags) for facts in found)
        if client.run(Tags(1)) != {"family": tagged}:
            self.broken.append(f"L12: {client.run(Tags(1))} tagged, but {tagged} jobs")

    def __str__(self) -> str:
        return (
            f"{self.put} put ({dict(self.outcomes)}), {dict(self.states)}, {self.executions} executions, "
            f"{self.redelivered} redelivered, {self.refused} refused, the store slow or away for {self.slow:.1f} s"
        )
