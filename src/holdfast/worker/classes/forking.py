"""Workers that fork: a parent with children that are workers of another class."""

import signal
from typing import Any, ClassVar, Final

from holdfast.code.importing import import_class
from holdfast.errors import UsageError
from holdfast.worker.classes.base import BaseWorker
from holdfast.worker.classes.single import AsyncioWorker, GeventWorker, SerialWorker, ThreadWorker
from holdfast.worker.performing.surroundings import Surroundings
from holdfast.worker.run import run_worker
from holdfast.worker.settings import Pool
from holdfast.worker.supervisor.child import ChildPlace
from holdfast.worker.supervisor.supervisor import Supervisor

POOLS: Final[dict[str, tuple[Pool, type[BaseWorker]]]] = {
    "process": ("process", SerialWorker),
    "serial": ("process", SerialWorker),
    "fork": ("fork", SerialWorker),
    "asyncio": ("asyncio", AsyncioWorker),
    "thread": ("thread", ThreadWorker),
    "gevent": ("gevent", GeventWorker),
}
"""What `klass` may be called, and the pool of a class by its own: a serial worker in a child is one of `process`."""

PARENTS: Final = (
    "klass",
    "workers",
    "num_workers",
    "max_startup_interval",
    "sighup_handler",
    "run_as_single_process",
)
"""Options that are not passed on to children."""


class ForkingWorker(BaseWorker):
    """Performs jobs in child processes, `workers` of them, by default one for each core; call `run` in the main thread.

    `klass` is what each child is: a worker class, the dotted name of one, or the name of a pool, such as "asyncio" or "fork".
    """

    usual_klass: ClassVar[Any] = SerialWorker

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._pool_of_children: Pool
        self.klass: type[BaseWorker]
        self._pool_of_children, self.klass = _klass_of(self.kwargs.get("klass") or self.usual_klass)
        self._supervisor: Supervisor | None = None
        self._single: BaseWorker | None = None

    @property
    def count(self) -> int:
        """How many children it has."""
        return self.settings.workers

    @property
    def sandboxes(self) -> dict[int, str]:
        """The directories of its running children, by their process ids; empty while it does not run."""
        children = self._supervisor.children() if self._supervisor is not None else {}
        settings = self.settings if children else None
        return {pid: settings.sandbox_of(number) for pid, number in children.items()} if settings else {}

    def run(self) -> None:
        """Supervise children until the worker is stopped. Raises UsageError, StoreUnsupported, CoreMismatch."""
        with self._logging():
            self.before_run()
            settings, store = self._prepared()
            # Made here too, so that wrong options are found before anything is forked.
            self._single = self.spawn()
            if settings.pool == "serial":
                if self.shutdown:
                    self._single.stop()
                self._single.run()
                return
            try:
                run_worker(settings, store, self._supervise, self._be_child)
            finally:
                self._supervisor = None

    def spawn(self, **kwargs: Any) -> BaseWorker:
        """Return an unstarted worker for a child, with the options of this one, and `kwargs` in place of those."""
        options: dict[str, Any] = {**self.kwargs, "resume": None, "middleware": (), **kwargs}
        for name in PARENTS:
            options.pop(name, None)
        return self.klass(self._given, self.client, **options)

    def stop(self, sig: int = signal.SIGQUIT) -> None:
        """Stop the worker, which runs in this process: after the running jobs, or now with SIGTERM."""
        self._shutdown = True
        if self._supervisor is not None:
            self._supervisor.order(sig)
        elif self._single is not None:
            self._single.stop()

    def halt_job_processing(self, jid: str) -> None:
        """A child that works on a job which is not its any more is killed, and replaced."""

    def _leave(self) -> None:
        self.stop()

    def _pool(self) -> Pool:
        if self.kwargs.get("run_as_single_process"):
            return "serial"
        return self._pool_of_children

    def _supervise(self, *arguments: Any) -> Supervisor:
        self._supervisor = Supervisor(*arguments)
        if self.shutdown:
            self.stop()
        return self._supervisor

    def _be_child(self, place: ChildPlace, around: Surroundings) -> bool:
        """Be the worker of a child: everything it does may be overridden."""
        held = [lease.jid for lease in place.settings.held]
        resume = self.client.jobs.get(*held) if held else None
        child = self.spawn(sandbox=place.settings.sandbox_of(place.number), resume=resume)
        # A job that stops the worker it knows means the one in its process.
        self._supervisor, self._single = None, child
        child.client.worker_name = place.name
        return child.run_in(place, around)


class ForkPerJobWorker(ForkingWorker):
    """Forks for each job, so that nothing of one is left for the next."""

    usual_klass = "fork"


def _klass_of(klass: Any) -> tuple[Pool, type[BaseWorker]]:
    """The pool, and the class of children. Raises UsageError."""
    if isinstance(klass, str):
        if klass in POOLS:
            return POOLS[klass]
        try:
            klass = import_class(klass)
        except (ImportError, AttributeError) as error:
            raise UsageError(
                f"klass {klass!r} is no worker class, and no pool ({', '.join(POOLS)}): {error}"
            ) from error
    if not (isinstance(klass, type) and issubclass(klass, BaseWorker)) or issubclass(klass, ForkingWorker):
        raise UsageError(f"klass is the class of a worker that does not fork, not {klass!r:.80}")
    return POOLS[klass.pool][0], klass
