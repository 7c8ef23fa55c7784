"""The function jobs this process knows, by name.

The one table in holdfast that belongs to the process and not to somebody who made it: a decorator fills it
as an import fills `sys.modules`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from typing import Any

from holdfast.code.backoff import Backoff
from holdfast.code.signature import Arguments


@dataclass(slots=True, eq=False)
class Registered:
    """A function that is a job.

    `retries` is None when the job was not given any: then it fails at its first exception. `keep_ms` says for how
    many milliseconds the result is kept, where the job does not say so itself. `travelling`: the options of each put.
    """

    name: str
    function: Callable[..., Any]
    queue: str
    retries: int | None
    backoff: Backoff
    keep_ms: int
    travelling: Mapping[str, Any]
    arguments: Arguments = field(init=False)
    is_async: bool = field(init=False)

    def __post_init__(self) -> None:
        self.arguments = Arguments(self.function, self.name.rpartition(".")[2])
        self.is_async = iscoroutinefunction(self.function)


_functions: dict[str, Registered] = {}


def register(entry: Registered) -> None:
    """Make `entry` known; a later one of the same name replaces it, as reloading a module does."""
    _functions[entry.name] = entry


def find(name: str) -> Registered | None:
    """Return the function job called `name`, if this process knows one."""
    return _functions.get(name)
