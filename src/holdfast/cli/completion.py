"""Names from the store for the completion of a shell: within half a second, and silent when there is a problem."""

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Final, cast

import click

from holdfast.cli.place import DEFAULT

LIMIT: Final = 0.5
"""Seconds that a completion waits for the store."""
_MOST: Final = 200

Find = Callable[[Any, str], Iterable[str]]
"""A function that returns the names of a console that begin with a text; it may return others too."""


def _queues(console: Any, begin: str) -> Iterable[str]:
    return [row.name for row in console.queues(f"{begin}*", limit=_MOST).rows]


def _workers(console: Any, begin: str) -> Iterable[str]:
    return [row.name for row in console.workers().rows]


def _throttles(console: Any, begin: str) -> Iterable[str]:
    return [row.id for row in console.throttles(limit=512).rows]


def _recurring(console: Any, begin: str) -> Iterable[str]:
    return [row.jid for row in console.recurring(limit=512).rows]


def _groups(console: Any, begin: str) -> Iterable[str]:
    return [group.name for group in console.failures(f"{begin}*")]


def _topics(console: Any, begin: str) -> Iterable[str]:
    return [row.name for row in console.topics(limit=128).rows]


def _settings(console: Any, begin: str) -> Iterable[str]:
    found = console.settings()
    return [*(one.name for one in found.known), *found.others]


_KINDS: Final[dict[str, Find]] = {
    "queues": _queues,
    "workers": _workers,
    "throttles": _throttles,
    "recurring": _recurring,
    "groups": _groups,
    "topics": _topics,
    "settings": _settings,
}

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def names_of(kind: str) -> Complete:
    """Return the function that completes an argument by names of queues, workers, throttles, recurring, groups, topics or settings."""
    find = _KINDS[kind]

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        found = _in_time(lambda: _read(context, find, incomplete))
        given = context.params.get(parameter.name or "")
        taken: Sequence[str] = cast("tuple[str, ...]", given) if isinstance(given, tuple) else ()
        chosen = (name for name in found if name.startswith(incomplete) and name not in taken)
        return list(islice((name for name in chosen if _can_be_typed(name)), _MOST))

    return complete


def _can_be_typed(name: str) -> bool:
    """Return whether a name is one word of a command line as it is."""
    return name.isprintable() and not set(name) & set(" \"'\\$`*?[]()<>|&;#!~")


def _in_time(read: Callable[[], list[str]]) -> list[str]:
    """Return names, or none if reading them takes longer than half a second or goes wrong."""
    logging.disable(logging.CRITICAL)
    found: list[str] = []

    def run() -> None:
        with suppress(Exception):
            found.extend(read())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(LIMIT)
    return found


def _read(context: click.Context, find: Find, begin: str) -> list[str]:
    from holdfast.cli.connection import StorePlace
    from holdfast.console.handles import Console

    url, namespace = context.params.get("url"), context.params.get("namespace") or DEFAULT
    place = StorePlace(url, namespace, LIMIT)
    with place.unchecked() as client:
        if not _is_there(client, place):
            return []
        return list(find(Console(client), begin))


def _is_there(client: Any, place: Any) -> bool:
    """Return whether there is a store, without starting one, and the namespace in it."""
    from holdfast.cli.connection import look

    if not client.store_url:
        from holdfast.store import status

        if status().state != "running":
            return False
    return look(client, place)
