"""`client.workers`: which workers exist, what each holds, quieting one; and the stack of a running job."""

import asyncio
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from time import monotonic
from typing import Any, Final

import msgspec

from holdfast.client.descriptors import AsyncHandle, PlanAsked, Planned, SyncHandle, Verb
from holdfast.commands import Command
from holdfast.commands.jobs import JobGet
from holdfast.commands.workers import (
    MOST_ROWS,
    HeldJob,
    WorkerAsk,
    WorkerFacts,
    WorkerForget,
    WorkerJobs,
    WorkerQuiet,
    Workers,
)
from holdfast.errors import HoldfastError, JobNotFound, UsageError, WrongState
from holdfast.models import JobFacts
from holdfast.settings import MAX_BATCH, check_name, check_seconds
from holdfast.wire.plans import Ask, Plan

PATIENCE: Final = 5.0
LONGEST: Final = 3600.0
UNDER_WAY: Final = ("running", "stalled")


class LiveStack(msgspec.Struct, frozen=True):
    """Where a running job was at one moment: under which `worker` and `pid`, and the `stack` as text, innermost last.

    `note` says what of it is not as usual, for example that other jobs of the process are shown too.
    """

    jid: str
    worker: str
    pid: int
    stack: str
    note: str = ""

    def __str__(self) -> str:
        return self.stack


class Answer(msgspec.Struct):
    """What a worker answers: a stack, or why there is none."""

    worker: str = ""
    pid: int = 0
    stack: str = ""
    note: str = ""
    problem: str = ""


class _Question:
    """One question about one job, without the waiting: which words are said, and what an answer means."""

    def __init__(self, client: Any, jid: str, timeout: float) -> None:
        self.jid = check_name("jid", jid)
        self._until = check_seconds("timeout", timeout, 0.001, LONGEST) + monotonic()
        self._name = os.urandom(16).hex()
        self._timeout = timeout
        self._worker = ""
        self._heard_by = 0
        self.channel: str = client.shard.answer_channel(self._name)

    def of(self, found: Sequence[JobFacts | None]) -> WorkerAsk:
        """The question, to the worker that holds the job. Raises JobNotFound, WrongState."""
        [facts] = found
        if facts is None:
            raise JobNotFound(f"job {self.jid} does not exist", "HF_JOB_NOT_FOUND")
        if facts.state not in UNDER_WAY:
            raise WrongState(
                f"job {self.jid} is {facts.state}: nobody performs it just now", "HF_WRONG_STATE"
            )
        self._worker = facts.worker
        return WorkerAsk(facts.worker, self.jid, self._name)

    def was_heard_by(self, count: int) -> None:
        self._heard_by = count

    def left(self) -> float:
        """How many seconds to wait. Raises TimeoutError when there are none."""
        left = self._until - monotonic()
        if left > 0:
            return left
        why = "" if self._heard_by else ": nobody listens under that name; was it taken by hand?"
        raise TimeoutError(
            f"worker {self._worker} did not say within {self._timeout:g} s where job {self.jid} is{why}"
        )

    def answer(self, message: tuple[str, bytes]) -> LiveStack:
        """Read the answer. Raises WrongState when the worker does not perform the job (any more)."""
        try:
            said = msgspec.json.decode(message[1], type=Answer)
        except msgspec.MsgspecError as error:
            raise HoldfastError(f"worker {self._worker} answered nonsense: {error}") from error
        if said.problem:
            raise WrongState(f"job {self.jid}: {said.problem}", "HF_WRONG_STATE")
        return LiveStack(self.jid, said.worker, said.pid, said.stack, said.note)


def ask(client: Any, jid: str, timeout: float) -> LiveStack:
    """Ask where a job is, and wait for the answer."""
    question = _Question(client, jid, timeout)
    with closing(client.link.listener()) as listener:
        listener.subscribe(question.channel)
        question.was_heard_by(client.run(question.of(client.run(JobGet((question.jid,))))))
        while True:
            message = listener.receive(question.left())
            if message is not None:
                return question.answer(message)


async def ask_async(client: Any, jid: str, timeout: float) -> LiveStack:
    """The same for an async client."""
    question = _Question(client, jid, timeout)
    listener = client.link.listener()
    try:
        await listener.subscribe(question.channel)
        question.was_heard_by(await client.run(question.of(await client.run(JobGet((question.jid,))))))
        while True:
            left = question.left()
            message = await listener.receive(left)
            if message is not None:
                return question.answer(message)
            await asyncio.sleep(0)
    finally:
        await listener.close()


