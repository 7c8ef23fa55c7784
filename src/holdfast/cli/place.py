"""Which store a command works on: the options that say it, and what they lead to."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from holdfast.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])

PLACE_HELP: Final = "URL of the store [default: HOLDFAST_URL, REDIS_URL, or the embedded store]."

namespace_option: Final = click.option(
    "--namespace", default="default", show_default=True, help="Namespace of the jobs."
)


def store_options(command: F) -> F:
    """Gives a command `--url` (which answers to `--redis` too) and `--namespace`, passed on under these names."""
    return click.option("--url", "--redis", "url", help=PLACE_HELP)(namespace_option(command))


def url_of(place: str | None, port: int | None) -> str | None:
    """The URL of a place that is a URL already, a bare host, or the port of one. Raises UsageError."""
    if place is not None and "://" in place:
        if port is not None:
            raise UsageError("--port goes with a bare host: a URL contains the port")
        return place
    if place is None and port is None:
        return None
    from holdfast.client.store_options import url_of_parts

    host, _, said = (place or "localhost").rpartition(":")
    if place is None or not host or ":" in host or not said.isdecimal():
        return url_of_parts({"host": place or "localhost", "port": 6379 if port is None else port})
    if port is not None:
        raise UsageError(f"--host {place} and --port {port} both give the port")
    return url_of_parts({"host": host, "port": int(said)})
