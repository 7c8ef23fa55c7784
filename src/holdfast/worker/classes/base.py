"""What all worker classes share: where they look for jobs, their options, and what a subclass may override."""

import logging
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any, ClassVar, Final

from holdfast.client.handles import Job, Queue
from holdfast.client.opening import clients
from holdfast.client.queue_names import is_plain
from holdfast.client.sync import Client
from holdfast.commands.leases import Lease
from holdfast.errors import LeaseLost, TransportError, UsageError
from holdfast.logs import TextFormatter
from holdfast.settings import check_list, default_worker_name, unknown_option
from holdfast.wire.outage import log_outage
from holdfast.worker.imported_clients import warn_of_others
from holdfast.worker.performing.chain import Mixable, own_middleware
from holdfast.worker.performing.surroundings import Surroundings, make_importable
from holdfast.worker.queues.reserving import check_reserver, name_of, names_of, reserves_itself
from holdfast.worker.queues.routing import PatternResolver, TransformingQueueResolver
from holdfast.worker.settings import Own, Pool, WorkerSettings
from holdfast.worker.startup import import_modules
from holdfast.worker.store_choice import StoreChoice
from holdfast.worker.supervisor.child import ChildPlace
from holdfast.worker.supervisor.presence import resumable

# Where the log of a worker goes that a program runs: to its logger, or to a stream.

log = logging.getLogger("holdfast")

LOG_OPTIONS: Final = ("logger", "output", "log_level", "log_formatter", "verbose", "very_verbose")
PLAIN: Final = "%(asctime)s: %(message)s"
WITH_PROCESS: Final = "%(asctime)s: [%(process)d] %(message)s"


class _Handing(logging.Handler):
    """Hands every record to a logger of the program, which decides what becomes of it."""

    def __init__(self, target: logging.Logger) -> None:
        super().__init__()
        self._target = target

    def emit(self, record: logging.LogRecord) -> None:
        if self._target.isEnabledFor(record.levelno):
            self._target.handle(record)


class _Calling(logging.Formatter):
    """Formats by a function of severity, time, program and message, as older programs do."""

    def __init__(self, function: Callable[[str, float, str, str], str]) -> None:
        super().__init__()
        self._function = function

    def format(self, record: logging.LogRecord) -> str:
        return self._function(record.levelname, record.created, record.name, record.getMessage())


def level_of(options: Mapping[str, Any]) -> int:
    """Return the level in these options: that of a logger, `log_level`, or WARNING. Raises UsageError."""
    if options.get("very_verbose"):
        return logging.DEBUG
    if options.get("verbose"):
        return logging.INFO
    given = options.get("log_level")
    if given is None:
        logger = options.get("logger")
        return logger.getEffectiveLevel() if logger is not None else logging.WARNING
    level = logging.getLevelNamesMapping().get(given.upper()) if isinstance(given, str) else given
    if not isinstance(level, int):
        raise UsageError(f"log_level is a level of logging or its name, not {given!r:.80}")
    return level


@contextmanager
def configured_logging(options: Mapping[str, Any]) -> Generator[None]:
    """Have workers log to the target in the options for the time of a `with` block; without any, nothing changes."""
    if not any(options.get(name) is not None for name in LOG_OPTIONS):
        yield
        return
    handler, before = _handler(options), log.level
    log.addHandler(handler)
    log.setLevel(level_of(options))
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


def _handler(options: Mapping[str, Any]) -> logging.Handler:
    logger = options.get("logger")
    if logger is not None:
        if not isinstance(logger, logging.Logger):
            raise UsageError(f"logger is a logging.Logger, not {logger!r:.80}")
        return _Handing(logger)
    handler = logging.StreamHandler(options.get("output") or sys.stdout)
    formatter = options.get("log_formatter")
    if formatter is None:
        formatter = TextFormatter(WITH_PROCESS if options.get("very_verbose") else PLAIN)
    elif not isinstance(formatter, logging.Formatter):
        formatter = _Calling(formatter)
    handler.setFormatter(formatter)
    return handler


