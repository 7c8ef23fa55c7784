"""Jobs made by hand: their parts, checked, and the defaults of one that never met a store."""

from collections.abc import Mapping
from time import time
from typing import Any, Final, TypedDict, cast, get_args

from holdfast.client.jobs.facts import most_data
from holdfast.codecs import encode_data
from holdfast.errors import UsageError
from holdfast.ids import mint_jid
from holdfast.models import JobFacts, State
from holdfast.settings import (
    MAX_RETRIES,
    MAX_WHOLE,
    check_list,
    check_milliseconds,
    check_name,
    check_text,
    check_whole,
    unknown_option,
)


class JobParts(TypedDict, total=False):
    """What a job made by hand may be given beside `jid` and `klass`; what is left out is as a new job has it.

    `data` is JSON text or any JSON value; `queue` a queue or its name, '' for none; `expires` the end of the lease in
    epoch seconds; `remaining` the retries left of `retries`; `failure` and the entries of `history` are mappings as a
    job shows them. `tags`, `throttles`, `dependencies`, `dependents` are lists; an empty mapping stands for an empty one.
    """

    data: object
    priority: int
    queue: object
    tags: object
    throttles: object
    state: State
    failure: Mapping[str, Any]
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
_LOCAL: Final = ("tags", "throttles", "failure", "history")
LEASE: Final = 3600.0
"""Seconds of the lease of a job that `Job.build` makes."""


def made_facts(client: Any, jid: object, klass: object, parts: Mapping[str, Any]) -> JobFacts:
    """The facts of a job made by hand. Raises UsageError naming the part that cannot be."""
    for part in parts:
        if part not in _PARTS:
            raise unknown_option("Job", part, _PARTS)
    state, retries = (
        parts.get("state", "waiting"),
        check_whole("retries", parts.get("retries", 5), 0, MAX_RETRIES),
    )
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
        remaining=check_whole("remaining", parts.get("remaining", retries), -1, MAX_RETRIES),
        expires_ms=check_milliseconds("expires", parts.get("expires", 0), 0, 2**43),
        dependencies=tuple(_texts("dependencies", parts)),
        dependents=tuple(_texts("dependents", parts)),
        spawned_from=_name("spawned_from_jid", parts.get("spawned_from_jid") or ""),
        tracked=bool(parts.get("tracked", False)),
    )


def made_edits(parts: Mapping[str, Any]) -> dict[str, Any]:
    """What such a job shows as it was given, whatever a store would make of it."""
    edits: dict[str, Any] = {name: _texts(name, parts) for name in ("tags", "throttles") if name in parts}
    if "failure" in parts:
        edits["failure"] = dict(_mapping("failure", parts["failure"]))
    if "history" in parts:
        entries = parts["history"] or ()
        edits["history"] = [
            dict(_mapping("an entry of history", entry)) for entry in check_list("history", entries)
        ]
    return edits


def built(klass: object, given: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a job that never met a store: those given, and for the others what `Job.build` says."""
    defaults: dict[str, Any] = {
        "jid": mint_jid(), "queue": "mock_queue", "worker": "mock_worker", "state": "running",
        "expires": time() + LEASE, "retries": 5, "failure": {}, "history": [], "tags": [], "throttles": [],
    }  # fmt: skip
    parts = {**defaults, **given}
    return {**parts, "klass": klass, "remaining": parts.get("remaining", parts["retries"])}


def _name(what: str, given: object) -> str:
    text = check_text(what, given if what != "queue" else str(given))
    return check_name(what, text) if text else ""


def _texts(what: str, parts: Mapping[str, Any]) -> list[str]:
    given = parts.get(what) or ()
    return [check_text(what, name) for name in check_list(what, given)]


def _mapping(what: str, given: object) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise UsageError(f"{what} must be a mapping, not {given!r:.80}")
    return cast("Mapping[str, Any]", given)
