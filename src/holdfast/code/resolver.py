"""From the klass of a job to the code that performs it, cached, and loaded again when its file changed."""

import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from time import monotonic
from types import ModuleType
from typing import Any, Final

from holdfast.code import registry
from holdfast.code.allowed import AllowList
from holdfast.code.calling import PERFORM, MethodMissing, find_method, walk
from holdfast.code.registry import Registered
from holdfast.errors import NotAllowed, WorkError

LOOK_AGAIN: Final = 0.1  # seconds between two looks at the file of a module


class CannotRun(WorkError):
    """This job cannot be performed here: it fails in `<queue>-<reason>` with `message`."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message


class _Watch:
    """One module's file, looked at now and then."""

    __slots__ = ("changed_at", "file", "looked", "module")

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.file = getattr(module, "__file__", None) or ""
        self.looked = monotonic()
        self.changed_at = _modified(self.file)

    def is_newer(self, at_once: bool = False) -> bool:
        """Say whether the file changed since it was loaded; unless `at_once`, looks at most ten times a second."""
        now = monotonic()
        if now - self.looked < LOOK_AGAIN and not at_once:
            return False
        self.looked = now
        modified = _modified(self.file)
        # A file that is gone for the moment is being saved: what is loaded stays in use.
        return modified not in (0, self.changed_at)


class Target:
    """What performs the jobs of one klass in one queue.

    `function` is set for function jobs. `completes` says that returning completes the job.
    """

    __slots__ = ("call", "completes", "function", "is_async", "watch")

    def __init__(
        self, call: Callable[..., Any], function: Registered | None, completes: bool, watch: _Watch | None
    ) -> None:
        self.call = call
        self.function = function
        self.completes = completes
        self.is_async = inspect.iscoroutinefunction(call)
        self.watch = watch


class Resolver:
    """Finds what performs a job: registered functions first, then names inside the allow-list.

    `plain_queues` are the queues given to the worker by name, in which a method may be named like the queue.
    `auto_complete` completes class jobs whatever their method is called.
    """

    def __init__(
        self, allow: AllowList | None = None, plain_queues: Iterable[str] = (), auto_complete: bool = False
    ) -> None:
        self.allow = allow if allow is not None else AllowList()
        self.plain_queues = frozenset(plain_queues)
        self.auto_complete = auto_complete
        self._targets: dict[tuple[str, str], Target] = {}
        self._watches: dict[str, _Watch] = {}

    def resolve(self, klass: str, queue: str) -> Target:
        """Return what performs `klass` in `queue`. Raises CannotRun."""
        key = (klass, queue)
        target = self._targets.get(key)
        if target is not None and (target.watch is None or not target.watch.is_newer()):
            return target
        try:
            target = self._find(klass, queue)
        except NotAllowed as error:
            raise CannotRun("NotAllowed", str(error)) from None
        except MethodMissing as error:
            raise CannotRun("method-missing", str(error)) from None
        except (Exception, SystemExit) as error:
            raise CannotRun(*_import_failure(klass, error)) from error
        self._targets[key] = target
        return target

    def _find(self, klass: str, queue: str) -> Target:
        entry = registry.find(klass)
        if entry is not None:
            self._refresh(entry.function.__module__)
            return self._function(registry.find(klass) or entry)
        located = self.allow.locate(klass)
        module = self._load(located.module)
        if not self.allow.permits(klass, module):
            # The search path led to an allowed file, but another module had taken its name before.
            raise NotAllowed(f"{klass} is not allowed here: {located.module} was loaded from elsewhere")
        entry = registry.find(klass)
        if entry is not None:
            return self._function(entry)
        thing = walk(module, located, klass)
        entry = getattr(thing, "registered", None)
        if isinstance(entry, Registered):
            return self._function(entry)
        name, call = find_method(thing, klass, queue, queue in self.plain_queues, self.allow)
        return Target(call, None, self.auto_complete or name == PERFORM, self._watched(module))

    def _function(self, entry: Registered) -> Target:
        return Target(entry.function, entry, True, self._watched(sys.modules.get(entry.function.__module__)))

    def _load(self, name: str) -> ModuleType:
        watch = self._watches.get(name)
        return importlib.import_module(name) if watch is None else self._refresh(name) or watch.module

    def _refresh(self, name: str) -> ModuleType | None:
        """Load module `name` again if its file changed. A file that cannot be loaded fails every job of it."""
        watch = self._watches.get(name)
        if watch is None or not watch.is_newer(at_once=True):
            return None
        modified = _modified(watch.file)
        self._targets.clear()
        _forget_bytecode(watch.file)
        watch.module = importlib.reload(watch.module)
        watch.changed_at = modified
        return watch.module

    def _watched(self, module: ModuleType | None) -> _Watch | None:
        """Watch a module that may be loaded again: one that lies where modules are allowed by location."""
        if module is None or module.__name__ == "__main__" or not self.allow.holds(module):
            return None
        return self._watches.setdefault(module.__name__, _Watch(module))


def _modified(file: str) -> int:
    try:
        return Path(file).stat().st_mtime_ns
    except OSError:
        return 0


def _forget_bytecode(file: str) -> None:
    # Bytecode is matched by whole seconds and size: two quick saves of equal length would look the same.
    try:
        Path(importlib.util.cache_from_source(file)).unlink(missing_ok=True)
    except (OSError, ValueError, NotImplementedError):
        pass


def _import_failure(klass: str, error: BaseException) -> tuple[str, str]:
    name = "ModuleNotFoundError" if isinstance(error, WorkError) else type(error).__name__
    detail = str(error) if isinstance(error, WorkError) else "".join(traceback.format_exception(error))
    return name, f"Failed to import {klass}\n\n{detail}"
