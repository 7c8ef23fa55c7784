"""One call from start to finish: check the store if needed, send, send again if allowed, return the result or raise."""

from asyncio import _get_running_loop  # pyright: ignore[reportPrivateUsage, reportUnknownVariableType]
from collections.abc import Sequence
from typing import TypeVar

from holdfast.commands import Command, Reply
from holdfast.commands.base import hurried
from holdfast.commands.jobs import JobGet
from holdfast.commands.workers import Workers
from holdfast.errors import (
    CoreMismatch,
    HoldfastError,
    StoreErrorText,
    StoreUnsupported,
    TransportError,
    refusal,
)
from holdfast.wire.meeting import is_ours, meet
from holdfast.wire.outage import log_recovery
from holdfast.wire.plans import Call, ErrorReply, LinkError, Plan, Replies, Step
from holdfast.wire.repeat import (
    RetryTimer,
    call_error,
    full_after_resend,
    is_temporary,
    temporary_error,
    wait,
)
from holdfast.wire.shards import RequestSequence, Shard, UnservedWatch

R = TypeVar("R")
_PUTS = ("put", "put_x")


def exchange(shard: Shard, command: Command[R], sequence: RequestSequence | None = None) -> Plan[R]:
    """Run one command on its shard and return its result. Raises the refusal of the store.

    `sequence` numbers the call; None: one of the shard that is free.
    """
    if not shard.met:
        yield from _meet_for(shard, command)
    if shard.unserved is not None:
        yield from _look_for_workers(shard, shard.unserved, (command,))
    given = sequence
    if given is None and command.request_id_at >= 0 and command.numbered:
        sequence = shard.sequences.take()
    try:
        call = _call(shard, command, sequence)
        try:
            watched = shard.flushes is not None and not command.reads
            replies = (yield from _timed(shard, Step([call]))) if watched else (yield Step([call]))
        except LinkError as error:
            replies = [error]
        reply = replies[0]
        if type(reply) is ErrorReply or type(reply) is LinkError:
            [reply] = yield from Repeating(shard, (command,), [call], replies).plan()
    finally:
        if given is None and sequence is not None:
            shard.sequences.give(sequence)
    if isinstance(reply, HoldfastError):
        raise reply
    if shard.gate.is_reported and not command.reads:
        log_recovery(shard.gate)
    return command.read(reply)


def exchange_all(
    shard: Shard, commands: Sequence[Command[object]], last: RequestSequence | None = None
) -> Plan[list[Reply]]:
    """Run commands in one pipeline. Returns the result of each, or the HoldfastError it would have raised.

    `last` numbers the last call; None: a free sequence of the shard, as for the others.
    """
    if not commands:
        return []
    if not shard.met:
        yield from _meet_for(shard, commands[0])
    if shard.unserved is not None:
        yield from _look_for_workers(shard, shard.unserved, commands)
    taken = [
        shard.sequences.take() if command.request_id_at >= 0 and command.numbered else None
        for command in (commands if last is None else commands[:-1])
    ]
    sequences = taken if last is None else [*taken, last]
    try:
        calls = [
            _call(shard, command, sequence) for command, sequence in zip(commands, sequences, strict=True)
        ]
        try:
            watched = shard.flushes is not None and not all(command.reads for command in commands)
            replies = (yield from _timed(shard, Step(calls))) if watched else (yield Step(calls))
        except LinkError as error:
            replies = [error] * len(calls)
        if any(type(reply) is ErrorReply or type(reply) is LinkError for reply in replies):
            replies = yield from Repeating(shard, commands, calls, replies).plan()
    finally:
        for sequence in taken:
            if sequence is not None:
                shard.sequences.give(sequence)
    if shard.gate.is_reported:
        _look_around(shard, commands, replies)
    return [_read(command, reply) for command, reply in zip(commands, replies, strict=True)]


def _look_around(shard: Shard, commands: Sequence[Command[object]], replies: Replies) -> None:
    """Log the end of an outage if a command that changes data succeeded; a read is not enough."""
    pairs = zip(commands, replies, strict=True)
    if any(not command.reads and not isinstance(reply, HoldfastError) for command, reply in pairs):
        log_recovery(shard.gate)


