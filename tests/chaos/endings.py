"""Workers that are ended in every way, at any moment, while they work; and what must be left when all is over."""

import json
import random
import signal
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

from crew import Crew, Worker, members, send
from diary import Diary, entries, under_way
from laws import broken, history
from proxy import Proxy
from witness import Witness

from holdfast import Client
from holdfast.commands.admin import ConfigSet
from holdfast.commands.jobs import JobGet, PutMany
from holdfast.ids import mint_jid
from waiting import pause, until

LEASE = 1
FROZEN = 3.0 * LEASE
BATCH, LONGEST = 24, 0.1
LONG = 1.5 * LEASE
SOME = 16  # jobs, whose tales are never too long for one call
STAGES = ("hf1_pop", "hf1_complete_pop")

CHILDREN_ONLY = ("kill_child", "kill_parent", "freeze_child", "freeze_parent", "restart")
ENDINGS = (
    *CHILDREN_ONLY,
    "kill_both",
    "freeze_both",
    "term_fetch",
    "term_perform",
    "term_complete",
    "term_any",
    "quit",
)


def endings_of(pool: str) -> tuple[str, ...]:
    """The ways in which a worker of this pool can be ended."""
    return tuple(ending for ending in ENDINGS if pool != "serial" or ending not in CHILDREN_ONLY)


class Endings:
    """Two workers of one pool. One of them, behind a relay, is ended again and again; the other works on."""

    def __init__(
        self, url: str, relay: Proxy, crew: Crew, here: Path, namespace: str, pool: str, seed: int
    ) -> None:
        self._url, self._relay, self._crew, self._here, self._pool = url, relay, crew, here, pool
        self._namespace = namespace
        self._klass = "errands.atoil" if pool == "asyncio" else "errands.toil"
        self._dice = random.Random(seed)
        self._diary = Diary(here)
        self._jids: list[str] = []
        self.client = Client(url, namespace=namespace)
        self.client.run(ConfigSet("heartbeat", str(LEASE)))
        self.client.run(ConfigSet("grace-period", "0"))
        self.harm: Counter[str] = Counter()
        self.redelivered = 0
        self.witness = Witness(url, namespace, LEASE / 5)
        self.witness.start()
        self.other = self._start(url)
        self.victim = self._start(relay.url)

    def round(self, ending: str) -> None:
        """End the worker in this way while it works, and see all jobs come to their end."""
        until(lambda: _is_at_work(self.victim), "the worker is at work", 30)
        stage = {"term_fetch": STAGES[0], "term_complete": STAGES[1]}.get(ending)
        aim = None if stage is None else self._relay.aim("delay", stage, seconds=0.3)
        self._put()
        if ending.startswith("freeze"):  # which takes as long as these
            self._put(2, LONG, delay=200)
        if aim is not None:
            until(lambda: aim.hit.is_set() or self._has_ended(), f"the worker is in {stage}", 30)
        elif ending == "term_perform":
            until(lambda: under_way(self._here, self.victim.family()) or self._has_ended(), "it performs", 30)
        else:
            pause(self._dice.uniform(0.0, LONGEST))
        harms = ending.startswith(("kill", "freeze"))
        with self.witness.harm(self.victim.name) if harms else nullcontext():
            getattr(self, "term" if ending.startswith("term_") else ending)()
        self.harm[ending] += 1
        self._relay.heal()
        until(self._has_ended, f"all jobs have ended after {ending}", 60)
        assert self.other.lives

    # Ways to end.

    def kill_child(self) -> None:
        children = self.victim.children()
        if children:
            send(self._dice.choice(children), signal.SIGKILL)

    def kill_parent(self) -> None:
        send(self.victim.pid, signal.SIGKILL)
        self._is_over(-signal.SIGKILL)

    def kill_both(self) -> None:
        family = self.victim.family()
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in family:
                send(pid, number)
        self._is_over(-signal.SIGKILL)

    def freeze_child(self) -> None:
        self._freeze(self.victim.workers()[:1])

    def freeze_parent(self) -> None:
        self._freeze([self.victim.pid])

    def freeze_both(self) -> None:
        self._freeze(self.victim.family())

    def restart(self) -> None:
        self.victim.signal(signal.SIGHUP)

    def quit(self) -> None:
        self.victim.signal(signal.SIGQUIT)
        self._is_over(0)

    def term(self) -> None:
        self.victim.signal(signal.SIGTERM)
        self._is_over(0)

    # The end of all.

    def settle(self) -> list[str]:
        """End the workers and answer what is wrong: broken laws, processes and files that nobody should have left."""
        wrong: list[str] = []
        for worker in (self.victim, self.other):
            until(lambda worker=worker: _is_at_work(worker), "a worker is at work", 30)
        # Idle workers take jobs in another way than busy ones: one for each child.
        self._put(4, LONG, delay=400)
        until(self._has_ended, "all long jobs have ended", 60)
        for worker in (self.victim, self.other):
            worker.signal(signal.SIGTERM)
            code = worker.wait(30)
            wrong += [f"a worker told to end ended with {code}"] if code else []
        for worker in self._crew.workers:
            wrong += [f"process {pid} of worker {worker.pid} is an orphan" for pid in members(worker.pid)]
        left = [path for path in (self._here / "holdfast-workers").rglob("*") if path.is_file()]
        wrong += [f"left behind: {path}" for path in left if not path.name.endswith(".lock")]
        found = []
        for at in range(0, len(self._jids), SOME):
            found += [
                facts for facts in self.client.run(JobGet(self._jids[at : at + SOME])) if facts is not None
            ]
        self.redelivered = sum(facts.losses for facts in found)
        past = history(list(entries(self._here)), found)
        past.harms = self.witness.stop()
        wrong += broken(past)
        self.client.close()
        return wrong

    # What it takes.

    def _start(self, url: str) -> Worker:
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
            flags += ["--concurrency", "3"]
        flags += ["-m", "errands", "--workdir", str(self._here)]
        return self._crew.start(*flags, url=url)

    def _put(self, count: int = BATCH, shortest: float = 0.0, delay: int = 0) -> None:
        words: list[str | bytes] = []
        for _ in range(count):
            jid = mint_jid()
            self._jids.append(jid)
            self._diary.note("asked", jid=jid, delay_ms=delay, parents=[], throttle="")
            data = {"args": [len(self._jids), round(shortest + self._dice.uniform(0, LONGEST), 4)]}
            words += [jid, self._klass, json.dumps(data).encode()]
        self.client.run(PutMany("q", words, 0, 500, delay))
        for jid in words[::3]:
            self._diary.note("ok", jid=str(jid))

    def _has_ended(self) -> bool:
        counts = self.client.queues["q"].counts
        return not any(counts[name] for name in ("waiting", "running", "stalled", "scheduled"))

    def _freeze(self, pids: list[int]) -> None:
        for pid in pids:
            send(pid, signal.SIGSTOP)
        pause(FROZEN)
        for pid in pids:
            send(pid, signal.SIGCONT)

    def _is_over(self, code: int) -> None:
        """The worker ends with this status, all its processes with it, and another one comes."""
        found = self.victim.wait(30)
        assert found == code, f"it ended with {found}, not {code}"
        until(lambda: not members(self.victim.pid), "its processes end with it", 30)
        self.victim = self._start(self._relay.url)


def _is_at_work(worker: Worker) -> bool:
    """Whether it hears signals and takes jobs: its title says what it does, and no more that it begins."""
    try:
        title = Path(f"/proc/{worker.pid}/cmdline").read_text()
    except FileNotFoundError:
        return False
    return title.startswith("holdfast-") and ": Starting" not in title
