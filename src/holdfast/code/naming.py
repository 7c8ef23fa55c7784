"""Names of functions, classes and modules, as stored with a job."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from holdfast.errors import UsageError


def klass_name(thing: Any) -> str:
    """Return the name under which another process can import a class, function or module.

    That is `<module>.<qualified name>`, the plain `__name__` for one defined inside a function, and the registered name
    of a function job. For `__main__`, the name of its file as a module is used. Raises UsageError if it has none.
    """
    if getattr(type(cast("object", thing)), "is_function_job", False):
        return str(thing.stored_name)
    if isinstance(thing, ModuleType):
        return real_module(thing.__name__)
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        raise UsageError(f"klass must be a function, class, module or name, not {thing!r:.80}")
    if "<lambda>" in name:
        raise UsageError(
            "a lambda has no name by which a worker could find it: put a function or class of a module"
        )
    return f"{real_module(module)}.{thing.__name__ if '<locals>' in name else name}"


def real_module(name: str) -> str:
    """Return the name under which other processes import module `name`. Raises UsageError for an interactive session."""
    if name != "__main__":
        return name
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name)
    file = getattr(main, "__file__", None)
    found = _name_of_file(Path(file).resolve()) if file else None
    if found is None:
        raise UsageError(
            "this job is defined in __main__, where no worker can import it: "
            "move it into a module, or give it name= and let the worker --import the module"
        )
    return found


def _name_of_file(file: Path) -> str | None:
    for entry in sys.path:
        root = Path(entry or ".").resolve()
        if file.suffix == ".py" and file.is_relative_to(root):
            parts = file.relative_to(root).with_suffix("").parts
            if all(part.isidentifier() for part in parts):
                return ".".join(parts)
    return None
