"""Messages of the store to workers: lost leases, cancels, requests for stacks.

They are hints: they only make the next heartbeat come sooner, whose reply is authoritative.
"""

import logging
from collections.abc import Sequence
from time import monotonic
from typing import Final

import msgspec

from holdfast.client.sync import Client
from holdfast.errors import HoldfastError
from holdfast.wire.outage import UNAVAILABLE

log = logging.getLogger("holdfast")

AGAIN: Final = 1.0
PATIENCE: Final = 1.0  # seconds for the store to confirm


class StoreMessage(msgspec.Struct, frozen=True):
    """A message: what happened, to which worker, and to which job or by which question."""

    event: str
    worker: str = ""
    jid: str = ""
    question: str = ""


class StoreMessages:
    """A listener for a selector: `fileno()` becomes readable when there is a message to one of `workers`."""

    def __init__(self, client: Client, workers: Sequence[str]) -> None:
        self._listener = client.link.listener()
        self._channels = [client.shard.worker_channel(worker) for worker in workers]
        self._open = False
        self.at = 0.0

    def open(self) -> int:
        """Begin to listen. Return the descriptor to wait on, -1 if that must be tried again, at `at`."""
        try:
            self._listener.subscribe(*self._channels, within=PATIENCE)
        except HoldfastError as error:
            log.debug(UNAVAILABLE, error)
            self.close()
            return -1
        self._open = True
        return self._listener.fileno()

    def fileno(self) -> int:
        """The descriptor, of an open one."""
        return self._listener.fileno()

    @property
    def is_open(self) -> bool:
        """Whether there is something to wait on."""
        return self._open

    def read(self) -> list[StoreMessage]:
        """Return the messages; the listener may be closed afterwards. An invalid message is logged and ignored."""
        found: list[StoreMessage] = []
        try:
            while (message := self._listener.receive(0)) is not None:
                found += _read(message[1])
        except HoldfastError as error:
            log.debug(UNAVAILABLE, error)
            self.close()
        return found

    def close(self) -> None:
        """End listening; it may be opened again."""
        self._open = False
        self.at = monotonic() + AGAIN
        self._listener.close()


def _read(message: bytes) -> list[StoreMessage]:
    try:
        return [msgspec.json.decode(message, type=StoreMessage)]
    except msgspec.MsgspecError as error:
        log.warning("a message of the store was ignored: %s in %.100r", error, message)
        return []
