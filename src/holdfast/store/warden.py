"""The warden: one small process for each data directory, which owns the server there.

It starts the server, restarts it after a crash, and stops it when no client was connected for the linger time. The
warden holds ``lock`` while it runs, and the server holds ``server.lock``, so the next warden knows for certain
whether a server has outlived its warden (see `files.py`).
"""

import contextlib
import os
import select
import signal
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from holdfast.errors import HoldfastError, StoreUnavailable, UsageError
from holdfast.store import files, paths, processes, resp
from holdfast.store.files import FAILED, REFUSALS, STARTED, TAKEN, Record, end_orphan, log_line, longer
from holdfast.store.server import LOG_SETTINGS, Server, ServerProgram, describe_end, examine


class IdleClock:
    """Measure for how long no client but the warden has been connected to a server."""

    def __init__(self, socket: str) -> None:
        self._socket = socket
        self._connection: resp.Connection | None = None
        self._connections = -1
        self._last_seen = time.monotonic()

    def idle_seconds(self) -> float:
        """Return that time in seconds. A server that does not reply counts as busy with a client."""
        try:
            if self._connection is None:
                self._connection = resp.Connection(self._socket, timeout=2.0)
                self._connections = -1
            facts = self._connection.info("clients", "stats")
        except (OSError, resp.ErrorReply):
            self.close()
            self._last_seen = time.monotonic()
            return 0.0
        # The total also shows clients that came and left since the last look.
        connections = int(facts["total_connections_received"])
        if int(facts["connected_clients"]) > 1 or connections != self._connections:
            self._last_seen = time.monotonic()
        self._connections = connections
        return time.monotonic() - self._last_seen

    def close(self) -> None:
        if self._connection:
            self._connection.close()
            self._connection = None


CRASHES_ALLOWED, CRASH_WINDOW = 5, 60.0
FIRST_BACKOFF, LONGEST_BACKOFF = 0.05, 2.0
START_WAIT = 30.0


def main(words: Sequence[str]) -> NoReturn:
    """Become the warden of a directory, in the background, or exit with a code for the reason."""
    directory, program_path, durability, linger = Path(words[0]), words[1], words[2], float(words[3])
    os.umask(0o077)
    try:
        lock = _take_lock(directory)
        if lock is None:
            sys.exit(TAKEN)
        program = examine(program_path)
        files.open_format(directory, program, durability)
        socket = str(paths.socket_path(directory))
    except HoldfastError as error:
        _refuse(error)
    except OSError as error:
        _refuse(UsageError(f"{directory} cannot hold a store: {error.filename}: {error.strerror}"))
    if os.fork():
        os._exit(0)
    _detach(directory)
    sys.exit(Warden(directory, program, durability, linger, socket, lock).run())


