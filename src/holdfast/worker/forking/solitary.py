"""What a process forked for one job does: perform it, return its outcome through a pipe, and end without running
anything else.
"""

import logging
import os
import signal
import struct
import sys
from collections.abc import Coroutine
from contextlib import closing
from typing import Any, Final, NamedTuple, NoReturn

import msgspec

from holdfast.code.resolver import Resolver
from holdfast.commands.dependencies import CompleteX, FollowUp
from holdfast.commands.flows import EndWithFlow, FlowJob
from holdfast.commands.leases import Done, Lease
from holdfast.commands.outcomes import Advance, Expire, Fail, Release, Retry
from holdfast.errors import WorkError
from holdfast.models import JobFacts
from holdfast.worker import signals
from holdfast.worker.descendants import end_descendants, guard_forks
from holdfast.worker.greenlets import prepare_child, thrown
from holdfast.worker.observe.board import note_forked
from holdfast.worker.observe.ledger import count_as_forked
from holdfast.worker.performing.outcome import Outcome, given_back
from holdfast.worker.performing.surroundings import Surroundings, make_performer
from holdfast.worker.process_state import CoroutineRunner, keep_standard
from holdfast.worker.processes import die_with, lead_group, send_rest
from holdfast.worker.queues.route import Route
from holdfast.worker.session import StoreSession
from holdfast.worker.settings import WorkerSettings
from holdfast.worker.signals import UNWIND, Terminated, ignore, log_stack, terminator
from holdfast.worker.store_choice import StoreChoice

_KINDS: Final[dict[str, type[Any]]] = {
    kind.__name__: kind for kind in (Done, CompleteX, EndWithFlow, Advance, Fail, Retry)
}
_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(tuple[str, dict[str, Any]])


def write_outcome(outcome: Outcome) -> bytes:
    """The ending of one job; which job that is, both sides know."""
    if outcome is None:
        return _encoder.encode(("", {}))
    thing: Any = outcome
    fields = {} if isinstance(outcome, Expire) else msgspec.structs.asdict(thing)
    fields.pop("job", None)
    fields.pop("leases", None)
    return _encoder.encode((type(outcome).__name__, fields))


def read_outcome(words: bytes, facts: JobFacts) -> Outcome:
    """Read what `write_outcome` wrote for the job of these facts. Raises WorkError for anything else."""
    try:
        kind, fields = _decoder.decode(words)
        if kind == "Expire":
            return given_back(facts)
        if not kind:
            return None
        if kind == "Release":
            return Release([Lease(facts.jid, facts.token, facts.worker)], **fields)
        if kind != "Done":
            fields["job"] = facts
        if "follow" in fields:
            fields["follow"] = msgspec.convert(fields["follow"], tuple[FollowUp, ...])
        if "jobs" in fields:
            fields["jobs"] = msgspec.convert(fields["jobs"], tuple[FlowJob, ...])
        outcome: Outcome = _KINDS[kind](**fields)
    except (msgspec.MsgspecError, KeyError, TypeError) as error:
        raise WorkError(f"the process of job {facts.jid} sent an invalid outcome: {error}") from error
    return outcome


log = logging.getLogger("holdfast")

SETTLED: Final = 76
"""The exit status of a process that settled its job itself, because the pipe was gone."""

SIZE: Final = struct.Struct("<I")
"""A message begins with its length in bytes."""
BY_ITSELF: Final = SIZE.pack(0)
"""The message that a job has settled itself: its code may run for long after that."""


class Assignment(NamedTuple):
    """What the process is given: its job, its end of the pipe, the process that forked it, and the parts of the worker."""

    facts: JobFacts
    pipe: int
    parent: int
    store: StoreChoice
    settings: WorkerSettings
    around: Surroundings
    resolver: Resolver


def become(assignment: Assignment) -> NoReturn:
    """Be the process of one job."""
    code = 1
    try:
        _settle_in(assignment.parent)
        if assignment.settings.pool == "gevent":
            prepare_child()
            signal.signal(UNWIND, thrown(terminator()))
        pipe = _ResultPipe(assignment.pipe)
        facts = assignment.facts
        note_forked(facts.jid)
        count_as_forked()
        performer = make_performer(
            assignment.store,
            assignment.settings,
            facts.worker,
            on_settled=pipe.send_settled,
            around=assignment.around.alone(),
            resolver=assignment.resolver,
        )
        outcome = performer.perform(facts, _run)
        signal.signal(UNWIND, ignore)
        _flush()
        code = 0
        if not pipe.send(write_outcome(outcome)):
            _settle(assignment, outcome)
            code = SETTLED
    except Terminated:
        log.info("job %s was stopped", assignment.facts.jid)
    except BaseException:
        log.exception("job %s could not be performed", assignment.facts.jid)
    finally:
        # Nothing of the parent's may run here, not even its exit handlers.
        signal.signal(UNWIND, ignore)
        try:
            end_descendants()
            send_rest()
            _flush()
        finally:
            os._exit(code)


class _ResultPipe:
    """The pipe to the process that forked this one. A job may close it, and open something else under its number."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._was = os.fstat(pipe)

    def send_settled(self) -> None:
        """Send that the job has settled itself."""
        self.send(b"")

    def send(self, words: bytes) -> bool:
        """Send a message. Return whether that worked."""
        left = memoryview(SIZE.pack(len(words)) + words)
        try:
            if not os.path.samestat(os.fstat(self._pipe), self._was):
                return False
            while left:
                left = left[os.write(self._pipe, left) :]
        except OSError:
            return False
        return True


def _settle_in(parent: int) -> None:
    """Reset the signal handlers, lead a process group, and end with the parent."""
    signals.reset()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, log_stack)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        # The process that forked us knows what they mean for the job.
        signal.signal(number, ignore)
    signal.signal(UNWIND, terminator())
    lead_group()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.ALL)
    die_with(parent)
    guard_forks(is_whole=True)


def _run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    with closing(CoroutineRunner()) as runner:
        return runner.run(coroutine)


def _settle(assignment: Assignment, outcome: Outcome) -> None:
    """Settle the job from here, because its pipe is closed."""
    keep_standard()
    facts = assignment.facts
    log.warning("job %s closed the pipe for its outcome; its own process settles it", facts.jid)
    client = assignment.store.client(facts.worker)
    session = StoreSession(client.shard, facts.worker, Route(client.shard, assignment.settings.queues))
    session.end(outcome)
    if session.has_outcomes:
        client.runner.run(session.round_trip(0))


def _flush() -> None:
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass  # the job closed it, or took it gate
