"""Options of puts: which exist, and which values they may have; checked before anything is sent."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypedDict, cast

from msgspec.structs import replace

from holdfast.code.job_options import BackoffData, backoff_words
from holdfast.code.naming import klass_name
from holdfast.code.tracing import is_traced, put_span
from holdfast.codecs import encode_data
from holdfast.commands.jobs import Mode, Put
from holdfast.commands.options import (
    MAX_DEPENDS,
    MAX_TAGS,
    MAX_THROTTLES,
    ExtraOptions,
    JobWithOptions,
    PutWithOptions,
)
from holdfast.errors import UsageError
from holdfast.ids import mint_jid
from holdfast.settings import (
    DEFAULT_RETRIES,
    MAX_LOSSES,
    MAX_PRIORITY,
    MAX_RETRIES,
    Duration,
    HasJid,
    Settings,
    check_jids,
    check_milliseconds,
    check_name,
    check_names,
    check_switch,
    check_whole,
    unknown_option,
)

WISHES: Final = ("tags", "throttles", "depends", "backoff", "expires", "timeout", "result_keep")
SHORTEST: Final = 0.001


def make_wish(options: Mapping[str, Any], jid: str, delay_ms: int) -> ExtraOptions | None:
    """The wish among the options of a put, None if nothing is wished. Raises UsageError."""
    given = {name: options[name] for name in WISHES if options.get(name) is not None}
    if not given:
        return None
    depends = check_jids("depends", given.get("depends", ()), MAX_DEPENDS)
    if jid in depends:
        raise UsageError(f"depends: {jid} cannot wait for itself")
    expires = _moment("expires", given)
    if 0 < expires <= delay_ms:
        raise UsageError("expires must be later than delay: the job could never start")
    keep = given.get("result_keep")
    return ExtraOptions(
        tags=check_names("tags", given["tags"], MAX_TAGS) if "tags" in given else None,
        throttles=check_names("throttles", given.get("throttles", ()), MAX_THROTTLES),
        depends=depends,
        backoff=backoff_words(given["backoff"]) if "backoff" in given else "",
        expires_ms=expires,
        limit_ms=_moment("timeout", given),
        keep_ms=None if keep is None else check_milliseconds("result_keep", keep),
    )


def _moment(name: str, given: Mapping[str, Any]) -> int:
    return check_milliseconds(name, given[name], SHORTEST) if name in given else 0


class MoreOptions(TypedDict, total=False):
    """What may be wished for a put beside what every older client knows: `only_new` to leave an existing job alone;
    `backoff`, how long to wait between tries: seconds, `"exponential"`, or a dict (`kind`, `first`, `longest`, `jitter`).

    In seconds, or as timedelta: `expires` (not started later than so long after the put), `timeout` (the longest run), `result_keep`.
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
    """How to put a job: `priority` (-4095 to 4095, higher first), `delay` in seconds, `retries` (0 to 1000),
    `jid` of the caller's choice, and what `MoreOptions` has.

    `tags` (up to 64) and `throttles` (16) are lists of names, `depends` (450) of jids, jobs or handles. Where seconds are
    meant, a timedelta may be given. None is as if it were not given.
    """

    priority: int | None
    delay: Duration | None
    retries: int | None
    jid: str | None
    tags: Iterable[str] | None
    throttles: Iterable[str] | None
    depends: Iterable[str | HasJid] | None


_KNOWN: Final = ("priority", "delay", "retries", "max_losses", "jid", "only_new", *WISHES)
_ITEM: Final = ("klass", "data", *_KNOWN)
_EMPTY: Final = b"{}"
_OF_RECURRING: Final = ("interval", "offset", "backlog")
_BUDGETS: Final = frozenset(("retries", "max_losses"))


class Nothing:
    """The type of an argument that was not given."""


NOTHING: Final = Nothing()


