"""The small files in a store's directory: its format, what runs in it now, and a server that outlived its warden.

holdfast.json   format of the directory, engine and newest version that opened it
server.json     what runs now (see Record), or why nothing does; removed when the store stops
linger          a request for a longer linger time, for the running warden
lock            held by the warden          server.lock   held by the server itself
data/           the server's log of writes  server.log    its messages

A server can outlive its warden where the system has no parent-death signal, and on Linux while it finishes its log.
Two servers must never write one log, so the next warden waits for the lock that the server holds.
"""

import contextlib
import fcntl
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple, Self

from holdfast.errors import HoldfastError, StoreUnavailable, StoreUnsupported, UsageError
from holdfast.store import processes, resp
from holdfast.store.server import ServerProgram

LEVELS = ("memory", "process", "fsync")
"""Durability levels of an embedded store, weakest first."""

STARTED, FAILED, TAKEN = 0, 1, 3
"""Exit codes of the launcher: a warden runs now, it crashed, another warden owns the directory already."""

REFUSALS: dict[int, type[HoldfastError]] = {4: StoreUnsupported, 5: UsageError, 6: StoreUnavailable}
"""Exit codes of a launcher that refuses to start a warden; its standard error is the message."""


def longer(one: float, other: float) -> float:
    """Return the longer of two linger times in seconds; 0 is for ever."""
    return 0.0 if 0.0 in (one, other) else max(one, other)


def log_line(text: str) -> None:
    """Write a line to the warden's log."""
    sys.stderr.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {os.getpid()} {text}\n")
    sys.stderr.flush()


FORMAT = 1

DATA = "data"
LOCK = "lock"
SERVER_LOCK = "server.lock"
SERVER_LOG = "server.log"
WARDEN_LOG = "warden.log"
OURS = frozenset(
    {"holdfast.json", "server.json", "linger", LOCK, SERVER_LOCK, DATA, "socket", SERVER_LOG, WARDEN_LOG}
)

_LARGEST_LOG = 1 << 20


class Record(NamedTuple):
    """``server.json``: what a warden records about its server.

    `state` is ``starting``, ``running`` or ``unwell`` (then nothing runs, and `why` has the reason). A process is
    identified by its pid *and* `…_started`, because pids are reused; `run_id` is the server's own id of this run.
    `since` is in epoch seconds, `linger` in seconds; `crashes` counts those since the warden started.
    """

    state: str
    socket: str = ""
    pid: int = 0
    started: str = ""
    run_id: str = ""
    engine: str = ""
    version: str = ""
    warden_pid: int = 0
    warden_started: str = ""
    durability: str = ""
    linger: float = 0.0
    since: float = 0.0
    crashes: int = 0
    why: str = ""

    @classmethod
    def read(cls, directory: Path) -> Self | None:
        content = _read(directory / "server.json")
        try:
            return cls(**content) if content else None
        except TypeError:  # written by another version: what runs is unknown
            return None

    def write(self, directory: Path) -> None:
        _write(directory / "server.json", self._asdict())


def forget(directory: Path) -> None:
    """Remove the files of a store that has stopped."""
    for name in ("server.json", "linger"):
        (directory / name).unlink(missing_ok=True)


def open_format(directory: Path, program: ServerProgram, durability: str) -> None:
    """Check that this program may open the data here, and record its version.

    Raises StoreUnsupported for a format of a later holdfast, for another engine, for an older server than
    the one that wrote last (it could misread the log), and for durability `memory` where there is a log (the
    jobs in it would be ignored).
    """
    content = _read(directory / "holdfast.json")
    if content:
        _check_format(directory, content, program)
    if durability == "memory" and (directory / DATA / "appendonlydir").exists():
        raise StoreUnsupported(
            f"{directory} contains jobs in an append-only file, which durability 'memory' would ignore: use another directory"
        )
    version = max(tuple(content.get("version", ())), program.version)
    mark = {"format": FORMAT, "engine": program.engine, "version": list(version)}
    if mark != content:
        _write(directory / "holdfast.json", mark, lasting=True)


def _check_format(directory: Path, content: dict[str, Any], program: ServerProgram) -> None:
    if content.get("format", 0) > FORMAT:
        raise StoreUnsupported(
            f"{directory} was written by a newer holdfast (format {content['format']}, this one knows {FORMAT}): "
            "upgrade holdfast, or use another directory"
        )
    if content.get("engine") != program.engine:
        raise StoreUnsupported(
            f"{directory} belongs to {content.get('engine')}, not to {program.engine}: use another directory"
        )
    written_by = tuple(content["version"])
    if program.version[:2] < written_by[:2]:
        raise StoreUnsupported(
            f"{directory} was written by {program.engine} {'.'.join(map(str, written_by))}, and "
            f"{program.version_text} is older: install the newer server again, or use another directory"
        )


def take_lock(path: Path) -> int | None:
    """Lock this file while the returned descriptor (or a copy of it) is open. Returns None if it is locked.

    The lock ends with the process that holds it and is kept through fork and exec, so it needs no cleanup.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def is_locked(path: Path) -> bool:
    """Return whether this lock is held, without making the file."""
    if not path.is_file():
        return False
    descriptor = take_lock(path)
    if descriptor is None:
        return True
    # Unlock explicitly: a copy of the descriptor in a forked child would otherwise keep the lock.
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)
    return False


def tail(path: Path, lines: int = 6) -> str:
    """Return the last lines of a log, "" if it cannot be read."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - 8192))
            return "\n".join(log.read().decode(errors="replace").splitlines()[-lines:])
    except OSError:
        return ""


def rotate(path: Path) -> None:
    """Rename a log of more than 1 MiB; one older log is kept."""
    with contextlib.suppress(OSError):
        if path.stat().st_size > _LARGEST_LOG:
            path.replace(path.with_name(path.name + ".1"))


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return {}


def _write(path: Path, content: dict[str, Any], *, lasting: bool = False) -> None:
    """Replace the file in one step, so that a reader sees the old or the new content."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)  # of an earlier process with our pid
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        json.dump(content, out)
        if lasting:
            out.flush()
            os.fsync(out.fileno())
    draft.replace(path)


ORPHAN_WAIT = 5.0


def end_orphan(directory: Path, before: Record | None) -> int:
    """Wait until a server whose warden was killed has ended, and end it if needed. Returns the locked server lock.

    Raises StoreUnavailable if an unknown process holds the lock.
    """
    path = directory / SERVER_LOCK
    deadline, ended = time.monotonic() + ORPHAN_WAIT, False
    while (lock := take_lock(path)) is None:
        if before and not ended and is_orphan(before):
            log_line(f"ending the server of an earlier warden, pid {before.pid}")
            ended = processes.send(before.pid, before.started, signal.SIGTERM)
        if time.monotonic() > deadline:
            _kill_orphan(path, before)
        time.sleep(0.01)
    return lock


def is_orphan(before: Record) -> bool:
    """Return whether the recorded server runs: same pid, same start and, if it replies, same run id."""
    if not processes.is_alive(before.pid, before.started):
        return False
    try:
        return resp.info(before.socket, "server").get("run_id") == before.run_id
    except (OSError, resp.ErrorReply):
        return True


def _kill_orphan(lock_path: Path, before: Record | None) -> None:
    if before is None:
        raise StoreUnavailable(f"an unknown server holds {lock_path}: end it, or use another directory")
    if is_orphan(before):
        processes.send(before.pid, before.started, signal.SIGKILL)
        return
    # The server is dead. Its child, which was rewriting the log, holds the lock; what it writes is not used.
    lock_path.unlink(missing_ok=True)
