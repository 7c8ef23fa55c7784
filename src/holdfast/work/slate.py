"""What a child holds, on a page of memory it shares with its parent.

The child writes before it performs and wipes afterwards; the parent reads whenever it likes. So a parent can
heartbeat for a busy child, knows whom to stop for which job, and gives a dead child's leases back at once.
"""

import mmap
import struct
from typing import Final, NamedTuple

_ENTRY: Final = struct.Struct("<IQIdH200sI")
_HEADER: Final = struct.Struct("<I")
_SIZE: Final = 256
_FREE: Final = b"\0\0\0\0"


class Holding(NamedTuple):
    """One lease on a slate: `lease` in seconds, `since` on the monotonic clock, which all processes share."""

    seat: int
    jid: str
    token: int
    lease: float
    since: float


class Slate:
    """A page with one entry a seat, made before the fork; only the child writes.

    An entry carries its version in front and behind: where they differ, the child is writing just now.
    """

    def __init__(self, seats: int = 1) -> None:
        self.seats = seats
        self._page = mmap.mmap(-1, _SIZE * (seats + 1))
        self._version = 0
        self._shortest = 0

    def hold(self, seat: int, jid: str, token: int, lease_ms: int, since: float) -> bool:
        """Note that `seat` holds a lease. Answers whether it is the shortest lease so far."""
        version = self._version = (self._version + 1) & 0x7FFFFFFF or 1
        name = jid.encode()
        _ENTRY.pack_into(
            self._page, _SIZE * (seat + 1), version, token, lease_ms, since, len(name), name, version
        )
        if lease_ms < self._shortest or not self._shortest:
            self._shortest = lease_ms
            _HEADER.pack_into(self._page, 0, lease_ms)
            return True
        return False

    def clear(self, seat: int) -> None:
        """Note that `seat` holds nothing any more."""
        at = _SIZE * (seat + 1)
        self._page[at : at + 4] = _FREE

    def read(self, seat: int) -> Holding | None:
        """Return what `seat` holds."""
        first, token, lease, since, size, name, last = _ENTRY.unpack_from(self._page, _SIZE * (seat + 1))
        if not first or first != last:
            return None
        return Holding(seat, name[:size].decode(), token, lease / 1000, since)

    def read_all(self) -> list[Holding]:
        """Return all that is held."""
        held = [self.read(seat) for seat in range(self.seats)]
        return [entry for entry in held if entry is not None]

    def shortest_lease(self) -> float:
        """The shortest lease the child ever wrote, in seconds; 0 if it has written none."""
        return float(_HEADER.unpack_from(self._page, 0)[0]) / 1000

    @property
    def paused(self) -> bool:
        """Whether the parent wants no jobs taken for now; the one thing that the parent writes."""
        return self._page[4] != 0

    @paused.setter
    def paused(self, pause: bool) -> None:
        self._page[4] = pause

    def wipe(self) -> None:
        """Forget all that was held, for the next child on this page."""
        self._page[_SIZE:] = bytes(_SIZE * self.seats)

    def close(self) -> None:
        """Give the page back."""
        self._page.close()
