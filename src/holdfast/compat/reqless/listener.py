"""Listening to channels of the store."""

from collections.abc import Sequence
from typing import Any

from holdfast.client.listener import Listener as ClientListener
from holdfast.compat.reqless.events import client_of


class Listener(ClientListener):
    """Receive messages of some channels in the store of a client of the driver."""

    def __init__(self, database: Any, channels: Sequence[str]) -> None:
        super().__init__(client_of(database), channels)
