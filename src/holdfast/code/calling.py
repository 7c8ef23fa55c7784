"""Which callable of a class or module performs a job, whether that is allowed, and the error if there is none."""

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final, TypeVar

from holdfast.code.allowed import ADVICE, AllowList, Located, NotKnown
from holdfast.code.failure import describe, name_of, text_of
from holdfast.code.outcomes import Terminated
from holdfast.code.registry import Registered
from holdfast.errors import CodecError, MiddlewareMisconfigured, NotAllowed, UsageError, WorkError

T = TypeVar("T")

PERFORM: Final = "perform"


class MethodMissing(WorkError):
    """An allowed class or module has no method for this queue."""


class CannotRun(WorkError):
    """A job that cannot be performed here: it fails in `<queue>-<reason>` with `message`.

    `is_unknown`: its code does not exist here, or cannot be imported, but another worker may have it; `cause` is the
    reason in one line.
    """

    def __init__(self, reason: str, message: str, cause: str = "", is_unknown: bool = False) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message
        self.cause = cause or f"{reason}: {message}"
        self.is_unknown = is_unknown


def find_code(klass: str, find: Callable[[], T]) -> T:
    """Return the result of `find`, the lookup of `klass`. Raises CannotRun with how the job fails."""
    try:
        return find()
    except NotAllowed as error:
        raise CannotRun("NotAllowed", str(error), is_unknown=isinstance(error, NotKnown)) from None
    except MethodMissing as error:
        raise CannotRun("method-missing", str(error), is_unknown=True) from None
    except MiddlewareMisconfigured as error:
        raise CannotRun("MiddlewareMisconfigured", str(error)) from None
    except (Exception, SystemExit) as error:
        raise CannotRun(*_import_failure(klass, error), is_unknown=True) from error


def _import_failure(klass: str, error: BaseException) -> tuple[str, str, str]:
    name = "ModuleNotFoundError" if isinstance(error, WorkError) else name_of(error)
    detail = text_of(error) if isinstance(error, WorkError) else describe(error)
    first, *_ = text_of(error).splitlines() or [""]
    return name, f"Failed to import {klass}\n\n{detail}", f"{name}: {first}" if first else name


def read_arguments(function: Registered, data: bytes) -> tuple[list[object], dict[str, object]]:
    """Read the arguments of a function job from its data.

    Raises CannotRun: "ArgumentError" if they do not fit, "InvalidData" if they cannot be read, whatever exception reading
    raises: any program may have written the data, and the classes that validate them are the user's.
    """
    try:
        return function.arguments.read(data)
    except Terminated:
        raise
    except CodecError as error:
        raise CannotRun("InvalidData", text_of(error)) from None
    except UsageError as error:
        raise CannotRun("ArgumentError", text_of(error)) from None
    except BaseException as error:
        raise CannotRun(
            "InvalidData", f"{function.name} cannot read its data\n\n{describe(error)}"
        ) from error


def walk(module: ModuleType, located: Located, klass: str, allow: AllowList) -> Any:
    """Return the object that the attributes of `klass` lead to in `module`.

    Each must be a class defined in that place; the last one may also be a module that `allow` allows. Raises
    AttributeError, or NotAllowed for an object that the module only imported.
    """
    thing: object = module
    for depth, name in enumerate(located.attributes, 1):
        thing = getattr(thing, name)
        if not inspect.isclass(thing):
            if depth < len(located.attributes):
                raise NotAllowed(f"{klass} is not allowed here: {name} is not a class")
        elif thing.__module__ != module.__name__ or thing.__qualname__ != ".".join(
            located.attributes[:depth]
        ):
            raise NotAllowed(
                f"{klass} is not allowed here: it is defined as {thing.__module__}.{thing.__qualname__}"
            )
    if thing is not module and inspect.ismodule(thing) and not allow.allows(thing.__name__):
        raise NotAllowed(f"{klass} is not allowed here: it is the module {thing.__name__}; {ADVICE}")
    return thing


def find_method(
    thing: object, klass: str, queue: str, queue_method: bool, allow: AllowList | None = None
) -> tuple[str, Callable[[Any], Any]]:
    """Return the name and the callable of the method that performs a job of `klass` in `queue`.

    `queue_method`: whether a method named like the queue is looked for. Without `allow`, any method may run: the caller
    is a program of the user. Raises NotAllowed or MethodMissing.
    """
    if allow is not None and not (inspect.isclass(thing) or inspect.ismodule(thing)):
        raise NotKnown(f"{klass} is not allowed here: it is neither a function job nor a class nor a module")
    names = [queue] if queue_method and queue.isidentifier() and not queue.startswith("_") else []
    refused = False
    for name in [*names, "process", PERFORM]:
        if not callable(getattr(thing, name, None)):
            continue
        if allow is None or _is_own(thing, name, allow):
            return name, getattr(thing, name)
        refused = True
    if refused:
        raise NotAllowed(f"{klass} is not allowed here: its method comes from a place that is not; {ADVICE}")
    raise MethodMissing(f'{klass} is missing a method "{queue}" or "process"')


def _is_own(thing: Any, name: str, allow: AllowList) -> bool:
    if inspect.ismodule(thing):
        return inspect.isfunction(found := vars(thing).get(name)) and found.__module__ == thing.__name__
    for base in inspect.getmro(thing):
        found = vars(base).get(name)
        if found is not None:
            is_method = inspect.isfunction(found) or isinstance(found, (staticmethod, classmethod))
            return is_method and (base is thing or allow.allows(base.__module__))
    return False
