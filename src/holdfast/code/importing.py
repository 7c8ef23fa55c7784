"""Importing what a name stands for, and importing it again when its file changed.

What is remembered here belongs to the process, as `sys.modules` does: a module that was loaded again for one asker
is loaded again for all of them, once.
"""

import importlib
import importlib.util
import logging
import sys
from pathlib import Path
from threading import RLock
from time import monotonic
from types import ModuleType
from typing import Any, ClassVar, Final

from holdfast.code.naming import real_module
from holdfast.errors import UsageError

log = logging.getLogger("holdfast")

LOOK_AGAIN: Final = 0.1  # seconds between two looks at the file of a module
_BROKEN: Final = -1


class Watch:
    """One module's file, looked at now and then. `changed_at` is the time the loaded file was saved."""

    __slots__ = ("_is_warned", "changed_at", "file", "loading", "looked", "module")

    def __init__(self, module: ModuleType, file: str) -> None:
        self.module = module
        self.file = file
        self.looked = monotonic()
        # A module is loaded again by one thread or greenlet at a time; it may ask for itself while it loads.
        self.loading = RLock()
        self._is_warned = False
        self.changed_at = self._modified()

    def is_newer(self, at_once: bool = False) -> bool:
        """Say whether the file changed since it was loaded; unless `at_once`, looks at most ten times a second."""
        now = monotonic()
        if now - self.looked < LOOK_AGAIN and not at_once:
            return False
        self.looked = now
        # A file that is gone for the moment is being saved: what is loaded stays in use.
        return self._modified() not in (0, self.changed_at)

    def reload(self) -> ModuleType:
        """Load the module again. What a broken file raises is raised each time, until a good one is saved."""
        modified = self._modified()
        _forget_bytecode(self.file)
        # Until it is loaded, everything that was found in it is outdated, for whoever asks.
        self.changed_at = _BROKEN
        self.module = importlib.reload(self.module)
        self.changed_at = modified
        return self.module

    def _modified(self) -> int:
        try:
            modified = Path(self.file).stat().st_mtime_ns
        except OSError as error:
            if not self._is_warned:
                log.warning("cannot look at %s, so what was loaded stays in use: %s", self.file, error)
            self._is_warned = True
            return 0
        self._is_warned = False
        return modified


_watches: Final[dict[str, Watch]] = {}


def watch(module: ModuleType | None) -> Watch | None:
    """Return the watch on the file of `module`; None if it has none, or is the program itself."""
    file = getattr(module, "__file__", None)
    if module is None or file is None or module.__name__ == "__main__":
        return None
    known = _watches.get(module.__name__)
    if known is None or known.module is not module:
        known = _watches[module.__name__] = Watch(module, file)
    return known


def refresh(module: ModuleType, at_any_rate: bool = False) -> bool:
    """Load `module` again if its file changed since it was loaded; answers whether it was."""
    known = watch(module)
    if known is None or not (at_any_rate or known.is_newer(at_once=True)):
        return False
    with known.loading:
        if not (at_any_rate or known.is_newer(at_once=True)):
            return False  # another thread or greenlet did it meanwhile
        known.reload()
    return True


def import_class(name: str) -> Any:
    """Import what the dotted `name` stands for: a class, also a nested one, a function, or a module.

    The longest front that is a module is imported, the rest is read from it; nothing is loaded twice. Raises UsageError,
    ModuleNotFoundError, AttributeError, and whatever the module raises.
    """
    module, attributes = _import_module(name)
    return _walk(module, attributes)


class Importer:
    """Imports job classes by name, and loads their modules again when a newer file was saved.

    What a file that cannot be loaded raises is raised at each import of that name, until a good one is saved.
    """

    _marked: ClassVar[set[str]] = set()

    @classmethod
    def import_class(cls, name: str) -> Any:
        """Import what `name` stands for, as it is in its file now. Raises as the function `import_class` does."""
        module, attributes = _import_module(name)
        if refresh(module, at_any_rate=name in cls._marked):
            module = sys.modules.get(module.__name__, module)
        cls._marked.discard(name)
        return _walk(module, attributes)

    @classmethod
    def mark_for_reload_on_next_import(cls, name: str) -> None:
        """Have the module of `name` loaded again by the next import of that name, whether its file changed or not."""
        cls._marked.add(_checked(name))


def _checked(name: object) -> str:
    if not isinstance(name, str):
        raise UsageError(f"name must be text, not {type(name).__name__}")
    return name


def _import_module(name: str) -> tuple[ModuleType, list[str]]:
    """Import the longest front of `name` that is a module; answers it, and the names behind it."""
    parts = _checked(name).split(".")
    if not all(part.isidentifier() for part in parts):
        raise ModuleNotFoundError(f"{name!r} is not a dotted name", name=name)
    if parts[0] not in sys.modules and parts[0] == _program():
        # Importing it would run the program once more, inside itself.
        return sys.modules["__main__"], parts[1:]
    module = importlib.import_module(parts[0])
    for count in range(2, len(parts) + 1):
        path = ".".join(parts[:count])
        try:
            module = importlib.import_module(path)
        except ModuleNotFoundError as error:
            if error.name != path:
                raise
            return module, parts[count - 1 :]
    return module, []


def _program() -> str:
    """The name that the file of this program has as a module, '' if it has none."""
    try:
        return real_module("__main__")
    except UsageError:
        return ""


def _walk(module: ModuleType, attributes: list[str]) -> Any:
    thing: Any = module
    for name in attributes:
        thing = getattr(thing, name)
    return thing


def _forget_bytecode(file: str) -> None:
    # Bytecode is matched by whole seconds and size: two quick saves of equal length would look the same.
    try:
        Path(importlib.util.cache_from_source(file)).unlink(missing_ok=True)
    except (OSError, ValueError, NotImplementedError):
        pass