def make_put(
    settings: Settings,
    queue: str,
    klass: object,
    data: object,
    options: Mapping[str, Any] | None,
    *,
    must_exist: bool = False,
    is_trial: bool = False,
) -> Put | PutWithOptions:
    """The command for one put; with `must_exist` the jid has to be that of a job. Raises UsageError naming the argument
    that cannot be. A trial only finds that out, and leaves no trace."""
    name = name_of(klass)
    if type(klass) is not str:
        options = with_class_defaults(klass, data, options or {}, _OF_RECURRING)
    body = _EMPTY if data is NOTHING else encode_data(data, settings.max_data)
    traced = is_traced() and not is_trial
    if not options and not must_exist and not traced:
        return Put(queue, name, body)
    options = options or {}
    if options.keys() == _BUDGETS and not must_exist and not traced:
        return Put(queue, name, body, retries=check_retries(options), max_losses=check_losses(options))
    for option in options:
        if option not in _KNOWN:
            raise unknown_option("put", option, _KNOWN)
    jid, mode = _identity(options, must_exist)
    priority = options.get("priority")
    priority = 0 if priority is None else check_priority(priority)
    retries, losses = check_retries(options), check_losses(options)
    delay = check_milliseconds("delay", options.get("delay") or 0)
    wish = make_wish(options, jid, delay)
    trace = put_span(queue, name, jid) if traced else ""
    if trace:
        wish = replace(wish or ExtraOptions(), trace=trace)
    if wish is None:
        return Put(queue, name, body, jid, priority, retries, delay, mode, losses)
    return PutWithOptions(
        queue, JobWithOptions(name, body, jid, wish), priority, retries, delay, mode, losses
    )


def name_of(klass: object) -> str:
    """The name to store for a class, function, module, or name given as text. Raises UsageError naming `klass`."""
    return check_name("klass", klass if isinstance(klass, str) else klass_name(klass))


def check_priority(priority: object) -> int:
    """Return `priority` if a job may have it. Raises UsageError."""
    return check_whole("priority", priority, -MAX_PRIORITY, MAX_PRIORITY)


def check_retries(options: Mapping[str, Any]) -> int:
    """The retries among the options of a put. Raises UsageError."""
    retries = options.get("retries")
    return DEFAULT_RETRIES if retries is None else check_whole("retries", retries, 0, MAX_RETRIES)


def check_losses(options: Mapping[str, Any]) -> int | None:
    """How many losses the options of a put allow, None if retries pay for them. Raises UsageError."""
    losses = options.get("max_losses")
    return None if losses is None else check_whole("max_losses", losses, 0, MAX_LOSSES)


def _identity(options: Mapping[str, Any], must_exist: bool) -> tuple[str, Mode]:
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
    klass: object, data: object, options: Mapping[str, Any], others: Sequence[str]
) -> dict[str, Any]:
    """What was given, and for the rest what a class says in `default_job_options(data)`, less `others`, which are for
    the other kind of put; of a function job its budgets. Raises UsageError."""
    given = {name: value for name, value in options.items() if value is not None}
    if getattr(klass, "is_function_job", False):
        own = cast("Any", klass).registered.travelling
        return {"retries": own["retries"], "max_losses": own["max_losses"], **given}
    defaults = None if isinstance(klass, str) else getattr(klass, "default_job_options", None)
    if not callable(defaults):
        return given
    made: Any = defaults({} if data is NOTHING else data)
    if not isinstance(made, Mapping):
        raise UsageError(f"default_job_options of {name_of(klass)} must return a mapping, not {made!r:.80}")
    known = cast("Mapping[str, Any]", made)
    return {**{name: known[name] for name in known if name not in others}, **given}


def put_of_item(
    settings: Settings, queue: str, item: object, shared: Mapping[str, Any]
) -> Put | PutWithOptions:
    """The command for one item of `put_many`: (klass, data), or a mapping with klass, data and options."""
    if isinstance(item, tuple):
        return make_put(settings, queue, *_pair(cast("Any", item)), shared)
    if isinstance(item, Mapping):
        options = dict(cast("Mapping[str, Any]", item))
        klass, data = options.pop("klass", None), options.pop("data", NOTHING)
        for option in options:
            if option not in _ITEM:
                raise unknown_option("put_many", option, _ITEM)
        if klass is not None:
            return make_put(settings, queue, klass, data, {**shared, **options})
    raise _not_an_item(item)


def _pair(item: Any) -> tuple[Any, Any]:
    try:
        klass, data = item
    except ValueError:
        raise _not_an_item(item) from None
    return klass, data


def _not_an_item(item: Any) -> UsageError:
    return UsageError(
        f"put_many takes (klass, data) pairs, or mappings with klass, data and options, not {item!r}"
    )
