"""The embedded store: one server for each data directory, shared by all programs that use it, owned by its warden.

`ensure` starts the store of a directory unless it runs, `status` reads its status, `stop` stops it. The first program that
needs a directory's store starts its warden (`warden.py`); the others find it running.
"""

import logging
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from holdfast.errors import StoreUnavailable, StoreUnsupported, UsageError
from holdfast.store import files, paths, processes, resp
from holdfast.store.files import LEVELS, REFUSALS, STARTED, TAKEN, Record, is_orphan, longer
from holdfast.store.paths import default_directory
from holdfast.store.server import bundled_program

__all__ = ["StoreAddress", "StoreStatus", "default_directory", "ensure", "status", "stop"]

log = logging.getLogger("holdfast.store")

_LAUNCHES = 3


_NEEDED: Final = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
    "DYLD_LIBRARY_PATH",
    "LD_LIBRARY_PATH",
)
"""The environment variables that a warden gets. It outlives the program, whose other variables may be secret."""


class StoreAddress(NamedTuple):
    """A running store: `url` for a client, `pid` of its server, `started` if this call had to start it."""

    url: str
    directory: Path
    pid: int
    warden_pid: int
    run_id: str
    engine: str
    version: str
    durability: str
    started: bool


def ensure(
    directory: Path | None = None,
    *,
    durability: str = "fsync",
    linger: float = 10.0,
    wait: float = 10.0,
    program: Path | None = None,
) -> StoreAddress:
    """Start this directory's store if it does not run, and return its address.

    `directory` is made if missing (default: `default_directory()`); `program` is a server program to use instead
    of the bundled one. A store that this call starts stops by itself `linger` seconds after its last connection
    was closed, 0 for never; the longest time that any program requested applies. Waits up to `wait` seconds, longer
    only while the server is loading its data.

    Raises UsageError for a directory that cannot be used, StoreUnsupported for a network file system, a server
    older than its data or a running store of a lower durability, StoreUnavailable if it does not start.
    """
    _check(durability, linger, wait)
    directory = paths.prepare(directory or paths.default_directory())
    starter = _Starter(directory, durability, linger, program)
    deadline, pause = time.monotonic() + wait, 0.002
    while True:
        address, loading = _find(directory, starter.launched)
        if address:
            _accept(address, durability, linger)
            return address
        if loading:
            deadline = time.monotonic() + wait
        elif not files.is_locked(directory / files.LOCK):
            starter.launch(wait)
        if time.monotonic() > deadline:
            _give_up(directory, wait)
        time.sleep(pause)
        pause = min(pause * 1.3, 0.02)


class _Starter:
    """Start wardens for one call of `ensure`, and raise the reason if that fails."""

    def __init__(self, directory: Path, durability: str, linger: float, program: Path | None) -> None:
        self.directory = directory
        self.durability = durability
        self.linger = linger
        self.program = program
        self.launched = 0
        self._began = time.time()

    def launch(self, wait: float) -> None:
        """Start a warden. Raises StoreUnavailable if an earlier one recorded that it cannot start."""
        record = Record.read(self.directory)
        if record and record.state == "unwell" and record.since >= self._began:
            raise StoreUnavailable(f"the store in {self.directory} did not start: {record.why}")
        if self.launched >= _LAUNCHES:
            output = files.tail(self.directory / files.WARDEN_LOG)
            raise StoreUnavailable(
                f"the warden of {self.directory} ended as soon as it had started: {output}"
            )
        warning = paths.check_file_system(self.directory)
        if warning and not self.launched:
            log.warning(warning)
        code, output = self._run(wait)
        if code in REFUSALS:
            raise REFUSALS[code](output)
        if code not in (STARTED, TAKEN):
            raise StoreUnavailable(
                f"the warden of {self.directory} did not start: {output or f'exit code {code}'}"
            )
        self.launched += code == STARTED

    def _run(self, wait: float) -> tuple[int, str]:
        """Run the launcher, which starts a warden. Returns its exit code and error output."""
        launcher = Path(__file__).with_name("launch.py")
        program = self.program or bundled_program()
        # Without site-packages and the user's start-up files: a warden needs only this package.
        words = [_python(), "-I", "-S", str(launcher), str(self.directory), str(program), self.durability]
        try:
            result = subprocess.run(
                [*words, str(self.linger)],
                cwd=self.directory,
                env={name: os.environ[name] for name in _NEEDED if name in os.environ},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
                check=False,
                timeout=max(wait, 5.0),
            )
        except subprocess.TimeoutExpired as error:
            raise StoreUnavailable(f"the warden of {self.directory} did not start in time") from error
        return result.returncode, result.stderr.decode(errors="replace").strip()


def _check(durability: str, linger: float, wait: float) -> None:
    if durability not in LEVELS:
        raise UsageError(
            f"an embedded store has the durability levels {', '.join(LEVELS)}, not {durability!r}"
        )
    if not (math.isfinite(linger) and linger >= 0):
        raise UsageError(f"linger is a number of seconds, or 0 for ever, not {linger!r}")
    if not wait >= 0:
        raise UsageError(f"wait is a number of seconds, not {wait!r}")