def _look_for_workers(shard: Shard, watch: UnservedWatch, commands: Sequence[Command[object]]) -> Plan[None]:
    """Warn once if jobs have waited in a store without workers. It raises nothing of the store."""
    for command in commands:
        watch.note(command)
    if watch.is_due:
        shard.unserved = None
        try:
            workers = yield from exchange(shard, hurried(Workers(count=1)))
        except HoldfastError:
            return
        if not workers:
            watch.warn()


def _meet_for(shard: Shard, command: Command[object]) -> Plan[None]:
    try:
        yield from meet(shard, _timer(shard, (command,)))
    except TransportError as error:
        raise call_error(error, command.verb, command.repeat_advice, sent=False) from error.__cause__


class Repeating:
    """The calls of one step that did not all succeed at the first try, and their results so far.

    A result is a reply, a HoldfastError to raise, or, while its call is pending, an ErrorReply or LinkError.
    """

    def __init__(
        self, shard: Shard, commands: Sequence[Command[object]], calls: list[Call], results: Replies
    ) -> None:
        self.shard, self.commands, self.calls = shard, commands, calls
        self.results = results
        self.timer = _timer(shard, commands)
        self.meetings = 0
        self.resent: set[int] = set()
        self.unsure: list[int] = []

    def plan(self) -> Plan[Replies]:
        """Send pending calls again until each has a final result."""
        while pending := self.pending():
            try:
                yield from self.once_more(pending, self.pause(self.results[pending[0]]))
            except HoldfastError as error:
                self.end(pending, error)
        yield from self.look_up()
        return self.results

    def pause(self, reason: ErrorReply | LinkError) -> float:
        """Return the seconds to wait before the next try. Raises the error for `reason` after the deadline."""
        if self.meetings == 1 and type(reason) is ErrorReply and (lacks_core(reason) or is_older(reason)):
            return 0.0
        return wait(reason, self.timer)

    def once_more(self, pending: list[int], pause: float) -> Plan[None]:
        """Check the store again if it may be another one, then send the pending calls unchanged."""
        if not self.shard.met:
            yield from meet(self.shard, self.timer, pause)
            pause = 0.0
        try:
            replies = yield Step([self.calls[index] for index in pending], pause)
        except LinkError as error:
            replies = [error] * len(pending)
        for index, reply in zip(pending, replies, strict=True):
            self.results[index] = _forgive(self.commands[index], reply) if index in self.resent else reply

    def pending(self) -> list[int]:
        """Return the calls that may be sent again; replace final errors of the others by exceptions."""
        pending: list[int] = []
        for index, result in enumerate(self.results):
            if type(result) is LinkError:
                self.shard.met = False
                if result.sent:
                    self.resent.add(index)
                pending.append(index)
            elif type(result) is ErrorReply:
                if self.may_repeat(self.commands[index], result):
                    pending.append(index)
                else:
                    if index in self.resent and result.code == "OOM":
                        self.unsure.append(index)
                    self.results[index] = final_error(result, self.commands[index].verb)
        return pending

    def may_repeat(self, command: Command[object], result: ErrorReply) -> bool:
        """Return whether a refused call may succeed soon, or after the core was loaded and the root was made."""
        if is_temporary(result):
            return not (command.adds and result.code == "OOM")
        if lacks_core(result):
            self.shard.met = False
            self.meetings += 1
            # Our own core has the function, so it was flushed again. Another core will not get it.
            return self.meetings <= 3 or (self.shard.info is not None and is_ours(self.shard.info.digest))
        if is_older(result):
            self.shard.met = False
            self.meetings += 1
            return self.meetings == 1
        return False

    def look_up(self) -> Plan[None]:
        """Look up the jobs of puts that a full store refused at a repeat: the first try may have put them."""
        for index in self.unsure:
            command, result = self.commands[index], self.results[index]
            jids: Sequence[str] = [] if command.numbered else getattr(command, "generated_jids", [])
            if jids and (yield from _are_there(self.shard, jids)):
                self.results[index] = [len(jids)]
            else:
                self.results[index] = full_after_resend(result, command.verb, command.repeat_advice)

    def end(self, pending: list[int], error: HoldfastError) -> None:
        """End every pending call with `error`, and what it means for this call."""
        for index in pending:
            command = self.commands[index]
            self.results[index] = call_error(
                error, command.verb, command.repeat_advice, sent=index in self.resent
            )


