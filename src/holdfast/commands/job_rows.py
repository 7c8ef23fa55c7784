"""Read the records of jobs as the core keeps them, for searches: they look at many jobs to show a few."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, Final

import msgspec

from holdfast.models import text, texts
from holdfast.models.job import TRACKED
from holdfast.models.layout import FLAGS, HEAD, RUN, SHORT, STATES, fixed_part


class JobRow(msgspec.Struct, frozen=True, gc=False):
    """What a search compares of one job; times are 0 where there is none.

    `state` is that of the queue's counts: a job whose lease was lost and which waits again is waiting. `due_ms`: when a
    scheduled job is due, or a lease ends. `worker` is that of the last run. Tags, failure and data are there if the scan
    asked for them.
    """

    jid: str
    klass: str = ""
    queue: str = ""
    state: str = ""
    priority: int = 0
    retries: int = 0
    remaining: int = 0
    attempts: int = 0
    losses: int = 0
    created_ms: int = 0
    queued_ms: int = 0
    popped_ms: int = 0
    ended_ms: int = 0
    due_ms: int = 0
    worker: str = ""
    tracked: bool = False
    tags: tuple[str, ...] = ()
    group: str = ""
    message: str = ""
    failed_ms: int = 0
    data: bytes = b""


_STATES: Final = ("", *STATES)
_TIMED: Final = ("running", "stalled", "scheduled")
"""The sets whose score is when a job is due, or when its lease ends."""
_STATE_OF: Final = {"completed": "complete", "group": "failed"}
_DUE: Final = b"due:"
"""What the score of a due job in the waiting set begins with."""
_SPILLED: Final = FLAGS["SPILLED"]
_OVER: Final = (3, 4)  # complete, failed
_HEAD: Final = fixed_part(HEAD)
_RUN: Final = fixed_part(RUN)
_TIME: Final = 6
_WIDTH: Final = 6
_unpack = msgspec.msgpack.Decoder().decode


def _run_of(record: bytes, at: int, code: int) -> tuple[int, int, bytes, int]:
    """Return when the last run began, when it ended (0 if it has not), its worker, and where the data begin."""
    run: tuple[int, ...] = _RUN.unpack_from(record, at)
    low, high, last, last_high, length = run
    end = at + _RUN.size + length
    ended = last + (last_high << 32) if code % SHORT in _OVER else 0
    return low + (high << 32), ended, record[end - length : end], end if code > SHORT else end + _TIME


def _row(
    jid: bytes, record: bytes, state: str, due: int, more: Sequence[Any], group_name: str, has_data: bool
) -> JobRow:
    """Read a record. `state` is "" where it is that of the record; `more` has what lies beside it. Raises struct.error."""
    head: tuple[int, ...] = _HEAD.unpack_from(record)
    code, flags, priority, attempts, retries, remaining, losses, low, high, length = head
    created = queued = low + (high << 32)
    klass_at = _HEAD.size + length + 1
    end = klass_at + record[klass_at - 1]
    queue, klass = record[_HEAD.size : klass_at - 1], record[klass_at:end]
    if code < SHORT:
        queued, end = int.from_bytes(record[end : end + _TIME], "little"), end + _TIME
    popped, ended, worker, end = _run_of(record, end, code) if attempts else (0, 0, b"", end)
    data, tags, group, message, failed = more
    return JobRow(
        jid.decode("utf-8", "replace"),
        klass.decode("utf-8", "replace"),
        queue.decode("utf-8", "replace"),
        state or _STATES[code % SHORT],
        priority,
        retries,
        remaining,
        attempts,
        losses,
        created,
        queued,
        popped,
        ended,
        due,
        worker.decode("utf-8", "replace"),
        bool(flags & TRACKED),
        _tags(tags) if tags else (),
        text(group) if group else group_name,
        text(message) if message else "",
        failed,
        (data if flags & _SPILLED else record[end:]) if has_data else b"",
    )


_NOTHING: Final = (b"", b"", b"", b"", 0)


def states_of(states: Sequence[Any]) -> list[tuple[str, int]]:
    """Return states and due times as the core found them."""
    return [(_STATES[code], int(due)) for code, due in zip(states[::2], states[1::2], strict=True)]


def placed_by(set: str, scores: Sequence[Any]) -> Iterable[tuple[str, int]]:
    """Return state and due time of the entries of a set whose jobs are all in one state."""
    state = _STATE_OF.get(set, set)
    if set in _TIMED:
        return [(state, int(float(score))) for score in scores]
    if set != "waiting":
        return repeat((state, 0))
    return [(state, int(float(score[len(_DUE) :])) if score.startswith(_DUE) else 0) for score in scores]


def rows_of(
    jids: Sequence[bytes],
    records: Sequence[bytes | None],
    placed: Iterable[tuple[str, int]],
    more: Sequence[Any],
    group: str,
    has_data: bool,
) -> Iterator[JobRow | None]:
    """Read the records of a page, None for one that is gone or cannot be read.

    `more` has the place from 1, data, tags, group, message and time of those jobs that have such beside their record;
    `group` is that of all jobs if it is known.
    """
    beside = {more[at]: more[at + 1 : at + _WIDTH] for at in range(0, len(more), _WIDTH)}
    for at, (jid, record, (state, due)) in enumerate(zip(jids, records, placed, strict=False), 1):
        try:
            yield _row(jid, record, state, due, beside.get(at, _NOTHING), group, has_data) if record else None
        except (struct.error, IndexError):
            yield None  # written by another program than the core


def _tags(packed: bytes) -> tuple[str, ...]:
    try:
        found: Any = _unpack(packed)
        return texts([name for name in found if isinstance(name, str | bytes)])
    except (msgspec.MsgspecError, TypeError):
        return ()  # written by another program than the core
