"""The user's code that a worker loads before it takes jobs: the setup hook, middleware, and the modules of `--import`.

Run as a program, this loads what its one argument describes and ends with 0, or prints why it cannot and ends with 1
(`startup_check` runs it before children are replaced).
"""

import importlib
import logging
import os
import sys
import traceback
from collections.abc import Callable, Container, Iterable
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from holdfast.errors import HoldfastError, StartFailed, UsageError
from holdfast.text import counted, one_line
from holdfast.worker.greenlets import patch

if TYPE_CHECKING:
    from holdfast.client.sync import Client

T = TypeVar("T")
log = logging.getLogger("holdfast")

_OURS: Final = str(Path(__file__).resolve().parents[1])
_NAMED: Final = 5
_IMPORTLIB: Final = str(Path(importlib.__file__).parent)


class StartupCode(msgspec.Struct, frozen=True):
    """What a worker loads at its start: directories to import from, then names in the form of their flags."""

    root: str
    paths: tuple[str, ...] = ()
    setup: str = ""
    middleware: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    pool: str = "process"

    def load(self) -> None:
        """Load all of it. Raises StartFailed, UsageError."""
        search_first((*self.paths, self.root))
        if self.setup:
            call_setup(self.setup)
        for text in self.middleware:
            load_middleware(text)
        import_modules(self.imports)


def search_first(directories: Iterable[str]) -> None:
    """Put directories in front of the module search path, in this order."""
    for path in reversed(list(directories)):
        if path in sys.path:
            sys.path.remove(path)
        sys.path.insert(0, path)


def call_setup(text: str) -> None:
    """Call the hook of `--setup`. Raises UsageError, StartFailed."""
    flag = f"--setup {text}"
    hook = _load(flag, text, "callable")
    if not callable(hook):
        raise UsageError(f"{flag}: expected module:callable, got {type(hook).__name__}")
    _run(flag, hook)


def load_middleware(text: str) -> Any:
    """Return the object that `--middleware` names; of a class, an object of it. Raises UsageError, StartFailed."""
    flag = f"--middleware {text}"
    found = _load(flag, text, "object")
    return _run(flag, found) if isinstance(found, type) else found


def import_modules(names: Iterable[str]) -> None:
    """Import the modules of `--import`, so that forked processes share them. Raises StartFailed."""
    for name in names:
        _import(f"--import {name}", name)


def put_declared(client: "Client", version: str = "") -> None:
    """Put the recurring jobs that code declares (`@app.job(every=…)`, `app.schedule`); one that exists is updated, and the time of its next job stays.

    `version` is that of the user's program. Those that their modules do not declare any more are noted and logged. A declaration that cannot be put is logged:
    the worker takes jobs all the same.
    """
    # The flags of a worker are read before --pool gevent patches what these load.
    from holdfast.client.function_jobs import FunctionJob
    from holdfast.code.registry import declared
    from holdfast.commands.recurring import DeclaredFacts

    own = declared()
    for entry, jid, one in own:
        timing: dict[str, Any] = {**one.timing, "jid": jid}
        job: FunctionJob[..., object, object] = FunctionJob(client, entry.function, entry, one.changes)
        every = job.every(timing.pop("interval"), **timing)
        every.declared = DeclaredFacts(one.module, version, client.worker_name)
        try:
            made = every.put(*one.args, **one.kwargs)
        except HoldfastError as error:
            log.error("the recurring job of %s was not put: %s", entry.name, error)
        else:
            log.debug("recurring job %s of %s", made.jid, entry.name)
    try:
        _note_vanished(client, {jid for _, jid, _ in own})
    except HoldfastError as error:  # which only reports
        log.debug("declared recurring jobs were not compared: %s", error)


def _note_vanished(client: "Client", own: Container[str]) -> None:
    """Mark the recurring jobs that loaded modules do not declare any more, and log them on one line."""
    from holdfast.client.reasons import argument
    from holdfast.client.recurring import declared_templates
    from holdfast.commands.recurring import RecurUpdate
    from holdfast.wire.exchange import exchange

    found = client.runner.run(declared_templates(partial(exchange, client.shard), own))
    gone = [
        (one.jid, one.declared.vanished_ms)
        for one in found
        if one.declared and one.declared.module in sys.modules and one.declared.module != "__main__"
    ]
    changes = [RecurUpdate(jid, vanished=True) for jid, since in gone if not since]
    if changes:
        client.run_all(changes)
    if gone:
        named = argument(*[jid for jid, _ in gone[:_NAMED]]) + (" …" if len(gone) > _NAMED else "")
        log.warning(
            "%s declared by no code any more, and still put: %s; `holdfast recurring prune` deletes them",
            counted(len(gone), "recurring job is", "recurring jobs are"),
            one_line(named),
        )


def _load(flag: str, text: str, what: str) -> Any:
    module, colon, path = text.partition(":")
    if not (module and colon and path):
        raise UsageError(f"{flag}: expected module:{what}")
    loaded = _import(flag, module)
    try:
        return attrgetter(path)(loaded)
    except AttributeError as error:
        raise StartFailed(f"{flag}: {error}; expected module:{what}") from error


def _import(flag: str, name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name or name.startswith(f"{error.name}."):
            raise StartFailed(
                f"{flag}: {error}. Start the worker in its directory, or name that with --path."
            ) from error
        raise _failed(flag, error) from error
    except (Exception, SystemExit) as error:
        raise _failed(flag, error) from error


def _run(flag: str, function: Callable[[], T]) -> T:
    try:
        return function()
    except (Exception, SystemExit) as error:
        raise _failed(flag, error) from error


def _failed(flag: str, error: BaseException) -> StartFailed:
    return StartFailed(f"{flag} failed\n{user_traceback(error).rstrip()}")


def user_traceback(error: BaseException) -> str:
    """The traceback of an error without the frames of holdfast and of the import system."""
    shown = traceback.TracebackException.from_exception(error)
    _keep_frames_of_user(shown)
    return "".join(shown.format())


def _keep_frames_of_user(shown: traceback.TracebackException | None) -> None:
    if shown is None:
        return
    frames = [frame for frame in shown.stack if not frame.filename.startswith((_OURS, _IMPORTLIB, "<frozen"))]
    shown.stack = traceback.StackSummary.from_list(frames)
    _keep_frames_of_user(shown.__cause__)
    _keep_frames_of_user(shown.__context__)


def main(text: str) -> int:
    """Load what `text`, the JSON of a StartupCode, describes. Returns the exit status; why not is printed."""
    code = msgspec.json.decode(text, type=StartupCode)
    try:
        os.chdir(code.root)
        if code.pool == "gevent":
            patch()
        code.load()
    except (StartFailed, UsageError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        sys.stderr.flush()
        return 1
    return 0


if __name__ == "__main__":
    # Threads that the user's code has started would keep an ordinary end waiting.
    status = main(sys.argv[1])
    sys.stdout.flush()
    os._exit(status)
