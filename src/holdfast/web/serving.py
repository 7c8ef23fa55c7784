"""Run the application in a process of its own: its address, its secret, and the file that names its process."""

import contextlib
import errno
import fcntl
import json
import os
import secrets
import signal
import socket
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

import msgspec
import platformdirs
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.errors import HoldfastError, UsageError
from holdfast.web.connections import BACKLOG, Connections, most_connections
from holdfast.web.sessions import Sessions

PORT: Final = 5678
_TRIES: Final = 50
_SECRET_BYTES: Final = 32
_GRACE: Final = 2
"""Seconds that open streams have when the server stops."""


class Running(msgspec.Struct, frozen=True):
    """A server that runs: its process, the URL of its first page, and a name of its own, for which links are signed."""

    pid: int
    url: str
    server: str = ""


class Folder:
    """Where a server notes its process (`web.json`), its secret (`web.secret`), sessions that were logged out (`web.ended`) and
    its log (`web.log`); for this user alone.

    The secret signs sessions and links. It stays, so that sessions outlive a restart; links do not.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or platformdirs.user_state_path("holdfast", appauthor=False) / "web"
        self.log = self.path / "web.log"
        self._note, self._lock = self.path / "web.json", self.path / "web.lock"

    def make(self) -> None:
        """Make the folder. Raises UsageError if it belongs to, or is open to, somebody else."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            facts = self.path.stat()
        except OSError as error:
            raise UsageError(
                f"{self.path} cannot hold the files of the web server: {error.strerror}"
            ) from None
        if facts.st_uid != os.geteuid() or facts.st_mode & 0o022:
            raise UsageError(f"{self.path} must belong to you, and be writable by you only")

    def secret(self) -> bytes:
        """Return the secret, made at first use."""
        self.make()
        path = self.path / "web.secret"
        with contextlib.suppress(FileExistsError):
            made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(made, "wb") as file:
                file.write(secrets.token_bytes(_SECRET_BYTES))
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            found = file.read(_SECRET_BYTES + 1)
        if len(found) != _SECRET_BYTES:
            raise UsageError(f"{path} holds no secret: remove it")
        return found

    def sessions(self, server: str) -> Sessions:
        """Return the sessions of this folder, with links for a server of this name."""
        return Sessions(self.secret(), server, self.path / "web.ended")

    def running(self) -> Running | None:
        """Return the server of this folder, None if none runs."""
        try:
            with self._lock.open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return None  # whoever runs holds the lock
        except BlockingIOError:
            pass
        except OSError:
            return None
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode(self._note.read_bytes(), type=Running)
        return None

    @contextmanager
    def claimed(self, url: str, server: str = "") -> Generator[None]:
        """Note that this process is the server of the folder, as long as the block runs. Raises HoldfastError if one runs."""
        self.make()
        lock = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise HoldfastError(
                    f"a web server of {self.path} runs already; give another one its own --app-dir"
                ) from None
            draft = self.path / f".web.json.{os.getpid()}"
            draft.write_text(json.dumps({"pid": os.getpid(), "url": url, "server": server}))
            draft.replace(self._note)
            yield
            self._note.unlink(missing_ok=True)
        finally:
            os.close(lock)

    def stop(self, seconds: float = 10.0) -> Running | None:
        """Stop the server of this folder, and return which that was. Raises HoldfastError if it does not end."""
        found = self.running()
        if found is None:
            return None
        with contextlib.suppress(ProcessLookupError):
            os.kill(found.pid, signal.SIGTERM)
        until = time.monotonic() + seconds
        while self.running() is not None:
            if time.monotonic() > until:
                raise HoldfastError(f"the web server (pid {found.pid}) did not end within {seconds:g} s")
            time.sleep(0.05)
        return found


def bound(host: str, port: int | None) -> socket.socket:
    """Return a socket that listens on a port; None: 5678, or the next free one. Raises UsageError."""
    first = PORT if port is None else port
    for number in range(first, first + (_TRIES if port is None else 1)):
        try:
            return _listening(host, number)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise UsageError(
                    f"cannot listen on {host} port {number}: {error.strerror or error}"
                ) from None
    taken = (
        f"port {first} of {host} is taken"
        if port is not None
        else f"ports {first} to {first + _TRIES} of {host} are taken"
    )
    raise UsageError(f"{taken}; choose another one with --port")


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(
        family, socket.SOCK_STREAM, socket.IPPROTO_TCP
    )  # else asyncio leaves Nagle's delay on
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(BACKLOG)
    except OSError:
        made.close()
        raise
    return made


def url_of(listening: socket.socket, prefix: str = "") -> str:
    """Return the URL under which a socket is reached."""
    host, port = listening.getsockname()[:2]
    name = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{name}:{port}{prefix}/"


class Below:
    """The application below a prefix of the path; elsewhere there is nothing."""

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self._app, self._prefix = app, prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if scope["type"] == "http" and (path == self._prefix or path.startswith(self._prefix + "/")):
            await self._app({**scope, "root_path": self._prefix}, receive, send)
        elif scope["type"] == "http":
            await send(
                {"type": "http.response.start", "status": 404, "headers": [(b"content-type", b"text/plain")]}
            )
            await send({"type": "http.response.body", "body": b"not found\n"})
        else:
            await self._app(scope, receive, send)


def _nothing() -> None:
    """Do nothing."""


def _tidy_up(_signal: int, _frame: object) -> None:
    """Continue to the end of the program."""


class _Server(uvicorn.Server):
    """A server that calls `at_end` when it stops, before it waits for its requests to end."""

    at_end: Callable[[], None]

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.at_end()
        await super().shutdown(sockets)


def serve(
    app: ASGIApp,
    listening: socket.socket,
    at_end: Callable[[], None] = _nothing,
    most: int | None = None,
) -> None:
    """Serve until INT or TERM. `at_end` is called then. Open streams have two seconds. `most`: of connections at once."""
    connections = Connections(most_connections() if most is None else most)
    config = uvicorn.Config(
        app,
        http=cast("Any", connections.protocol),
        ws="none",
        backlog=BACKLOG,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
        proxy_headers=False,  # the gate reads them: the address of the reverse proxy has to stay visible
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        # The server raises the signal that ended it once more; the process still has to tidy up.
        signal.signal(number, _tidy_up)
    server = _Server(config)
    server.at_end = at_end
    server.run([listening])
