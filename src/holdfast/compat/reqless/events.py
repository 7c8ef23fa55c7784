"""Events of tracked jobs."""

from collections.abc import Callable
from typing import Any

from holdfast.client.events import Events as ClientEvents
from holdfast.compat.reqless.connections import client_of


class Events(ClientEvents):
    """The events of the client whose `database` is given."""

    def __init__(self, database: Any) -> None:
        super().__init__(client_of(database))

    def on(self, evt: str, func: Callable[[str], Any]) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Call `func` with the jid at each `evt`. Raises NotImplementedError for an unknown event."""
        super().on(evt, func)

    def off(self, evt: str) -> Callable[[str], Any] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Remove the callback of `evt`. Returns it."""
        return super().off(evt)
