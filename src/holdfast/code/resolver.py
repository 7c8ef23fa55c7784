"""Find the code that performs a klass. It is cached, and reloaded after its file was changed."""

import inspect
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from holdfast.code import registry
from holdfast.code.allowed import AllowList
from holdfast.code.calling import PERFORM, find_code, find_method, walk
from holdfast.code.importing import FileWatch, import_noted, refresh, watch
from holdfast.code.middleware import surround
from holdfast.code.registry import Registered
from holdfast.code.soft_limit import checked, limited
from holdfast.errors import JobTimedOutError, NotAllowed


class CodeTarget:
    """The code that performs the jobs of one klass in one queue.

    `function` is set for function jobs. `completes`: returning completes the job.
    """

    __slots__ = ("_changed_at", "_watch", "call", "completes", "function", "is_async")

    def __init__(
        self, call: Callable[..., Any], function: Registered | None, completes: bool, watch: FileWatch | None
    ) -> None:
        self.call = call
        self.function = function
        self.completes = completes
        self.is_async = inspect.iscoroutinefunction(call)
        self._watch = watch
        self._changed_at = 0 if watch is None else watch.changed_at

    @property
    def is_outdated(self) -> bool:
        """Whether the module of the code was changed, or reloaded elsewhere."""
        watch = self._watch
        return watch is not None and (watch.changed_at != self._changed_at or watch.is_newer())


class Resolver:
    """Find the code of jobs: registered functions first, then names allowed by the allow-list.

    `plain_queues` are the queues that the worker was given by name: their jobs may use a method named like the queue.
    `auto_complete`: class jobs are completed when they return, whatever the name of their method.
    """

    def __init__(
        self, allow: AllowList | None = None, plain_queues: Iterable[str] = (), auto_complete: bool = False
    ) -> None:
        self.allow = allow if allow is not None else AllowList()
        self.plain_queues = frozenset(plain_queues)
        self.auto_complete = auto_complete
        self._targets: dict[tuple[str, str], CodeTarget] = {}

    def resolve(self, klass: str, queue: str) -> CodeTarget:
        """Return the code that performs `klass` in `queue`. Raises CannotRun."""
        key = (klass, queue)
        target = self._targets.get(key)
        if target is not None and not target.is_outdated:
            return target
        target = self._targets[key] = find_code(klass, lambda: self._find(klass, queue))
        return target

    def _find(self, klass: str, queue: str) -> CodeTarget:
        entry = registry.find(klass)
        if entry is not None:
            self._refresh(sys.modules.get(entry.function.__module__))
            entry = registry.find(klass)
        if entry is not None:
            return self._function(entry)
        located = self.allow.locate(klass)
        module = self._load(located.module)
        if not self.allow.permits(klass, module):
            # The search path led to an allowed file, but another module of that name was imported before.
            raise NotAllowed(f"{klass} is not allowed here: {located.module} was loaded from another place")
        entry = registry.find(klass)
        if entry is not None:
            return self._function(entry)
        thing = walk(module, located, klass, self.allow)
        entry = getattr(thing, "registered", None)
        if isinstance(entry, Registered):
            if registry.find(entry.name) is None:
                # A module that is loaded again keeps the names that its file no longer has.
                raise AttributeError(f"{located.module} no longer defines the job {entry.name}")
            return self._function(entry)
        name, call = find_method(thing, klass, queue, queue in self.plain_queues, self.allow)
        soft = checked(getattr(thing, "soft_timeout", None))
        call = limited(surround(thing, call), soft, JobTimedOutError)
        return CodeTarget(call, None, self.auto_complete or name == PERFORM, self._watched(module))

    def _function(self, entry: Registered) -> CodeTarget:
        call = limited(entry.function, entry.soft_timeout)
        return CodeTarget(call, entry, True, self._watched(sys.modules.get(entry.function.__module__)))

    def _load(self, name: str) -> ModuleType:
        self._refresh(sys.modules.get(name))
        return import_noted(name)

    def _refresh(self, module: ModuleType | None) -> None:
        """Reload a module if its file was changed. If that fails, every job of the module fails."""
        if module is not None and self.allow.holds(module):
            refresh(module)

    def _watched(self, module: ModuleType | None) -> FileWatch | None:
        """Return the watch of a module that may be reloaded: one that is allowed by its location."""
        return watch(module) if self.allow.holds(module) else None
