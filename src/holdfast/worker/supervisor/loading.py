"""The code of a worker whose supervisor imports none of it, so that HUP can load all of it again.

    supervisor   has a loader fork each child; at HUP it starts another loader, and ends the first when that has loaded the code
    loader       imports the code, and forks: its children share the memory of what it has imported
    child        belongs to the supervisor as if that had forked it

Where a process cannot become the parent of orphans, and after the death of its loader, a supervisor forks its children itself,
and each loads the code.
"""

import logging
import os
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from math import inf
from time import monotonic
from typing import Final

from holdfast.errors import StartFailed
from holdfast.worker.greenlets import forking_greenlets
from holdfast.worker.leases.table import LeaseTable
from holdfast.worker.observe.board import open_board
from holdfast.worker.observe.ledger import open_ledgers
from holdfast.worker.process_state import get_title
from holdfast.worker.processes import adopts_orphans
from holdfast.worker.settings import Pool, WorkerSettings
from holdfast.worker.startup_check import PATIENCE, log_failure, note_obstacle
from holdfast.worker.store_choice import StoreChoice
from holdfast.worker.supervisor.child import Body, ChildPlace
from holdfast.worker.supervisor.loader import Load, Loaded, Loader, with_middleware

log = logging.getLogger("holdfast")

LOOK: Final = 0.05  # seconds between two looks at whether the code is loaded


class Loading:
    """The loaders of a worker; `load` loads its code, `body_of` returns what the children of a pool run.

    Make it before the supervisor, in a process that has imported nothing of the code. `shape` has the number of children and
    of their slots, their names and the port of metrics.
    """

    def __init__(self, load: Load, body_of: Callable[[Pool], Body], shape: WorkerSettings) -> None:
        self.lease_tables = [LeaseTable(shape.concurrency) for _ in range(shape.workers)]
        open_board()
        get_title()  # which prepares setting one, before the environment changes
        if shape.metrics_port:
            for number in range(shape.workers):
                open_ledgers(shape.worker_name(number))
        self._pool = shape.pool
        self._load = load
        self._body_of = body_of
        self._environment = dict(os.environ)
        self._loaded: Loaded | None = None
        self._current: Loader | None = None
        self._next: Loader | None = None
        self._kill_at = inf
        self._leaving: list[Loader] = []

    def first(self) -> tuple[WorkerSettings, StoreChoice]:
        """Load the code, however long that takes. Returns the settings and the store. Raises what loading raises."""
        with forking_greenlets() if self._pool == "gevent" else nullcontext():
            loader = self._next = self._start(())
            while (loaded := loader.loaded(LOOK)) is None:
                pass
        self._loaded, self._next = loaded, None
        self._set_current(loader)
        _set_environment(loaded.environment)
        return loaded.settings, loaded.store

    def start(self, inherited: Iterable[int] = ()) -> bool:
        """Start to load the code again, in a process that closes the descriptors `inherited`. Returns True: there is code."""
        self._cancel()
        try:
            self._next = self._start(inherited)
        except OSError as error:
            self._fail(str(error))
        self._kill_at = monotonic() + PATIENCE
        return True

    def due(self) -> float:
        """When to call `result` at the latest, on the monotonic clock."""
        return inf if self._next is None else min(self._kill_at, monotonic() + LOOK)

    def result(self) -> bool | None:
        """Whether the code could be loaded again, once; None while that is not known. A failure is logged.

        From then on children are forked with that code.
        """
        self._check_current()
        self._leaving = [loader for loader in self._leaving if not loader.has_ended(kill=True)]
        if self._next is None:
            return None
        try:
            loaded = self._next.loaded()
            if loaded is None and monotonic() >= self._kill_at:
                raise StartFailed(f"it was not loaded within {PATIENCE:g} s")
            if loaded is None:
                return None
            self._compare(loaded)
        except Exception as error:
            self._cancel()
            self._fail(str(error))
            return False
        loader, self._next = self._next, None
        self._set_current(loader)
        note_obstacle("")
        return True

    def fork(self, place: ChildPlace) -> int | None:
        """Have a child forked at that place, which begins when it is poked. Returns its process; None if there is no loader.

        Raises OSError.
        """
        if self._current is None:
            return None
        found = self._current.fork(place)
        if found is None:
            log.warning(
                "process %d, which forks children with the code that it loaded, does not respond; until HUP each child "
                "loads the code itself",
                self._current.pid,
            )
            self._current.kill()
            self._current = None
        return found

    def load_in_child(self, place: ChildPlace) -> ChildPlace:
        """Load the code in a child that the supervisor has forked itself. Raises StartFailed, UsageError."""
        _set_environment(self._environment)
        settings, _ = self._load()
        return place._replace(settings=with_middleware(place.settings, settings))

    def descriptors(self) -> list[int]:
        """Return the descriptors that a forked process must close."""
        return [
            one.fileno() for one in (self._current, self._next, *self._leaving) if one and one.fileno() >= 0
        ]

    def end(self) -> None:
        """End all loaders."""
        self._cancel()
        if self._current is not None:
            self._leave(self._current)
            self._current = None
        for loader in self._leaving:
            loader.wait()
        self._leaving = []

    def __enter__(self) -> "Loading":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def _start(self, inherited: Iterable[int]) -> "Loader":
        def load() -> tuple[WorkerSettings, StoreChoice]:
            _set_environment(self._environment)
            return self._load()

        return Loader(load, self._body_of, self.lease_tables, [*inherited, *self.descriptors()])

    def _set_current(self, loader: "Loader") -> None:
        if self._current is not None:
            self._leave(self._current)
        self._current = loader
        if not adopts_orphans():
            self._leave(loader)
            self._current = None

    def _leave(self, loader: "Loader") -> None:
        loader.close()
        self._leaving.append(loader)

    def _cancel(self) -> None:
        if self._next is not None:
            self._next.kill()
            self._next = None

    def _check_current(self) -> None:
        loader = self._current
        if loader is not None and loader.has_ended():
            self._current = None
            log.warning(
                "process %d, which forks children with the code that it loaded, %s; until HUP each child loads the code itself",
                loader.pid,
                loader.how_ended(),
            )
            loader.close()

    def _compare(self, loaded: Loaded) -> None:
        """Raise StartFailed if the code names another store now; other settings that it changes are logged."""
        before = self._loaded
        if before is None:
            return
        if not loaded.store.is_same(before.store):
            raise StartFailed(
                f"it names the store {loaded.store.shown()}, and this worker works on {before.store.shown()}; "
                "restart the worker"
            )
        changed = [
            name
            for name in WorkerSettings.__struct_fields__
            if getattr(loaded.settings, name) != getattr(before.settings, name)
        ]
        if changed:
            log.warning("the new code sets %s: restart the worker for that", ", ".join(changed))

    def _fail(self, text: str) -> None:
        log_failure(text, "the old processes keep running")


def _set_environment(environment: dict[str, str]) -> None:
    """Make this the environment. What is the same is not touched: titles are written where the system put it."""
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    os.environ.update(environment.items() - os.environ.items())
