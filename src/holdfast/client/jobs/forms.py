"""Make a job by hand from its parts, and show it as a mapping, as options of a put, and its history with datetimes."""

from collections.abc import Mapping
from datetime import UTC, datetime
from time import time
from typing import Any, Final, TypedDict, cast, get_args

from holdfast.bounds import Retries, limits
from holdfast.client.descriptors import PlanProperty
from holdfast.client.jobs.facts import JobView, most_data
from holdfast.codecs import encode_data
from holdfast.commands.recurring import RecurGet
from holdfast.errors import UsageError
from holdfast.ids import mint_jid
from holdfast.models import JobFacts, State, text
from holdfast.settings import (
    MAX_WHOLE,
    check_bounded,
    check_list,
    check_milliseconds,
    check_name,
    check_text,
    check_whole,
    unknown_option,
)
from holdfast.wire.plans import Plan, Planner


class JobParts(TypedDict, total=False):
    """Arguments of a job made by hand, in addition to `jid` and `klass`; what is left out is as in a new job.

    `data` is JSON text or any JSON value; `queue` a queue or its name, '' for none; `expires` the end of the lease in
    epoch seconds; `remaining` the retries left of `retries`; `failure` and the entries of `history` are mappings as a
    job shows them. `tags`, `throttles`, `dependencies`, `dependents` are lists; an empty mapping counts as an empty list.
    """

    data: object
    priority: int
    queue: object
    tags: object
    throttles: object
    state: State
    failure: Mapping[str, object]
    dependencies: object
    dependents: object
    tracked: bool
    worker: str
    token: int
    remaining: int
    retries: int
    expires: float
    history: object
    spawned_from_jid: str | None


_PARTS: Final = tuple(JobParts.__annotations__)
LEASE: Final = 3600.0
"""Seconds of the lease of a job that `Job.build` makes."""


def made_facts(client: object, jid: object, klass: object, parts: Mapping[str, Any]) -> JobFacts:
    """Return the facts of a job made by hand. Raises UsageError naming the part that is wrong."""
    for part in parts:
        if part not in _PARTS:
            raise unknown_option("Job", part, _PARTS)
    state, retries = parts.get("state", "waiting"), parts.get("retries", 5)
    check_bounded("retries", retries, Retries)
    if state not in get_args(State):
        raise UsageError(f"state must be one of {', '.join(get_args(State))}, not {state!r}")
    return JobFacts(
        jid=check_name("jid", jid),
        klass=check_name("klass", klass),
        queue=_name("queue", parts.get("queue", "")),
        data=encode_data(parts.get("data", {}), most_data(client)),
        token=check_whole("token", parts.get("token", 0), 0, MAX_WHOLE),
        worker=_name("worker", parts.get("worker", "")),
        state=state,
        priority=check_whole("priority", parts.get("priority", 0), -MAX_WHOLE, MAX_WHOLE),
        retries=retries,
        remaining=check_whole("remaining", parts.get("remaining", retries), -1, limits(Retries)[1]),
        expires_ms=check_milliseconds("expires", parts.get("expires", 0), 0, 2**43),
        dependencies=tuple(_texts("dependencies", parts)),
        dependents=tuple(_texts("dependents", parts)),
        spawned_from=_name("spawned_from_jid", parts.get("spawned_from_jid") or ""),
        tracked=bool(parts.get("tracked", False)),
    )


def made_edits(parts: Mapping[str, object]) -> dict[str, object]:
    """Return the attributes that such a job shows as they were given, whatever a store would make of them."""
    edits: dict[str, object] = {name: _texts(name, parts) for name in ("tags", "throttles") if name in parts}
    if "failure" in parts:
        edits["failure"] = dict(_mapping("failure", parts["failure"]))
    if "history" in parts:
        entries = parts["history"] or ()
        edits["history"] = [
            dict(_mapping("an entry of history", entry)) for entry in check_list("history", entries)
        ]
    return edits


def built(klass: object, given: Mapping[str, object]) -> dict[str, Any]:
    """Return the parts of a job without a store: those given, and the defaults of `Job.build`."""
    defaults: dict[str, object] = {
        "jid": mint_jid(), "queue": "mock_queue", "worker": "mock_worker", "state": "running",
        "expires": time() + LEASE, "retries": 5, "failure": {}, "history": [], "tags": [], "throttles": [],
    }  # fmt: skip
    parts = {**defaults, **given}
    return {**parts, "klass": klass, "remaining": parts.get("remaining", parts["retries"])}


