"""Settings of the namespace, the patterns and the priorities of queues, and how they are changed."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from holdfast.client.config import KNOWN, OF_THE_ROOT, POSITIVE
from holdfast.client.patterns import QueuePriorityPattern
from holdfast.console.configuration import QueueOrder, SettingChange, SettingChanged, changes_of, version_of
from holdfast.console.read.fleet import QueueStep
from holdfast.console.read.namespace_queries import Setting
from holdfast.errors import UsageError
from holdfast.text import listed, name_or_count
from holdfast.web.context import Context
from holdfast.web.views import ActionRoute, Body, Done, Question, Repeal, TagsBody, View

Tab = Literal["settings", "patterns", "priorities"]


class ConfigQuery(msgspec.Struct, frozen=True):
    """Which tab; `patterns` are those of a worker whose queues are wanted, with commas between them."""

    tab: Tab = "settings"
    patterns: str = ""


class SettingRow(msgspec.Struct, frozen=True):
    """A setting with its smallest and largest number, None for any; `step` is 1 for whole numbers, 0 if it is not a number."""

    setting: Setting
    least: float | None
    most: float | None
    step: float

    @property
    def range(self) -> str:
        """The values that it may have, in words."""
        number = "a whole number" if self.step == 1 else "a number"
        if self.most is not None:
            return f"{number} from {self.least:g} to {self.most:.0f}"
        return (
            f"{number} above 0"
            if self.least and self.least < 1
            else f"{number} of at least {self.least or 0:g}"
        )


class ConfigPage(msgspec.Struct, frozen=True):
    """The settings, patterns and priorities. `trial` are the queues of a worker with the patterns of the query, in its order."""

    now_ms: int
    settings: tuple[SettingRow, ...]
    others: Mapping[str, str]
    order: QueueOrder
    query: ConfigQuery
    trial: tuple[QueueStep, ...]

    @property
    def tag(self) -> str:
        """The entity tag of all that the page changes."""
        values = {row.setting.name: row.setting.value for row in self.settings} | dict(self.others)
        return tag_of(values, self.order)

    @staticmethod
    def written(patterns: Sequence[str]) -> str:
        """Return patterns as a field of a form has them."""
        return list_text(patterns)


def tag_of(values: Mapping[str, str], order: QueueOrder) -> str:
    """Return the entity tag of settings, patterns and priorities."""
    return version_of([values, order.identifiers_version, order.rules_version])


async def _tagged(ctx: Context, _: Body) -> TagsBody:
    """Return the value of each setting, for a request that may change any of them."""
    found = await ctx.console.settings()
    values = {one.name: one.value for one in found.known} | dict(found.others)
    return TagsBody(tag_of(values, await ctx.console.queue_order()), values)


async def config(ctx: Context, query: ConfigQuery) -> ConfigPage:
    """Return the settings, patterns and priorities."""
    ctx.now_ms = await ctx.console.now_ms()
    found = await ctx.console.settings()
    trial = await ctx.console.queue_steps(*_list(query.patterns))
    rows = tuple(_row(one) for one in found.known)
    return ConfigPage(ctx.now_ms, rows, found.others, await ctx.console.queue_order(), query, trial)


def _row(one: Setting) -> SettingRow:
    if one.name in OF_THE_ROOT:
        least, most = OF_THE_ROOT[one.name]
        return SettingRow(one, least, most, 1)
    if one.name in KNOWN:
        lowest, is_whole = KNOWN[one.name]
        return SettingRow(one, 0.001 if one.name in POSITIVE else lowest, None, 1 if is_whole else 0.001)
    return SettingRow(one, None, None, 0)


def _list(text: str) -> list[str]:
    """Return patterns that are written with commas between them, or as a JSON list. Raises UsageError."""
    if not text.lstrip().startswith("["):
        return [one.strip() for one in text.split(",") if one.strip()]
    try:
        return msgspec.json.decode(text.encode(), type=list[str])
    except (msgspec.MsgspecError, UnicodeError):
        raise UsageError(f"patterns: expected names with commas between them, got {text!r:.200}") from None


def list_text(patterns: Sequence[str]) -> str:
    """Return patterns as `_list` reads them: with commas between them, as JSON only where one has a comma or blanks around it."""
    text = ", ".join(patterns)
    is_plain = not text.startswith("[") and _list(text) == list(patterns)
    return text if is_plain else msgspec.json.encode(list(patterns)).decode()


# Settings.


class Set(Body, frozen=True, kw_only=True):
    """Settings by `name`, each with its new `value` ("": the default) and the value that was `seen`; none: whatever it is.

    `reset` is the name of one of them that gets its default, and is the only one that is changed.
    """

    name: list[str]
    value: list[str] = []
    seen: list[str] = []
    reset: str = ""


def _changes(body: Set, matched: Mapping[str, str] | None) -> list[SettingChange]:
    """Return what a form or a program wants to change; `matched` are the values that it has seen. Raises UsageError."""
    values = body.value or [""] * len(body.name)
    if len(values) != len(body.name) or len(body.seen) not in (0, len(body.name)):
        raise UsageError("expected as many values, and as many seen values, as names")
    seen: Sequence[str | None] = body.seen or [None] * len(body.name)
    if matched is not None and not body.seen:
        seen = [matched.get(name, "") for name in body.name]
    found = [
        SettingChange(name, before if value == before else value.strip() or None, before)
        for name, value, before in zip(body.name, values, seen, strict=True)
        if name or value
    ]
    if body.reset:
        return [msgspec.structs.replace(one, value=None) for one in found if one.name == body.reset]
    return [one for one in found if one.seen is None or (one.value or "") != one.seen]


async def set_settings(ctx: Context, body: Set) -> Done | Question:
    """Change settings, after a look at what would change."""
    changes = _changes(body, ctx.matched)
    if not body.confirm and not body.reset:
        planned = changes_of(await ctx.console.settings(), changes)
        if planned:
            return _question(planned)
    done = await ctx.console.change_settings(*changes)
    if not done:
        return Done(text="Nothing to change.", changed=0)
    text = listed([f"{one.name} is {_shown(one.after)}" for one in done], 5)
    undo = {
        "name": [one.name for one in done],
        "value": [one.before if one.was_set else "" for one in done],
    }
    return Done(
        text=f"Changed: {text}.",
        changed=len(done),
        keys=("config",),
        undo=Repeal("config", "set", undo),
        result=done,
    )


def _question(planned: Sequence[SettingChanged]) -> Question:
    count = name_or_count("setting", [one.name for one in planned])
    return Question(
        title=f"Change {count}?",
        text="Clients and workers use the new values within ten seconds.",
        button=f"Change {count}",
        details=tuple(f"{one.name}: {_shown(one.before)} → {_shown(one.after)}" for one in planned),
    )


def _shown(value: str) -> str:
    return value if value and len(value) <= 200 else f"{value[:200]}…" if value else "not set"


# Patterns and priorities of queues.


class Patterns(Body, frozen=True, kw_only=True):
    """All identifiers by `name`, each with its patterns in `value`, with commas between them; "" leaves one out.

    `seen` is the version of those that were shown, "" for any. `drop` is the number of a row that is left out.
    """

    name: list[str] = []
    value: list[str] = []
    seen: str = ""
    drop: int = -1


async def set_patterns(ctx: Context, body: Patterns) -> Done:
    """Replace all queue patterns."""
    if len(body.name) != len(body.value):
        raise UsageError("expected as many values as names")
    rows = [
        (name.strip(), _list(value))
        for at, (name, value) in enumerate(zip(body.name, body.value, strict=True))
        if at != body.drop and (name.strip() or value.strip())
    ]
    mapping = {name: patterns for name, patterns in rows if patterns}
    if len(mapping) < sum(bool(patterns) for _, patterns in rows):
        raise UsageError("name: two rows have the same name")
    before = await ctx.console.queue_order()
    if not await ctx.console.set_patterns(mapping, seen=body.seen):
        return Done(text="Nothing to change.", changed=0)
    old = {
        "name": [one.name for one in before.identifiers],
        "value": [list_text(one.patterns) for one in before.identifiers],
    }
    return Done(
        text="Queue patterns saved; workers use them within five minutes.",
        keys=("config",),
        undo=Repeal("config", "patterns", old),
    )


class Priorities(Body, frozen=True, kw_only=True):
    """All rules in their order: each has its patterns in `pattern`, with commas between them; "" leaves one out.

    `fairly` are the numbers of the rules whose queues take turns. `seen` is the version of those that were shown, "" for any.
    `up`, `down` and `drop` are the number of a rule that is moved by one place, or left out.
    """

    pattern: list[str] = []
    fairly: list[int] = []
    seen: str = ""
    up: int = -1
    down: int = -1
    drop: int = -1


def _rules(body: Priorities) -> list[QueuePriorityPattern]:
    """Return the rules in the order that is wanted."""
    rows = [(at, _list(text)) for at, text in enumerate(body.pattern)]
    order = [at for at, patterns in rows if patterns]
    for number, step in ((body.up, -1), (body.down, 1)):
        if number in order:
            place = order.index(number)
            other = min(max(place + step, 0), len(order) - 1)
            order[place], order[other] = order[other], order[place]
    return [QueuePriorityPattern(rows[at][1], at in body.fairly) for at in order if at != body.drop]


async def set_priorities(ctx: Context, body: Priorities) -> Done:
    """Replace all rules of the order of queues."""
    rules = _rules(body)
    before = await ctx.console.queue_order()
    if not await ctx.console.set_priorities(rules, seen=body.seen):
        return Done(text="Nothing to change.", changed=0)
    old = {
        "pattern": [list_text(one.patterns) for one in before.rules],
        "fairly": [at for at, one in enumerate(before.rules) if one.is_fair],
    }
    return Done(
        text="Queue priorities saved; workers use them within five minutes.",
        keys=("config",),
        undo=Repeal("config", "priorities", old),
    )


VIEWS: Final = (
    View(
        path="/config",
        template="config.html",
        load=config,
        query=ConfigQuery,
        summary="Every setting with its value, default and meaning; the patterns and priorities of queues.",
    ),
)
ACTIONS: Final = (
    ActionRoute(
        noun="config",
        verb="set",
        body=Set,
        run=set_settings,
        role="admin",
        tagged=_tagged,
        summary="Change settings, or reset them to their defaults.",
    ),
    ActionRoute(
        noun="config",
        verb="patterns",
        body=Patterns,
        run=set_patterns,
        role="admin",
        tagged=_tagged,
        summary="Replace all queue patterns.",
    ),
    ActionRoute(
        noun="config",
        verb="priorities",
        body=Priorities,
        run=set_priorities,
        role="admin",
        tagged=_tagged,
        summary="Replace all rules of the order of queues.",
    ),
)