class NamesOf:
    """A resolver: the queues of a reserver, as they are just now."""

    def __init__(self, reserver: Any) -> None:
        self._reserver = reserver

    def resolve(self) -> list[str]:
        """The names of the queues, first to last."""
        return list(names_of(self._reserver))


class Going:
    """Goes through what `jobs` yields, and starts again after it has raised: a generator that raised has ended."""

    def __init__(self, jobs: Callable[[], Iterator[Any]]) -> None:
        self._jobs = jobs
        self._at = jobs()

    def next(self) -> Any:
        """The next of them. Raises StopIteration when there are no more, and what the code of `jobs` raises."""
        try:
            return next(self._at)
        except StopIteration:
            raise
        except Exception:
            self._at = self._jobs()
            raise


def client_of(reserver: Any) -> Client:
    """The client of a reserver's queues. Raises UsageError where there is none."""
    for queue in () if reserver is None else reserver.queues:
        client = getattr(queue, "_client", None)
        if isinstance(client, Client):
            return client
    raise UsageError("a worker needs a client: give it as the second argument")


AS_THEY_ARE: Final = (
    "auto_complete", "drain", "max_jobs", "max_memory", "term_timeout", "shutdown_timeout", "stuck_timeout", "max_startup_interval",
    "sighup_handler", "debugger", "health_port", "health_host", "metrics_port", "metrics_host", "concurrency", "workers",
)  # fmt: skip
LISTS: Final = ("paths", "imports", "allow")
OTHERS: Final = (
    "name", "workdir", "middleware", "klass", "num_workers", "greenlets", "sandbox", "sandbox_path",
    "run_as_single_process", "queue_resolver",
)  # fmt: skip
KNOWN: Final = (*AS_THEY_ARE, *LISTS, *OTHERS, *LOG_OPTIONS)


def check_options(kind: str, options: Mapping[str, Any]) -> None:
    """Raise UsageError for an option that workers do not have."""
    for option in options:
        if option not in KNOWN:
            raise unknown_option(kind, option, KNOWN)
    if options.get("num_workers") is not None and options.get("workers"):
        raise UsageError("workers and num_workers are the same: give one of them")


def as_settings(options: Mapping[str, Any], has_reserver: bool) -> dict[str, Any]:
    """Return the fields of WorkerSettings in these options. A worker with a reserver has one process by default."""
    fields = {name: options[name] for name in AS_THEY_ARE if options.get(name) is not None}
    for name in LISTS:
        fields[name] = tuple(map(str, options.get(name) or ()))
    fields["root"] = options.get("workdir") or "."
    fields["workdir"] = options.get("workdir") or ""
    workers = next(
        (given for given in map(options.get, ("num_workers", "workers")) if given is not None), None
    )
    fields["workers"] = int(has_reserver) if workers is None else workers
    if options.get("greenlets") is not None:
        fields["concurrency"] = options["greenlets"]
    return fields


ANY: Final = "*"
"""The queues in the description of a worker whose resolver does not know them beforehand."""


