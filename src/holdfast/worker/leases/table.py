"""The lease table: a page of memory that a child shares with its parent.

The child writes before it runs a job and clears afterwards; the parent reads at any time. So a parent can send the heartbeats of a
busy child, knows which child to stop for which job, and releases a dead child's leases at once.
"""

import mmap
import struct
from math import inf
from typing import Final, NamedTuple, Protocol

LOST: Final = "its lease was lost"
GONE: Final = "it was cancelled, or is gone"
OVER: Final = "it exceeded its timeout"

_ENTRY: Final = struct.Struct("<IQIddH200sI")
_write_entry: Final = _ENTRY.pack_into
_PAUSED_AT: Final = 4
_QUIET_AT: Final = 5
_NUMBER: Final = struct.Struct("<Q")
_NUMBER_AT: Final = 8
_LINE: Final = struct.Struct("<H100s")
_LINE_AT: Final = 16
_SIZE: Final = 256
_PROCESS: Final = struct.Struct("<I")
_PROCESS_AT: Final = _SIZE - _PROCESS.size
_MARKS: Final = struct.Struct("<I")
_MARKS_AT: Final = 124
_PING_AT: Final = 128
_PONG_AT: Final = 136
_MARK: Final = struct.Struct("<QB")
_MARK_AT: Final = 240
_REASONS: Final = (LOST, GONE, OVER)
_FREE: Final = b"\0\0\0\0"
_ALL: Final = (1 << 32) - 1


class Holding(NamedTuple):
    """One lease in a lease table: `lease` in seconds, `since` on the monotonic clock, which all processes share.

    `ends`: when the run has taken all the time that it may, on that clock.
    """

    number: int
    jid: str
    token: int
    lease: float
    since: float
    ends: float = inf


