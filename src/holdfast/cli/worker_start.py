"""Start the worker that flags and environment describe: the setup hook, the settings, the imports.

It is imported when the flags have been read: --pool gevent patches the standard library before.
"""

import logging
import os
import sys
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from holdfast.cli.output import print_json
from holdfast.cli.place import url_of
from holdfast.cli.worker_log import set_level
from holdfast.client.opening import clients
from holdfast.code.importing import noting
from holdfast.code.registry import has_jobs
from holdfast.errors import UsageError
from holdfast.text import listed, one_line
from holdfast.worker.descendants import end_descendants
from holdfast.worker.imported_clients import choose
from holdfast.worker.performing.outcome import met_unknown
from holdfast.worker.performing.surroundings import make_importable
from holdfast.worker.run import body_of, run_worker
from holdfast.worker.settings import Pool, WorkerSettings
from holdfast.worker.startup import (
    call_setup,
    import_modules,
    load_middleware,
    put_declared,
    search_first,
)
from holdfast.worker.store_choice import StoreChoice
from holdfast.worker.supervisor.loader import Load
from holdfast.worker.supervisor.loading import Loading

log = logging.getLogger("holdfast")

NO_QUEUE = "no queue given: name at least one with --queue, or set HOLDFAST_WORKER_QUEUE, QUEUE or QUEUES"


_LONGEST_VERSION: Final = 100
UNKNOWN_CODE: Final = 3
"""Exit status of a worker that drained its queues and met jobs whose code it does not know."""


def start(flags: Mapping[str, Any]) -> int:
    """Run the worker that the flags and the environment describe, and return its exit status. Raises UsageError, StartFailed.

    `flags` maps names of flags to values; one that was not given may be None. `variables` returns the values that the environment
    gives to those.
    """
    load = partial(_load, flags, str(Path.cwd()), tuple(str(Path(path).resolve()) for path in flags["paths"]))
    with ExitStack() as stack:
        loading = _loading(flags, load)
        if loading is None:
            settings, store = load()
        else:
            settings, store = stack.enter_context(loading).first()
            if settings.pool == "serial":  # the setup hook has chosen it
                settings, store = load()
            else:
                _follow(flags)
        _print_start(settings, store, flags["as_json"])
        run_worker(settings, store, loading=loading)
    end_descendants()
    status = UNKNOWN_CODE if settings.drain and met_unknown() else 0
    if status:
        log.error("jobs whose code this worker does not have failed; the worker exits with status %d", status)
    if flags["as_json"]:
        print_json({"event": "ended", "pid": os.getpid()})
    _leave_threads(status)
    return status


def _load(flags: Mapping[str, Any], root: str, paths: tuple[str, ...]) -> tuple[WorkerSettings, StoreChoice]:
    """Load the code, and return the settings and the store. Raises UsageError, StartFailed."""
    os.chdir(root)
    before = clients()
    search_first((*paths, root))
    with noting():
        # Before anything else: a worker whose code cannot be imported must not take jobs.
        if flags["setup"]:
            call_setup(flags["setup"])
            flags = {**flags, **flags["variables"]()}  # which the hook may have set
            set_level(flags["verbose"], flags["quiet"])
        settings = settings_of(flags, root)
        url = url_of(flags["url"], flags["port"])
        make_importable(settings)
        import_modules(settings.imports)
    store = choose(url, flags["namespace"], before, flags["url_origin"])
    if has_jobs():
        with store.beating_client(settings.worker_name(0)) as client:
            put_declared(client, _app_version(flags["app_version"]))
    if flags["workdir"]:
        _enter(flags["workdir"])
    return settings, store


def _app_version(text: str) -> str:
    if len(text.encode("utf-8", "surrogateescape")) > _LONGEST_VERSION or one_line(text) != text:
        raise UsageError(
            f"--app-version: expected at most {_LONGEST_VERSION} bytes on one line, got {text!r:.120}"
        )
    return text


def _follow(flags: Mapping[str, Any]) -> None:
    """Do in the supervisor what loading the code did elsewhere."""
    set_level(flags["verbose"], flags["quiet"])
    if flags["workdir"]:
        _enter(flags["workdir"])


def _loading(flags: Mapping[str, Any], load: Load) -> Loading | None:
    """Return what loads the code outside of this process; None if there is nothing to load, or no child."""
    pool: Pool = flags["pool"] or "process"
    if pool == "serial" or not (flags["setup"] or flags["middleware"] or flags["imports"]):
        return None
    names = ("workers", "concurrency", "name", "metrics_port")
    shape = WorkerSettings(("q",), pool, **{name: flags[name] for name in names}).checked()
    return Loading(load, body_of, shape)


def _leave_threads(status: int) -> None:
    """Exit the process if jobs left threads running: Python would wait for them without limit."""
    main = threading.main_thread()
    left = [thread.name for thread in threading.enumerate() if thread is not main and not thread.daemon]
    if left:
        log.warning(
            "jobs left threads running: %s; the worker exits without waiting for them", ", ".join(left)
        )
        logging.shutdown()
        sys.stdout.flush()
        os._exit(status)


def settings_of(flags: Mapping[str, Any], root: str) -> WorkerSettings:
    """Return the settings that the flags name. Raises UsageError, StartFailed."""
    names = [field.name for field in msgspec.structs.fields(WorkerSettings)]
    given: dict[str, Any] = {name: flags[name] for name in names if flags.get(name) not in (None, ())}
    found = given
    if not found.get("queues"):
        raise click.UsageError(NO_QUEUE)
    if found.get("interval") == 0 and flags["drain"]:
        del found["interval"]  # a draining worker never waits for jobs
    found["middleware"] = tuple(map(load_middleware, flags["middleware"]))
    found["middleware_names"] = flags["middleware"]
    return WorkerSettings(**found, root=root).checked()


def _enter(workdir: str) -> None:
    try:
        os.chdir(workdir)
    except OSError as error:
        raise UsageError(f"--workdir {workdir}: {error.strerror}; name a directory that exists") from None


def _print_start(settings: WorkerSettings, store: StoreChoice, as_json: bool) -> None:
    namespace = store.options.get("namespace", "default")
    if as_json:
        facts = {
            name: getattr(settings, name) for name in ("queues", "pool", "workers", "concurrency", "reserver")
        }
        print_json(
            {"event": "working", "pid": os.getpid(), **facts, "namespace": namespace, "store": store.shown()}
        )
    log.info(
        "working for %s: pool %s, %d × %d, namespace %s, %s",
        listed(settings.queues),
        settings.pool,
        settings.workers,
        settings.concurrency,
        namespace,
        store.shown(),
    )
