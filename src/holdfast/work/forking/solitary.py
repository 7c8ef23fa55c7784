"""What a process forked for one job does: perform it, return its outcome through a pipe, and end without running
anything else.
"""

import asyncio
import logging
import os
import signal
import struct
import sys
from collections.abc import Coroutine
from contextvars import copy_context
from typing import Any, Final, NamedTuple, NoReturn

import msgspec

from holdfast.code.resolver import Resolver
from holdfast.commands.dependencies import CompleteX, FollowUp
from holdfast.commands.leases import Done, Lease
from holdfast.commands.outcomes import Advance, Expire, Fail, Release, Retry
from holdfast.errors import WorkError
from holdfast.models import JobFacts
from holdfast.work import signals
from holdfast.work.greenlets import prepare_child, thrown
from holdfast.work.observe.board import note_forked
from holdfast.work.observe.ledger import count_as_forked
from holdfast.work.performing.around import Surroundings
from holdfast.work.performing.housekeeping import keep_standard
from holdfast.work.performing.making import make_performer
from holdfast.work.performing.outcome import Ending, given_back
from holdfast.work.processes import die_with, lead_group, send_rest
from holdfast.work.queues.route import Route
from holdfast.work.session import StoreSession
from holdfast.work.settings import WorkerSettings
from holdfast.work.signals import UNWIND, Terminated, ignore, log_stack, terminator
from holdfast.work.store_choice import StoreChoice

_KINDS: Final[dict[str, type[Any]]] = {
    kind.__name__: kind for kind in (Done, CompleteX, Advance, Fail, Retry)
}
_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(tuple[str, dict[str, Any]])


def write_ending(ending: Ending) -> bytes:
    """The ending of one job; which job that is, both sides know."""
    if ending is None:
        return _encoder.encode(("", {}))
    thing: Any = ending
    fields = {} if isinstance(ending, Expire) else msgspec.structs.asdict(thing)
    fields.pop("job", None)
    fields.pop("leases", None)
    return _encoder.encode((type(ending).__name__, fields))


def read_ending(told: bytes, facts: JobFacts) -> Ending:
    """What `write_ending` wrote of the job of these facts. Raises WorkError for anything else."""
    try:
        kind, fields = _decoder.decode(told)
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
        ending: Ending = _KINDS[kind](**fields)
    except (msgspec.MsgspecError, KeyError, TypeError) as error:
        raise WorkError(f"the process of job {facts.jid} sent an invalid outcome: {error}") from error
    return ending


log = logging.getLogger("holdfast")

SETTLED: Final = 76
"""The exit status of a process that said to the store how its job ended, because the pipe was gone."""

SIZE: Final = struct.Struct("<I")
"""What is told begins with its length in bytes."""
BY_ITSELF: Final = SIZE.pack(0)
"""What is told when a job has settled itself: its code may go on for long after that."""


class Assignment(NamedTuple):
    """What the process is given: its job, its end of the pipe, who forked it, and what is the worker's own."""

    facts: JobFacts
    pipe: int
    parent: int
    store: StoreChoice
    settings: WorkerSettings
    around: Surroundings
    resolver: Resolver


def become(errand: Assignment) -> NoReturn:
    """Be the process of one job."""
    code = 1
    try:
        _settle_in(errand.parent)
        if errand.settings.pool == "gevent":
            prepare_child()
            signal.signal(UNWIND, thrown(terminator()))
        mouth = _ResultPipe(errand.pipe)
        facts = errand.facts
        note_forked(facts.jid)
        count_as_forked()
        performer = make_performer(
            errand.store,
            errand.settings,
            facts.worker,
            on_settled=mouth.say_settled,
            around=errand.around.alone(),
            resolver=errand.resolver,
        )
        ending = performer.perform(facts, _run)
        signal.signal(UNWIND, ignore)
        _flush()
        code = 0
        if not mouth.tell(write_ending(ending)):
            _settle(errand, ending)
            code = SETTLED
    except Terminated:
        log.info("job %s was stopped", errand.facts.jid)
    except BaseException:
        log.exception("job %s could not be performed", errand.facts.jid)
    finally:
        # Nothing of the parent's may run here, not even its exit handlers.
        signal.signal(UNWIND, ignore)
        try:
            send_rest()
            _flush()
        finally:
            os._exit(code)


class _ResultPipe:
    """The pipe to who forked us. A job may close it, and open something else under its number."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._was = os.fstat(pipe)

    def say_settled(self) -> None:
        """Say that the job has settled itself."""
        self.tell(b"")

    def tell(self, words: bytes) -> bool:
        """Say `words`. Answers whether they could be said."""
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
    """Have nobody's signal handlers, lead a group, and live no longer than the parent."""
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


def _run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    with asyncio.Runner() as runner:
        return runner.run(coroutine, context=copy_context())


def _settle(errand: Assignment, ending: Ending) -> None:
    """Settle the job from here, because its pipe is closed."""
    keep_standard()
    facts = errand.facts
    log.warning("job %s closed the pipe for its outcome; its own process settles it", facts.jid)
    client = errand.store.client(facts.worker)
    turns = StoreSession(client.shard, facts.worker, Route(client.shard, errand.settings.queues))
    turns.end(ending)
    if turns.has_news:
        client.runner.run(turns.turn(0))


def _flush() -> None:
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass  # the job closed it, or took it gate
