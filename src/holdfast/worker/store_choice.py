"""Which store a worker works on, and the clients its processes make for it."""

from typing import Any, Final

import msgspec

from holdfast.client.aio import AsyncClient
from holdfast.client.opening import Opening, settle
from holdfast.client.store_options import PARTS, ClientOptions
from holdfast.client.sync import Client
from holdfast.errors import UsageError
from holdfast.settings import shown_url
from holdfast.wire.address import LINKS_OWN, driver_options
from holdfast.wire.sync import DRIVER_CLASSES

DEADLINE: Final = 60.0  # seconds; the jobs granted to a call that was given up sooner would be lost
_DRIVER: Final = ("redis.connection", "redis.asyncio.connection")
"""Modules of the pools and connections that are described by their arguments alone."""


class StoreChoice(msgspec.Struct, frozen=True):
    """Which store a worker works on: what a client is made from, again in each process."""

    url: str | None
    options: ClientOptions

    @classmethod
    def of(cls, client: Any) -> "StoreChoice":
        """The store that a client works on, with the options it was given.

        Raises UsageError for a client of connections that no other process can make, such as those of a Sentinel.
        """
        opening: Opening = client._opening
        if opening.target.existing is None:
            return cls(None if opening.embedded else opening.settings.url, opening.options)
        made = _options_of_existing(opening.target.existing.connection_pool)
        if made is None:
            raise UsageError(
                f"{client!r} uses connections that other processes of a worker cannot open again, as those of a Sentinel: "
                "name the URL of the store, with --url redis://HOST:PORT/DB, with HOLDFAST_URL, or in Client(…)"
            )
        options: Any = {**made, **opening.options}
        return cls(opening.settings.url, options)

    def __repr__(self) -> str:
        """The store, without the options: some are secret."""
        return f"StoreChoice({self.shown()})"

    def found(self) -> "StoreChoice":
        """Return the same with its URL looked up, so that children need not do it again. Raises UsageError."""
        opening = self.opening()
        if opening.embedded:
            return self
        options: Any = {"url_origin": opening.origin, **opening.options}
        return StoreChoice(opening.settings.url, options)

    def is_same(self, other: "StoreChoice") -> bool:
        """Whether both are one store and namespace with the same options, whatever named them."""
        return (self.url, *_without_origin(self)) == (other.url, *_without_origin(other))

    def shown(self) -> str:
        """The store in words, without secrets."""
        return "the embedded store" if self.url is None else shown_url(self.url)

    def opening(self) -> Opening:
        """Return the checked options of its clients, for the place that they lead to. Raises UsageError."""
        return settle(self.url, self.options, DRIVER_CLASSES)

    def client(self, name: str) -> Client:
        """A client that takes and settles jobs under the worker name `name`."""
        return Client(self.url, **_patient(self.options, name))

    def async_client(self, name: str) -> AsyncClient:
        """The same for an event loop."""
        return AsyncClient(self.url, **_patient(self.options, name))

    def beating_client(self, name: str) -> Client:
        """Return a client for heartbeats: a late reply is useless, and the next try comes soon."""
        return Client(self.url, **_prompt(self.options, name))


def _without_origin(choice: StoreChoice) -> list[tuple[str, object]]:
    return sorted((name, value) for name, value in choice.options.items() if name != "url_origin")


def _patient(options: ClientOptions, name: str) -> ClientOptions:
    return {**options, "hostname": name, "deadline": max(options.get("deadline", DEADLINE), DEADLINE)}


def _prompt(options: ClientOptions, name: str) -> ClientOptions:
    return {**options, "hostname": name, "timeout": min(options.get("timeout", 1.0), 1.0), "deadline": 0.5}


def _options_of_existing(pool: Any) -> dict[str, Any] | None:
    """Return the options that make connections like those of a driver's pool again; None if arguments alone do not."""
    if pool.__class__.__module__ not in _DRIVER or pool.connection_class.__module__ not in _DRIVER:
        return None
    usable = driver_options(DRIVER_CLASSES) - LINKS_OWN - {*PARTS, "path"}
    given = {name: value for name, value in pool.connection_kwargs.items() if name in usable}
    return {name: value for name, value in given.items() if value is not None}
