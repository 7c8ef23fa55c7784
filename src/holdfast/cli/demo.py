"""`holdfast demo`: real files, two workers, one of them killed on the way, and nothing lost."""

import os
import signal
import sysconfig
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

import click

from holdfast import store as embedded
from holdfast.cli.demo_run import Run
from holdfast.cli.demo_show import Screen, say_report
from holdfast.cli.output import json_option, say_json
from holdfast.errors import UsageError

SOURCE_ENDINGS = """
.c .cc .cpp .cs .css .go .h .hpp .html .java .js .kt .lua .md .php .pl .py .pyi .r .rb .rs .scala .sh .sql .swift
.toml .ts .tsx .txt .yaml .yml
"""
ENDINGS = frozenset(SOURCE_ENDINGS.split())
MOST_FILES = 1_000_000


@click.command()
@click.argument("directory", type=click.Path(path_type=Path), required=False)
@click.option(
    "--dir",
    "store",
    type=click.Path(path_type=Path),
    help="The embedded store's directory [default: HOLDFAST_DIR, or holdfast/store in your data directory].",
)
@json_option
@click.pass_context
def demo(context: click.Context, directory: Path | None, store: Path | None, as_json: bool) -> None:
    """Run a job for every source file below DIRECTORY, and kill a worker halfway.

    DIRECTORY is the standard library of the running Python if none is given. The jobs go through two queues, in an
    embedded store; the worker that is killed with -9 takes running jobs along, and they come back.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    files = source_files(directory or Path(sysconfig.get_path("stdlib")))
    with ExitStack() as ends:
        address = embedded.ensure(store)
        ends.callback(_stop_store, address)
        run = ends.enter_context(Run(address.url, address.directory))
        with Screen(len(files), quiet=as_json) as screen:
            result = run.whole(files, screen)
    if as_json:
        say_json(result)
    else:
        say_report(result)
    context.exit(0 if result["done"] == result["put"] else 1)


def source_files(directory: Path) -> list[Path]:
    """The source files below a directory, sorted. Raises UsageError if there is none, or no such directory."""
    if not directory.is_dir():
        raise UsageError(f"{directory} is not a directory: name one with source files below it")
    if not os.access(directory, os.R_OK | os.X_OK):
        raise UsageError(f"{directory} cannot be read: name a directory you may read")
    files = sorted(_walk(directory.resolve()))
    if not files:
        raise UsageError(f"there are no source files below {directory}: name a directory with some")
    return files


def _walk(directory: Path) -> Iterator[Path]:
    found = 0
    for parent, names, leaves in os.walk(directory):
        names[:] = [
            name for name in names if name not in ("site-packages", "node_modules") and name[0] != "."
        ]
        for leaf in leaves:
            path = Path(parent, leaf)
            if path.suffix in ENDINGS and _is_text(leaf, parent) and path.is_file() and found < MOST_FILES:
                found += 1
                yield path


def _is_text(*names: str) -> bool:
    """Whether these names can be said in JSON; a file system allows any bytes."""
    return all(name.isprintable() for name in names)


def _stop_store(address: embedded.StoreAddress) -> None:
    """End the store if this program started it and nobody else uses it."""
    if address.started and embedded.status(address.directory).clients == 0:
        embedded.stop(address.directory)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