def _are_there(shard: Shard, jids: Sequence[str]) -> Plan[bool]:
    """Return whether all these jobs exist. False also if the lookup fails."""
    try:
        replies: Replies = yield Step([_call(shard, JobGet(jids), None)])
    except LinkError:
        return False
    return _is_list(replies[0]) and all(replies[0])


def lacks_core(reply: ErrorReply) -> bool:
    """Return whether a call was refused because the core or the root is missing."""
    return reply.code == "HF_NO_ROOT" or "Function not found" in reply.text


def is_older(reply: ErrorReply) -> bool:
    """Return whether an older core may have refused an argument that it does not know.

    Our core takes what we send, but a program of an earlier release that checked the store before our core was loaded
    may have replaced it by its own.
    """
    return reply.code == "HF_BAD_ARGUMENT"


def final_error(reply: ErrorReply, verb: str = "") -> HoldfastError:
    """Return the exception for a final error reply; its `__cause__` has the text as the store sent it, if that is longer."""
    error = _meaning(reply, verb)
    if reply.sentence != reply.text:
        error.__cause__ = StoreErrorText(reply.text)
    return error


def _meaning(reply: ErrorReply, verb: str) -> HoldfastError:
    code = reply.code
    if code.startswith("HF_"):
        return refusal(reply.sentence)
    if is_temporary(reply):
        return temporary_error(reply)
    if reply.is_denied:
        prefix = f"{verb}: " if verb else ""
        return StoreUnsupported(f"{prefix}the user of this URL lacks rights: {reply.sentence}")
    if "Function not found" in reply.text:
        return CoreMismatch(f"the core in the store cannot do this: {reply.sentence}")
    if "non local key" in reply.text:
        # The slot moves to another node of a cluster: the store ends the call where it meets a key that has moved.
        return TransportError(
            f"the store stopped the call in the middle, because its slot is moving to another node ({reply.sentence}): part of it "
            "may have happened; check before you repeat it"
        )
    return HoldfastError(f"the store replied: {reply.sentence}")


def _forgive(command: Command[object], reply: Reply) -> Reply:
    """Return the reply to a repeated call: what the first try may have done counts as done."""
    if command.settles and _is_list(reply):
        # The first try settled the job, which was deleted before the repeat arrived.
        return [b"again" if _not_found(value) else value for value in reply]
    return reply


def _is_list(reply: object) -> bool:
    return type(reply) is list


def _not_found(value: object) -> bool:
    return type(value) is bytes and value.startswith(b"HF_JOB_NOT_FOUND")


def _timer(shard: Shard, commands: Sequence[Command[object]]) -> RetryTimer:
    """Return how long to repeat these calls: puts inside a running event loop, which may serve other callers, end sooner."""
    seconds = shard.settings.deadline
    if _get_running_loop() is not None and any(command.verb in _PUTS for command in commands):
        seconds = min(seconds, shard.settings.loop_deadline)
    seconds = min([seconds, *(getattr(command, "deadline", seconds) for command in commands)])
    return RetryTimer(seconds, shard.clock, shard.gate, shard.settings.store)


def _timed(shard: Shard, step: Step) -> Plan[Replies]:
    watch = shard.flushes
    if watch is None:
        return (yield step)
    replies = yield from watch.timed(step)
    if watch.is_over:
        shard.flushes = None
    return replies


def _call(shard: Shard, command: Command[object], sequence: RequestSequence | None) -> Call:
    at = command.request_id_at
    words = command.words()
    function = "hf1_" + command.verb
    if at < 0:
        return ("FCALL", function, "1", shard.root, *words)
    name, number = ("", 0) if sequence is None else (sequence.name, sequence.next())
    if at == 0:
        return ("FCALL", function, "1", shard.root, name, number, *words)
    return ("FCALL", function, "1", shard.root, *words[:at], name, number, *words[at:])


def _read(command: Command[object], reply: Reply) -> object:
    if isinstance(reply, HoldfastError):
        return reply
    try:
        return command.read(reply)
    except HoldfastError as error:
        return error
