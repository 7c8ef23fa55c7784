"""A stopped clock, which a test moves."""

from datetime import UTC, datetime
from time import time
from typing import Final, TypeVar

from holdfast.client.sync import Client
from holdfast.code.calendar import moment_of
from holdfast.commands import Command
from holdfast.commands.admin import Info, SetClock
from holdfast.errors import UsageError
from holdfast.settings import MAX_DELAY, check_milliseconds
from holdfast.wire.exchange import exchange

R = TypeVar("R")

START_MS: Final = 1_700_000_000_000
"""14 November 2023: where the clocks of the tests of holdfast itself start."""


class StoppedClock:
    """The clock of one namespace, whose name must begin with `test` and which must be new in the store.

    It belongs to the namespace, so all its clients see the same time. It starts at `start_ms` (epoch milliseconds), by default at the
    present.
    """

    def __init__(self, client: Client, start_ms: int | None = None) -> None:
        check_client(client, Client)
        self._client = client
        self.now_ms = round(time() * 1000) if start_ms is None else start_ms
        client.shard.test_clock_ms = self.now_ms

    def __repr__(self) -> str:
        return f"<StoppedClock at {self.moment.isoformat(timespec='milliseconds')}>"

    @property
    def now(self) -> float:
        """The time of this clock, in epoch seconds."""
        return self.now_ms / 1000

    @property
    def moment(self) -> datetime:
        """The time of this clock, as a datetime in UTC."""
        return datetime.fromtimestamp(self.now, UTC)

    def start(self) -> None:
        """Make the namespace now, so that the clock is stopped for all its clients. Raises Refused."""
        self._client.runner.run(exchange(self._client.shard, Info()))

    def advance(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> None:
        """Move the clock, forward or back. It performs no jobs that become due. Raises UsageError."""
        self._move_to(self.now_ms + span(days, hours, minutes, seconds, -MAX_DELAY))

    def set(self, moment: datetime | float) -> None:
        """Set the clock to a moment, a datetime with a time zone or epoch seconds, forward or back. It performs no jobs. Raises UsageError."""
        self._move_to(round(moment_of("moment", moment) * 1000))

    def _move_to(self, now_ms: int) -> None:
        self.now_ms = now_ms
        # Not by the client's own `run`, which warns inside an event loop: a test may move the clock there.
        self._client.runner.run(exchange(self._client.shard, SetClock(self.now_ms)))

    def core(self, command: Command[R]) -> R:
        """Run one command under this clock."""
        return self._client.run(command)


def span(days: float, hours: float, minutes: float, seconds: float, least: float = 0.0) -> int:
    """Return a duration in milliseconds. Raises UsageError for a part that is not a finite number, or below `least`."""
    parts = (
        ("days", days, 86_400),
        ("hours", hours, 3600),
        ("minutes", minutes, 60),
        ("seconds", seconds, 1),
    )
    return sum(check_milliseconds(name, value, least) * length for name, value, length in parts)


def check_client(client: object, *kinds: type) -> None:
    """Raise UsageError unless `client` is an instance of one of `kinds`."""
    if not isinstance(client, kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise UsageError(f"client must be a holdfast.{names}, not {client!r:.80}")
