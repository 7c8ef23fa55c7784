"""From what a worker command was told to a worker at work: the setup hook, the settings, the imports, the log."""

import importlib
import logging
import os
import sys
import threading
from collections.abc import Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any

import click
import msgspec

from holdfast.cli.output import say_json
from holdfast.cli.place import url_of
from holdfast.cli.worker_environment import RAN_OUT_OF_NAMES, told_by
from holdfast.cli.worker_log import set_level
from holdfast.client.opening.options import ClientOptions
from holdfast.errors import UsageError
from holdfast.work.importing import import_modules, make_importable
from holdfast.work.run import run_worker
from holdfast.work.settings import WorkerSettings
from holdfast.work.store_choice import StoreChoice

log = logging.getLogger("holdfast")


def start(told: Mapping[str, Any]) -> None:
    """Run the worker that the flags and the environment describe, until it ends. Raises UsageError.

    `told` has the flags by name; those that were not given are None where the environment may say it.
    """
    root = str(Path.cwd())
    sys.path[:0] = [*(str(Path(path).resolve()) for path in told["paths"]), root]
    if told["setup"]:
        _named("--setup", told["setup"])()
        set_level(told["verbose"])
    settings = settings_of(told, root)
    url = url_of(told["url"], told["port"])
    store = StoreChoice(url, ClientOptions(namespace=told["namespace"])).found()
    make_importable(settings)
    import_modules(settings)
    _enter(told["workdir"])
    _say_hello(settings, store, told["as_json"])
    run_worker(settings, store)
    if told["as_json"]:
        say_json({"event": "ended", "pid": os.getpid()})
    _leave_threads()


def _leave_threads() -> None:
    """End although threads of jobs go on, which Python would wait for: who is told to stop must stop."""
    main = threading.main_thread()
    left = [thread.name for thread in threading.enumerate() if thread is not main and not thread.daemon]
    if left:
        log.warning("jobs left threads behind that go on: %s; the worker ends all the same", ", ".join(left))
        logging.shutdown()
        sys.stdout.flush()
        os._exit(0)


def settings_of(told: Mapping[str, Any], root: str) -> WorkerSettings:
    """The settings: flags win over the environment, which wins over the defaults. Raises UsageError."""
    names = [field.name for field in msgspec.structs.fields(WorkerSettings)]
    flags: dict[str, Any] = {name: told[name] for name in names if told.get(name) not in (None, ())}
    found = {**told_by(os.environ), **flags}
    if not found.get("queues"):
        raise click.UsageError(RAN_OUT_OF_NAMES)
    if found.get("interval") == 0 and told["drain"]:
        del found["interval"]  # it ends where others begin to wait
    found["middleware"] = tuple(_named("--middleware", text) for text in told["middleware"])
    return WorkerSettings(**found, root=root).checked()


def _named(flag: str, text: str) -> Any:
    """What `module:object` names. Raises UsageError."""
    module, _, path = text.partition(":")
    try:
        return attrgetter(path)(importlib.import_module(module))
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        what = "callable" if flag == "--setup" else "object"
        raise UsageError(f"{flag} {text}: {error}; it is module:{what}") from error


def _enter(workdir: str) -> None:
    try:
        os.chdir(workdir)
    except OSError as error:
        raise UsageError(f"--workdir {workdir}: {error.strerror}") from None


def _say_hello(settings: WorkerSettings, store: StoreChoice, as_json: bool) -> None:
    namespace = store.options.get("namespace", "default")
    if as_json:
        facts = {
            name: getattr(settings, name) for name in ("queues", "pool", "workers", "concurrency", "reserver")
        }
        say_json(
            {"event": "working", "pid": os.getpid(), **facts, "namespace": namespace, "store": store.shown()}
        )
    log.info(
        "working for %s: pool %s, %d × %d, namespace %s, %s",
        ", ".join(settings.queues),
        settings.pool,
        settings.workers,
        settings.concurrency,
        namespace,
        store.shown(),
    )
