"""A small HTTP server for health probes and metrics, inside the selector of its owner.

One request a connection, GET and HEAD of fixed paths, nothing else. It never waits for a client: one that is slow, silent or
one too many is dropped, so that no client can block the owner, or the response to a probe.
"""

import json
import logging
import selectors
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from math import inf
from time import monotonic
from typing import Final, NamedTuple

from holdfast.errors import UsageError
from holdfast.worker.settings import WorkerSettings
from holdfast.worker.signals import Stop, start_without_signals

log = logging.getLogger("holdfast")

MOST_CLIENTS: Final = 32
MOST_HEAD: Final = 8192  # bytes of a request
PATIENCE: Final = 5.0  # seconds from a connection to its request, and from the response to its end
PAUSE: Final = 1.0  # seconds without new connections, after one could not be accepted
QUIET: Final = 60.0  # seconds until a failed accept is logged again

JSON: Final = "application/json"


class HttpResponse(NamedTuple):
    """The response of a route: a status, a body, and its content type."""

    status: int
    body: bytes
    kind: str = JSON


Route = Callable[[], HttpResponse]


class HttpAddress(NamedTuple):
    """Where to listen: an address or name of this machine, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Http:
    """Serves on any number of addresses.

    The owner of `selector` calls what is registered there when it is ready, and `attend` at `due()`.
    """

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._routes: dict[HttpAddress, dict[str, Route]] = {}
        self._listeners: dict[HttpAddress, socket.socket] = {}
        self._clients: list[_Client] = []
        self._paused_until = inf
        self._warned_at = -inf

    def serve(self, address: HttpAddress, path: str, route: Route) -> None:
        """Serve GET of `path` on an address. Raises UsageError if it cannot be listened on."""
        if address not in self._listeners:
            self._listeners[address] = _listen(address)
            self._routes[address] = {}
            self._accept_from(address)
        self._routes[address][path] = route

    @property
    def is_open(self) -> bool:
        """Whether it listens on any port."""
        return bool(self._listeners)

    def due(self) -> float:
        """When to call `attend` next, on the monotonic clock."""
        return min([self._paused_until, *(client.until for client in self._clients)])

    def attend(self, now: float) -> None:
        """Drop clients that took too long, and accept connections again after a pause."""
        for client in [client for client in self._clients if client.until <= now]:
            client.drop()
        if self._paused_until <= now:
            self._paused_until = inf
            for address in self._listeners:
                self._accept_from(address)

    def close(self) -> None:
        """Drop all clients, and close the ports."""
        for client in list(self._clients):
            client.drop()
        for listener in self._listeners.values():
            if self._paused_until == inf:
                self._selector.unregister(listener)
            listener.close()
        self._listeners.clear()

    def _accept_from(self, address: HttpAddress) -> None:
        listener = self._listeners[address]
        self._selector.register(listener, selectors.EVENT_READ, partial(self._accept, address))

    def _accept(self, address: HttpAddress) -> None:
        try:
            connection, _ = self._listeners[address].accept()
        except (BlockingIOError, ConnectionError):
            return  # the client has closed the connection already
        except OSError as error:
            # Out of descriptors, most likely; the selector would call us again and again.
            now = monotonic()
            if now >= self._warned_at + QUIET:
                self._warned_at = now
                log.warning("a connection to %s cannot be accepted: %s", address, error)
            self._paused_until = now + PAUSE
            for listener in self._listeners.values():
                self._selector.unregister(listener)
            return
        if len(self._clients) >= MOST_CLIENTS:
            self._clients[0].drop()
        self._clients.append(_Client(connection, self._selector, self._routes[address], self._clients.remove))


class HttpThread:
    """A server in a thread, for the time of a `with` block: for a worker that has no selector of its own.

    Its routes are set on `http`; without any port there is no thread.
    """

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self.http = Http(self._selector)
        self._thread = threading.Thread(target=self._run, name="holdfast-http", daemon=True)
        self._stop = Stop()

    def __enter__(self) -> None:
        if self.http.is_open:
            self._selector.register(self._stop, selectors.EVENT_READ, self._stop.read)
            start_without_signals(self._thread)

    def __exit__(self, *_: object) -> None:
        self._stop.request()
        if self._thread.ident is not None:
            self._thread.join()
        with suppress(OSError):  # a job closed its descriptors
            self.http.close()
            self._selector.close()
        self._stop.close()

    def _run(self) -> None:
        while not self._stop.requested:
            due = self.http.due()
            for key, _ in self._selector.select(None if due == inf else max(0.0, due - monotonic())):
                key.data()
            self.http.attend(monotonic())


class _Client:
    """One connection: read a request, write its response, wait for the client to close."""

    def __init__(
        self,
        connection: socket.socket,
        selector: selectors.BaseSelector,
        routes: Mapping[str, Route],
        leave: "Callable[[_Client], None]",
    ) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._selector = selector
        self._routes = routes
        self._leave = leave
        self._request = b""
        self._left = memoryview(b"")
        self.until = monotonic() + PATIENCE
        selector.register(connection, selectors.EVENT_READ, self._guarded(self._read))

    def drop(self) -> None:
        """Close the connection."""
        self._leave(self)
        self._selector.unregister(self._connection)
        self._connection.close()

    def _guarded(self, step: Callable[[], None]) -> Callable[[], None]:
        def take() -> None:
            if self._connection.fileno() < 0:
                return  # it was dropped for a newer connection since the selector returned
            try:
                step()
            except BlockingIOError:
                pass
            except OSError:
                self.drop()

        return take

    def _read(self) -> None:
        received = self._connection.recv(4096)
        self._request += received
        if not received:
            self.drop()
        elif b"\r\n\r\n" in self._request or b"\n\n" in self._request:
            self._answer(answer_to(self._request, self._routes))
        elif len(self._request) > MOST_HEAD:
            self._answer(written(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE))

    def _answer(self, answer: bytes) -> None:
        self._left = memoryview(answer)
        self.until = monotonic() + PATIENCE  # making the response may have taken long
        self._selector.modify(self._connection, selectors.EVENT_WRITE, self._guarded(self._write))

    def _write(self) -> None:
        self._left = self._left[self._connection.send(self._left) :]
        if not self._left:
            # If it were closed with unread input, a reset could discard the response.
            self._connection.shutdown(socket.SHUT_WR)
            self._selector.modify(self._connection, selectors.EVENT_READ, self._guarded(self._wait_for_end))

    def _wait_for_end(self) -> None:
        if not self._connection.recv(4096):
            self.drop()


def answer_to(request: bytes, routes: Mapping[str, Route]) -> bytes:
    """Return the whole response to a request, of which only the first line is read."""
    words = request.split(b"\n", 1)[0].decode("latin-1").split()
    if len(words) != 3 or not words[2].startswith("HTTP/"):
        return written(HTTPStatus.BAD_REQUEST)
    method, target, _ = words
    path = target.partition("?")[0]
    route = routes.get(path)
    if route is None:
        return written(HTTPStatus.NOT_FOUND)
    if method not in ("GET", "HEAD"):
        return written(HTTPStatus.METHOD_NOT_ALLOWED, more="Allow: GET, HEAD\r\n")
    try:
        status, body, kind = route()
    except Exception:
        log.exception("the request %s failed", path)
        return written(HTTPStatus.INTERNAL_SERVER_ERROR)
    return written(HTTPStatus(status), body, kind, with_body=method == "GET")


def written(
    status: HTTPStatus, body: bytes = b"", kind: str = JSON, more: str = "", with_body: bool = True
) -> bytes:
    """Return a response as bytes."""
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        f"Cache-Control: no-store\r\nConnection: close\r\n{more}\r\n"
    )
    return head.encode() + (body if with_body else b"")


def _listen(address: HttpAddress) -> socket.socket:
    try:
        family, *_, place = socket.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        # `::` stands for all addresses of both kinds.
        both = address.host == "::" and socket.has_dualstack_ipv6()
        listener = socket.create_server(place, family=family, dualstack_ipv6=both)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot listen on {address}: {why}") from None
    listener.setblocking(False)
    return listener


Stuck = Callable[[], list[str]]
"""A function that returns a sentence for each process that is stuck."""
WhyNot = Callable[[], list[str]]
"""A function that returns a sentence for each reason why a worker takes no jobs now."""


def no_process() -> list[str]:
    """Return an empty list: no process is stuck."""
    return []


def serve_probes(http: Http, settings: WorkerSettings, why_not: WhyNot, stuck: Stuck = no_process) -> None:
    """Serve `/live` and `/ready` on the host and port of the settings; port 0: off. Raises UsageError if that cannot be listened on."""
    if settings.health_port:
        address = HttpAddress(settings.health_host, settings.health_port)
        http.serve(address, "/live", partial(_live, stuck))
        http.serve(address, "/ready", partial(_ready, why_not, stuck))


def hindrances(*, stopping: bool, available: bool, paused: bool) -> list[str]:
    """Return what keeps a worker from taking jobs; `available`: the last call to the store succeeded."""
    found = {
        "it is stopping": stopping,
        "the store does not respond": not available,
        "it is paused or quiet": paused,
    }
    return [reason for reason, holds in found.items() if holds]


def _live(stuck: Stuck) -> HttpResponse:
    """Always 200: the parent that runs the worker is the process that responds."""
    return _answer(200, {"live": True}, stuck())


def _ready(why_not: WhyNot, stuck: Stuck) -> HttpResponse:
    reasons = why_not()
    body: dict[str, object] = {"ready": False, "why": reasons} if reasons else {"ready": True}
    return _answer(503 if reasons else 200, body, stuck())


def _answer(status: int, body: dict[str, object], stuck: list[str]) -> HttpResponse:
    return HttpResponse(status, json.dumps({**body, "stuck": stuck} if stuck else body).encode() + b"\n")