def _find(directory: Path, launched: int) -> tuple[StoreAddress | None, bool]:
    """Return the address of the store that runs here, if its server replies, and whether it is loading."""
    record = Record.read(directory)
    # A server whose warden was killed still replies while it finishes its log.
    if record is None or not processes.is_alive(record.warden_pid, record.warden_started):
        return None, False
    try:
        facts = resp.info(record.socket, "server", "persistence")
    except (OSError, resp.ErrorReply):
        return None, False
    if facts.get("loading") != "0":
        return None, True
    if record.state != "running" or facts.get("run_id") != record.run_id:
        return None, False
    address = StoreAddress(
        url=f"unix://{record.socket}",
        directory=directory,
        pid=record.pid,
        warden_pid=record.warden_pid,
        run_id=record.run_id,
        engine=record.engine,
        version=record.version,
        durability=record.durability,
        started=launched > 0,
    )
    return address, False


def _accept(address: StoreAddress, durability: str, linger: float) -> None:
    if LEVELS.index(address.durability) < LEVELS.index(durability):
        raise StoreUnsupported(
            f"the store in {address.directory} runs at durability {address.durability!r}, less than {durability!r}: "
            "stop it first (holdfast store stop), or ask for less"
        )
    record = Record.read(address.directory)
    if record and longer(record.linger, linger) != record.linger:
        (address.directory / "linger").write_text(str(linger))


def _give_up(directory: Path, wait: float) -> NoReturn:
    output = files.tail(directory / files.SERVER_LOG)
    raise StoreUnavailable(
        f"the store in {directory} did not respond within {wait:g} s; the last line of its server's log: {output}"
    )


def _python() -> str:
    """Return the interpreter. Inside some application servers, `sys.executable` is the server program."""
    if Path(sys.executable).name.startswith(("python", "pypy")):
        return sys.executable
    return str(Path(sys.prefix, "bin", "python3"))


_CORE = re.compile(r'HOLDFAST_CORE = { version = "([^"]*)", digest = "([^"]*)" }')


class StoreStatus(NamedTuple):
    """The status of a directory's store.

    `state` is ``running``, ``starting``, ``stopped`` or ``unwell`` (it crashed too often; `why` has the reason).
    `linger` and `uptime` are in seconds, `memory` and `disk` in bytes; `clients` does not count the caller. `core` is
    the version of the core in the store, "" if there is none.
    """

    state: str
    directory: Path
    url: str = ""
    pid: int = 0
    warden_pid: int = 0
    engine: str = ""
    version: str = ""
    durability: str = ""
    linger: float = 0.0
    uptime: float = 0.0
    clients: int = 0
    memory: int = 0
    disk: int = 0
    crashes: int = 0
    why: str = ""
    core: str = ""
    core_digest: str = ""


def status(directory: Path | None = None) -> StoreStatus:
    """Return the status of this directory's store, without starting or making anything."""
    directory = paths.full_path(directory or paths.default_directory())
    record = Record.read(directory)
    if record is None:
        return StoreStatus("stopped", directory, disk=_disk(directory))
    if record.state == "unwell":
        return StoreStatus("unwell", directory, disk=_disk(directory), crashes=record.crashes, why=record.why)
    try:
        facts = resp.info(record.socket, "server", "clients", "memory", "persistence")
    except (OSError, resp.ErrorReply):
        alive = processes.is_alive(record.warden_pid, record.warden_started)
        return StoreStatus("starting" if alive else "stopped", directory, disk=_disk(directory))
    core, digest = _core(record.socket)
    return StoreStatus(
        state="running" if facts.get("loading") == "0" else "starting",
        directory=directory,
        url=f"unix://{record.socket}",
        pid=record.pid,
        warden_pid=record.warden_pid,
        engine=record.engine,
        version=record.version,
        durability=record.durability,
        linger=record.linger,
        uptime=float(facts.get("uptime_in_seconds", 0)),
        clients=max(0, int(facts.get("connected_clients", 0)) - 2),  # the warden and this connection
        memory=int(facts.get("used_memory", 0)),
        disk=_disk(directory),
        crashes=record.crashes,
        core=core,
        core_digest=digest,
    )


def _core(socket: str) -> tuple[str, str]:
    """Return version and digest of the core in the store, "" and "" if there is none."""
    try:
        found = resp.call(socket, "FUNCTION", "LIST", "LIBRARYNAME", "holdfast1", "WITHCODE")
    except (OSError, resp.ErrorReply):
        return "", ""
    core = _CORE.search(found)
    return (core[1], core[2]) if core else ("", "")


def stop(directory: Path | None = None, *, wait: float = 15.0) -> bool:
    """Stop this directory's store after it has finished its log. Returns False if none ran.

    Clients that are still connected may start it again. Raises StoreUnavailable if it still runs after
    `wait` seconds.
    """
    directory = paths.full_path(directory or paths.default_directory())
    if not _is_held(directory):
        return False
    deadline, signalled = time.monotonic() + wait, 0
    while _is_held(directory):
        record = Record.read(directory)
        # A new warden has not recorded its pid yet.
        if record and signalled != record.warden_pid:
            signalled = record.warden_pid
            if not processes.send(signalled, record.warden_started, signal.SIGTERM) and is_orphan(record):
                processes.send(record.pid, record.started, signal.SIGTERM)
        if time.monotonic() > deadline:
            raise StoreUnavailable(f"the store in {directory} did not end within {wait:g} s")
        time.sleep(0.01)
    return True


def _is_held(directory: Path) -> bool:
    """Return whether a warden, or a server that outlived one, runs here."""
    return files.is_locked(directory / files.LOCK) or files.is_locked(directory / files.SERVER_LOCK)


def _disk(directory: Path) -> int:
    total = 0
    for folder, _, names in os.walk(directory / files.DATA):
        for name in names:
            try:
                total += Path(folder, name).stat().st_size
            except OSError:  # a log that was just rewritten
                continue
    return total
