"""Ask after a directory's embedded store, and stop it."""

import os
import re
import signal
import time
from pathlib import Path
from typing import NamedTuple

from holdfast.errors import StoreUnwell
from holdfast.store import files, paths, processes, talk
from holdfast.store.files import Record
from holdfast.store.leftover import is_leftover

_CORE = re.compile(r'HOLDFAST_CORE = { version = "([^"]*)", digest = "([^"]*)" }')


class StoreStatus(NamedTuple):
    """What can be said of a directory's store.

    `state` is ``running``, ``starting``, ``stopped`` or ``unwell`` (it crashed too often; `why` has the reason).
    `linger` and `uptime` are in seconds, `memory` and `disk` in bytes; `clients` does not count the one who asks. `core` is the version of the core that the store holds, "" for none.
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
    """What runs in this directory, without starting or making anything."""
    directory = (directory or paths.default_directory()).expanduser().resolve()
    record = Record.read(directory)
    if record is None:
        return StoreStatus("stopped", directory, disk=_disk(directory))
    if record.state == "unwell":
        return StoreStatus("unwell", directory, disk=_disk(directory), crashes=record.crashes, why=record.why)
    try:
        facts = talk.facts(record.socket, "server", "clients", "memory", "persistence")
    except (OSError, talk.Refusal):
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
        clients=max(0, int(facts.get("connected_clients", 0)) - 2),  # the warden and us
        memory=int(facts.get("used_memory", 0)),
        disk=_disk(directory),
        crashes=record.crashes,
        core=core,
        core_digest=digest,
    )


def _core(socket: str) -> tuple[str, str]:
    """Version and digest of the core in the store, "" and "" where it has none."""
    try:
        found = talk.ask(socket, "FUNCTION", "LIST", "LIBRARYNAME", "holdfast1", "WITHCODE")
    except (OSError, talk.Refusal):
        return "", ""
    core = _CORE.search(found)
    return (core[1], core[2]) if core else ("", "")


def stop(directory: Path | None = None, *, wait: float = 15.0) -> bool:
    """End this directory's store, its log complete; False if none ran.

    Clients that are still connected may start it again. Raises StoreUnwell if it is still there after
    `wait` seconds.
    """
    directory = (directory or paths.default_directory()).expanduser().resolve()
    if not _is_held(directory):
        return False
    deadline, told = time.monotonic() + wait, 0
    while _is_held(directory):
        record = Record.read(directory)
        # A warden that has only just come has not said its pid yet.
        if record and told != record.warden_pid:
            told = record.warden_pid
            if not processes.send(told, record.warden_started, signal.SIGTERM) and is_leftover(record):
                processes.send(record.pid, record.started, signal.SIGTERM)
        if time.monotonic() > deadline:
            raise StoreUnwell(f"the store in {directory} did not end within {wait:g} s")
        time.sleep(0.01)
    return True


def _is_held(directory: Path) -> bool:
    """Whether a warden, or a server that outlived one, is there."""
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
