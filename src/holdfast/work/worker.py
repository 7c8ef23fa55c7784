"""What a worker is told, and what each of its processes makes of that: a resolver, clients, a performer."""

import importlib
import logging
import os
import socket
import sys
from pathlib import Path
from typing import Any, Final, Literal, get_args

import msgspec

from holdfast.client.aio import AsyncClient
from holdfast.client.opening.options import ClientOptions
from holdfast.client.opening.place import without_password
from holdfast.client.opening.settling import Opening, settle
from holdfast.client.sync import Client
from holdfast.code.allowed import AllowList
from holdfast.code.resolver import Resolver
from holdfast.errors import UsageError
from holdfast.settings import check_name, check_seconds, check_whole
from holdfast.wire.sync import DRIVE

log = logging.getLogger("holdfast")

Pool = Literal["process", "asyncio", "serial"]
POOLS: Final[tuple[Pool, ...]] = get_args(Pool)

SEATS: Final[dict[str, int]] = {"process": 1, "asyncio": 100, "serial": 1}
"""How many jobs one process of a pool performs at once, unless `concurrency` says otherwise."""

MOST_SEATS: Final = 512
DEADLINE: Final = 60.0  # seconds; a call given up sooner would leave what it was granted to nobody


class WorkerSettings(msgspec.Struct, frozen=True):
    """Everything `holdfast worker` can be told; times in seconds.

    `workers` is the number of processes, 0 for one a core; `concurrency` the jobs each performs at once, 0
    for the pool's own number. `paths`, `imports` and `allow` say what code may run (with the working directory
    `root`). `max_jobs` ends a process after so many jobs, 0 for never; `drain` ends it when the queues are empty.
    """

    queues: tuple[str, ...]
    pool: Pool = "process"
    workers: int = 0
    concurrency: int = 0
    interval: float = 5.0
    name: str = ""
    paths: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    root: str = "."
    auto_complete: bool = False
    drain: bool = False
    max_jobs: int = 0
    term_timeout: float = 4.0

    def checked(self) -> "WorkerSettings":
        """Return these settings, with the numbers filled in. Raises UsageError."""
        if not self.queues:
            raise UsageError("a worker needs at least one queue")
        for queue in self.queues:
            check_name("queue", queue)
        if len(set(self.queues)) < len(self.queues):
            raise UsageError("a queue is named twice")
        if self.pool not in POOLS:
            raise UsageError(f"there is no pool {self.pool!r}; choose one of {', '.join(POOLS)}")
        check_whole("workers", self.workers, 0, 1000)
        check_whole("concurrency", self.concurrency, 0, MOST_SEATS)
        if self.concurrency > 1 and self.pool != "asyncio":
            raise UsageError(f"a process of the pool {self.pool!r} performs one job at a time; use --workers")
        check_seconds("interval", self.interval, 0.05, 3600.0)
        check_seconds("term_timeout", self.term_timeout, 0.0, 3600.0)
        check_whole("max_jobs", self.max_jobs, 0, 1 << 53)
        if self.name:
            check_name("name", self.name + "-1000")
        for module in self.imports:
            if Path(module).is_file():
                raise UsageError(
                    f"imports names modules, such as {Path(module).stem}, and {module} is a file"
                )
        return msgspec.structs.replace(
            self,
            workers=1 if self.pool == "serial" else self.workers or os.cpu_count() or 1,
            concurrency=self.concurrency or SEATS[self.pool],
            root=str(Path(self.root).resolve()),
            paths=tuple(str(Path(path).resolve()) for path in self.paths),
        )

    def worker_name(self, slot: int) -> str:
        """The name of the process in `slot`: `host-pid-slot`, or `<name>-<slot>`."""
        return f"{self.name or f'{socket.gethostname()}-{os.getpid()}'}-{slot}"


def make_importable(settings: WorkerSettings) -> None:
    """Put the given paths, then the working directory, in front of the module search path."""
    for path in (settings.root, *reversed(settings.paths)):
        if path in sys.path:
            sys.path.remove(path)
        sys.path.insert(0, path)


def import_modules(settings: WorkerSettings) -> None:
    """Import what was asked for, so that forked processes share it. A failure is logged, not fatal."""
    for name in settings.imports:
        try:
            importlib.import_module(name)
        except (Exception, SystemExit):
            log.exception("cannot import %s", name)


def make_resolver(settings: WorkerSettings) -> Resolver:
    """The resolver of a worker: what its allow-list says, queues by plain name."""
    allow = AllowList(settings.imports, settings.allow, (*settings.paths, settings.root))
    return Resolver(allow, settings.queues, settings.auto_complete)


class StoreChoice(msgspec.Struct, frozen=True):
    """Which store a worker works on: what a client is made from, again in each process."""

    url: str | None
    options: ClientOptions

    @classmethod
    def of(cls, client: Any) -> "StoreChoice":
        """The store that a client works on, with the options it was given."""
        opening: Opening = client._opening
        return cls(None if opening.embedded else opening.settings.url, opening.options)

    def found(self) -> "StoreChoice":
        """The same with its URL looked up, so that children need not say again which it is. Raises UsageError."""
        opening = settle(self.url, self.options, DRIVE)
        return self if opening.embedded else StoreChoice(opening.settings.url, opening.options)

    def shown(self) -> str:
        """The store in words, without secrets."""
        return "the embedded store" if self.url is None else without_password(self.url)

    def client(self, name: str) -> Client:
        """A client that takes and settles jobs under the worker name `name`."""
        return Client(self.url, **_patient(self.options, name))

    def async_client(self, name: str) -> AsyncClient:
        """The same for an event loop."""
        return AsyncClient(self.url, **_patient(self.options, name))

    def beating_client(self, name: str) -> Client:
        """A client for heartbeats: a late answer is worth nothing, and the next try comes soon."""
        return Client(self.url, **_prompt(self.options, name))

    def beating_async_client(self, name: str) -> AsyncClient:
        """The same for an event loop."""
        return AsyncClient(self.url, **_prompt(self.options, name))


def _patient(options: ClientOptions, name: str) -> ClientOptions:
    return {**options, "hostname": name, "deadline": max(options.get("deadline", DEADLINE), DEADLINE)}


def _prompt(options: ClientOptions, name: str) -> ClientOptions:
    return {**options, "hostname": name, "timeout": min(options.get("timeout", 1.0), 1.0), "deadline": 0.5}