class Warden:
    """The owner of one directory. `run` returns the exit code: 0 after a stop, 1 after giving up."""

    def __init__(
        self, directory: Path, program: ServerProgram, durability: str, linger: float, socket: str, lock: int
    ) -> None:
        self.directory = directory
        self.program = program
        self.durability = durability
        self.linger = linger
        self.socket = socket
        self.lock = lock
        self.server: Server | None = None
        self.server_lock = -1
        self.crashes: deque[float] = deque()
        self.crash_count = 0
        self.stopping = False
        self._wakeup, wakeup_end = os.pipe()
        os.set_blocking(wakeup_end, False)
        os.set_blocking(self._wakeup, False)
        signal.set_wakeup_fd(wakeup_end, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, self._on_end)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_stop)

    def run(self) -> int:
        """Run servers until no client needs them, a signal stops the warden, or they crash too often."""
        before = Record.read(self.directory)
        files.forget(self.directory)
        files.rotate(self.directory / files.SERVER_LOG)
        try:
            self.server_lock = end_orphan(self.directory, before)
            while not self.stopping and (crash := self._serve()) is not None:
                if not self._may_restart():
                    raise StoreUnavailable(
                        f"it crashed {CRASHES_ALLOWED} times within a minute, last: {crash}"
                    )
                log_line(f"server ended: {crash}; starting it again")
                self._back_off()
        except (HoldfastError, OSError) as error:
            return self._give_up(str(error))
        if self._owns_directory():
            files.forget(self.directory)
            Path(self.socket).unlink(missing_ok=True)
        return STARTED

    def _serve(self) -> str | None:
        """Run one server to its end. Returns None after a stop, else how it crashed."""
        data = self.directory / files.DATA
        data.mkdir(exist_ok=True)
        server = Server(
            self.program.path, self.socket, self._settings(data), directory=data, keep_open=[self.server_lock]
        )
        self.server = server
        self._record("starting", "")
        try:
            run_id = server.wait_until_ready(START_WAIT)["run_id"]
            self._record("running", run_id)
            with contextlib.closing(IdleClock(self.socket)) as idle_clock:
                reason = self._watch(server, run_id, idle_clock)
        except StoreUnavailable as error:
            reason = str(error)
        server.end()
        return None if self.stopping else reason

    def _watch(self, server: Server, run_id: str, idle_clock: IdleClock) -> str:
        """Wait until the server has ended (returns how), or should be stopped (sets `stopping`)."""
        idle_clock.idle_seconds()  # connects, so that from now on one client of the server is the warden
        while not self.stopping:
            self._rest(0.1 if 0 < self.linger < 2 else 1.0)
            ended = server.child.poll()
            if ended is not None:
                return describe_end(ended)
            if not Path(self.socket).exists():
                return "its socket was removed"
            if not self._owns_directory():
                log_line("the directory was removed; stopping")
                self.stopping = True
            if self._read_linger():
                self._record("running", run_id)
            idle = idle_clock.idle_seconds()
            if self.linger and idle >= self.linger:
                log_line(f"no client was connected for {idle:.1f} s; stopping")
                self.stopping = True
        return ""

    def _settings(self, data: Path) -> list[tuple[str, str]]:
        return [
            ("dir", str(data)),
            ("logfile", str(self.directory / files.SERVER_LOG)),
            ("save", ""),
            ("maxmemory", str(paths.half_of_memory())),
            ("maxmemory-policy", "noeviction"),
            *LOG_SETTINGS[self.durability],
        ]

    def _record(self, state: str, run_id: str, why: str = "") -> None:
        server_pid = self.server.pid if self.server else 0
        Record(
            state=state,
            socket=self.socket,
            pid=server_pid,
            started=processes.started(server_pid),
            run_id=run_id,
            engine=self.program.engine,
            version=self.program.version_text,
            warden_pid=os.getpid(),
            warden_started=processes.started(os.getpid()),
            durability=self.durability,
            linger=self.linger,
            since=time.time(),
            crashes=self.crash_count,
            why=why,
        ).write(self.directory)

    def _read_linger(self) -> bool:
        """Apply a request for a longer linger time. Returns whether that changed it."""
        try:
            requested = float((self.directory / "linger").read_text())
        except (OSError, ValueError):
            return False
        before, self.linger = self.linger, longer(self.linger, requested)
        return self.linger != before

    def _owns_directory(self) -> bool:
        try:
            there = (self.directory / files.LOCK).stat()
        except OSError:
            return False
        return os.path.samestat(there, os.fstat(self.lock))

    def _may_restart(self) -> bool:
        now = time.monotonic()
        self.crash_count += 1
        self.crashes.append(now)
        while now - self.crashes[0] > CRASH_WINDOW:
            self.crashes.popleft()
        return len(self.crashes) < CRASHES_ALLOWED

    def _give_up(self, why: str) -> int:
        log_line(f"giving up: {why}")
        if self._owns_directory():
            output = files.tail(self.directory / files.SERVER_LOG)
            self._record("unwell", "", f"{why}; the last output of its server:\n{output}")
        return FAILED

    def _back_off(self) -> None:
        end = time.monotonic() + min(FIRST_BACKOFF * 2 ** (len(self.crashes) - 1), LONGEST_BACKOFF)
        while not self.stopping and (left := end - time.monotonic()) > 0:
            self._rest(left)

    def _rest(self, seconds: float) -> None:
        """Wait for `seconds`, or until a signal arrives: the server ended, or the warden should stop."""
        select.select([self._wakeup], [], [], seconds)
        with contextlib.suppress(BlockingIOError):
            os.read(self._wakeup, 4096)

    def _on_end(self, *_: object) -> None:
        """Do nothing: the signal only has to wake `_rest`."""

    def _on_stop(self, *_: object) -> None:
        self.stopping = True
        if self.server:  # it may load for minutes before it ends
            self.server.child.terminate()


def _take_lock(directory: Path) -> int | None:
    """Lock the directory. Several tries, because `is_locked` of another process holds the lock for a moment."""
    for _ in range(5):
        lock = files.take_lock(directory / files.LOCK)
        if lock is not None:
            return lock
        time.sleep(0.01)
    return None


def _detach(directory: Path) -> None:
    files.rotate(directory / files.WARDEN_LOG)
    log = os.open(directory / files.WARDEN_LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    nothing = os.open(os.devnull, os.O_RDWR)
    for source, target in ((nothing, 0), (nothing, 1), (log, 2)):
        os.dup2(source, target)
    os.close(log)
    os.close(nothing)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _refuse(error: HoldfastError) -> NoReturn:
    sys.stderr.write(str(error))
    sys.exit(next((code for code, kind in REFUSALS.items() if isinstance(error, kind)), FAILED))
