"""Real workers for tests, of any pool, with signals and children, for a block or a number of jobs.

A `serial` worker is a thread of this process, any other is a process of its own, where every client uses the store and
namespace of the test too.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Protocol, TypeVar

import msgspec

from holdfast.client.store_options import ClientOptions
from holdfast.client.sync import Client
from holdfast.errors import UsageError
from holdfast.settings import check_list, check_seconds, check_whole
from holdfast.testing.stand_in import StandIn
from holdfast.worker.performing.surroundings import make_importable
from holdfast.worker.run import run_serial, run_worker
from holdfast.worker.settings import Pool, WorkerSettings, own_of
from holdfast.worker.signals import Stop
from holdfast.worker.startup import import_modules
from holdfast.worker.store_choice import StoreChoice
from holdfast.worker.supervisor.child import USED_UP
from holdfast.worker.supervisor.children import ChildProcess
from holdfast.worker.supervisor.supervisor import Supervisor

R = TypeVar("R")

PATIENCE: Final = 30.0  # seconds


class Runnable(Protocol):
    """The attributes of a worker that these functions use."""

    @property
    def settings(self) -> WorkerSettings: ...
    @property
    def store(self) -> StoreChoice: ...


class RealWorker:
    """The configuration of a worker: queues in the store and namespace of `client`, pool, and the code it may run.

    Creating one starts nothing. Code may be in `paths` and in the working directory. Raises UsageError.
    """

    def __init__(
        self,
        client: Client,
        queues: Iterable[str],
        *,
        pool: Pool = "serial",
        workers: int = 1,
        concurrency: int = 0,
        paths: Iterable[str | Path] = (),
        imports: Iterable[str] = (),
        allow: Iterable[str] = (),
        auto_complete: bool = False,
    ) -> None:
        self.settings = WorkerSettings(
            tuple(check_list("queues", queues)),
            pool,
            workers,
            concurrency,
            interval=1.0,
            # Test classes are in `tests`, which a worker of the command line does not allow.
            paths=(*map(str, check_list("paths", paths)), "."),
            imports=tuple(check_list("imports", imports)),
            allow=tuple(check_list("allow", allow)),
            auto_complete=auto_complete,
        ).checked()
        self.store = StoreChoice(client.settings.url, ClientOptions(namespace=client.settings.namespace))


@contextmanager
def run_worker_concurrently_with(worker: Runnable, timeout: float = PATIENCE) -> Generator[None]:
    """Run a worker during a block; after the block it finishes its running jobs and stops.

    Raises what the worker raised, TimeoutError if it does not end within `timeout` seconds.
    """
    running = _start(worker.settings, worker.store)
    try:
        yield
    finally:
        running.stop()
        running.wait(check_seconds("timeout", timeout))


def stop_worker_after(worker: Runnable, block: Callable[[], R], timeout: float = PATIENCE) -> R:
    """Call `block` while a worker runs, and stop the worker. Returns the result of `block`."""
    with run_worker_concurrently_with(worker, timeout):
        return block()


def run_jobs(worker: Runnable, count: int, timeout: float = PATIENCE) -> None:
    """Run a worker for exactly `count` jobs. Raises TimeoutError if that takes longer than `timeout` seconds."""
    settings = msgspec.structs.replace(
        worker.settings, workers=1, max_jobs=check_whole("count", count, 1, 1 << 53)
    )
    _start(settings, worker.store).wait(check_seconds("timeout", timeout))


def drain_worker_queues(worker: Runnable, timeout: float = PATIENCE) -> None:
    """Run a worker until its queues are empty. Raises TimeoutError."""
    settings = msgspec.structs.replace(worker.settings, drain=True)
    _start(settings, worker.store).wait(check_seconds("timeout", timeout))


class _Running(Protocol):
    def stop(self) -> None: ...
    def wait(self, timeout: float) -> None: ...


def _start(settings: WorkerSettings, store: StoreChoice) -> _Running:
    settings = msgspec.structs.replace(settings, waits_for_code=False)
    return _Thread(settings, store) if settings.pool == "serial" else _Process(settings, store)


class _Thread:
    """A serial worker in a thread."""

    def __init__(self, settings: WorkerSettings, store: StoreChoice) -> None:
        self._arguments = (settings, store)
        self._stop = Stop()
        self._error: BaseException | None = None
        self._added = [path for path in (*settings.paths, settings.root) if path not in sys.path]
        sys.path[:0] = self._added
        import_modules(settings.imports)
        self._thread = threading.Thread(target=self._work, name="holdfast-worker", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            run_serial(*self._arguments, self._stop)
        except BaseException as error:
            self._error = error

    def stop(self) -> None:
        self._stop.request()

    def wait(self, timeout: float) -> None:
        self._thread.join(timeout)
        # Restore the import path for the rest of the session.
        sys.path[:] = [path for path in sys.path if path not in self._added]
        if self._thread.is_alive():
            # It continues its job, which cannot be stopped, and takes no other.
            self._stop.request()
            raise TimeoutError(f"the worker has not ended within {timeout:g} s")
        self._stop.close()
        if self._error is not None:
            raise self._error


class _Process:
    """A worker of any other pool in a process of its own."""

    def __init__(self, settings: WorkerSettings, store: StoreChoice) -> None:
        own = own_of(settings)
        if settings.middleware or any((own.resolver, own.reserver, own.ask)):
            raise UsageError(
                "a worker with objects of this program runs in another process only by its own run()"
            )
        settings = msgspec.structs.replace(settings, own=None)
        encoded = msgspec.json.encode((settings, store.url, store.options)).decode()
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
        program = f"import sys; from {__name__} import become_worker; become_worker(sys.argv[1])"
        # A signal that is sent before the worker handles it stays blocked until the supervisor unblocks its signals.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGQUIT})
        self._process = subprocess.Popen([sys.executable, "-c", program, encoded], env=environment)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)

    def wait(self, timeout: float) -> None:
        try:
            status = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise TimeoutError(f"the worker has not ended within {timeout:g} s") from None
        if status:
            raise RuntimeError(f"the worker ended with status {status}; the reason is on its stderr")


def become_worker(encoded: str) -> None:
    """Run the worker of a test: the main program of its process."""
    settings, url, options = msgspec.json.decode(encoded, type=tuple[WorkerSettings, str, dict[str, Any]])
    store = StoreChoice(url, ClientOptions(**options))  # type: ignore[typeddict-item]
    with StandIn(url, options["namespace"]), TemporaryDirectory(prefix="holdfast-") as workdir:
        make_importable(settings)
        import_modules(settings.imports)
        # Sandboxes are made below the working directory; a test must leave nothing in that of its project.
        os.chdir(workdir)
        run_worker(settings, store, _OnceOnly if settings.max_jobs else Supervisor)


class _OnceOnly(Supervisor):
    """A supervisor that does not replace a child that has performed its number of jobs."""

    def _is_last(self, child: ChildProcess, code: int) -> bool:
        return code == USED_UP or super()._is_last(child, code)
