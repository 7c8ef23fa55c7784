"""The session of a worker with the store: in one round trip it reports what ended and takes what can be started.

Every pool works by these round trips and differs only in how it runs jobs and waits. Nothing is taken that no free slot can
start, and a stopping worker takes nothing: a job that was never granted need not be given back.
"""

import logging
from collections.abc import Sequence
from typing import Any, Final, cast

from holdfast.commands.attributes import Report
from holdfast.commands.base import Command
from holdfast.commands.dependencies import CompleteX
from holdfast.commands.flows import EndWithFlow
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
from holdfast.worker.performing.outcome import Outcome, failed
from holdfast.worker.queues.route import Route

log = logging.getLogger("holdfast")

ANY_QUEUE = ""
"""Used when a wait times out: the worker then tries every queue, in case a wake-up was lost with a dead worker."""

LATEST: Final = 1.0
BUSY: Final = 0.008
"""Seconds between two tries while the store has more to look at than one call does (`due` is 0)."""


def longer(pause: float, due: float) -> float:
    """Return the next pause before trying what is due: it grows while tries find nothing, so that no worker spins."""
    return min(LATEST if due else BUSY, pause * 2 or 0.004)


MOST_DONE: Final = 100
"""Outcomes that are never too heavy for one call, whatever the jobs use (verbs/complete.lua)."""


def granted(shard: Shard, worker: str, queues: Sequence[str], asked: tuple[str, int]) -> Plan[Popped]:
    """Return the jobs granted to the call with this name and number, whose reply was not read.

    If the store has not seen the call, the call takes nothing, even if it arrives later. Raises Refused if a later call of the same sequence had a reply.
    """
    sequence = RequestSequence()
    sequence.name, sequence.number = asked[0], asked[1] - 1
    return (yield from exchange(shard, Pop(worker, queues, 0), sequence))


class StoreSession:
    """The outcomes that one worker has to report, and its round trips. `worker` is its name; its `route` gives the queues in order.

    Outcomes are kept until the store has confirmed them; all of them may be reported twice. `done` and `others` are those to
    report: completions, which share a call, and commands of their own.

    `sequence` numbers the calls that take jobs, and nothing else, so that what the last of them was granted can be read again after
    a lost reply.
    """

    def __init__(self, shard: Shard, worker: str, route: Route, will_wait: bool = True) -> None:
        self._shard = shard
        self._worker = worker
        self._route = route
        self._patient = WILL_WAIT if will_wait else WILL_NOT_WAIT
        self.sequence = RequestSequence()
        self.done: list[Done] = []
        self.others: list[Command[Any]] = []

    def end(self, outcome: Outcome) -> None:
        """Note the outcome of a job for the next round trip."""
        if type(outcome) is Done:
            self.done.append(outcome)
        elif outcome is not None:
            if isinstance(outcome, (Fail, Retry)) and outcome.lines:
                # Before the outcome, while the lease still exists.
                lease = Lease(outcome.job.jid, outcome.job.token, outcome.worker)
                self.others.append(Report(outcome.worker, lease, lines=outcome.lines))
            self.others.append(cast("Command[Any]", outcome))

    @property
    def has_outcomes(self) -> bool:
        """Whether there are outcomes to report."""
        return bool(self.done or self.others)

    def round_trip(self, limit: int, woken: str | None = None) -> Plan[Popped]:
        """Report outcomes and take up to `limit` jobs.

        `woken` is the queue that woke the worker, ANY_QUEUE when a wait ended by itself, None when it did not wait.
        Raises TransportError, and then keeps what it had to report; so it does when its caller is interrupted.
        """
        # Further ones, and those of jobs that end from now on, belong to the next round trip.
        done, others = self.done[:MOST_DONE], self.others[:]
        route, asked, queues = self._route, limit, self._route.plain
        if queues is None:
            yield from route.find(limit, woken, self._patient == WILL_WAIT)
            asked = route.share(limit)
            queues = route.order(asked)
        finds = route.plain is None and route.finds
        waiting = self._patient if asked else WILL_NOT_WAIT
        # A worker that leaves its wait hands on what it waited for, in all queues.
        mode = FOUND if finds else waiting if woken is None else WOKEN
        take: Command[Any]
        if done:
            take = CompletePop(self._worker, queues, done, asked, None, mode)
        elif others or (queues if finds else asked or woken is not None):
            take = Pop(self._worker, queues, asked, None, mode)
        else:
            return route.after(Popped(), asked, limit)
        try:
            plan = exchange(self._shard, take, self.sequence) if not others else self._report(others, take)
            reply: Any = yield from plan
        except TransportError:
            raise
        except HoldfastError:
            del self.done[: len(done)], self.others[: len(others)]
            raise
        del self.done[: len(done)], self.others[: len(others)]
        jobs: Popped = reply
        if type(reply) is Settlement:
            jobs = reply.jobs
            for jid, refused in reply.lost.items():
                log.warning("job %s: the store refused its result, which is not recorded: %s", jid, refused)
        if route.plain is None:
            route.after(jobs, asked, limit)
            if finds and (done or others) and self._patient == WILL_NOT_WAIT:
                # The queues were looked up before: the outcomes may have made others ready, for which there is no wake-up.
                jobs.due = 0.0
            yield from route.hand_on(jobs, limit)
        return jobs

    def _report(self, others: list[Command[Any]], take: Command[Any]) -> Plan[Any]:
        answers = yield from exchange_all(self._shard, [*others, take], self.sequence)
        for answer in answers:
            if isinstance(answer, TransportError):
                raise answer
        for command, answer in zip(others, answers, strict=False):
            if isinstance(answer, HoldfastError) and not isinstance(command, Report):
                log.warning("%s of job %s was refused: %s", command.verb, _jid(command), answer)
                # What CompleteX does not find is the job itself; a flow may wait for a job that does not exist.
                gone = LeaseLost if isinstance(command, EndWithFlow) else (LeaseLost, JobNotFound)
                if isinstance(command, (CompleteX, EndWithFlow)) and not isinstance(answer, gone):
                    # It is done, but what it put cannot be put: another try would do it twice, and end no better.
                    facts = cast("JobFacts", command.job)
                    self.end(failed(facts, type(answer).__name__, str(answer)))
        if isinstance(answers[-1], HoldfastError):
            raise answers[-1]
        return answers[-1]


def _jid(command: Command[Any]) -> str:
    return str(getattr(getattr(command, "job", None), "jid", "?"))