class WorkersVerbs:
    """What can be asked of workers, and told them, by name: `workers["box-7"]` is what it holds."""

    _client: Any

    def __init__(self, client: Any) -> None:
        self._client = client

    @PlanAsked
    def counts(self, ask: Ask) -> Plan[list[dict[str, Any]]]:
        """How many running and stalled jobs each worker holds: `name`, `jobs`, `stalled`, those that last took a job or
        gave a sign of life first. One that was silent for `max-worker-age` is left out.

        Read in pages, so jobs that move meanwhile may be missed. Core: verbs/holding.lua.
        """
        active = {worker.name: worker.seen_ms for worker in (yield from _all(ask))}
        jobs, stalled = Counter[str](), Counter[str]()
        for job in (yield from _held(ask, "")):
            active[job.worker] = max(active.get(job.worker, 0), job.since_ms)
            (stalled if job.stalled else jobs)[job.worker] += 1
        names = sorted(active, key=lambda name: active[name], reverse=True)
        return [{"name": name, "jobs": jobs[name], "stalled": stalled[name]} for name in names]

    @Planned
    def all(self, ask: Ask) -> Plan[list[WorkerFacts]]:
        """Every worker with what it says of itself, most recently seen first. Core: nouns/worker.lua."""
        return _all(ask)

    @Planned
    def jobs(self, ask: Ask, name: str | None = None) -> Plan[list[HeldJob]]:
        """The leases a worker holds, those of all without a name; the one that lasts longest first.

        Core: verbs/holding.lua.
        """
        return _held(ask, "" if name is None else check_name("worker", name))

    @Planned
    def __getitem__(self, ask: Ask, name: str) -> Plan[dict[str, list[str]]]:
        """The jids a worker holds, `jobs` and `stalled`, those whose leases last longest first.

        Core: verbs/holding.lua.
        """
        return _jids(ask, check_name("worker", name))

    @Planned
    def quiet(self, ask: Ask, name: str) -> Plan[bool]:
        """Tell a worker to finish what it does and take no more jobs; answers whether it is known.

        It hears of it at once or within ten seconds. The name that `holdfast worker --name` was given stands for all its
        processes. Core: nouns/worker.lua.
        """
        return _tell(ask, check_name("worker", name), True)

    @Planned
    def resume(self, ask: Ask, name: str) -> Plan[bool]:
        """Tell a quiet worker, or all processes of that name, to take jobs again; answers whether it is known.

        Core: nouns/worker.lua.
        """
        return _tell(ask, check_name("worker", name), False)

    @Verb
    def forget(self, *names: str) -> Command[int]:
        """Take up to 512 workers off the list; answers how many were there.

        What they hold stays theirs, and one that is alive comes back with its next sign of life.
        Core: nouns/worker.lua.
        """
        if not 1 <= len(names) <= MAX_BATCH:
            raise UsageError(f"forget takes 1 to {MAX_BATCH} names in one call, not {len(names)}")
        return WorkerForget([check_name("worker", name) for name in names])


class WorkersOf(WorkersVerbs, SyncHandle):
    """The workers of a blocking client, by name; a mapping in that one can go through the names."""

    def __iter__(self) -> Iterator[str]:
        return iter([worker.name for worker in self.all()])

    def __len__(self) -> int:
        return len(self.all())

    def __contains__(self, name: object) -> bool:
        return any(worker.name == name for worker in self.all())


class AsyncWorkersOf(WorkersVerbs, AsyncHandle):
    """The workers of an async client: `await workers["box-7"]` is what it holds."""


def is_meant(given: str, name: str) -> bool:
    """Whether a worker `name` is the one given, or a process of the command that was given that name."""
    return name == given or (name.startswith(given + "-") and name[len(given) + 1 :].isdecimal())


def _all(ask: Ask) -> Plan[list[WorkerFacts]]:
    """Every worker that is not too old, once, most recently seen first."""
    found: dict[str, WorkerFacts] = {}
    after = ("", "")
    while True:
        page = yield from ask(Workers(after))
        found.update({worker.name: worker for worker in page})
        if len(page) < MOST_ROWS:
            return sorted(found.values(), key=lambda worker: worker.seen_ms, reverse=True)
        after = (str(page[-1].seen_ms), page[-1].name)


def _tell(ask: Ask, name: str, quiet: bool) -> Plan[bool]:
    """Tell a worker, or if there is none of that name the processes that were named after it: `<name>-<number>`."""
    if (yield from ask(WorkerQuiet(name, quiet))):
        return True
    known = False
    for worker in (yield from _all(ask)):
        # A program that pops by hand may have such a name as well, and says nothing of a pool.
        if is_meant(name, worker.name) and "pool" in worker.facts:
            known = (yield from ask(WorkerQuiet(worker.name, quiet))) or known
    return known


def _held(ask: Ask, worker: str) -> Plan[list[HeldJob]]:
    """The leases of a worker ('' for all), each once, the one that lasts longest first."""
    found: dict[str, HeldJob] = {}
    cursor = ""
    while True:
        page = yield from ask(WorkerJobs(worker, cursor))
        found.update({held.jid: held for held in page.jobs})
        cursor = page.cursor
        if not cursor:
            return sorted(found.values(), key=lambda held: held.expires_ms, reverse=True)


def _jids(ask: Ask, worker: str) -> Plan[dict[str, list[str]]]:
    held = yield from _held(ask, worker)
    return {
        "jobs": [job.jid for job in held if not job.stalled],
        "stalled": [job.jid for job in held if job.stalled],
    }
