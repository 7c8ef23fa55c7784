"""One turn of a worker: say what ended, take what can be started, in one call.

Every pool works by these turns and differs only in how it performs and waits. Nothing is taken that no free
slot can start, and a stopping worker takes nothing: a job never granted needs no one to give it back.
"""

import logging
from collections.abc import Sequence
from typing import Any, Final, cast

from holdfast.commands.attributes import Report
from holdfast.commands.base import Command
from holdfast.commands.dependencies import CompleteX
from holdfast.commands.leases import (
    FOUND,
    WILL_NOT_WAIT,
    WILL_WAIT,
    WOKEN,
    CompletePop,
    Done,
    Lease,
    Pop,
    Popped,
    Settlement,
)
from holdfast.commands.outcomes import Fail, Retry
from holdfast.errors import HoldfastError, JobNotFound, LeaseLost, TransportError
from holdfast.models import JobFacts
from holdfast.wire.exchange import exchange, exchange_all
from holdfast.wire.plans import Plan
from holdfast.wire.shards import RequestSequence, Shard
from holdfast.work.performing.outcome import Ending, failed
from holdfast.work.queues.route import Route

log = logging.getLogger("holdfast")

ANY_QUEUE = ""
"""What rang when a wait ended by itself: a wake lost with a dead worker is healed by looking everywhere."""

LATEST: Final = 1.0
BUSY: Final = 0.008
"""Seconds between looks while the store has more to look at than one call does (`due` is 0)."""


def longer(pause: float, due: float) -> float:
    """The next pause before a look for what is due: looks that find nothing make it longer, so that nobody spins."""
    return min(LATEST if due else BUSY, pause * 2 or 0.004)


MOST_DONE: Final = 100
"""So many ends are never too heavy for one call, whatever the jobs use (verbs/complete.lua)."""


def granted(shard: Shard, worker: str, queues: Sequence[str], asked: tuple[str, int]) -> Plan[Popped]:
    """Return what the call with this name and number was granted, which nobody read; if the store has not seen it, it takes nothing.

    Raises Refused if a later call of the same sequence had a reply.
    """
    sequence = RequestSequence()
    sequence.name, sequence.number = asked[0], asked[1] - 1
    shard.sequences.give(sequence)
    try:
        return (yield from exchange(shard, Pop(worker, queues, 0)))
    finally:
        shard.sequences.take()


class StoreSession:
    """What one worker says to the store. `worker` is its name; its `route` says which queues are tried, in which order.

    What ended is kept until the store has answered for it; all of it may be said twice.
    """

    def __init__(self, shard: Shard, worker: str, route: Route, will_wait: bool = True) -> None:
        self._shard = shard
        self._worker = worker
        self._route = route
        self._patient = WILL_WAIT if will_wait else WILL_NOT_WAIT
        self._done: list[Done] = []
        self._others: list[Command[Any]] = []
        # What a turn under way says: it may be cut off, and then the next one says that too.
        self._saying: tuple[list[Done], list[Command[Any]]] = ([], [])

    def end(self, ending: Ending) -> None:
        """Note how a job ended; the next turn says it."""
        if isinstance(ending, Done):
            self._done.append(ending)
        elif ending is not None:
            if isinstance(ending, (Fail, Retry)) and ending.lines:
                # Before the end, while the lease still stands.
                lease = Lease(ending.job.jid, ending.job.token, ending.worker)
                self._others.append(Report(ending.worker, lease, lines=ending.lines))
            self._others.append(ending)

    @property
    def has_news(self) -> bool:
        """Whether something ended that the store does not know yet."""
        return bool(self._done or self._others or any(self._saying))

    def turn(self, limit: int, woken: str | None = None) -> Plan[Popped]:
        """Say what ended and take up to `limit` jobs.

        `woken` is the queue that woke the worker, ANY_QUEUE when a wait ended by itself, None when nobody waited.
        Raises TransportError, and then keeps what it had to say; so it does when its caller is interrupted.
        """
        self._take_back()
        done, others = self._done[:MOST_DONE], self._others
        # What is more, and what ends from now on, belongs to the next turn.
        self._done, self._others = self._done[MOST_DONE:], []
        self._saying = done, others
        yield from self._route.find(limit, woken, self._patient == WILL_WAIT)
        asked = self._route.share(limit)
        mode = self._mode(asked, woken)
        queues = self._route.order(asked)
        take: Command[Any]
        if done:
            take = CompletePop(self._worker, queues, done, asked, None, mode)
        elif others or (queues if self._route.finds else asked or woken is not None):
            take = Pop(self._worker, queues, asked, None, mode)
        else:
            return self._route.after(Popped(), asked, limit)
        try:
            if others:
                answer = yield from self._say(others, take)
            else:
                answer = yield from exchange(self._shard, take)
        except HoldfastError as error:
            if not isinstance(error, TransportError):
                self._saying = [], []
            raise
        self._saying = [], []
        jobs = self._route.after(_jobs_of(answer), asked, limit)
        if self._route.finds and (done or others) and self._patient == WILL_NOT_WAIT:
            # The queues were asked for before: what ended may have made others ready, for which no wake_up will ring.
            jobs.due = 0.0
        yield from self._route.hand_on(jobs, limit)
        return jobs

    def _take_back(self) -> None:
        """Have to say again what a turn could not say to its end."""
        done, others = self._saying
        self._done, self._others = done + self._done, others + self._others
        self._saying = [], []

    def _say(self, others: list[Command[Any]], take: Command[Any]) -> Plan[Any]:
        answers = yield from exchange_all(self._shard, [*others, take])
        for answer in answers:
            if isinstance(answer, TransportError):
                raise answer
        for command, answer in zip(others, answers, strict=False):
            if isinstance(answer, HoldfastError) and not isinstance(command, Report):
                log.warning("%s of job %s was refused: %s", command.verb, _jid(command), answer)
                if isinstance(command, CompleteX) and not isinstance(answer, (LeaseLost, JobNotFound)):
                    # It is done, but what it put cannot be: trying again would do it twice, and end no better.
                    facts = cast("JobFacts", command.job)
                    self.end(failed(facts, type(answer).__name__, str(answer)))
        if isinstance(answers[-1], HoldfastError):
            raise answers[-1]
        return answers[-1]

    def _mode(self, limit: int, woken: str | None) -> int:
        if self._route.finds:
            return FOUND
        waiting = self._patient if limit else WILL_NOT_WAIT
        # Who leaves its wait hands on what it waited for, in all queues.
        return waiting if woken is None else WOKEN


def _jobs_of(answer: Popped | Settlement) -> Popped:
    """The jobs that were taken; results that came too late are told of."""
    if not isinstance(answer, Settlement):
        return answer
    for jid, refused in answer.lost.items():
        log.warning("the result of job %s is dropped: %s", jid, refused)
    return answer.jobs


def _jid(command: Command[Any]) -> str:
    return str(getattr(getattr(command, "job", None), "jid", "?"))
