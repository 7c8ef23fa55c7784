"""Which store a worker works on, and the clients its processes make for it."""

from typing import Any, Final

import msgspec

from holdfast.client.aio import AsyncClient
from holdfast.client.opening import Opening, settle
from holdfast.client.store_options import ClientOptions
from holdfast.client.sync import Client
from holdfast.settings import shown_url
from holdfast.wire.sync import DRIVER_CLASSES

DEADLINE: Final = 60.0  # seconds; the jobs granted to a call that was given up sooner would be lost


class StoreChoice(msgspec.Struct, frozen=True):
    """Which store a worker works on: what a client is made from, again in each process."""

    url: str | None
    options: ClientOptions

    @classmethod
    def of(cls, client: Any) -> "StoreChoice":
        """The store that a client works on, with the options it was given."""
        opening: Opening = client._opening
        return cls(None if opening.embedded else opening.settings.url, opening.options)

    def __repr__(self) -> str:
        """The store, without the options: some are secret."""
        return f"StoreChoice({self.shown()})"

    def found(self) -> "StoreChoice":
        """Return the same with its URL looked up, so that children need not do it again. Raises UsageError."""
        opening = settle(self.url, self.options, DRIVER_CLASSES)
        return self if opening.embedded else StoreChoice(opening.settings.url, opening.options)

    def shown(self) -> str:
        """The store in words, without secrets."""
        return "the embedded store" if self.url is None else shown_url(self.url)

    def client(self, name: str) -> Client:
        """A client that takes and settles jobs under the worker name `name`."""
        return Client(self.url, **_patient(self.options, name))

    def async_client(self, name: str) -> AsyncClient:
        """The same for an event loop."""
        return AsyncClient(self.url, **_patient(self.options, name))

    def beating_client(self, name: str) -> Client:
        """Return a client for heartbeats: a late reply is useless, and the next try comes soon."""
        return Client(self.url, **_prompt(self.options, name))


def _patient(options: ClientOptions, name: str) -> ClientOptions:
    return {**options, "hostname": name, "deadline": max(options.get("deadline", DEADLINE), DEADLINE)}


def _prompt(options: ClientOptions, name: str) -> ClientOptions:
    return {**options, "hostname": name, "timeout": min(options.get("timeout", 1.0), 1.0), "deadline": 0.5}
