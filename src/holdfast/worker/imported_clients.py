"""The clients that a worker's code has made: they name its store where nothing else does, and must not use another one.

Jobs that are put through a client of another store than the worker's would wait there for ever.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterable
from shlex import quote
from typing import Any, Final, NamedTuple

from holdfast.client.opening import Opening, clients, on_first_function
from holdfast.client.store_options import ClientOptions
from holdfast.errors import UsageError
from holdfast.worker.store_choice import StoreChoice

log = logging.getLogger("holdfast")

_LOOPBACK: Final = ("127.0.0.1", "::1")


class _Place(NamedTuple):
    """Where a client finds its jobs: clients of the same `server` and `namespace` share them."""

    server: tuple[object, ...]
    namespace: str
    shown: str

    def is_same(self, other: "_Place") -> bool:
        """Whether both are one server, database and namespace, whatever they are called."""
        return (self.server, self.namespace) == (other.server, other.namespace)

    @classmethod
    def of(cls, opening: Opening) -> "_Place":
        *server, namespace = opening.place
        pool = getattr(opening.target.existing, "connection_pool", None)
        # Masters of two Sentinels may have one name; two names of this machine are one server.
        service = getattr(pool, "service_name", None)
        known = [service, *("localhost" if part in _LOOPBACK else part for part in server)]
        shown = opening.shown() if service is None else f"the Sentinel service {service!r}"
        return cls(tuple(known), str(namespace), f"{shown}, namespace {namespace}")


def choose(
    url: str | None, namespace: str | None, before: Iterable[Any] = (), origin: str = "--url"
) -> StoreChoice:
    """Return the store and the namespace of a worker whose code was imported; `url` and `namespace` are its flags, if given.

    `origin` is what gave `url`.

    The code was imported since `before`, the clients of then.

    Else they are those of HOLDFAST_URL and HOLDFAST_NAMESPACE; else those of the clients of the imported code, which must be
    the same (clients with function jobs, if there are any, otherwise all); else REDIS_URL or the embedded store, and
    `default`. Raises UsageError for a client of another store or namespace; where a flag names what differs, it is logged.
    """
    made = _deciding(_since(before))
    store = url or os.environ.get("HOLDFAST_URL") or None
    space = namespace or os.environ.get("HOLDFAST_NAMESPACE") or None
    options = ClientOptions(url_origin=origin if url else "HOLDFAST_URL") if store else ClientOptions()
    if made and store is None:
        _check_same(made, lambda place: place.server, "stores", "--url or HOLDFAST_URL")
        client = _first_usable(made)
        found = StoreChoice.of(client)
        options = found.options.copy()
        options["url_origin"] = _name(client)
        store = found.url
    if made and space is None:
        _check_same(made, lambda place: place.namespace, "namespaces", "--namespace or HOLDFAST_NAMESPACE")
        space = made[0].settings.namespace
    chosen = StoreChoice(store, {**options, "namespace": space or "default"}).found()
    mine = _Place.of(chosen.opening())
    for client in _differing(made, mine):
        _check(client, mine, url is not None, namespace is not None)
    on_first_function.append(lambda client: _warn(client, mine))
    return chosen


def warn_of_others(store: StoreChoice, before: Iterable[Any]) -> None:
    """Log each client with function jobs of another store that was made since `before`, the clients of then."""
    mine = _Place.of(store.opening())
    for client in _since(before):
        if client.has_functions:
            _warn(client, mine)


def _since(before: Iterable[Any]) -> list[Any]:
    known = set(map(id, before))
    return [client for client in clients() if id(client) not in known]


def _deciding(made: list[Any]) -> list[Any]:
    """Return the clients that decide: beside those with function jobs, another may be for what another program does."""
    return [client for client in made if client.has_functions] or made


def _check_same(made: list[Any], part: Callable[[_Place], object], what: str, flag: str) -> None:
    places = {part(place): f"{_name(client)} uses {place.shown}" for client, place in _placed(made)}
    if len(places) > 1:
        raise UsageError(
            f"the clients of the imported code use {len(places)} {what}: {'; '.join(list(places.values())[:5])}. A worker "
            f"takes jobs from one of them: name it with {flag}, and start another worker for the others"
        )


def _placed(made: list[Any]) -> list[tuple[Any, _Place]]:
    return [(client, _Place.of(client._opening)) for client in made]


def _first_usable(made: list[Any]) -> Any:
    """Return a client from whose options others can be made, if there is one: some have connections of their own."""
    return next((client for client in made if client._opening.target.existing is None), made[0])


def _differing(made: list[Any], mine: _Place) -> list[Any]:
    """Return the clients of other places. Without function jobs, one of the worker's own place lets others be what they are."""
    others = [client for client, place in _placed(made) if not place.is_same(mine)]
    return others if len(others) == len(made) or any(client.has_functions for client in made) else []


def _check(client: Any, mine: _Place, has_url: bool, has_namespace: bool) -> None:
    place = _Place.of(client._opening)
    if has_url or (has_namespace and place.server == mine.server):
        _warn(client, mine)
        return
    raise UsageError(
        f"{_name(client)} uses {place.shown}, but this worker would use {mine.shown}: jobs put through that client would "
        f"not be taken here. {_advice(client, mine)}"
    )


def _advice(client: Any, mine: _Place) -> str:
    opening: Opening = client._opening
    theirs = f"--url {quote(opening.shown())} --namespace {quote(opening.settings.namespace)}"
    if opening.embedded or opening.target.existing is not None:
        return "Make the client with the worker's URL and namespace, or name the worker's with --url and --namespace"
    return f"Start the worker with {theirs}, or make the client with the worker's URL and namespace"


def _warn(client: Any, mine: _Place) -> None:
    place = _Place.of(client._opening)
    if not place.is_same(mine):
        log.warning(
            "%s uses %s, but this worker uses %s: jobs put through that client are not taken here",
            _name(client),
            place.shown,
            mine.shown,
        )


def _name(client: Any) -> str:
    """Return the name of a client in the module that holds it."""
    for name, module in list(sys.modules.items()):
        for variable, value in list(getattr(module, "__dict__", {}).items()):
            if value is client:
                return f"{name}.{variable}"
    return f"a {type(client).__name__} of the imported code"