class LeaseTable:
    """A page with one entry a slot, made before the fork; only the child writes.

    An entry carries its version in front and behind: where they differ, the child is writing just now.
    """

    def __init__(self, slots: int = 1) -> None:
        self.slots = slots
        self._page = mmap.mmap(-1, _SIZE * (slots + 1))
        # A view, because the child reads it at each job, and unpacking takes five times as long.
        self._pace = memoryview(self._page)[:4].cast("I")
        self._pace[0] = _ALL
        self._version = 0

    def hold(self, slot: int, jid: str, token: int, lease_ms: int, since: float, ends: float = inf) -> bool:
        """Note that `slot` holds a lease. Returns whether the parent does not renew leases as short as this one in time yet."""
        version = self._version = (self._version + 1) & 0x7FFFFFFF or 1
        name = jid.encode()
        _write_entry(
            self._page, _SIZE * (slot + 1), version, token, lease_ms, since, ends, len(name), name, version
        )
        pace = self._pace[0]
        return lease_ms < pace or (ends < inf and (ends - since) * 1000 < pace)

    def clear(self, slot: int) -> None:
        """Note that `slot` holds nothing any more."""
        at = _SIZE * (slot + 1)
        self._page[at : at + 4] = _FREE

    def note_process(self, slot: int, pid: int) -> None:
        """Note the process, leader of a group, that runs the job of `slot`; 0: it has ended."""
        _PROCESS.pack_into(self._page, _SIZE * (slot + 1) + _PROCESS_AT, pid)

    def processes(self) -> list[int]:
        """The processes that were noted for jobs."""
        at = range(_SIZE + _PROCESS_AT, _SIZE * (self.slots + 1), _SIZE)
        return [pid for [pid] in (_PROCESS.unpack_from(self._page, place) for place in at) if pid]

    def begin(self, line: str) -> None:
        """Note the name of the line on which the child takes its jobs."""
        _LINE.pack_into(self._page, _LINE_AT, len(line.encode()), line.encode())

    @property
    def has_begun(self) -> bool:
        """Whether a child on this page has named its line, and so is at work."""
        return bool(_LINE.unpack_from(self._page, _LINE_AT)[0])

    def ask(self, number: int) -> None:
        """Note that a call of this number is under way, which may take jobs; 0: its reply has come."""
        _NUMBER.pack_into(self._page, _NUMBER_AT, number)

    def asked(self) -> tuple[str, int] | None:
        """Return the line and number of a call that is under way; None if there is none."""
        [number] = _NUMBER.unpack_from(self._page, _NUMBER_AT)
        size, line = _LINE.unpack_from(self._page, _LINE_AT)
        return (line[:size].decode(), number) if number else None

    def read(self, slot: int) -> Holding | None:
        """Return what `slot` holds."""
        first, token, lease, since, ends, size, name, last = _ENTRY.unpack_from(
            self._page, _SIZE * (slot + 1)
        )
        if not first or first != last:
            return None
        return Holding(slot, name[:size].decode(), token, lease / 1000, since, ends)

    def read_all(self) -> list[Holding]:
        """Return all that is held."""
        held = [self.read(slot) for slot in range(self.slots)]
        return [entry for entry in held if entry is not None]

    def set_pace(self, lease: float) -> None:
        """Note that leases of that many seconds and more are renewed in time. The parent writes this."""
        self._pace[0] = round(lease * 1000)

    def mark_lost(self, slot: int, token: int, reason: str) -> None:
        """Note that the lease of `slot` under this token is lost. The parent writes this."""
        _MARK.pack_into(self._page, _SIZE * (slot + 1) + _MARK_AT, token, _REASONS.index(reason) + 1)
        _MARKS.pack_into(self._page, _MARKS_AT, (self.marks + 1) & 0xFFFFFFFF)

    @property
    def marks(self) -> int:
        """How many leases were marked as lost so far."""
        return int(_MARKS.unpack_from(self._page, _MARKS_AT)[0])

    def reason_of_loss(self, slot: int, token: int) -> str:
        """Why the lease of `slot` under this token is lost; "" if it is not."""
        marked: int
        reason: int
        marked, reason = _MARK.unpack_from(self._page, _SIZE * (slot + 1) + _MARK_AT)
        return _REASONS[reason - 1] if reason and marked == token else ""

    def ping(self) -> None:
        """Ask the child for a response, which it gives when it reads its pipe. The parent writes this."""
        [number] = _NUMBER.unpack_from(self._page, _PING_AT)
        _NUMBER.pack_into(self._page, _PING_AT, number + 1)

    def answer(self) -> None:
        """Respond to the last ping. The child writes this."""
        self._page[_PONG_AT : _PONG_AT + 8] = self._page[_PING_AT : _PING_AT + 8]

    @property
    def is_answered(self) -> bool:
        """Whether the child has responded to the last ping."""
        return self._page[_PONG_AT : _PONG_AT + 8] == self._page[_PING_AT : _PING_AT + 8]

    def shortest_lease(self) -> float:
        """The shortest lease or limited run that is held, in seconds; 0 if nothing is held."""
        held = self.read_all()
        return min((min(holding.lease, holding.ends - holding.since) for holding in held), default=0.0)

    @property
    def paused(self) -> bool:
        """Whether no jobs are to be taken for now, also because the worker is quiet. The parent writes this and `quiet`."""
        page = self._page
        return page[_PAUSED_AT] != 0 or page[_QUIET_AT] != 0

    @paused.setter
    def paused(self, pause: bool) -> None:
        self._page[_PAUSED_AT] = pause

    @property
    def quiet(self) -> bool:
        """Whether an operator has this worker take no more jobs, through the store."""
        return self._page[_QUIET_AT] != 0

    @quiet.setter
    def quiet(self, quiet: bool) -> None:
        self._page[_QUIET_AT] = quiet

    def wipe(self) -> None:
        """Forget all that was held, and the pace: the next child on this page notifies its parent of its first lease."""
        self._pace[0] = _ALL
        self._page[_SIZE:] = bytes(_SIZE * self.slots)
        self.ask(0)
        self.begin("")
        self.answer()

    def close(self) -> None:
        """Free the page."""
        self._pace.release()
        self._page.close()


class Supervised(Protocol):
    """A child process, as those see it that renew its leases."""

    @property
    def pid(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def lease_table(self) -> LeaseTable: ...
    def poke(self) -> None:
        """Make it read its lease table."""

    def kill(self) -> None:
        """Kill it, and what performs its jobs beside it."""
