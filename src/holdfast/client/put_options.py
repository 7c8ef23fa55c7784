"""Put a job: the methods of a queue, the options of a put, and the command that they become. Nothing is sent before all are checked."""

from collections.abc import Iterable, Mapping, Sequence
from sys import modules
from typing import Any, Final, Unpack, cast

from msgspec.structs import replace

from holdfast.client.descriptors import AnyClient, CommandMethod
from holdfast.code.naming import klass_name
from holdfast.code.put_options import OPTIONS, MoreOptions
from holdfast.code.tracing import is_traced, put_span
from holdfast.codecs import encode_data
from holdfast.commands import Command
from holdfast.commands.jobs import Mode, Put
from holdfast.commands.options import (
    ExtraOptions,
    JobWithOptions,
    PutWithOptions,
)
from holdfast.errors import UsageError
from holdfast.ids import mint_jid
from holdfast.settings import (
    DEFAULT_RETRIES,
    Duration,
    HasJid,
    Settings,
    check_name,
    check_switch,
    checked_names,
    unknown_option,
)

_VALUES: Final = {
    name: (option.field, option.check) for name, option in OPTIONS.items() if name not in ("jid", "only_new")
}
"""The options that are a field of the command, or of its `ExtraOptions`, by themselves."""
_EXTRA: Final = frozenset(ExtraOptions.__struct_fields__)
_ITEM: Final = ("klass", "data", *OPTIONS)
_EMPTY: Final = b"{}"
_OF_KEYS: Final = ("unique_for", "on_conflict", "debounce_max_ms")
_OF_RECURRING: Final = ("interval", "offset", "backlog")
_BUDGETS: Final = frozenset(("retries", "max_losses"))


def checked_values(options: Mapping[str, object]) -> dict[str, Any]:
    """Return what a command has for the options that were given, by its fields, without jid and mode. Raises UsageError."""
    given = [
        (_VALUES[name], name, value)
        for name, value in options.items()
        if value is not None and name in _VALUES
    ]
    return {field: check(name, value) for (field, check), name, value in given}


def extra_options(values: Mapping[str, Any], jid: str) -> ExtraOptions | None:
    """Return those of the values that `ExtraOptions` has, None if there is none. Raises UsageError."""
    given = {field: value for field, value in values.items() if field in _EXTRA}
    if not given:
        return None
    if jid in given.get("depends", ()):
        raise UsageError(f"depends: {jid} cannot wait for itself")
    if not given.get("unique_key"):
        for name in _OF_KEYS:
            if name in given:
                raise UsageError(f"{name.removesuffix('_ms')} needs a unique_key")
    if "debounce_max_ms" in given and given.get("on_conflict") != "replace":
        raise UsageError("debounce_max needs on_conflict='replace'")
    if 0 < given.get("expires_ms", 0) <= values.get("delay_ms", 0):
        raise UsageError("expires must be later than delay: the job could never start")
    return ExtraOptions(**given)


class Nothing:
    """The type of NOTHING, an argument that was not given."""


NOTHING: Final = Nothing()


class QueuePuts:
    """Methods of a queue that put one job."""

    _client: AnyClient
    name: str

    @CommandMethod
    def put(
        self,
        klass: object,
        data: object = NOTHING,
        priority: int | None = None,
        tags: Iterable[str] | None = None,
        delay: Duration | None = None,
        retries: int | None = None,
        jid: str | None = None,
        depends: Iterable[str | HasJid] | None = None,
        throttles: Iterable[str] | None = None,
        **more: Unpack[MoreOptions],
    ) -> Command[str]:
        """Put a job into this queue and return its jid.

        `klass` is a class, module, function or dotted name; `data` any JSON value, or text that is JSON; default `{}`.
        `priority` (0; higher first), `delay` in seconds, `retries` (5), `jid` to choose one: an existing job of
        that jid is moved here, with all this in place of what it had. `only_new=True` leaves an existing job alone.
        `PutOptions` describes all: tags, throttles, depends, backoff, expires, timeout, result_keep. What is not given, or
        None, comes from `default_job_options(data)` of the class, if it has one. Raises UsageError, JobExists, QueueFull,
        DependencyRefused, StoreFull. Core: verbs/put.lua.
        """
        settings = self._client.settings
        is_plain = priority is None and tags is None and delay is None and retries is None
        if is_plain and jid is None and depends is None and throttles is None:
            return make_put(settings, self.name, klass, data, more)
        options = {
            "priority": priority, "tags": tags, "delay": delay, "retries": retries, "jid": jid, "depends": depends,
            "throttles": throttles, **more,
        }  # fmt: skip
        return make_put(settings, self.name, klass, data, options)

    @CommandMethod
    def requeue(
        self,
        klass: object,
        data: object = NOTHING,
        priority: int | None = None,
        tags: Iterable[str] | None = None,
        delay: Duration | None = None,
        retries: int | None = None,
        jid: str | None = None,
        depends: Iterable[str | HasJid] | None = None,
        throttles: Iterable[str] | None = None,
        **more: Unpack[MoreOptions],
    ) -> Command[str]:
        """Put a job that exists, in whatever state, into this queue and return its jid. As `put`, without `only_new`.

        Raises UsageError, JobNotFound for a jid that no job has. Core: verbs/put.lua.
        """
        options = {
            "priority": priority, "tags": tags, "delay": delay, "retries": retries, "jid": jid, "depends": depends,
            "throttles": throttles, **more,
        }  # fmt: skip
        return make_put(self._client.settings, self.name, klass, data, options, must_exist=True)

    @staticmethod
    def class_string(klass: object) -> str:
        """Return the name under which jobs of a class, module or function are stored; text stays as it is.

        Raises UsageError for what no other program could import.
        """
        return name_of(klass)


