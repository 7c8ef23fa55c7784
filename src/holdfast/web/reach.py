"""What each verb of the gateway, each page with its JSON twin and each action reaches: one table, by which limited users are refused.

An entry names the fields of a request that name queues, topics, throttles, workers and jobs: those have to be the user's. What is not in
the table, or is `WHOLE`, reaches the whole namespace and is refused to users with limits.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

import msgspec

from holdfast.commands.views import OF_QUEUES, OF_TOPICS
from holdfast.web.gateway.flows import GivenFlow


class NamedThings(msgspec.Struct):
    """What one request names. `jobs` are jids with the token of their lease, 0 for none; `recurring` are jids of recurring jobs, `flows`
    ids of flows.

    `is_known` is False if the request has a form that the table does not know.
    """

    queues: list[str] = []
    topics: list[str] = []
    throttles: list[str] = []
    workers: list[str] = []
    jobs: list[tuple[str, int]] = []
    recurring: list[str] = []
    flows: list[str] = []
    is_known: bool = True

    def __bool__(self) -> bool:
        """Whether it names anything but workers: those are always the user's own."""
        return any((self.queues, self.topics, self.throttles, self.jobs, self.recurring, self.flows))


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a request that name something: a name, a list of names, or a list of jobs.

    `more` adds what is named in another way. `is_cut`: the result is cut to what is the user's, so nothing has to be named.
    `is_free`: it shows and changes nothing of queues. `is_whole`: it reaches the whole namespace.
    """

    queues: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    throttles: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    recurring: tuple[str, ...] = ()
    flows: tuple[str, ...] = ()
    more: Callable[[Any, NamedThings], None] | None = None
    is_cut: bool = False
    is_free: bool = False
    is_whole: bool = False

    def named(self, request: Any) -> NamedThings:
        """Return what a request names."""
        found = NamedThings(
            _names(request, self.queues),
            _names(request, self.topics),
            _names(request, self.throttles),
            _workers(request, self.workers),
            _jobs(request, self.jobs),
            _names(request, self.recurring),
            _names(request, self.flows),
        )
        if self.more is not None:
            self.more(request, found)
        return found

    def with_workers(self, request: Any, name: Callable[[str], str]) -> Any:
        """Return a request whose workers have the names that a function makes of theirs."""
        changed: dict[str, Any] = {}
        for field in self.workers:
            value = getattr(request, field)
            changed[field] = (
                (name(value) if value else value)
                if isinstance(value, str)
                else [msgspec.structs.replace(one, worker=name(one.worker)) for one in value]
            )
        return msgspec.structs.replace(request, **changed) if changed else request


def reach_of(what: str) -> Reach:
    """Return what a verb, page or action reaches; everything if it is not in the table."""
    return REACH.get(what, WHOLE)


def _values(request: Any, fields: Iterable[str]) -> Iterable[Any]:
    for field in fields:
        value = getattr(request, field, None)
        if isinstance(value, (list, tuple)):
            yield from cast("list[Any]", value)
        elif value:
            yield value


def _names(request: Any, fields: Iterable[str]) -> list[str]:
    return list(_values(request, fields))


def _workers(request: Any, fields: Iterable[str]) -> list[str]:
    return [one if isinstance(one, str) else one.worker for one in _values(request, fields)]


def _jobs(request: Any, fields: Iterable[str]) -> list[tuple[str, int]]:
    return [_job(request, one) for one in _values(request, fields)]


def _job(request: Any, named: Any) -> tuple[str, int]:
    """Return the jid and the token of a jid, of a (jid, value) pair, or of a job in a list."""
    if isinstance(named, str):
        return named, getattr(request, "token", 0) if named == getattr(request, "jid", None) else 0
    if isinstance(named, tuple):
        jid, _ = cast("tuple[str, str]", named)
        return jid, 0
    return named.jid, named.token


# What is named in other ways than by fields.

_TO_QUEUES: Final = frozenset(("retry", "fail", "move"))
_BACK: Final = re.compile(r"[0-9]+ [0-9]+ (.*)", re.DOTALL)
IN_PLACE: Final = frozenset(
    (
        "cancel", "delete", "expire", "run", "delay", "priority", "retries", "data", "tag", "untag", "track", "untrack",
    )
)  # fmt: skip
"""Actions of `act` that leave a job in its queue."""


def _of_act(request: Any, found: NamedThings) -> None:
    values = [one for one in (request.common, *(value for _, value in request.jobs)) if one]
    if request.action in _TO_QUEUES:
        found.queues += values
    elif request.action == "move-back":
        found.queues += [match[1] if (match := _BACK.fullmatch(one)) else one for one in values]
    else:
        found.is_known = request.action in IN_PLACE


def _of_set(request: Any, found: NamedThings) -> None:
    if request.set in OF_QUEUES:
        found.queues.append(request.name)
    elif request.set in OF_TOPICS:
        found.topics.append(request.name)
    else:
        found.is_known = False


def _of_follow_ups(request: Any, found: NamedThings) -> None:
    for one in request.follow:
        found.queues.append(one.queue)
        found.throttles += one.throttles or ()
        found.jobs += [(jid, 0) for jid in (one.jid, *(one.depends or ())) if jid]


def _of_flow_jobs(request: GivenFlow, found: NamedThings) -> None:
    for one in request.jobs:
        found.queues.append(one.queue)
        found.throttles += one.throttles
        found.jobs += [(parent.jid, 0) for parent in one.parents if isinstance(parent.jid, str)]


def _of_facts(request: Any, found: NamedThings) -> None:
    """Add the queues that a worker reports to serve: whoever looks at one of these sees it."""
    served = request.facts.get("queues", "")
    try:
        found.queues += msgspec.json.decode(served, type=list[str]) if served else []
    except msgspec.MsgspecError:
        found.queues.append(served)


# The table.

WHOLE: Final = Reach(is_whole=True)
_FREE: Final = Reach(is_free=True)
_QUEUE: Final = Reach(queues=("queue",))
_QUEUES: Final = Reach(queues=("queues",))
_TOPIC: Final = Reach(topics=("topic",))
_THROTTLE: Final = Reach(throttles=("name",))
_JOB: Final = Reach(jobs=("jid",))
_JOBS: Final = Reach(jobs=("jids",))
_FLOW: Final = Reach(flows=("flow",))
_FLOWS: Final = Reach(flows=("flows",))
_LEASE: Final = Reach(workers=("worker",), jobs=("jid",))
_RECURRING: Final = Reach(recurring=("jid",))

VERBS: Final[Mapping[str, Reach]] = {
    "act": Reach(jobs=("jobs",), more=_of_act),
    "advance": Reach(queues=("next_queue",), workers=("worker",), jobs=("jid",)),
    "await": _JOBS,
    "cancel": _JOBS,
    "complete": _LEASE,
    "complete_pop": Reach(queues=("queues",), workers=("worker",), jobs=("jobs",)),
    "complete_x": Reach(
        queues=("next_queue",), workers=("worker",), jobs=("jid", "depends"), more=_of_follow_ups
    ),
    "counts": Reach(queues=("queues",), is_cut=True),
    "depend": Reach(jobs=("jid", "parents")),
    "dependents": _JOB,
    "explain": _JOB,
    "fail": _LEASE,
    "flow_forget": _FLOWS,
    "flow_get": _FLOWS,
    "flow_put": Reach(flows=("flow",), more=_of_flow_jobs),
    "flow_states": _FLOW,
    "flow_steps": _FLOW,
    "heartbeat": _LEASE,
    "info": _FREE,
    "job_get": _JOBS,
    "list": Reach(more=_of_set),
    "log": _JOB,
    "minutes": _QUEUE,
    "move": Reach(queues=("queue",), throttles=("throttles",), jobs=("jid", "depends")),
    "pause": _QUEUES,
    "peek": _QUEUE,
    "pop": Reach(queues=("queues",), workers=("worker",)),
    "priority": _JOBS,
    "put": Reach(queues=("queue",), throttles=("throttles",), jobs=("jid", "depends")),
    "queue_forget": _QUEUES,
    "queue_get": _QUEUE,
    "queue_set": _QUEUE,
    "queues": Reach(is_cut=True),
    "recur": Reach(queues=("queue",), throttles=("throttles",), recurring=("jid",)),
    "recur_cancel": Reach(recurring=("jids",)),
    "recur_get": Reach(recurring=("jids",)),
    "recur_pause": _RECURRING,
    "recur_run": _RECURRING,
    "recur_tag": _RECURRING,
    "recur_update": Reach(queues=("queue",), throttles=("throttles",), recurring=("jid",)),
    "release": Reach(workers=("jobs",), jobs=("jobs",)),
    "report": _LEASE,
    "resume": Reach(workers=("worker", "jobs"), jobs=("jobs",)),
    "retry": _LEASE,
    "scan": Reach(more=_of_set),
    "stats": _QUEUE,
    "tag": _JOB,
    "throttle_delete": _THROTTLE,
    "throttle_get": _THROTTLE,
    "throttle_release": Reach(throttles=("name",), jobs=("jids",)),
    "throttle_set": _THROTTLE,
    "timeout": _JOBS,
    "topic_counts": Reach(topics=("topics",)),
    "topic_delete": _TOPIC,
    "topic_get": _TOPIC,
    "topic_pull": _TOPIC,
    "topic_put": _TOPIC,
    "topic_release": _TOPIC,
    "topic_requeue": _TOPIC,
    "topic_reschedule": _TOPIC,
    "topic_reserve": _TOPIC,
    "track": _JOB,
    "worker_seen": Reach(workers=("worker",), more=_of_facts, is_free=True),
    **dict.fromkeys(
        (
            "audit", "audit_list", "config_get", "config_set", "config_unset", "failed", "failure_groups", "failures",
            "flow_list", "identifiers_set", "jobs_complete", "operation_get", "operations", "patterns", "priorities_set", "setting", "settings",
            "sweep", "tagged", "tags", "throttles", "tracked", "unfail", "worker_forget", "worker_jobs", "worker_quiet", "workers",
        ),
        WHOLE,
    ),
}  # fmt: skip
"""The verbs of the gateway."""

PAGES: Final[Mapping[str, Reach]] = dict.fromkeys(
    (
        "/", "/queues", "/queues/{name}", "/jobs", "/jobs/{name}", "/completed", "/tracked", "/tags", "/tags/{name}", "/filter",
        "/failed", "/failed/{name}", "/recurring", "/recurring/{name}", "/flows", "/flows/{name}", "/topics", "/topics/{name}", "/workers", "/workers/{name}",
        "/throttles", "/throttles/{name}", "/operations", "/operations/{name}", "/audit", "/config", "/about", "/bundle", "/api",
    ),
    WHOLE,
)  # fmt: skip
"""The pages and their JSON twins: each shows what there is in the whole namespace, in its lists, menus or numbers."""

_ACTIONS: Final[Mapping[str, str]] = {
    "attention": "snooze unsnooze",
    "queues": "pause resume put purge set forget",
    "jobs": "retry fail move cancel delete expire run delay priority retries data tag untag track untrack move-back edit undepend reveal",
    "failed": "retry move cancel mute unmute probe edit",
    "recurring": "run pause resume delete edit add preview",
    "flows": "retry cancel close forget",
    "topics": "put cancel deliver postpone give-back",
    "workers": "quiet resume forget",
    "throttles": "set delete release",
    "operations": "stop resume undo",
    "config": "set patterns priorities",
}
ACTIONS: Final[Mapping[str, Reach]] = dict.fromkeys(
    [f"{noun}/{verb}" for noun, verbs in _ACTIONS.items() for verb in verbs.split()], WHOLE
)
"""The actions of the pages and of the JSON API: they take filters, groups and patterns. Limited users have the verbs in their place."""

REACH: Final[Mapping[str, Reach]] = {**VERBS, **PAGES, **ACTIONS}
"""The whole table."""
