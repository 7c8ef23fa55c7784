"""A stopped clock, which a test moves."""

from datetime import UTC, datetime
from typing import Final, TypeVar

from holdfast.client.sync import Client
from holdfast.commands import Command
from holdfast.commands.admin import Info, SetClock
from holdfast.errors import UsageError
from holdfast.settings import MAX_DELAY, check_milliseconds
from holdfast.wire.exchange import exchange

R = TypeVar("R")

START_MS: Final = 1_700_000_000_000


class StoppedClock:
    """The clock of one namespace, whose name must begin with `test` and which must be new in the store.

    It belongs to the namespace, so all its clients see the same time. It starts at 14 November 2023.
    """

    def __init__(self, client: Client) -> None:
        check_client(client, Client)
        self._client = client
        self.now_ms = START_MS
        client.shard.test_clock_ms = START_MS

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
        self.now_ms += span(days, hours, minutes, seconds, -MAX_DELAY)
        # Not by the client's own `run`, which warns inside an event loop: a test may move the clock there.
        self._client.runner.run(exchange(self._client.shard, SetClock(self.now_ms)))

    def core(self, command: Command[R]) -> R:
        """Run one command under this clock."""
        return self._client.run(command)


def span(days: float, hours: float, minutes: float, seconds: float, least: float = 0.0) -> int:
    """Return a duration in milliseconds. Raises UsageError for a part that is no finite number, or below `least`."""
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
