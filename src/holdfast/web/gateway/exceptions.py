"""What the rules of `fields.py` do not make: fields of single verbs, names of their results, and the verbs that are left out."""

from collections.abc import Mapping, Sequence
from time import time
from typing import Annotated, Any, Final, Literal, cast

import msgspec
from msgspec import Meta, Raw

from holdfast.bounds import Level, Name
from holdfast.client.config import set_command, unset_command
from holdfast.client.recur_options import timing
from holdfast.commands import Command
from holdfast.commands.dependencies import FollowUp
from holdfast.commands.jobs import CancelBy
from holdfast.commands.operations import MAX_CHANGED, SCANNED, Progress
from holdfast.commands.options import ExtraOptions, PutWithOptions
from holdfast.commands.outcomes import OWN_BACKOFF
from holdfast.commands.recurring import Recur, RecurUpdate
from holdfast.commands.views import SETS
from holdfast.errors import UsageError
from holdfast.settings import check_name
from holdfast.web.gateway import flows
from holdfast.web.gateway.fields import (
    JID,
    KEEP,
    FieldPart,
    GatewayField,
    Seconds,
    Value,
    constant,
    flattened,
    list_of,
    same,
)

LEFT_OUT: Final[Mapping[str, str]] = {
    "audited": "the gateway writes the audit log itself",
    "call": "the commands of an older protocol; the verbs here do the same",
    "cancel_by": "`cancel` records the user's name",
    "clock": "only for tests",
    "describe": "the functions in the store; `/v1/openapi.json` describes the verbs",
    "expire": "an older form of `release`",
    "find_work": "for workers that wait in the store; `pop` waits here",
    "end_with_flow": "jobs of Python programs return flows; others complete, and put a flow",
    "flow_add": "groups of any number of jobs are put by clients",
    "flow_close": "groups of any number of jobs are put by clients",
    "flow_results": "groups of any number of jobs are put by clients",
    "operation_set": "operations run in the application: `POST /api/v1/operations`",
    "recur_extend": "workers plan recurring jobs on",
    "recur_unplanned": "workers plan recurring jobs on",
    "put_x": "`put` takes its options",
    "tick": "the store and the web UI do this themselves",
    "watch": "what it publishes does not come over HTTP",
    "worker_answer": "what it publishes does not come over HTTP",
    "worker_ask": "the reply does not come over HTTP",
}
"""Verbs of the core that the gateway does not have, and why."""

REPLACED: Final[Mapping[str, type[msgspec.Struct]]] = {"put": PutWithOptions, "cancel": CancelBy}
"""The command classes of verbs that are called by another function of the core, or by one of several."""
MORE_FUNCTIONS: Final[Mapping[str, tuple[str, ...]]] = {"put": ("put", "put_x"), "cancel": ("cancel_by",)}
"""The functions of the core that a verb calls, where it is not that of its name."""


def _mode(request: Any) -> str:
    return request.mode or ("new" if request.jid is None else "move")


def _own_backoff(request: Any) -> int:
    return OWN_BACKOFF if request.delay is None else round(request.delay * 1000)


# Messages of topics.


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message of a `topic_put`. `when` is in seconds: from now, or since 1970 with `how` "at". A body that is text stays as it is."""

    id: Name
    body: Raw
    when: Seconds = 0.0


class Reservation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message of a `topic_release`. With a deadline it has to be reserved until then."""

    id: Name
    deadline: Seconds | None = None


def _messages(request: Any) -> list[object]:
    words: list[object] = []
    for one in request.messages:
        body = bytes(one.body)
        # Text is stored without its quotes, as every other door of topics does.
        body = msgspec.json.decode(body).encode() if body[:1] == b'"' else body
        words += (check_name("id", one.id), round(one.when * 1000), body)
    return words


def _reservations(request: Any) -> list[tuple[str, int | None]]:
    return [
        (check_name("id", one.id), None if one.deadline is None else round(one.deadline * 1000))
        for one in request.held
    ]


def _list_field(name: str, kind: Any, most: int) -> GatewayField:
    return GatewayField(name, Annotated[list[kind], Meta(max_length=most)])


_HOW: Final = same(GatewayField("how", Literal["in", "at"], "in"))


# Settings.


def _rules(request: Any) -> list[str]:
    return [bytes(one).decode() for one in request.rules]


def _set_setting(request: Any) -> Command[bool]:
    return set_command(request.key, request.value)


def _unset_setting(request: Any) -> Command[bool]:
    return unset_command(request.key)


def _patterns(request: Any) -> dict[str, str]:
    return {name: msgspec.json.encode(values).decode() for name, values in request.identifiers.items()}


def _changes(request: Any) -> Sequence[tuple[str, str]]:
    return [(check_name("jid", jid), value) for jid, value in request.jobs]


_PUT: Final[Mapping[str, FieldPart]] = {
    "mode": FieldPart((GatewayField("mode", Literal["move", "only", "old"] | None, None),), _mode)
}
_CALENDAR: Final = ("cron", "zone", "missed", "jitter", "start", "end")
_OF_CALENDAR: Final = (
    GatewayField("cron", str | None, None),
    GatewayField("zone", str | None, None),
    GatewayField("jitter", Seconds | None, None),
    GatewayField("start", Seconds | None, None),
    GatewayField("end", Seconds | None, None),
)
_MISSED: Final = GatewayField("missed", Literal["once", "skip", "all"] | int | None, None)
_OVERLAP: Final = GatewayField("overlap", Literal["allow", "skip", "queue"] | None, None)


