"""What a job's klass stands for, on a handle: the thing behind the name, imported at the first look."""

from typing import Any

from holdfast.client.putting.options import name_of
from holdfast.errors import UsageError


def imported(handle: Any) -> Any:
    """The class, function or module behind `handle.klass_name`, imported as `Importer` does it, and kept.

    Raises what importing it raises: ModuleNotFoundError, AttributeError, and whatever its module raises.
    """
    from holdfast.code.importing import Importer  # for those who look

    known = handle._local.get("klass")
    if known is None or known[0] != handle.klass_name:
        known = handle._local["klass"] = handle.klass_name, Importer.import_class(handle.klass_name)
    return known[1]


def take(handle: Any, klass: object) -> None:
    """Make `klass`, a class, function, module or name, that of this handle; the store learns nothing of it."""
    handle.klass_name = name = any_name(klass)
    if isinstance(klass, str):
        handle._local.pop("klass", None)
    else:
        handle._local["klass"] = name, klass


def any_name(klass: object) -> str:
    """The name of a class, function, module or text, also of one that no other program could import."""
    try:
        return name_of(klass)
    except UsageError:
        name = getattr(klass, "__name__", None)
        if not isinstance(name, str):
            raise
        return f"{getattr(klass, '__module__', '__main__')}.{name}"
