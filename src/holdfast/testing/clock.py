"""A root whose clock stands still until a test moves it."""

from typing import Any, Final

from holdfast.client.sync import Client
from holdfast.commands.admin import SetClock

START_MS: Final = 1_700_000_000_000


class StoppedClock:
    """The clock of one namespace, whose name must begin with `test` and must be new to the store.

    It works on the namespace, so every other client of it sees the same time. Time starts on 14 November 2023.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self.now_ms = START_MS
        client.shard.test_clock_ms = START_MS

    @property
    def now(self) -> float:
        """Epoch seconds by this clock."""
        return self.now_ms / 1000

    def advance(self, *, seconds: float) -> None:
        """Let time pass."""
        self.now_ms += round(seconds * 1000)
        self._client.run(SetClock(self.now_ms))

    def core(self, command: Any) -> Any:
        """Run one command under this clock."""
        return self._client.run(command)
