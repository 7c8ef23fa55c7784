"""From the klass of a job to the code that performs it, cached, and loaded again when its file changed."""

import importlib
import inspect
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from holdfast.code import registry
from holdfast.code.allowed import AllowList
from holdfast.code.calling import PERFORM, find_code, find_method, walk
from holdfast.code.importing import Watch, refresh, watch
from holdfast.code.middleware import surround
from holdfast.code.registry import Registered
from holdfast.code.soft_limit import checked, limited
from holdfast.errors import JobTimedOutError, NotAllowed


class Target:
    """What performs the jobs of one klass in one queue.

    `function` is set for function jobs. `completes` says that returning completes the job.
    """

    __slots__ = ("_changed_at", "_watch", "call", "completes", "function", "is_async")

    def __init__(
        self, call: Callable[..., Any], function: Registered | None, completes: bool, watch: Watch | None
    ) -> None:
        self.call = call
        self.function = function
        self.completes = completes
        self.is_async = inspect.iscoroutinefunction(call)
        self._watch = watch
        self._changed_at = 0 if watch is None else watch.changed_at

    @property
    def is_outdated(self) -> bool:
        """Whether the code it was found in changed, or was loaded again by somebody else."""
        watch = self._watch
        return watch is not None and (watch.changed_at != self._changed_at or watch.is_newer())


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

    def resolve(self, klass: str, queue: str) -> Target:
        """Return what performs `klass` in `queue`. Raises CannotRun."""
        key = (klass, queue)
        target = self._targets.get(key)
        if target is not None and not target.is_outdated:
            return target
        target = self._targets[key] = find_code(klass, lambda: self._find(klass, queue))
        return target

    def _find(self, klass: str, queue: str) -> Target:
        entry = registry.find(klass)
        if entry is not None:
            self._refresh(sys.modules.get(entry.function.__module__))
            return self._function(registry.find(klass) or entry)
        located = self.allow.locate(klass)
        module = self._load(located.module)
        if not self.allow.permits(klass, module):
            # The search path led to an allowed file, but another module had taken its name before.
            raise NotAllowed(f"{klass} is not allowed here: {located.module} was loaded from elsewhere")
        entry = registry.find(klass)
        if entry is not None:
            return self._function(entry)
        thing = walk(module, located, klass, self.allow)
        entry = getattr(thing, "registered", None)
        if isinstance(entry, Registered):
            return self._function(entry)
        name, call = find_method(thing, klass, queue, queue in self.plain_queues, self.allow)
        soft = checked(getattr(thing, "soft_timeout", None))
        call = limited(surround(thing, call), soft, JobTimedOutError)
        return Target(call, None, self.auto_complete or name == PERFORM, self._watched(module))

    def _function(self, entry: Registered) -> Target:
        call = limited(entry.function, entry.soft_timeout)
        return Target(call, entry, True, self._watched(sys.modules.get(entry.function.__module__)))

    def _load(self, name: str) -> ModuleType:
        self._refresh(sys.modules.get(name))
        return importlib.import_module(name)

    def _refresh(self, module: ModuleType | None) -> None:
        """Load a module again if its file changed. A file that cannot be loaded fails every job of it."""
        if module is not None and self.allow.holds(module):
            refresh(module)

    def _watched(self, module: ModuleType | None) -> Watch | None:
        """Watch a module that may be loaded again: one that lies where modules are allowed by location."""
        return watch(module) if self.allow.holds(module) else None
