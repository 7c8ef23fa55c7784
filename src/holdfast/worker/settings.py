"""Settings of a worker, checked before anything runs, and the parts of a worker that a program provides."""

import logging
import os
import socket
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import msgspec

from holdfast.commands.leases import Lease, Resume
from holdfast.errors import UsageError
from holdfast.models import JobFacts
from holdfast.settings import check_host, check_name, check_seconds, check_whole
from holdfast.worker.startup import StartupCode

if TYPE_CHECKING:
    from holdfast.client.sync import Client

# The checks of the settings of a worker. All raise UsageError.

MOST_SLOTS: Final = 512
MOST_PORT: Final = 65535

_SECONDS: Final = {
    "interval": (0.05, 3600.0),
    "term_timeout": (0.0, 3600.0),
    "shutdown_timeout": (0.0, 86400.0),
    "stuck_timeout": (0.0, 86400.0),
    "max_startup_interval": (0.0, 3600.0),
}
_WHOLE: Final = {
    "workers": 1000,
    "concurrency": MOST_SLOTS,
    "max_jobs": 1 << 53,
    "max_memory": 1 << 53,
    "health_port": MOST_PORT,
    "metrics_port": MOST_PORT,
}


def check_queues(queues: Sequence[str]) -> None:
    """Check the queues and patterns of a worker."""
    if not queues:
        raise UsageError("a worker needs at least one queue")
    for queue in queues:
        check_name("queue", queue)
    if len(set(queues)) < len(queues):
        raise UsageError("a queue is named twice")
    if all(queue.startswith("!") for queue in queues):
        raise UsageError(
            "a worker needs at least one queue to include: patterns that begin with ! only exclude queues"
        )


def check_choice(what: str, given: str, choices: tuple[str, ...]) -> None:
    """Check that a setting is one of `choices`."""
    if given not in choices:
        raise UsageError(f"there is no {what} {given!r}; choose one of {', '.join(choices)}")


def check_numbers(settings: Any) -> None:
    """Check the numbers of a worker's settings, and the hosts of its ports."""
    for name, most in _WHOLE.items():
        check_whole(name, getattr(settings, name), 0, most)
    for name, (least, longest) in _SECONDS.items():
        check_seconds(name, getattr(settings, name), least, longest)
    check_host("health_host", settings.health_host)
    check_host("metrics_host", settings.metrics_host)


def check_modules(modules: Iterable[str]) -> None:
    """Check that `imports` has names of modules, and not of files or of objects in modules."""
    for module in modules:
        if Path(module).is_file() or module.endswith(".py"):
            raise UsageError(
                f"imports: expected a module name such as {Path(module).stem}, got the file {module}"
            )
        name, colon, _ = module.partition(":")
        if colon:
            raise UsageError(
                f"imports: expected a module name such as {name}, got {module}, which names an object in one"
            )


Pool = Literal["process", "fork", "asyncio", "thread", "gevent", "serial"]
POOLS: Final[tuple[Pool, ...]] = get_args(Pool)

SLOTS: Final[dict[str, int]] = {
    "process": 1,
    "fork": 1,
    "asyncio": 100,
    "thread": 10,
    "gevent": 10,
    "serial": 1,
}
"""Default number of slots of one process, by pool."""

ONE_SLOT: Final = ("process", "fork", "serial")
LOOPBACK: Final = "127.0.0.1"

FOLDER: Final = "holdfast-workers"
"""Name of the directory of the sandboxes."""

ReserverKind = Literal["ordered", "round-robin", "shuffled-round-robin"]
RESERVERS: Final[tuple[ReserverKind, ...]] = get_args(ReserverKind)
LogFormat = Literal["text", "json"]
LOG_FORMATS: Final[tuple[LogFormat, ...]] = get_args(LogFormat)


