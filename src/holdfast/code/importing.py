"""Import the object of a dotted name, and reload its module after the file was changed.

The table of watches belongs to the process, as `sys.modules` does: a module that is reloaded for one caller is reloaded
for all of them, once.
"""

import importlib
import importlib.util
import logging
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from time import monotonic, time_ns
from types import ModuleType
from typing import Any, ClassVar, Final

from holdfast.code.naming import real_module
from holdfast.errors import UsageError

log = logging.getLogger("holdfast")

CHECK_INTERVAL: Final = 0.1  # seconds between two looks at the file of a module
_BROKEN: Final = -1
_UNKNOWN: Final = -2
_COARSE: Final = 20_000_000  # nanoseconds by which a file system's clock may be behind
_SECOND: Final = 1_000_000_000


class _Imports:
    """The files of imported modules, each with the time that it had when it was imported; _UNKNOWN if that is not known.

    `noted_at` is when that was noted last, in nanoseconds, and `count` is the number of modules that there were then.
    """

    files: ClassVar[dict[str, int]] = {}
    noted_at = time_ns()
    count = 0


@contextmanager
def noting() -> Generator[None]:
    """Note the times of the files that are imported in a `with` block, so that a later change of them is seen."""
    _note_files(_Imports.noted_at)
    begin = time_ns()
    try:
        yield
    finally:
        _note_files(begin)


def _note_files(since: int) -> None:
    """Note the files that were imported since a moment."""
    if len(sys.modules) != _Imports.count:
        modules = sys.modules.copy()
        for module in modules.values():
            file = getattr(module, "__dict__", {}).get("__file__")
            if isinstance(file, str) and file not in _Imports.files:
                _Imports.files[file] = _when_imported(file, since)
        _Imports.count = len(modules)
    _Imports.noted_at = time_ns()


def _when_imported(file: str, since: int) -> int:
    """Return the time of a file that was imported since a moment; _UNKNOWN if it was changed since then, too."""
    try:
        status = Path(file).stat()
    except OSError:
        return _UNKNOWN
    # A file that was moved here keeps its time of modification.
    changed = max(status.st_mtime_ns, status.st_ctime_ns)
    if changed // _SECOND >= since // _SECOND:
        _forget_bytecode(file)
    return _UNKNOWN if changed >= since - _COARSE else status.st_mtime_ns


class FileWatch:
    """The file of a module, whose time is checked. `changed_at` is when the loaded file was saved."""

    __slots__ = ("_is_warned", "changed_at", "checked_at", "file", "loading", "module")

    def __init__(self, module: ModuleType, file: str) -> None:
        self.module = module
        self.file = file
        self.checked_at = monotonic()
        # Only one thread or greenlet reloads a module at a time; the module may look itself up meanwhile.
        self.loading = RLock()
        self._is_warned = False
        noted = _Imports.files.get(file)
        self.changed_at = _when_imported(file, _Imports.noted_at) if noted is None else noted

    def is_newer(self, at_once: bool = False) -> bool:
        """Return whether the file changed since it was loaded; unless `at_once`, looks at most ten times a second."""
        now = monotonic()
        if now - self.checked_at < CHECK_INTERVAL and not at_once:
            return False
        self.checked_at = now
        # A file that is missing is probably being saved: the loaded module stays in use.
        return self._modified() not in (0, self.changed_at)

    def reload(self) -> ModuleType:
        """Reload the module. Raises what the file raises, each time until a correct file is saved."""
        from holdfast.code.registry import replacing  # the client needs no more than an importer

        modified = self._modified()
        _forget_bytecode(self.file)
        # Until the reload has succeeded, everything that was found in the module is outdated.
        self.changed_at = _BROKEN
        with replacing(self.module.__name__):
            self.module = importlib.reload(self.module)
        self.changed_at = _Imports.files[self.file] = modified
        return self.module

    def _modified(self) -> int:
        try:
            modified = Path(self.file).stat().st_mtime_ns
        except OSError as error:
            if not self._is_warned:
                log.warning(
                    "%s cannot be read, so the code that was loaded stays in use: %s", self.file, error
                )
            self._is_warned = True
            return 0
        self._is_warned = False
        return modified


