"""`holdfast worker`: perform jobs."""

import importlib
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from holdfast.client.opening.options import ClientOptions
from holdfast.errors import UsageError
from holdfast.logs import FORMAT
from holdfast.work.importing import import_modules, make_importable
from holdfast.work.run import run_worker
from holdfast.work.settings import POOLS, SEATS, Pool, WorkerSettings
from holdfast.work.store_choice import StoreChoice

log = logging.getLogger("holdfast")

_SEATS_HELP: Final = ", ".join(f"{seats} for {pool}" for pool, seats in SEATS.items())


@click.command()
@click.option(
    "-q",
    "--queue",
    "queues",
    multiple=True,
    help="A queue to work for; repeat it, the first goes first [QUEUES].",
)
@click.option(
    "--pool",
    type=click.Choice(POOLS),
    default="process",
    show_default=True,
    help="process: children that perform one job at a time; asyncio: children with many on an event loop; "
    "serial: one at a time in this process.",
)
@click.option("-w", "--workers", default=0, show_default=True, help="Child processes; 0: one a core.")
@click.option("--concurrency", default=0, help=f"Jobs at once in each process [default: {_SEATS_HELP}].")
@click.option(
    "-i",
    "--interval",
    type=float,
    default=5.0,
    show_default=True,
    envvar="INTERVAL",
    help="The longest time in seconds that an idle worker goes without looking; the store wakes it sooner.",
)
@click.option("-n", "--name", default="", help="Worker name; children add their number [default: host-pid].")
@click.option(
    "-p", "--path", "paths", multiple=True, help="Directory to import jobs from; repeat it [default: none]."
)
@click.option(
    "-m", "--import", "imports", multiple=True, help="Module to import first; repeat it [default: none]."
)
@click.option("--allow", multiple=True, help="Prefix of klass names that may run; repeat it [default: none].")
@click.option(
    "-d", "--workdir", default=".", show_default=True, help="Directory to work in, entered after imports."
)
@click.option(
    "--setup",
    envvar="HOLDFAST_SETUP",
    default="",
    help="module:callable to call before anything else [default: none].",
)
@click.option(
    "--url", "--host", "url", help="The store [default: HOLDFAST_URL, REDIS_URL, or the embedded store]."
)
@click.option("--namespace", default="default", show_default=True, help="The namespace to work on.")
@click.option(
    "--auto-complete", is_flag=True, help="Complete class jobs whose method returns [default: off]."
)
@click.option("--drain", is_flag=True, help="End when the queues are empty [default: off].")
@click.option(
    "--term-timeout",
    type=float,
    default=4.0,
    show_default=True,
    help="Seconds that children have to end after TERM, before they are killed.",
)
@click.option(
    "--max-jobs", default=0, show_default=True, help="Replace a child after so many jobs; 0: never."
)
@click.option("-v", "--verbose", is_flag=True, help="Say more [default: starts, ends and warnings].")
@click.option("-l", "--logger", "log_file", default="", help="Also log to this file [default: none].")
def worker(
    queues: Sequence[str],
    url: str | None,
    namespace: str,
    setup: str,
    workdir: str,
    verbose: bool,
    log_file: str,
    **told: Any,
) -> None:
    """Perform jobs of the named queues until told to stop.

    TERM and INT stop at once: jobs under way go back. QUIT stops after them. USR1 kills and replaces the children,
    USR2 pauses, CONT goes on, HUP logs where the parent is. With --pool serial, USR1, USR2 and HUP
    log where it is.

    Only marked functions (@client.job), modules named by --import, modules below --path or the working
    directory, and names under --allow are run.
    """
    _configure_logging(verbose, log_file)
    root = Path.cwd()
    sys.path.insert(0, str(root))
    _set_up(setup)
    settings = _settings(tuple(queues) or _queues_of_environment(), str(root), told)
    store = StoreChoice(_as_url(url), ClientOptions(namespace=namespace)).found()
    make_importable(settings)
    import_modules(settings)
    try:
        os.chdir(workdir)
    except OSError as error:
        raise UsageError(f"--workdir {workdir}: {error.strerror}") from None
    _say_hello(settings, store)
    run_worker(settings, store)


def _settings(queues: tuple[str, ...], root: str, told: dict[str, Any]) -> WorkerSettings:
    if not queues:
        raise click.UsageError("no queue given: name at least one with --queue, or set QUEUES")
    pool: Pool = told.pop("pool")
    if os.environ.get("RUN_AS_SINGLE_PROCESS"):
        pool = "serial"
    for name in ("paths", "imports", "allow"):
        told[name] = tuple(told[name])
    return WorkerSettings(queues, pool, root=root, **told).checked()


def _queues_of_environment() -> tuple[str, ...]:
    text = os.environ.get("QUEUES") or os.environ.get("QUEUE") or ""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _as_url(place: str | None) -> str | None:
    """A URL; a bare host is taken for a store at its usual port."""
    return place if place is None or "://" in place else f"redis://{place}"


def _set_up(setup: str) -> None:
    if not setup:
        return
    module, _, name = setup.partition(":")
    try:
        getattr(importlib.import_module(module), name)()
    except (ImportError, AttributeError) as error:
        raise UsageError(f"--setup {setup}: {error}; it is module:callable") from error


def _configure_logging(verbose: bool, log_file: str) -> None:
    if os.environ.get("VVERBOSE"):
        verbose = True
    handlers: list[logging.Handler] = [logging.StreamHandler()]
    if log_file:
        try:
            handlers.append(logging.FileHandler(log_file))
        except OSError as error:
            raise UsageError(f"--logger {log_file}: {error.strerror}") from None
    for handler in handlers:
        handler.setFormatter(logging.Formatter(FORMAT))
        log.addHandler(handler)
    log.setLevel(logging.DEBUG if verbose else logging.INFO)


def _say_hello(settings: WorkerSettings, store: StoreChoice) -> None:
    log.info(
        "working for %s: pool %s, %d × %d, namespace %s, %s",
        ", ".join(settings.queues),
        settings.pool,
        settings.workers,
        settings.concurrency,
        store.options.get("namespace", "default"),
        store.shown(),
    )