class WorkerSettings(msgspec.Struct, frozen=True):
    """Settings of a worker; times in seconds, `max_memory` in bytes.

    `queues` are names and patterns; `reserver` is the order in which they are tried. `workers` is the number of processes
    (0: one per core), `concurrency` the number of slots of each (0: the pool's default). `paths`, `imports`, `allow` and the
    working directory `root` decide what code may run. A process is replaced after `max_jobs` jobs, or when it uses more than
    `max_memory` (0: never). `drain` ends the worker when the queues are empty. At TERM and INT jobs have
    `shutdown_timeout` to finish, then `term_timeout` to unwind before their processes are killed. A process with many
    slots that a job blocks is killed after `stuck_timeout` (0: never). `middleware` are objects with `around_perform`,
    outermost first. Each process of the first start waits a random time of up to `max_startup_interval`. With `resume` a
    worker continues the jobs that one of its name held; `held` are their leases, which it finds by itself. `own` is what a
    program passes to a worker that it runs itself. `sighup_handler` is called at HUP, in place of logging the stack.
    `health_port` and `metrics_port`: 0 is off; they listen on `health_host` and `metrics_host`. `setup` and `middleware_names` are the `module:object` names of the hook and
    of `middleware` on the command line. With `waits_for_code`, jobs of unknown functions are requeued for a worker that knows
    them; without it, and with `drain`, they fail at once. With `workdir` (then the sandboxes lie below it) or `sandbox`
    each child runs all its jobs in its sandbox.
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
    max_memory: int = 0
    term_timeout: float = 2.0
    shutdown_timeout: float = 0.0
    stuck_timeout: float = 60.0
    reserver: ReserverKind = "ordered"
    resume: bool = False
    middleware: tuple[Any, ...] = ()
    max_startup_interval: float = 0.0
    debugger: bool = False
    log_format: LogFormat = "text"
    health_port: int = 0
    health_host: str = LOOPBACK
    metrics_port: int = 0
    metrics_host: str = LOOPBACK
    sighup_handler: Any = None
    held: tuple[Lease, ...] = ()
    own: Any = None
    setup: str = ""
    middleware_names: tuple[str, ...] = ()
    waits_for_code: bool = True
    workdir: str = ""
    sandbox: bool = False

    def checked(self) -> "WorkerSettings":
        """Return these settings, with the numbers filled in. Raises UsageError."""
        check_queues(self.queues)
        check_choice("pool", self.pool, POOLS)
        check_choice("reserver", self.reserver, RESERVERS)
        check_choice("log_format", self.log_format, LOG_FORMATS)
        if self.sighup_handler is not None and not callable(self.sighup_handler):
            raise UsageError(f"sighup_handler must be callable, not {type(self.sighup_handler).__name__}")
        check_numbers(self)
        if self.concurrency > 1 and self.pool in ONE_SLOT:
            raise UsageError(f"a process of the pool {self.pool!r} performs one job at a time; use --workers")
        if self.name:
            check_name("name", self.name + "-1000")
        elif self.resume:
            raise UsageError("resume requires a name, by which the worker finds the jobs that it held")
        check_modules(self.imports)
        # Only here: what settings import is imported before greenlets change the standard library.
        from holdfast.worker.performing.chain import checked_middleware

        return msgspec.structs.replace(
            self,
            workers=1 if self.pool == "serial" else self.workers or os.cpu_count() or 1,
            concurrency=self.concurrency or SLOTS[self.pool],
            root=str(Path(self.root).resolve()),
            workdir=self.workdir and str(Path(self.workdir).resolve()),
            paths=tuple(str(Path(path).resolve()) for path in self.paths),
            middleware=checked_middleware(self.middleware),
        )

    @property
    def works_in_sandboxes(self) -> bool:
        """Whether each child runs all its jobs in its sandbox."""
        return self.sandbox or bool(self.workdir)

    def sandbox_base(self) -> str:
        """The directory of the sandboxes: in `workdir`, else one of this user's in the directory for temporary files."""
        if self.workdir:
            return f"{self.workdir}/{FOLDER}"
        return f"{tempfile.gettempdir()}/{FOLDER}-{os.geteuid()}"

    def sandbox_of(self, slot: int) -> str:
        """The sandbox of the child in `slot`."""
        return f"{self.sandbox_base()}/sandbox-{slot}"

    @property
    def unwind_timeout(self) -> float:
        """How long a process waits for its jobs to unwind: what is left until it is killed is for its last call."""
        return self.term_timeout - min(0.5, self.term_timeout / 4)

    def startup_code(self) -> StartupCode:
        """What such a worker loads before it takes jobs."""
        return StartupCode(self.root, self.paths, self.setup, self.middleware_names, self.imports, self.pool)

    def worker_name(self, slot: int) -> str:
        """The name of the process in `slot`: `host-pid-slot`, or `<name>-<slot>`."""
        return f"{self.base_name}-{slot}"

    @property
    def base_name(self) -> str:
        """The name of the worker: the one given, or `host-pid`."""
        return self.name or f"{socket.gethostname()}-{os.getpid()}"


log = logging.getLogger("holdfast")


class Own(msgspec.Struct, frozen=True):
    """The parts of a worker that a program provides; each may be missing.

    `plain` are the queues that it named, None for those of the settings. `resolver` resolves the queues, `reserver` orders them;
    `ask` returns the function that is called for each job instead of popping it. `built_in` is more built-in middleware,
    `on_lost` is called with the jid of a job that is not the worker's any more, `sandbox` is the directory of a serial worker.
    """

    plain: tuple[str, ...] | None = None
    resolver: Any = None
    reserver: Any = None
    ask: Callable[[], Callable[[], Any]] | None = None
    built_in: tuple[Any, ...] = ()
    on_lost: Callable[[str], object] | None = None
    sandbox: str = ""

    def report_loss(self, jid: str) -> None:
        """Call `on_lost`: a running job is not this worker's any more. What it raises is logged."""
        if self.on_lost is not None:
            try:
                self.on_lost(jid)
            except Exception:
                log.exception("the callback for the lost job %s failed", jid)


NOTHING: Final = Own()


def own_of(settings: WorkerSettings) -> Own:
    """Return the parts of a worker that a program provides."""
    own: Own | None = settings.own
    return own or NOTHING


class Taking:
    """Takes jobs from a program, and makes sure that `worker` holds them.

    `ask` returns a job, or None when there is none just now; it raises StopIteration when there will be no more.
    """

    def __init__(self, client: "Client", worker: str, ask: Callable[[], Any]) -> None:
        self._client = client
        self._worker = worker
        self._ask = ask

    def take(self) -> JobFacts | None:
        """Return the facts of the next job, which this worker holds now. Raises StopIteration, UsageError, HoldfastError."""
        job = self._ask()
        if job is None:
            return None
        facts = getattr(job, "facts", None)
        if not isinstance(facts, JobFacts) or not facts.worker:
            raise UsageError(f"expected a job that was popped, got {job!r:.80}")
        if facts.worker == self._worker and facts.lease_ms:
            return facts
        # It was popped under another name, by a client that is not this worker's.
        found = self._client.run(Resume(self._worker, [Lease(facts.jid, facts.token, facts.worker)]))
        return found[0] if found else None