_watches: Final[dict[str, FileWatch]] = {}


def watch(module: ModuleType | None) -> FileWatch | None:
    """Return the watch of the file of `module`; None if it has no file, or is the program itself."""
    file = getattr(module, "__file__", None)
    if module is None or file is None or module.__name__ == "__main__":
        return None
    known = _watches.get(module.__name__)
    if known is None or known.module is not module:
        known = _watches[module.__name__] = FileWatch(module, file)
    return known


def refresh(module: ModuleType, at_any_rate: bool = False) -> bool:
    """Reload `module` if its file was changed since it was loaded. Returns whether it was reloaded."""
    known = watch(module)
    if known is None or not (at_any_rate or known.is_newer(at_once=True)):
        return False
    with known.loading:
        if not (at_any_rate or known.is_newer(at_once=True)):
            return False  # another thread or greenlet has reloaded it
        known.reload()
    return True


def import_class(name: str) -> Any:
    """Return the object of the dotted `name`: a class, also a nested one, a function, or a module.

    The longest beginning that is a module is imported, the rest are attributes; nothing is reloaded. Raises UsageError,
    ModuleNotFoundError, AttributeError, and whatever the module raises.
    """
    module, attributes = _import_module(name)
    return _walk(module, attributes)


class Importer:
    """Import job classes by name, and reload their modules after a newer file was saved.

    What a file raises while it is loaded is raised at each import of that name, until a correct file is saved.
    """

    _marked: ClassVar[set[str]] = set()

    @classmethod
    def import_class(cls, name: str) -> Any:
        """Return the object of `name`, as it is in its file now. Raises as the function `import_class` does."""
        module, attributes = _import_module(name)
        if refresh(module, at_any_rate=name in cls._marked):
            module = sys.modules.get(module.__name__, module)
        cls._marked.discard(name)
        return _walk(module, attributes)

    @classmethod
    def mark_for_reload_on_next_import(cls, name: str) -> None:
        """Reload the module of `name` at the next import of that name, even if its file was not changed."""
        cls._marked.add(_checked(name))


def _checked(name: object) -> str:
    if not isinstance(name, str):
        raise UsageError(f"name must be text, not {type(name).__name__}")
    return name


def import_noted(name: str) -> ModuleType:
    """Import a module, and note the times of the files that this imports."""
    if name in sys.modules:
        return importlib.import_module(name)
    with noting():
        return importlib.import_module(name)


def _import_module(name: str) -> tuple[ModuleType, list[str]]:
    """Import the longest beginning of `name` that is a module. Returns it, and the remaining names."""
    parts = _checked(name).split(".")
    if not all(part.isidentifier() for part in parts):
        raise ModuleNotFoundError(f"{name!r} is not a dotted name", name=name)
    if parts[0] not in sys.modules and parts[0] == _program():
        # Importing it would run the program a second time, inside itself.
        return sys.modules["__main__"], parts[1:]
    module = import_noted(parts[0])
    for count in range(2, len(parts) + 1):
        path = ".".join(parts[:count])
        try:
            module = import_noted(path)
        except ModuleNotFoundError as error:
            if error.name != path:
                raise
            return module, parts[count - 1 :]
    return module, []


def _program() -> str:
    """Return the name of this program's file as a module, '' if it has none."""
    try:
        return real_module("__main__")
    except UsageError:
        return ""


def _walk(module: ModuleType, attributes: list[str]) -> object:
    thing: object = module
    for name in attributes:
        thing = getattr(thing, name)
    return thing


def _forget_bytecode(file: str) -> None:
    # Bytecode is compared by whole seconds and size: two saves of equal length within a second look the same.
    try:
        Path(importlib.util.cache_from_source(file)).unlink(missing_ok=True)
    except (OSError, ValueError, NotImplementedError):
        pass
