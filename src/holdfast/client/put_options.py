"""Put a job: the methods of a queue, the options of a put, and the command that they become. Nothing is sent before all are checked."""

from collections.abc import Iterable, Mapping, Sequence
from sys import modules
from typing import Any, Final, TypedDict, Unpack, cast

from msgspec.structs import replace

from holdfast.bounds import Losses, ParentJids, Priority, Retries, TagNames, ThrottleNames
from holdfast.client.descriptors import AnyClient, CommandMethod
from holdfast.code.job_options import BackoffData, backoff_words
from holdfast.code.naming import klass_name
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
    SHORTEST,
    Duration,
    HasJid,
    Settings,
    check_bounded,
    check_jids,
    check_milliseconds,
    check_name,
    check_names,
    check_switch,
    checked_names,
    unknown_option,
)

EXTRAS: Final = ("tags", "throttles", "depends", "backoff", "expires", "timeout", "result_keep")


def extra_options(options: Mapping[str, object], jid: str, delay_ms: int) -> ExtraOptions | None:
    """Return those of `options` that `ExtraOptions` has, None if none is given. Raises UsageError."""
    given = {name: options[name] for name in EXTRAS if options.get(name) is not None}
    if not given:
        return None
    depends = check_jids("depends", given.get("depends", ()), ParentJids)
    if jid in depends:
        raise UsageError(f"depends: {jid} cannot wait for itself")
    expires = _milliseconds("expires", given)
    if 0 < expires <= delay_ms:
        raise UsageError("expires must be later than delay: the job could never start")
    keep = given.get("result_keep")
    return ExtraOptions(
        tags=check_names("tags", given["tags"], TagNames) if "tags" in given else None,
        throttles=check_names("throttles", given.get("throttles", ()), ThrottleNames),
        depends=depends,
        backoff=backoff_words(given["backoff"]) if "backoff" in given else "",
        expires_ms=expires,
        limit_ms=_milliseconds("timeout", given),
        keep_ms=None if keep is None else check_milliseconds("result_keep", keep),
    )


def _milliseconds(name: str, given: Mapping[str, object]) -> int:
    return check_milliseconds(name, given[name], SHORTEST) if name in given else 0


class MoreOptions(TypedDict, total=False):
    """Options of a put that older clients do not have: `only_new` leaves an existing job alone; `backoff` is how long to
    wait between attempts: seconds, `"exponential"`, or a dict (`kind`, `first`, `longest`, `jitter`).

    In seconds, or as timedelta: `expires` (the job must start within this time of the put), `timeout` (the longest run), `result_keep`.
    `max_losses` (0 to 254): how many attempts may be lost, because the process died or the lease expired; it
    gives the job budgets of its own, in which `retries` pay for failures only. Without it a lost attempt costs a retry.
    """

    only_new: bool
    max_losses: int | None
    backoff: BackoffData | None
    expires: Duration | None
    timeout: Duration | None
    result_keep: Duration | None


class PutOptions(MoreOptions, total=False):
    """Options of a put: `priority` (-4095 to 4095, higher first), `delay` in seconds, `retries` (0 to 1000),
    `jid` of the caller's choice, and those of `MoreOptions`.

    `tags` (up to 64) and `throttles` (16) are lists of names, `depends` (450) of jids, jobs or handles. Where seconds are
    meant, a timedelta may be given. None counts as not given.
    """

    priority: int | None
    delay: Duration | None
    retries: int | None
    jid: str | None
    tags: Iterable[str] | None
    throttles: Iterable[str] | None
    depends: Iterable[str | HasJid] | None


_KNOWN: Final = ("priority", "delay", "retries", "max_losses", "jid", "only_new", *EXTRAS)
_ITEM: Final = ("klass", "data", *_KNOWN)
_EMPTY: Final = b"{}"
_OF_RECURRING: Final = ("interval", "offset", "backlog")
_BUDGETS: Final = frozenset(("retries", "max_losses"))


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
            return Put(queue, name, body, retries=check_retries(options), max_losses=check_losses(options))
    for option in options:
        if option not in _KNOWN:
            raise unknown_option("put", option, _KNOWN)
    jid, mode = _identity(options, must_exist)
    priority = check_priority(0 if options.get("priority") is None else options["priority"])
    delay = check_milliseconds("delay", options.get("delay") or 0)
    extra = extra_options(options, jid, delay)
    if traced and (trace := put_span(queue, name, jid)):
        extra = replace(extra or ExtraOptions(), trace=trace)
    shared = priority, check_retries(options), delay, mode, check_losses(options)
    if extra is None:
        return Put(queue, name, body, jid, *shared)
    return PutWithOptions(queue, JobWithOptions(name, body, jid, extra), *shared)


def name_of(klass: object) -> str:
    """Return the name to store for a class, function or module; text stays as it is. Raises UsageError naming `klass`."""
    return check_name("klass", klass if isinstance(klass, str) else klass_name(klass))


def check_priority(priority: object) -> int:
    """Return `priority` if a job may have it. Raises UsageError."""
    return check_bounded("priority", priority, Priority)


def check_retries(options: Mapping[str, object]) -> int:
    """Return the retries among the options of a put. Raises UsageError."""
    retries = options.get("retries")
    return DEFAULT_RETRIES if retries is None else check_bounded("retries", retries, Retries)


def check_losses(options: Mapping[str, object]) -> int | None:
    """Return how many losses the options of a put allow, None if retries pay for them. Raises UsageError."""
    losses = options.get("max_losses")
    return None if losses is None else check_bounded("max_losses", losses, Losses)


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
