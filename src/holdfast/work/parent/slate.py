"""What a child holds, on a page of memory it shares with its parent.

The child writes before it performs and wipes afterwards; the parent reads whenever it likes. So a parent can
heartbeat for a busy child, knows whom to stop for which job, and gives a dead child's leases back at once.
"""

import mmap
import struct
from math import inf
from typing import Final, NamedTuple

_ENTRY: Final = struct.Struct("<IQIddH200sI")
_SHORTEST: Final = struct.Struct("<I")
_PAUSED_AT: Final = 4
_QUIET_AT: Final = 5
_NUMBER: Final = struct.Struct("<Q")
_NUMBER_AT: Final = 8
_LINE: Final = struct.Struct("<H100s")
_LINE_AT: Final = 16
_SIZE: Final = 256
_FREE: Final = b"\0\0\0\0"


class Holding(NamedTuple):
    """One lease on a slate: `lease` in seconds, `since` on the monotonic clock, which all processes share.

    `ends`: when the run has taken all the time that it may, on that clock.
    """

    seat: int
    jid: str
    token: int
    lease: float
    since: float
    ends: float = inf


class Slate:
    """A page with one entry a seat, made before the fork; only the child writes.

    An entry carries its version in front and behind: where they differ, the child is writing just now.
    """

    def __init__(self, seats: int = 1) -> None:
        self.seats = seats
        self._page = mmap.mmap(-1, _SIZE * (seats + 1))
        self._version = 0
        self._shortest = 0

    def hold(self, seat: int, jid: str, token: int, lease_ms: int, since: float, ends: float = inf) -> bool:
        """Note that `seat` holds a lease. Answers whether it is the shortest lease so far."""
        version = self._version = (self._version + 1) & 0x7FFFFFFF or 1
        name = jid.encode()
        _ENTRY.pack_into(
            self._page, _SIZE * (seat + 1), version, token, lease_ms, since, ends, len(name), name, version
        )
        if lease_ms < self._shortest or not self._shortest:
            self._shortest = lease_ms
            _SHORTEST.pack_into(self._page, 0, lease_ms)
            return True
        return False

    def clear(self, seat: int) -> None:
        """Note that `seat` holds nothing any more."""
        at = _SIZE * (seat + 1)
        self._page[at : at + 4] = _FREE

    def begin(self, line: str) -> None:
        """Note the name of the line on which the child takes its jobs."""
        _LINE.pack_into(self._page, _LINE_AT, len(line.encode()), line.encode())

    @property
    def has_begun(self) -> bool:
        """Whether a child on this page has named its line, and so is at work."""
        return bool(_LINE.unpack_from(self._page, _LINE_AT)[0])

    def ask(self, number: int) -> None:
        """Note that a call of this number is under way, which may take jobs; 0: it was answered."""
        _NUMBER.pack_into(self._page, _NUMBER_AT, number)

    def asked(self) -> tuple[str, int] | None:
        """The line and number of a call that was under way, None if there was none."""
        [number] = _NUMBER.unpack_from(self._page, _NUMBER_AT)
        size, line = _LINE.unpack_from(self._page, _LINE_AT)
        return (line[:size].decode(), number) if number else None

    def read(self, seat: int) -> Holding | None:
        """Return what `seat` holds."""
        first, token, lease, since, ends, size, name, last = _ENTRY.unpack_from(
            self._page, _SIZE * (seat + 1)
        )
        if not first or first != last:
            return None
        return Holding(seat, name[:size].decode(), token, lease / 1000, since, ends)

    def read_all(self) -> list[Holding]:
        """Return all that is held."""
        held = [self.read(seat) for seat in range(self.seats)]
        return [entry for entry in held if entry is not None]

    def shortest_lease(self) -> float:
        """The shortest lease the child ever wrote, in seconds; 0 if it has written none."""
        return float(_SHORTEST.unpack_from(self._page, 0)[0]) / 1000

    @property
    def paused(self) -> bool:
        """Whether the parent wants no jobs taken for now. The parent writes this and `quiet`, nothing else."""
        return self._page[_PAUSED_AT] != 0 or self.quiet

    @paused.setter
    def paused(self, pause: bool) -> None:
        self._page[_PAUSED_AT] = pause

    @property
    def quiet(self) -> bool:
        """Whether somebody told this worker, through the store, to take no more jobs."""
        return self._page[_QUIET_AT] != 0

    @quiet.setter
    def quiet(self, quiet: bool) -> None:
        self._page[_QUIET_AT] = quiet

    def wipe(self) -> None:
        """Forget all that was held, for the next child on this page."""
        self._page[_SIZE:] = bytes(_SIZE * self.seats)
        self.ask(0)
        self.begin("")

    def close(self) -> None:
        """Give the page back."""
        self._page.close()
