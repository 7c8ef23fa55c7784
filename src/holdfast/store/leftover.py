"""A server that outlived its warden.

Possible where the system has no "die with your parent", and on Linux for the moment a server takes to finish
its log. Two servers must never write one log, so the next warden waits for the lock that the server holds.
"""

import signal
import time
from pathlib import Path

from holdfast.errors import StoreUnwell
from holdfast.store import files, processes, talk
from holdfast.store.agreed import say
from holdfast.store.files import Record

LEFTOVER_WAIT = 5.0


def settle_leftover(directory: Path, before: Record | None) -> int:
    """Wait for, and if need be end, a server whose warden was killed; returns the server's lock, held.

    Raises StoreUnwell if something holds it that nobody can name.
    """
    path = directory / files.SERVER_LOCK
    deadline, told = time.monotonic() + LEFTOVER_WAIT, False
    while (lock := files.take_lock(path)) is None:
        if before and not told and is_leftover(before):
            say(f"ending the server of an earlier warden, pid {before.pid}")
            told = processes.send(before.pid, before.started, signal.SIGTERM)
        if time.monotonic() > deadline:
            _force_leftover(path, before)
        time.sleep(0.01)
    return lock


def is_leftover(before: Record) -> bool:
    """Whether the recorded server lives: same pid, same start, and, if it answers, same run id."""
    if not processes.is_alive(before.pid, before.started):
        return False
    try:
        return talk.facts(before.socket, "server").get("run_id") == before.run_id
    except (OSError, talk.Refusal):
        return True


def _force_leftover(lock_path: Path, before: Record | None) -> None:
    if before is None:
        raise StoreUnwell(f"an unknown server holds {lock_path}: end it, or use another directory")
    if is_leftover(before):
        processes.send(before.pid, before.started, signal.SIGKILL)
        return
    # The server is dead; who holds its lock is its child, which was rewriting the log and writes for nobody.
    lock_path.unlink(missing_ok=True)
