"""The function jobs of this process, by name.

This is the only state at module level: decorators fill the table as imports fill `sys.modules`.
"""

import inspect
import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec

from holdfast.bounds import Retries
from holdfast.code import soft_limit
from holdfast.code.backoff import Backoff, code_backoff
from holdfast.code.calendar import Calendar, cron_at
from holdfast.code.job_options import RESULT_KEEP, JobOptions, PutChanges, travelling
from holdfast.code.naming import klass_name
from holdfast.code.signature import Arguments, ResultType
from holdfast.code.unique import Unique, checked_unique, unique_key
from holdfast.codecs import to_plain
from holdfast.errors import UsageError
from holdfast.settings import (
    MAX_DELAY,
    SHORTEST,
    check_bounded,
    check_milliseconds,
    check_name,
    check_switch,
)

log = logging.getLogger("holdfast")

RETRIED: Final = "_holdfast_retried"
"""The attribute of a function under which `@holdfast.retry` leaves the exceptions that it names."""


class Declaration(NamedTuple):
    """A recurring job that code declares: the module that does, the arguments of `every` with the interval or cron expression as `interval`,
    the arguments of the function, and the options of its puts."""

    module: str
    timing: Mapping[str, object]
    args: Sequence[object] = ()
    kwargs: Mapping[str, object] = {}
    changes: PutChanges = {}


@dataclass(slots=True, eq=False)
class Registered:
    """A function that is a job.

    `retries`: None if the option was not given; then the job fails at its first exception. `keep_ms`: how long the result
    is kept if the put has no `result_keep`. `travelling`: the options that each put sends. `soft_timeout`: seconds until
    PerformTimeout is raised in the function, None for never. `strict_results`: a result of another type than the declared
    one fails the job. `unique`: which calls count as the same; at most one job of them exists at a time. `declared`: its recurring
    jobs that code declares, by jid.
    """

    name: str
    function: Callable[..., object]
    queue: str
    retries: int | None
    backoff: Backoff | str
    keep_ms: int
    travelling: Mapping[str, object]
    soft_timeout: float | None = None
    strict_results: bool = False
    unique: Unique = False
    declared: dict[str, Declaration] = field(default_factory=dict[str, Declaration])
    arguments: Arguments = field(init=False)
    result: ResultType = field(init=False)
    is_async: bool = field(init=False)

    def retries_after(self, error: BaseException) -> bool:
        """Whether `error` is retried while retries are left: any is, unless `@holdfast.retry` names some."""
        named: tuple[type[Exception], ...] | None = getattr(self.function, RETRIED, None)
        return named is None or isinstance(error, named)

    def key_of(self, data: bytes) -> str | None:
        """Return the unique key of the call in the data of a put; None if the function has none. Raises UsageError."""
        return unique_key(self.function, self.unique, *self.arguments.read(data)) if self.unique else None

    def __post_init__(self) -> None:
        self.arguments = Arguments(self.function, self.name.rpartition(".")[2])
        self.result = ResultType(self.function)
        self.is_async = inspect.iscoroutinefunction(self.function)

    def declare(self, declaration: Declaration) -> None:
        """Add a recurring job that code declares. Raises UsageError for a second one of its jid."""
        jid = declaration.timing.get("jid")
        if jid is None:
            jid = recurring_jid(self.name, *self.arguments.by_name(declaration.args, declaration.kwargs))
        before = self.declared.get(str(jid))
        if before is not None:
            raise UsageError(
                f"{self.name} with these arguments is declared as a recurring job already, in {before.module}; give one of them jid="
            )
        self.declared[str(jid)] = declaration


_functions: dict[str, Registered] = {}


def register(entry: Registered) -> None:
    """Add `entry` to the table. The same function, loaded again, replaces itself. Raises UsageError for another one of that name."""
    before = _functions.get(entry.name)
    if before is not None and not _is_reloaded(before.function, entry.function):
        old, new = before.function, entry.function
        sentence = (
            f"two functions are jobs of the name {entry.name}: {old.__qualname__} in {_file(old)} and "
            f"{new.__qualname__} in {_file(new)}"
        )
        if not _is_leftover(old, new):
            raise UsageError(f"{sentence}; give one of them another name=")
        log.warning("%s; the second replaces the first", sentence)
    _functions[entry.name] = entry


@contextmanager
def replacing(module: str) -> Generator[None]:
    """Forget the functions of a module while it is loaded again; those of before come back if that fails."""
    before = {name: entry for name, entry in _functions.items() if _is_global(entry.function, module)}
    calls = [(entry, entry.declared) for entry in _functions.values()]
    for name in before:
        del _functions[name]
    for entry, declared in calls:
        entry.declared = {jid: one for jid, one in declared.items() if one.module != module}
    try:
        yield
    except BaseException:
        _functions.update(before)
        for entry, declared in calls:
            entry.declared = declared
        raise


def _is_global(function: Callable[..., object], module: str) -> bool:
    return function.__module__ == module and "<locals>" not in function.__qualname__


def _is_reloaded(old: Callable[..., object], new: Callable[..., object]) -> bool:
    """Whether both have one qualified name, and one file or module: a script may be loaded under two names."""
    same_place = _file(old) == _file(new) or old.__module__ == new.__module__
    return old.__qualname__ == new.__qualname__ and same_place


def _is_leftover(old: Callable[..., object], new: Callable[..., object]) -> bool:
    """Whether `old` is a local function of a call that has ended, as far as can be known: `new` comes from elsewhere."""
    scope = old.__qualname__.rpartition(".")[0]
    return "<locals>" in scope and scope != new.__qualname__.rpartition(".")[0]


