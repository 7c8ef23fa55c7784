"""Which modules a worker may import for a job; decided before anything is imported.

Allowed are modules named by `--import`, klass names with a prefix of `--allow`, modules whose file is below `--path`, and
modules and packages directly in the working directory. Installed packages are never allowed by their location, because a
virtual environment is mostly below the working directory.
"""

import os
import stat
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Final, NamedTuple

from holdfast.errors import NotAllowed, UnknownKlass

_PACKAGES: Final = ("site-packages", "dist-packages")
NEVER: Final = ("setup", "conftest", "tests")
"""Modules in the working directory of many projects that are not meant for workers."""
RULE: Final = (
    "in the working directory, only modules and packages (with an __init__.py) directly in it are allowed, if no other user "
    f"may write them, and never {', '.join(NEVER)}"
)
ADVICE: Final = "name its module with --import, or its prefix with --allow"


class NotKnown(NotAllowed):
    """The klass is not allowed here, and names no existing module."""


class Located(NamedTuple):
    """A klass that was located without importing it: its module, and the attributes in it."""

    module: str
    attributes: tuple[str, ...]


class AllowList:
    """What may be imported: `modules` by full name, `prefixes` of klass names, files below `roots`, and modules and regular
    packages directly in the working `directory` (decision D39).
    """

    def __init__(
        self,
        modules: Iterable[str] = (),
        prefixes: Iterable[str] = (),
        roots: Iterable[str | Path] = (),
        directory: str | Path | None = None,
    ) -> None:
        self.modules = frozenset(modules)
        self.prefixes = tuple(prefixes)
        self.roots = tuple(Path(root).resolve() for root in roots)
        self.directory = None if directory is None else Path(directory).resolve()

    def locate(self, klass: str) -> Located:
        """Locate `klass` without running any of its code. Raises NotAllowed, or UnknownKlass if there is no such module."""
        parts = klass.split(".")
        if not all(part.isidentifier() for part in parts):
            raise NotKnown(f"{klass} is not allowed here: it is not a dotted name")
        specs = _specs(parts)
        if not specs:
            raise UnknownKlass(f"there is no module {parts[0]!r} on the module search path")
        module = specs[-1].name
        if not (self._is_named(klass, module) or all(self._is_in_place(spec) for spec in specs)):
            kind = NotAllowed if _names_module(parts, specs) else NotKnown
            raise kind(f"{klass} is not allowed here: {self._rule(specs[-1])}{ADVICE}")
        return Located(module, tuple(parts[len(specs) :]))

    def allows(self, module: str) -> bool:
        """Return whether objects defined in the imported `module` may be used, for example as a base class."""
        if self._is_named(module, module):
            return True
        return self.holds(sys.modules.get(module))

    def permits(self, klass: str, module: ModuleType) -> bool:
        """Return whether the imported `module` is what `locate` allowed for `klass`."""
        return self._is_named(klass, module.__name__) or self.holds(module)

    def holds(self, module: ModuleType | None) -> bool:
        """Return whether the file of `module` is in an allowed location."""
        file = getattr(module, "__file__", None)
        return file is not None and self._allows_file(file)

    def _rule(self, spec: ModuleSpec) -> str:
        """Return the rule for a refused module in the working directory; "" for modules elsewhere."""
        here, file = self.directory, Path(spec.origin or "/").resolve()
        if here is None or here == Path(here.anchor) or not file.is_relative_to(here) or _is_installed(file):
            return ""
        return f"{RULE}; "

    def _is_named(self, klass: str, module: str) -> bool:
        if module in self.modules:
            return True
        return any(klass == prefix or klass.startswith(prefix.rstrip(".") + ".") for prefix in self.prefixes)

    def _is_in_place(self, spec: ModuleSpec) -> bool:
        # A namespace package has no file and runs nothing; the modules in it are checked themselves.
        if spec.origin is None and spec.submodule_search_locations is not None:
            return True
        return spec.has_location and spec.origin is not None and self._allows_file(spec.origin)

    def _allows_file(self, file: str) -> bool:
        path = Path(file).resolve()
        if _is_installed(path):
            return False
        return any(path.is_relative_to(root) for root in self.roots) or self._is_in_directory(path)

    def _is_in_directory(self, path: Path) -> bool:
        here = self.directory
        # The working directory of a service is often `/`, below which there are directories that anyone can write.
        if here is None or here == Path(here.anchor) or not path.is_relative_to(here):
            return False
        outermost, *_ = path.relative_to(here).parts
        if outermost.partition(".")[0] in NEVER:
            return False
        packages = path.parents[: path.parents.index(here)]
        return all((package / "__init__.py").is_file() for package in packages) and all(
            map(is_ours, (path, *packages))
        )


def _is_installed(path: Path) -> bool:
    return any(part in _PACKAGES for part in path.parts) or any(map(path.is_relative_to, _installed()))


def is_ours(path: Path) -> bool:
    """Return whether only this user and root may write the file."""
    try:
        found = path.stat()
    except OSError:
        return False
    return found.st_uid in (0, os.geteuid()) and not found.st_mode & stat.S_IWOTH


@lru_cache(maxsize=1)
def _installed() -> tuple[Path, ...]:
    """Return the locations of installed code: the environment, the standard library, and holdfast itself."""
    paths = {sys.prefix, sys.exec_prefix, sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    return (*(Path(path).resolve() for path in paths), Path(__file__).resolve().parents[1])


def _specs(parts: Sequence[str]) -> list[ModuleSpec]:
    """Return the specs of the packages and the module that `parts` begin with."""
    specs: list[ModuleSpec] = []
    where: Sequence[str] | None = None
    for count, part in enumerate(parts, 1):
        spec = _find(".".join(parts[:count]), where)
        if spec is None:
            break
        specs.append(spec)
        if spec.submodule_search_locations is None:
            break
        # The locations of a namespace package depend on its imported parent, which is not imported yet.
        is_namespace = spec.origin is None
        places = [str(Path(place, part)) for place in (sys.path if where is None else where)]
        where = places if is_namespace else list(spec.submodule_search_locations)
    return specs


def _names_module(parts: Sequence[str], specs: Sequence[ModuleSpec]) -> bool:
    """Return whether the module of a function `<module>.<function>` exists."""
    if len(specs) == len(parts):
        return False  # it is the name of a module, not of a function in one
    return len(specs) == len(parts) - 1 or specs[-1].submodule_search_locations is None


def _find(name: str, where: Sequence[str] | None) -> ModuleSpec | None:
    # Not importlib.util.find_spec, which imports the parents.
    for finder in sys.meta_path:
        try:
            spec = finder.find_spec(name, where)
        except KeyError:
            # A nested namespace package looks for its imported parent; under its last name it has none.
            spec = finder.find_spec(name.rpartition(".")[2], where)
        if spec is not None:
            spec.name = name
            return spec
    return None
