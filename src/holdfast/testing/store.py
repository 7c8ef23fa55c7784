"""Temporary stores for tests and benchmarks."""

import shutil
import signal
import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self, get_args

from holdfast.errors import StoreUnavailable, StoreUnsupported, UsageError
from holdfast.settings import unknown_option
from holdfast.store import resp
from holdfast.store.server import LOG_SETTINGS, LONGEST_SOCKET_PATH, Server, bundled_program

Engine = Literal["valkey", "redis"]
Durability = Literal["memory", "process", "fsync"]


def find_engine(engine: Engine) -> Path | None:
    """Return the program of an engine: the bundled one, or ``redis-server`` from PATH, None if missing."""
    if engine == "valkey":
        return bundled_program()
    found = shutil.which("redis-server")
    return Path(found) if found else None


class ScratchStore:
    """A server with an empty data directory, which ends with the process that started it.

    It listens on a Unix socket (`url`) and, with ``tcp=True``, on a free loopback port too (`tcp_url`).
    `settings` are further settings of the server, by their own names. Use it as a context manager, or call
    `start` and `stop`. Raises StoreUnsupported if the engine's program is not installed, UsageError.
    """

    def __init__(
        self,
        engine: Engine = "valkey",
        durability: Durability = "memory",
        *,
        tcp: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        for what, given, kind in (("engine", engine, Engine), ("durability", durability, Durability)):
            if given not in get_args(kind):
                raise unknown_option("a scratch store", str(given), get_args(kind), what)
        program = find_engine(engine)
        if program is None:
            raise StoreUnsupported("redis-server is not installed")
        self.engine: Engine = engine
        self.durability: Durability = durability
        self.directory = Path()
        self.port = 0
        self.version = ""
        self._program = program
        self._tcp = tcp
        self._settings = dict(settings or {})
        self._server: Server | None = None

    @property
    def url(self) -> str:
        return f"unix://{self.socket_path}"

    @property
    def tcp_url(self) -> str:
        if not self.port:
            raise UsageError("this scratch store was not started with tcp=True")
        return f"redis://127.0.0.1:{self.port}"

    @property
    def socket_path(self) -> Path:
        return self.directory / "socket"

    @property
    def pid(self) -> int:
        return self._running().pid

    def start(self) -> Self:
        """Make the directory and start the server. Returns when it replies."""
        self.directory = _short_directory()
        try:
            self._start_server()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End the server and remove everything it wrote."""
        if self._server:
            self._server.kill()
            self._server = None
        if self.directory != Path():
            shutil.rmtree(self.directory, ignore_errors=True)

    def kill(self) -> None:
        """End the server with SIGKILL; `restart` brings it back with what its log holds."""
        self._running().kill()

    def restart(self) -> None:
        """Kill the server if it runs, and start it again with the same directory and addresses."""
        self._running().kill()
        self._start_server()

    def flush(self) -> None:
        """Delete all data; loaded function libraries stay."""
        self.ask("FLUSHALL", "SYNC")

    def ask(self, *words: str, timeout: float = 30.0) -> str:
        """Send one plain command, for settings and INFO. Returns a list as lines."""
        return resp.call(str(self.socket_path), *words, timeout=timeout)

    def log(self) -> str:
        """Return the log of the server."""
        path = self.directory / "server.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def _running(self) -> Server:
        if self._server is None:
            raise UsageError("this scratch store is not started")
        return self._server

    def _start_server(self) -> None:
        for attempt in range(10):
            if self._tcp and not self.port:
                self.port = _free_port()
            self._server = Server(
                self._program,
                self.socket_path,
                self._all_settings(),
                directory=self.directory,
                death_signal=signal.SIGKILL,
            )
            try:
                facts = self._server.wait_until_ready(30)
            except StoreUnavailable as error:
                self._server.kill()
                # Another process may take the free port before the server binds it.
                if "bind" in self.log() and attempt < 9 and not self.version:
                    self.port = 0
                    (self.directory / "server.log").unlink()
                    continue
                raise StoreUnavailable(f"{error}\n{self.log()[-2000:]}") from error
            self.version = facts.get("valkey_version") or facts["redis_version"]
            return

    def _all_settings(self) -> list[tuple[str, str]]:
        settings = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "dir": str(self.directory),
            "logfile": str(self.directory / "server.log"),
            "save": "",
            "enable-debug-command": "local",
            **dict(LOG_SETTINGS[self.durability]),
            **self._settings,
        }
        return list(settings.items())

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def _short_directory() -> Path:
    directory = tempfile.mkdtemp(prefix="hf-")
    if len(directory) + len("/socket") > LONGEST_SOCKET_PATH:
        shutil.rmtree(directory)
        directory = tempfile.mkdtemp(prefix="hf-", dir="/tmp")
    return Path(directory)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