class BaseWorker(Mixable):
    """What the workers share. `queues` are names, patterns or queues, a resolver (`resolve()`), or a reserver.

    `client` may be left out with a reserver whose queues know theirs. `interval` is the longest time in seconds without a look;
    the store wakes a worker sooner. `resume` continues the jobs of a dead worker of the same name: True for all that can be
    found, or a list of jobs. Other options: `workers` (processes), `concurrency` (jobs at once in each), `name`,
    `paths`, `imports` and `allow` (what code may run), `workdir`, `auto_complete`, `drain`, `middleware`, `logger` or
    `output` with `log_level` and `log_formatter`, and whatever `holdfast worker --help` lists, with _ for -. Raises UsageError.
    """

    pool: ClassVar[Pool] = "serial"
    usual_interval: ClassVar[float] = 5.0
    works_in_sandbox: ClassVar[bool] = False
    """Whether children run all their jobs in their sandboxes; with a `workdir` they always do."""
    waits_for_code: ClassVar[bool] = True
    """Whether jobs of functions that it does not know are requeued for other workers; else they fail at once."""

    def __init__(
        self,
        queues: Any,
        client: Client | None = None,
        interval: float | None = None,
        resume: Any = None,
        **kwargs: Any,
    ) -> None:
        check_options(type(self).__name__, kwargs)
        level_of(kwargs)
        self._given = queues = kwargs.pop("queue_resolver", None) or queues
        self.reserver: Any = None
        if hasattr(queues, "prep_for_work"):
            self.reserver = check_reserver(queues)
        self.client: Client = client or client_of(self.reserver)
        self.queue_resolver: Any = self._resolver_of(queues)
        self.interval = self.usual_interval if interval is None else interval
        self.kwargs: dict[str, Any] = {**kwargs, "interval": interval, "resume": resume}
        self.middleware: list[Any] = list(check_list("middleware", kwargs.get("middleware") or ()))
        self._resume = resume
        self._shutdown = False
        self._within: tuple[ChildPlace, Surroundings] | None = None
        self._used_up = False

    def _resolver_of(self, queues: Any) -> Any:
        if self.reserver is not None:
            return NamesOf(queues)
        if hasattr(queues, "resolve"):
            return queues
        names = [name_of(queue) for queue in check_list("queues", queues)]
        return (
            TransformingQueueResolver(names)
            if all(map(is_plain, names))
            else PatternResolver(self.client, tuple(names))
        )

    # What it is made of.

    @property
    def queues(self) -> list[Queue]:
        """The queues of this worker, looked up at each access."""
        return [self.client.queues[name] for name in self.queue_resolver.resolve()]

    @property
    def name(self) -> str:
        """Its name: its option, or that of its client; "" for one made of machine and process."""
        named: str = self.kwargs.get("name") or self.client.worker_name
        return "" if named == default_worker_name() and not self.kwargs.get("name") else named

    @property
    def log_level(self) -> int:
        """The level its log has."""
        return level_of(self.kwargs)

    def use(self, middleware: Any) -> None:
        """Add middleware, an object with `around_perform(job, call_next)`, inside the present one."""
        self.middleware.append(middleware)

    @property
    def shutdown(self) -> bool:
        """Whether it takes no more jobs. Setting it, from any thread, lets `run` return after the running ones."""
        return self._shutdown

    @shutdown.setter
    def shutdown(self, shutdown: bool) -> None:
        self._shutdown = shutdown
        if shutdown:
            self._leave()

    def stop(self) -> None:
        """Take no more jobs, and end after the running ones; from any thread or signal handler."""
        self.shutdown = True

    def _leave(self) -> None:
        """End the worker, if it runs."""

    # What a subclass may put in place.

    def jobs(self) -> Generator[Job | None, None, None]:
        """The jobs to perform: those to resume, then one of each queue in turn; None where no queue had any.

        A subclass that overrides this decides what is performed, and `run` returns when it has no more.
        """
        for job in self.resume:
            try:
                job.heartbeat()
            except LeaseLost:
                log.warning("job %s cannot be resumed: its lease was lost", job.jid)
            else:
                yield job
        while True:
            seen = False
            for queue in self._queues_now():
                popped = self._popped(queue)
                if popped is not None:
                    seen = True
                    yield popped
            if not seen:
                yield None

    def _queues_now(self) -> list[Queue]:
        try:
            return self.queues
        except TransportError as error:
            log_outage(self.client.shard.gate, error, logging.ERROR)
            return []

    def _popped(self, queue: Queue) -> Job | None:
        try:
            return queue.pop()
        except TransportError as error:
            log_outage(self.client.shard.gate, error, logging.ERROR)
            return None

    def before_run(self) -> None:
        """Called first by `run`."""

    def run(self) -> None:
        """Work until the worker is stopped."""
        raise NotImplementedError(f"{type(self).__name__} does not define how to run")

    def halt_job_processing(self, jid: str) -> None:
        """Called, perhaps in another thread, when a running job is not this worker's any more."""
        raise NotImplementedError(f"{type(self).__name__} does not define how to halt a job")

    # Jobs to resume.

    @cached_property
    def resume(self) -> list[Job]:
        """The jobs to resume."""
        return self.resumable() if self._resume is True else list(self._resume or ())

    def resumable(self) -> list[Job]:
        """Return the jobs held under this worker's name, and its numbers, in queues that it serves. Raises HoldfastError."""
        served = set(self.queue_resolver.resolve())
        found = resumable(self.client, self.name or self.client.worker_name, served.__contains__)
        return self.client.jobs.get(*[lease.jid for lease in found]) if found else []

    # Its settings.

    @property
    def store(self) -> StoreChoice:
        """Which store this worker is for."""
        return StoreChoice.of(self.client)

    @property
    def settings(self) -> WorkerSettings:
        """The settings of this worker, as they are now, also for the helpers of `holdfast.testing`. Raises UsageError."""
        generates = self._generates
        held = [] if generates or self._resume is True else self.resume
        return WorkerSettings(
            self._queue_names(),
            self._pool(),
            interval=self.interval,
            name=self.name,
            resume=self._resume is True and not generates,
            held=tuple(Lease(job.jid, job.facts.token, job.worker_name) for job in held),
            middleware=(*own_middleware(self), *self.middleware),
            own=self._own(),
            waits_for_code=self.waits_for_code,
            sandbox=self.works_in_sandbox,
            **as_settings(self.kwargs, self.reserver is not None),
        ).checked()

    def run_in(self, place: ChildPlace, around: Surroundings) -> bool:
        """Run in a child of a forking worker. Return whether its process is used up."""
        self._within = place, around
        self.run()
        return self._used_up

    def _pool(self) -> Pool:
        return self.pool

    @property
    def _generates(self) -> bool:
        """Whether a subclass provides the jobs."""
        return type(self).jobs is not BaseWorker.jobs

    def _queue_names(self) -> tuple[str, ...]:
        named = self._named()
        if named is None:
            named = getattr(self._given, "queue_identifiers", None) or self._resolved()
        return tuple(dict.fromkeys(map(name_of, named))) or (ANY,)

    def _resolved(self) -> list[str]:
        try:
            return list(self.queue_resolver.resolve())
        except TransportError:
            return []

    def _named(self) -> Iterable[Any] | None:
        """Return the queues that the program named, None where an object of its own resolves them."""
        if self.reserver is not None:
            return None if getattr(self.reserver, "is_dynamic", True) else names_of(self.reserver)
        return None if self.queue_resolver is self._given else self.queue_resolver.queue_identifiers

    def _own(self) -> Own:
        named, own_resolver = self._named(), None
        if named is None:
            own_resolver = self.queue_resolver
            named = getattr(self._given, "queue_identifiers", ())
        return Own(
            plain=tuple(map(name_of, named)),
            resolver=own_resolver,
            reserver=self.reserver if self.reserver is None or not reserves_itself(self.reserver) else None,
            ask=self._asking(),
            built_in=self._built_in(),
            on_lost=self.halt_job_processing,
            sandbox=str(self.kwargs.get("sandbox") or self.kwargs.get("sandbox_path") or ""),
        )

    def _asking(self) -> Any:
        if self._generates:
            return lambda: Going(self.jobs).next
        if self.reserver is not None and reserves_itself(self.reserver):
            return self._prepared_reserver
        return None

    def _prepared_reserver(self) -> Any:
        self.reserver.prep_for_work()
        return self.reserver.reserve

    def _built_in(self) -> tuple[Any, ...]:
        return ()

    def _prepared(self) -> tuple[WorkerSettings, StoreChoice]:
        """Return its settings and its store, once its code can be imported."""
        settings = self.settings
        make_importable(settings)
        before, store = clients(), self.store
        import_modules(settings.imports)
        warn_of_others(store, before)
        return settings, store

    def _logging(self) -> Any:
        return configured_logging(self.kwargs)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name or 'unnamed'} of {self._given!r:.80}>"