def _file(function: Callable[..., object]) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return str(getattr(code, "co_filename", function.__module__))


def find(name: str) -> Registered | None:
    """Return the function job called `name`, if this process knows one."""
    return _functions.get(name)


def make_entry(function: Callable[..., object], options: JobOptions) -> Registered:
    """Register `function` as a job. Raises UsageError for invalid options."""
    function = _checked_function(function)
    retries, backoff, keep = options.get("retries"), options.get("backoff"), options.get("result_keep")
    entry = Registered(
        name=_checked_name(function, options.get("name")),
        function=function,
        queue=check_name("queue", options.get("queue", "default")),
        retries=None if retries is None else check_bounded("retries", retries, Retries),
        backoff=code_backoff(backoff),
        keep_ms=check_milliseconds("result_keep", RESULT_KEEP if keep is None else keep, 0, MAX_DELAY),
        travelling=travelling(options),
        soft_timeout=soft_limit.checked(options.get("soft_timeout"), options.get("timeout")),
        strict_results=check_switch("strict_results", options.get("strict_results", False)),
        unique=checked_unique(function, options.get("unique", False)),
    )
    timing = _declared(function, options)
    if timing:
        entry.declare(Declaration(function.__module__, timing))
    register(entry)
    return entry


def has_jobs() -> bool:
    """Return whether this process has function jobs."""
    return bool(_functions)


def declared() -> list[tuple[Registered, str, Declaration]]:
    """Return the recurring jobs that code declares: the function, the jid, and the declaration of each."""
    return [(entry, jid, one) for entry in _functions.values() for jid, one in entry.declared.items()]


_LONGEST_NAME: Final = 140
# The order of a set differs between processes; the jid of a recurring job must not.
_same_everywhere: Final = msgspec.json.Encoder(enc_hook=to_plain, order="deterministic").encode


def recurring_jid(name: str, args: object, kwargs: object) -> str:
    """Return the jid of a recurring job that has none of its own, of the stored name of its function and what `Arguments.by_name` returns."""
    short = name.encode()[:_LONGEST_NAME].decode("utf-8", "ignore")
    return f"{short}:{sha256(_same_everywhere([args, kwargs])).hexdigest()[:12]}"


_OF_CALENDAR: Final = ("at", "zone", "missed", "overlap", "jitter", "start", "end")


def _declared(function: Callable[..., object], options: JobOptions) -> Mapping[str, object]:
    every = options.get("every")
    given = {name: value for name in _OF_CALENDAR if (value := options.get(name)) is not None}
    if every is None:
        if given:
            raise UsageError(f"{next(iter(given))} needs every='0 3 * * *'")
        return {}
    for parameter in inspect.signature(function).parameters.values():
        needed = parameter.default is parameter.empty and parameter.kind not in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        )
        if needed:
            raise UsageError(
                f"every: {function.__name__} requires the argument {parameter.name!r}; give it a default, or put it by "
                f"{function.__name__}.every(…).put(…)"
            )
    if "at" in given:
        Calendar(cron_at(every, given["at"]), str(given.get("zone", "UTC"))).checked()
    elif isinstance(every, str):
        Calendar(every, str(given.get("zone", "UTC"))).checked()
    elif given:
        raise UsageError(f"{next(iter(given))} needs a cron expression: every='0 3 * * *'")
    else:
        check_milliseconds("every", every, SHORTEST)
    return {"interval": every, **given}


def _checked_function(function: Any) -> Callable[..., object]:
    if isinstance(function, staticmethod):
        function = function.__func__
    elif _is_method(function):
        name = getattr(function, "__qualname__", type(function).__name__)
        raise UsageError(
            f"{name} is a method, and its object would not be sent to the worker: make it a function of the module or a "
            "@staticmethod that takes what it needs as arguments"
        )
    if isinstance(getattr(function, "registered", None), Registered):
        raise UsageError(f"{function!r} is a job already; its options() differ for one put")
    if inspect.isclass(function) or not callable(function):
        raise UsageError(f"a function job is a function, not {function!r:.80}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(f"a function job returns its result; {function.__name__} yields")
    if not hasattr(function, "__qualname__"):
        raise UsageError(f"a function job needs a name by which it is found, and {function!r:.80} has not")
    checked: Callable[..., object] = function
    return checked


def _is_method(function: Any) -> bool:
    """Whether a function gets an object or a class as its first argument, as far as its names show."""
    if isinstance(function, classmethod) or inspect.ismethod(function):
        return True
    scope = getattr(function, "__qualname__", "").rpartition("<locals>.")[2]
    code = getattr(inspect.unwrap(function) if callable(function) else None, "__code__", None)
    return (
        "." in scope
        and code is not None
        and code.co_varnames[: code.co_argcount][:1] in (("self",), ("cls",))
    )


def _checked_name(function: Callable[..., object], given: str | None) -> str:
    if given is not None:
        return check_name("name", given)
    if "<" in function.__qualname__:
        what = "a lambda" if "<lambda>" in function.__qualname__ else f"{function.__name__} inside a function"
        raise UsageError(
            f"no worker could find {what}: define the job at the top level of a module, "
            "or give it name= and let the workers run the code that defines it"
        )
    if function.__module__ == "__main__":
        try:
            return klass_name(function)
        except UsageError:
            # Defining a job in an interactive session is allowed; only putting it raises.
            return f"__main__.{function.__qualname__}"
    return check_name("name", f"{function.__module__}.{function.__qualname__}")


def stored_name(entry: Registered) -> str:
    """Return the name of the function for a put. Raises UsageError, with advice, if no worker could find it."""
    if entry.name.startswith("__main__."):
        klass_name(entry.function)  # raises, with advice
    return entry.name