def _name(what: str, given: object) -> str:
    text = check_text(what, given if what != "queue" else str(given))
    return check_name(what, text) if text else ""


def _texts(what: str, parts: Mapping[str, object]) -> list[str]:
    given = parts.get(what) or ()
    return [check_text(what, name) for name in check_list(what, given)]


def _mapping(what: str, given: object) -> Mapping[str, object]:
    if not isinstance(given, Mapping):
        raise UsageError(f"{what} must be a mapping, not {given!r:.80}")
    return cast("Mapping[str, object]", given)


_SHOWN: Final = (
    "jid", "spawned_from_jid", "expires_at", "state", "queue_name", "history", "worker_name", "failure", "klass_name",
    "tracked", "dependencies", "dependents", "original_retries", "retries_left", "data", "priority", "tags", "throttles",
)  # fmt: skip
_NO_TIMES: Final = frozenset(("attempt", "token"))
_OPTIONS: Final[Mapping[str, Any]] = {
    "data": {}, "delay": 0, "priority": 0, "tags": [], "retries": 5, "depends": [], "throttles": [],
}  # fmt: skip


class JobForms(JobView):
    """Methods that programs of older clients use."""

    @property
    def raw_queue_history(self) -> list[dict[str, Any]]:
        """The same as `history`."""
        return self.history

    @property
    def queue_history(self) -> list[dict[str, Any]]:
        """A copy of `history` in which every number is an aware UTC datetime, but for `attempt` and `token`."""
        return [{name: _moment(name, value) for name, value in entry.items()} for entry in self.history]

    @property
    def initially_put_at(self) -> datetime | None:
        """When the job was put first; None if its history does not have it."""
        found = [entry.get("when") for entry in self.history if entry.get("what") == "put"]
        moments = [when for when in found if isinstance(when, (int, float))]
        return datetime.fromtimestamp(min(moments), UTC) if moments else None

    @PlanProperty
    def spawned_from(self, ask: Planner) -> Plan[Any]:
        """The recurring job that put this one; None without one, or if it is gone. Core: verbs/recur.lua."""
        jid = self.spawned_from_jid
        if not jid:
            return None
        found = yield from ask(RecurGet((jid,)))
        return self._client.recurring._of(found[0])

    @property
    def throttle_objects(self) -> list[Any]:
        """The throttles of the job as handles, in their order."""
        return [self._client.throttles[name] for name in self.throttles]

    def to_hash(self) -> dict[str, Any]:
        """Return the attributes of the job as a dict."""
        # Also data that are not UTF-8.
        return {name: text(self.raw_data) if name == "data" else getattr(self, name) for name in _SHOWN}

    def enqueue_opts(self) -> dict[str, Any]:
        """Return the options with which `put` makes such a job again: retries, max_losses if it has such a budget, priority, depends, tags, throttles, data."""
        losses = self.facts.max_losses
        return {
            **({} if losses is None else {"max_losses": losses}),
            "retries": self.original_retries,
            "priority": self._read_priority(),
            "depends": list(self.dependencies),
            "tags": list(self.tags),
            "throttles": list(self.throttles),
            "data": self.data,
        }

    @staticmethod
    def build_opts_array(opts: Mapping[str, Any] | None = None) -> list[Any]:
        """Return the arguments of the older core: data as JSON text, delay, then priority, tags, retries, depends and
        throttles as pairs, lists as JSON text. Raises UsageError for other options.
        """
        if opts is not None and not isinstance(opts, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"opts must be a mapping, not {opts!r:.80}")
        given = opts or {}
        for option in given:
            if option not in _OPTIONS:
                raise unknown_option("build_opts_array", option, tuple(_OPTIONS))
        all_ = {**_OPTIONS, **given}
        words: list[object] = [encode_data(all_["data"]).decode(), all_["delay"]]
        for name in ("priority", "tags", "retries", "depends", "throttles"):
            value = all_[name]
            words += (name, encode_data(list(value)).decode() if isinstance(_OPTIONS[name], list) else value)
        return words

    def reconnect_to_redis(self) -> Any:
        """Close the client's idle connections; the next call opens a new one. After a fork this is not needed."""
        return self._client.close()


def _moment(name: str, value: object) -> object:
    if name in _NO_TIMES or isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    try:
        return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        return value