def _recur_maker(make: Value) -> Value:
    """Return what makes the command of a `recur`; the plan of a calendar is computed here."""

    def made(request: msgspec.Struct) -> object:
        command = cast("Recur", make(request))
        names = (*_CALENDAR, "overlap", "interval", "offset", "backlog")
        options = {name: getattr(request, name) for name in names}
        if options["interval"] is None and options["cron"] is None:
            raise UsageError("interval: give the seconds between two jobs, or cron")
        calendar, plan, interval_ms = timing(command.jid, options, time())
        overlap = "" if calendar else command.overlap or ""
        return msgspec.structs.replace(
            command, calendar=calendar, plan=plan, interval_ms=interval_ms, overlap=overlap
        )

    return made


def _recur_update_maker(make: Value) -> Value:
    """Return what makes the command of a `recur_update`; a calendar is replaced as a whole."""

    def made(request: msgspec.Struct) -> object:
        command = cast("RecurUpdate", make(request))
        options = {name: getattr(request, name) for name in (*_CALENDAR, "overlap", "interval")}
        if all(options[one.name] is None for one in _OF_CALENDAR):
            missed = None if command.missed is None else str(command.missed)
            return msgspec.structs.replace(command, missed=missed)
        if options["cron"] is None or options["zone"] is None:
            raise UsageError("a calendar is replaced as a whole: give cron and zone, and what else it has")
        calendar, plan, interval_ms = timing(command.jid, options, time())
        return msgspec.structs.replace(
            command, calendar=calendar, plan=plan, interval_ms=interval_ms, missed=None, overlap=None
        )

    return made


_RECURRING: Final[Mapping[str, FieldPart]] = {
    "interval_ms": constant(1)._replace(fields=(GatewayField("interval", Seconds | None, None),)),
    "overlap": same(_OVERLAP),
    "jid": JID,
    "options": flattened(
        ExtraOptions,
        {
            "depends": constant(()),
            "trace": constant(""),
            "on_conflict": constant(""),
            "debounce_max_ms": constant(0),
        },
    ),
    "calendar": constant(None)._replace(fields=(*_OF_CALENDAR, _MISSED)),
    "plan": constant(()),
    "declared": constant(None),
}
_LEVEL: Final = {"level": same(GatewayField("level", Level, 0))}
"""Programs behind the gateway understand what release 0.2 did, unless they state otherwise."""
SPECIAL: Final[Mapping[str, Mapping[str, FieldPart]]] = {
    "act": {
        "jobs": FieldPart((_list_field("jobs", tuple[Name, str], MAX_CHANGED),), _changes),
        "operation": constant(Progress()),
    },
    "complete_x": {"keep_ms": KEEP, "follow": list_of("follow", FollowUp, required=False)},
    "config_set": {"value": same(GatewayField("value", str | int | float))},
    "fail": {"lines": constant(())},
    "flow_put": flows.PUT,
    "identifiers_set": {
        "identifiers": FieldPart((GatewayField("identifiers", dict[Name, list[str]]),), _patterns),
    },
    "info": {"mode": constant(""), "clock_ms": constant(0)},
    "list": {"set": same(GatewayField("set", Literal[tuple(sorted(SETS))]))},
    "pop": _LEVEL,
    "complete_pop": _LEVEL,
    "priorities_set": {"rules": FieldPart((GatewayField("rules", list[Raw]),), _rules)},
    "put": _PUT,
    "recur": _RECURRING,
    "recur_update": {
        "vanished": constant(None),
        "missed": same(_MISSED),
        "overlap": same(_OVERLAP),
        "calendar": constant(None)._replace(fields=_OF_CALENDAR),
        "plan": constant(None),
    },
    "retry": {
        "delay_ms": FieldPart((GatewayField("delay", Seconds | None, 0.0),), _own_backoff),
        "lines": constant(()),
        "backoff": constant(""),
    },
    "scan": {"set": same(GatewayField("set", Literal[tuple(sorted(SCANNED))]))},
    "topic_put": {
        "how": _HOW,
        "messages": FieldPart((_list_field("messages", Message, 512),), _messages),
    },
    "topic_release": {"held": FieldPart((_list_field("held", Reservation, 512),), _reservations)},
    "topic_reschedule": {"how": _HOW},
}
"""Parts of single verbs, by the name of the command's field."""

MADE: Final[Mapping[str, Any]] = {
    "config_set": _set_setting,
    "config_unset": _unset_setting,
}
"""How the command of a verb is made, where its class alone does not check everything."""
MAKERS: Final[Mapping[str, Any]] = {
    "recur": _recur_maker,
    "recur_update": _recur_update_maker,
}
"""What makes the command of a verb, of what makes it by the rules."""
MORE_FIELDS: Final[Mapping[str, tuple[GatewayField, ...]]] = {
    verb: (GatewayField("wait", Annotated[float, Meta(ge=0, le=20)], 0.0),)
    for verb in ("pop", "complete_pop", "await")
}
"""Fields that are not of the command."""
NAMED_RESULTS: Final[Mapping[str, tuple[str, ...]]] = {
    "dependents": ("next", "jids"),
    "failed": ("total", "jids"),
    "failure_groups": ("next", "groups"),
    "failures": ("next", "groups"),
    "flow_list": ("next", "total", "flows"),
    "tagged": ("total", "jids"),
    "throttles": ("next", "names"),
}
"""The names of the parts of a result that has several."""
UNAUDITED: Final = frozenset(
    (
        "put", "flow_put", "recur", "topic_put", "await", "pop", "complete", "complete_pop", "complete_x", "advance", "retry", "fail",
        "heartbeat", "resume", "release", "report", "topic_reserve", "topic_pull", "topic_release", "worker_seen", "audit", "info",
    )
)  # fmt: skip
"""Changing verbs that leave no line in the audit log: the work of programs."""