_TRACING: Final = "opentelemetry.trace"
"""The module without which nothing is traced: most programs have not loaded it."""


def make_put(
    settings: Settings,
    queue: str,
    klass: object,
    data: object,
    options: Mapping[str, object],
    *,
    must_exist: bool = False,
    is_trial: bool = False,
) -> Put | PutWithOptions:
    """Return the command of one put. `options` are PutOptions; with `must_exist` their jid has to be that of a job.

    A trial checks the arguments and starts no span. Raises UsageError naming the argument that is wrong.
    """
    if type(klass) is str:
        name = klass if klass in checked_names else check_name("klass", klass)
    else:
        name = name_of(klass)
        options = with_class_defaults(klass, data, options, _OF_RECURRING)
    body = _EMPTY if data is NOTHING else encode_data(data, settings.max_data)
    traced = _TRACING in modules and not is_trial and is_traced()
    if not must_exist and not traced:
        if not options:
            return Put(queue, name, body)
        if options.keys() == _BUDGETS:
            return Put(queue, name, body, **checked_values(options))
    for option in options:
        if option not in OPTIONS:
            raise unknown_option("put", option, tuple(OPTIONS))
    return _put_with(queue, name, body, options, must_exist, traced)


def _put_with(
    queue: str, name: str, body: bytes, options: Mapping[str, object], must_exist: bool, traced: bool
) -> Put | PutWithOptions:
    jid, mode = _identity(options, must_exist)
    values = checked_values(options)
    extra = extra_options(values, jid)
    if traced and (trace := put_span(queue, name, jid)):
        extra = replace(extra or ExtraOptions(), trace=trace)
    retries, delay = values.get("retries", DEFAULT_RETRIES), values.get("delay_ms", 0)
    shared = values.get("priority", 0), retries, delay, mode, values.get("max_losses")
    if extra is None:
        return Put(queue, name, body, jid, *shared)
    return PutWithOptions(queue, JobWithOptions(name, body, jid, extra), *shared)


def name_of(klass: object) -> str:
    """Return the name to store for a class, function or module; text stays as it is. Raises UsageError naming `klass`."""
    return check_name("klass", klass if isinstance(klass, str) else klass_name(klass))


def _identity(options: Mapping[str, object], must_exist: bool) -> tuple[str, Mode]:
    jid = options.get("jid")
    if must_exist:
        if jid is None:
            raise UsageError("requeue needs the jid of a job: requeue(klass, data, jid=…)")
        return check_name("jid", jid), "old"
    only_new = options.get("only_new")
    if only_new is not None and check_switch("only_new", only_new):
        return (mint_jid() if jid is None else check_name("jid", jid)), "only"
    return (mint_jid(), "new") if jid is None else (check_name("jid", jid), "move")


def with_class_defaults(
    klass: object, data: object, options: Mapping[str, object], others: Sequence[str]
) -> dict[str, Any]:
    """Return the options that were given and, for the rest, `default_job_options(data)` of a class without `others`, which
    are for the other kind of put; of a function job its budgets. Raises UsageError."""
    given = {name: value for name, value in options.items() if value is not None}
    if getattr(klass, "is_function_job", False):
        own = cast("Any", klass).registered.travelling
        return {"retries": own["retries"], "max_losses": own["max_losses"], **given}
    defaults = None if isinstance(klass, str) else getattr(klass, "default_job_options", None)
    if not callable(defaults):
        return given
    made: object = defaults({} if data is NOTHING else data)
    if not isinstance(made, Mapping):
        raise UsageError(f"default_job_options of {name_of(klass)} must return a mapping, not {made!r:.80}")
    known = cast("Mapping[str, object]", made)
    return {**{name: known[name] for name in known if name not in others}, **given}


def put_of_item(
    settings: Settings, queue: str, item: object, shared: Mapping[str, object]
) -> Put | PutWithOptions:
    """Return the command of one item of `put_many`: (klass, data), or a mapping with klass, data and options."""
    if isinstance(item, tuple) and len(cast("tuple[object, ...]", item)) == 2:
        klass, data = cast("tuple[object, object]", item)
        return make_put(settings, queue, klass, data, shared)
    if isinstance(item, Mapping):
        options = dict(cast("Mapping[str, object]", item))
        klass, data = options.pop("klass", None), options.pop("data", NOTHING)
        for option in options:
            if option not in _ITEM:
                raise unknown_option("put_many", option, _ITEM)
        if klass is not None:
            return make_put(settings, queue, klass, data, {**shared, **options})
    raise UsageError(
        f"put_many takes (klass, data) pairs, or mappings with klass, data and options, not {item!r}"
    )
