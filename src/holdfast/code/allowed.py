"""Which modules a worker may import for the sake of a job; decided before anything is imported.

Allowed are modules named by `--import`, klass names under a prefix of `--allow`, and modules whose file lies
under `--path` or the working directory. What is installed is never allowed by location: a virtual
environment usually lies under the working directory.
"""

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
ADVICE: Final = "name its module with --import, or its prefix with --allow"


class NotKnown(NotAllowed):
    """The name leads to nothing that may run here, and names no module either that must not be imported."""


class Located(NamedTuple):
    """A klass found without importing it: the longest module in front, and the attributes behind."""

    module: str
    attributes: tuple[str, ...]


class AllowList:
    """What may be imported: `modules` by full name, `prefixes` of klass names, files under `roots`."""

    def __init__(
        self, modules: Iterable[str] = (), prefixes: Iterable[str] = (), roots: Iterable[str | Path] = ()
    ) -> None:
        self.modules = frozenset(modules)
        self.prefixes = tuple(prefixes)
        self.roots = tuple(Path(root).resolve() for root in roots)

    def locate(self, klass: str) -> Located:
        """Find `klass` without running any of its code. Raises NotAllowed, or UnknownKlass if there is no such thing."""
        parts = klass.split(".")
        if not all(part.isidentifier() for part in parts):
            raise NotKnown(f"{klass} is not allowed here: it is not a dotted name")
        specs = _specs(parts)
        if not specs:
            raise UnknownKlass(f"there is no module {parts[0]!r} on the module search path")
        module = specs[-1].name
        if not (self._is_named(klass, module) or all(self._lies_well(spec) for spec in specs)):
            kind = NotAllowed if _names_module(parts, specs) else NotKnown
            raise kind(f"{klass} is not allowed here: {ADVICE}")
        return Located(module, tuple(parts[len(specs) :]))

    def allows(self, module: str) -> bool:
        """Say whether things defined in the imported `module` may be used, for example as a base class."""
        if self._is_named(module, module):
            return True
        return self.holds(sys.modules.get(module))

    def permits(self, klass: str, module: ModuleType) -> bool:
        """Say whether the imported `module` is what `locate` allowed for `klass`."""
        return self._is_named(klass, module.__name__) or self.holds(module)

    def holds(self, module: ModuleType | None) -> bool:
        """Say whether the file of `module` lies where modules are allowed."""
        file = getattr(module, "__file__", None)
        return file is not None and self._allows_file(file)

    def _is_named(self, klass: str, module: str) -> bool:
        if module in self.modules:
            return True
        return any(klass == prefix or klass.startswith(prefix.rstrip(".") + ".") for prefix in self.prefixes)

    def _lies_well(self, spec: ModuleSpec) -> bool:
        # A namespace package has no file and runs nothing; what is found inside it is looked at itself.
        if spec.origin is None and spec.submodule_search_locations is not None:
            return True
        return spec.has_location and spec.origin is not None and self._allows_file(spec.origin)

    def _allows_file(self, file: str) -> bool:
        path = Path(file).resolve()
        if any(part in _PACKAGES for part in path.parts):
            return False
        if any(path.is_relative_to(place) for place in _installed()):
            return False
        return any(path.is_relative_to(root) for root in self.roots)


@lru_cache(maxsize=1)
def _installed() -> tuple[Path, ...]:
    """Where installed code lies: the environment, the standard library, and holdfast itself."""
    paths = {sys.prefix, sys.exec_prefix, sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    return (*(Path(path).resolve() for path in paths), Path(__file__).resolve().parents[1])


def _specs(parts: Sequence[str]) -> list[ModuleSpec]:
    """Return the specs of the longest chain of modules that `parts` begin with."""
    specs: list[ModuleSpec] = []
    where: Sequence[str] | None = None
    for count in range(1, len(parts) + 1):
        spec = _find(".".join(parts[:count]), where)
        if spec is None:
            break
        specs.append(spec)
        if spec.submodule_search_locations is None:
            break
        where = list(spec.submodule_search_locations)
    return specs


def _names_module(parts: Sequence[str], specs: Sequence[ModuleSpec]) -> bool:
    """Whether all of the module that a function `<module>.<function>` would lie in exists."""
    if len(specs) == len(parts):
        return False  # the name of a module is none of a function in one
    return len(specs) == len(parts) - 1 or specs[-1].submodule_search_locations is None


def _find(name: str, where: Sequence[str] | None) -> ModuleSpec | None:
    # Not importlib.util.find_spec: it imports the parents, which is what must not happen yet.
    for finder in sys.meta_path:
        spec = finder.find_spec(name, where)
        if spec is not None:
            return spec
    return None
