"""Commands about recurring jobs: templates that put a job at a fixed interval."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

import msgspec

from holdfast.bounds import (
    Backlog,
    Limit,
    Losses,
    Milliseconds,
    Name,
    Names,
    Offset,
    OptionalName,
    Priority,
    Retries,
    ThrottleNames,
    Whole,
)
from holdfast.commands.attributes import Tag
from holdfast.commands.base import AuditedChange, CommandBase, Reply, Word
from holdfast.commands.jobs import budgets
from holdfast.commands.options import ExtraOptions
from holdfast.ids import mint_jid
from holdfast.models import text, texts
from holdfast.text import clock

_NEVER: Final = 2**53 - 1
"""When a template is due that has no moment left: its plan has run out, or its calendar is over."""
_LATE_MS: Final = 5000
"""A run that is due for so long counts as missed: a worker asks the queue more often."""


class CalendarFacts(msgspec.Struct, frozen=True, gc=False):
    """What a template that follows a calendar has beside the others.

    `cron` and `zone` are as they were written, `tz` the version of the data about zones that its plan was made with. `missed`: which of the
    moments that were missed get a job (`once`, `skip`, `all` or a number); `overlap`: `allow`, `skip` a moment while the last job has not ended, or `queue` one behind it. In ms:
    `jitter`, `start` and `end` (0: none), `nominal` (the next moment), `planned` (the last one that is planned). `left_out` moments got no job.
    """

    cron: str
    zone: str = "UTC"
    tz: str = ""
    missed: str = "once"
    overlap: str = "allow"
    jitter_ms: int = 0
    start_ms: int = 0
    end_ms: int = 0
    nominal_ms: int = 0
    left_out: int = 0
    planned_ms: int = 0

    @classmethod
    def from_pairs(cls, pairs: Sequence[Reply]) -> "CalendarFacts | None":
        """Read (name, text) pairs of a row; None if there are none."""
        found = _pairs(pairs)
        if not found:
            return None
        numbers = {
            name: int(found.get(name) or 0) for name in ("jitter", "start", "end", "nominal", "planned")
        }
        return cls(
            found["cron"],
            found["zone"],
            found["tz"],
            found["missed"],
            found["overlap"],
            left_out=int(found.get("left_out") or 0),
            **{f"{name}_ms": value for name, value in numbers.items()},
        )


class DeclaredFacts(msgspec.Struct, frozen=True, gc=False):
    """Where a template is declared: in which `module`, by which `version` of the program ("": not given).

    The worker `by` of that code put it last at `declared_ms`; at `vanished_ms` (0: not yet) a worker had its module without the declaration.
    """

    module: str
    version: str = ""
    by: str = ""
    declared_ms: int = 0
    vanished_ms: int = 0

    @classmethod
    def from_pairs(cls, pairs: Sequence[Reply]) -> "DeclaredFacts | None":
        """Read (name, text) pairs of a row; None if there are none."""
        found = dict(zip(texts(pairs[::2]), texts(pairs[1::2]), strict=True))
        if not found:
            return None
        declared, vanished = (int(float(found[name])) for name in ("declared", "vanished"))
        return cls(found["module"], found["version"], found["by"], declared, vanished)


class RecurringFacts(msgspec.Struct, frozen=True, gc=False):
    """A template of a recurring job, at one moment.

    `count` jobs were put so far, the newest under the jid `<jid>-<count>`; the next is due at `next_ms`. At most
    `backlog` missed occurrences are put later, 0 for all. `options` are those of each job, as the core writes them.
    `since_ms` is when the template was made or replaced. While it is `paused`, nothing is put at `next_ms`, which may
    lie in the past; who paused it, why and when stands in `paused_by`, `paused_why` and `paused_since_ms`; at `paused_until_ms` (0: not known) it is resumed by itself. `overlap`: `allow`, `skip` an occurrence while the
    last job has not ended, or `queue` one behind it. `left_out` occurrences got no job, because of that, a unique key, or as they were missed.
    """

    jid: str
    queue: str
    klass: str
    data: bytes
    interval_ms: int
    backlog: int
    priority: int
    retries: int
    count: int
    next_ms: int
    tags: tuple[str, ...] = ()
    throttles: tuple[str, ...] = ()
    options: Mapping[str, str] = {}
    since_ms: int = 0
    paused: bool = False
    paused_by: str = ""
    paused_why: str = ""
    paused_since_ms: int = 0
    calendar: CalendarFacts | None = None
    overlap: str = "allow"
    left_out: int = 0
    paused_until_ms: int = 0
    declared: DeclaredFacts | None = None
    unique_key: str = ""
    unique_for: str = ""

    def missed_by(self, now_ms: int) -> int:
        """Return how many turns it has missed: in its pause, or because no worker has asked its queue since they were due."""
        late = now_ms - self.next_ms - (0 if self.paused else _LATE_MS)
        if late < 0 or not self.next_ms:
            return 0
        # How many moments of a calendar lie in that time is known when they are taken off its plan.
        return late // max(self.interval_ms, 1) + 1 if self.calendar is None else 1

    @classmethod
    def from_row(cls, row: Sequence[Reply]) -> "RecurringFacts":
        """Read a row of `recur_get`."""
        jid, queue, klass, data = row[:4]
        interval, backlog, priority, retries, count, due = map(int, row[4:10])
        tags, throttles, stored, since, paused = row[10:15]
        options = _options(stored)
        who, why, paused_since = row[15:18] if len(row) > 17 else ("", "", 0)
        more = _pairs(row[19]) if len(row) > 19 else {}
        return cls(
            jid=text(jid),
            queue=text(queue),
            klass=text(klass),
            data=bytes(data),
            interval_ms=interval,
            backlog=backlog,
            priority=priority,
            retries=retries,
            count=count,
            next_ms=0 if due >= _NEVER else due,
            tags=texts(tags),
            throttles=texts(throttles),
            options=options,
            since_ms=int(since),
            paused=bool(paused),
            paused_by=text(who),
            paused_why=text(why),
            paused_since_ms=int(paused_since),
            calendar=CalendarFacts.from_pairs(row[18]) if len(row) > 18 else None,
            overlap=more.get("overlap", "allow"),
            left_out=int(more.get("left_out") or 0),
            paused_until_ms=int(more.get("until") or 0),
            declared=DeclaredFacts.from_pairs(row[20]) if len(row) > 20 else None,
            unique_key=options.get("unique_key", ""),
            unique_for=options.get("unique_for", ""),
        )


def _pairs(pairs: Sequence[Reply]) -> dict[str, str]:
    return dict(zip(texts(pairs[::2]), texts(pairs[1::2]), strict=True))


def _options(stored: Sequence[Reply]) -> dict[str, str]:
    words = [text(value) if isinstance(value, bytes) else str(value) for value in stored]
    return dict(zip(words[::2], words[1::2], strict=True))


class Recur(CommandBase, frozen=True, gc=False):
    """Put a job every `interval_ms`, the first one `offset_ms` from now. Returns the jid of the template.

    An existing template of that jid is replaced, and keeps its count and its pause; with `keeps_time` it also keeps the time of its
    next job (a new interval counts from the last occurrence). `overlap` is that of a template without a `calendar`, which has its own. Raises Refused for bad arguments. Core: verbs/recur.lua.
    """

    verb: ClassVar[str] = "recur"
    request_id_at: ClassVar[int] = 0
    adds: ClassVar[bool] = True

    queue: Name
    klass: Name
    interval_ms: Milliseconds
    data: bytes = b"{}"
    jid: Name = msgspec.field(default_factory=mint_jid)
    offset_ms: Offset = 0
    priority: Priority = 0
    retries: Retries = 0
    backlog: Backlog = 0
    options: ExtraOptions = ExtraOptions()
    keeps_time: bool = False
    max_losses: Losses | None = None
    calendar: CalendarFacts | None = None
    plan: Sequence[tuple[int, int]] = ()
    overlap: str = ""
    declared: DeclaredFacts | None = None

    def words(self) -> Sequence[Word]:
        return (
            "keep" if self.keeps_time else "set",
            self.queue,
            self.jid,
            self.klass,
            self.data,
            self.interval_ms,
            self.offset_ms,
            self.priority,
            budgets(self.retries, self.max_losses),
            self.backlog,
            *self._options(),
        )

    def _options(self) -> list[Word]:
        count, *pairs = self.options.words()
        if self.declared is not None:
            by = self.declared
            count, pairs = int(count) + 3, [*pairs, "module", by.module, "version", by.version, "by", by.by]
        if self.calendar is None:
            return [int(count) + 1, *pairs, "overlap", self.overlap or "allow"]
        more = _calendar_words(self.calendar, self.plan)
        return [int(count) + len(more) // 2, *pairs, *more]

    def read(self, reply: Reply) -> str:
        return text(reply)


def _calendar_words(own: CalendarFacts, plan: Sequence[tuple[int, int]]) -> list[Word]:
    """Return a calendar with its plan as (key, value) pairs."""
    pairs: dict[str, Word] = {
        **{name: getattr(own, name) for name in ("cron", "zone", "tz", "missed", "overlap")},
        **{name: getattr(own, f"{name}_ms") for name in ("jitter", "start", "end")},
        "plan": plan_text(plan),
    }
    return [word for pair in pairs.items() for word in pair]


def plan_text(plan: Sequence[tuple[int, int]]) -> str:
    """Return the moments of a plan as the core reads them: due and nominal in ms, in turns."""
    return " ".join(f"{due} {nominal}" for due, nominal in plan)


class Unplanned(msgspec.Struct, frozen=True, gc=False):
    """A template of which few moments are planned: its jid, its calendar, and the last moment that is planned."""

    jid: str
    calendar: CalendarFacts
    last_ms: int


class RecurUnplanned(CommandBase, frozen=True, gc=False):
    """List up to `count` templates of which no moment after `until_ms` is planned, without the first `skip`. Core: verbs/recur.lua."""

    verb: ClassVar[str] = "recur_unplanned"
    reads: ClassVar[bool] = True

    until_ms: Whole
    count: Limit = 100
    skip: Whole = 0

    def words(self) -> Sequence[Word]:
        return (self.until_ms, self.count, self.skip)

    def read(self, reply: Reply) -> list[Unplanned]:
        found: list[Unplanned] = []
        for jid, cron, zone, tz, jitter, start, end, last in reply:
            calendar = CalendarFacts(
                text(cron),
                text(zone),
                text(tz),
                jitter_ms=int(jitter or 0),
                start_ms=int(start or 0),
                end_ms=int(end or 0),
            )
            found.append(Unplanned(text(jid), calendar, int(last)))
        return found


class RecurExtend(CommandBase, frozen=True, gc=False):
    """Plan a template on behind the moment `after_ms`, if that is the last one that is planned. Returns whether it was.

    `plan` has (due, nominal) pairs in ms; without any, the template has no more moments. `tz` is the version of the data about zones that they
    were computed with. `anew`: it is the plan from now on, in place of one that was made with older data. Core: verbs/recur.lua.
    """

    verb: ClassVar[str] = "recur_extend"
    request_id_at: ClassVar[int] = 0
    adds: ClassVar[bool] = True

    jid: Name
    after_ms: Whole
    tz: str = ""
    plan: Sequence[tuple[int, int]] = ()
    anew: bool = False

    def words(self) -> Sequence[Word]:
        return (self.jid, self.after_ms, self.tz, plan_text(self.plan), int(self.anew))

    def read(self, reply: Reply) -> bool:
        return bool(reply)


class RecurGet(CommandBase, frozen=True, gc=False):
    """Look up to 512 templates up by jid. Returns the facts of each, None for an unknown one. Core: verbs/recur.lua."""

    verb: ClassVar[str] = "recur_get"
    reads: ClassVar[bool] = True

    jids: Names

    def words(self) -> Sequence[Word]:
        return tuple(self.jids)

    def read(self, reply: Reply) -> list[RecurringFacts | None]:
        return [RecurringFacts.from_row(row) if row else None for row in reply]


class RecurUpdate(CommandBase, frozen=True, gc=False):
    """Change those attributes of a template that are not None. Jobs that were put stay unchanged. Returns True.

    A new interval counts from the last occurrence. `throttles` replaces the current ones. `vanished`: its module does not declare it any more.
    A `calendar` replaces the whole of it, and comes with its `plan`; `missed` and `overlap` change without one. Raises JobNotFound, and WrongState for
    an interval of a calendar.
    Core: verbs/recur.lua.
    """

    verb: ClassVar[str] = "recur_update"
    request_id_at: ClassVar[int] = 0
    adds: ClassVar[bool] = True

    jid: Name
    priority: Priority | None = None
    retries: Retries | None = None
    interval_ms: Milliseconds | None = None
    data: bytes | None = None
    klass: OptionalName | None = None
    backlog: Backlog | None = None
    queue: OptionalName | None = None
    throttles: ThrottleNames | None = None
    vanished: bool | None = None
    missed: str | None = None
    overlap: str | None = None
    calendar: CalendarFacts | None = None
    plan: Sequence[tuple[int, int]] | None = None

    def _changed(self) -> list[str]:
        """The attributes that change, in words; data are left out."""
        given = {name: getattr(self, name) for name in self.__struct_fields__[1:-2]}
        if self.calendar is not None:
            given["interval_ms"] = None
            names = ("cron", "zone", "missed", "overlap", "jitter_ms", "start_ms", "end_ms")
            given |= {name: getattr(self.calendar, name) or None for name in names}
        return [
            name if name == "data" else f"{name}={value!r}"
            for name, value in given.items()
            if value is not None
        ]

    @property
    def audit_line(self) -> AuditedChange:
        return AuditedChange("edit recurring", self.jid, " ".join(self._changed()))

    def words(self) -> Sequence[Word]:
        words: list[Word] = [self.jid]
        for key, value in (
            ("priority", self.priority),
            ("retries", self.retries),
            ("interval", self.interval_ms),
            ("data", self.data),
            ("klass", self.klass),
            ("backlog", self.backlog),
            ("queue", self.queue),
        ):
            if value is not None:
                words += (key, value)
        if self.vanished is not None:
            words += ("vanished", int(self.vanished))
        if self.throttles is not None:
            words += ("unthrottled", "")
            for name in self.throttles:
                words += ("throttle", name)
        if self.calendar is not None:
            return words + _calendar_words(self.calendar, self.plan or ())
        for key, value in (("missed", self.missed), ("overlap", self.overlap)):
            if value is not None:
                words += (key, value)
        return words

    def read(self, reply: Reply) -> bool:
        return bool(reply)


class RecurTag(Tag, frozen=True, gc=False):
    """Add or remove tags of a template, for jobs that are put later. Returns its tags.

    Raises JobNotFound. Core: verbs/recur.lua.
    """

    verb: ClassVar[str] = "recur_tag"

    @property
    def audit_line(self) -> AuditedChange:
        return AuditedChange(
            "tag recurring" if self.mode == "add" else "untag recurring", self.jid, ", ".join(self.tags)
        )


class RecurPause(CommandBase, frozen=True, gc=False):
    """Pause a template (`on`), until `until_ms` or until it is resumed, or resume it. `who` and `why` are recorded. Returns whether that changed something.

    A paused template puts no jobs and stays paused when it is changed or replaced. After it is resumed, the
    first occurrence that is not over comes next; missed ones are left out, whatever its backlog. Raises JobNotFound, and Refused for an end in the past.
    Core: verbs/recur.lua.
    """

    verb: ClassVar[str] = "recur_pause"
    request_id_at: ClassVar[int] = 0

    jid: Name
    on: bool = True
    who: OptionalName = ""
    why: str = ""
    until_ms: Whole = 0

    @property
    def audit_line(self) -> AuditedChange:
        until = f"until {clock(self.until_ms)}" if self.on and self.until_ms else ""
        return AuditedChange(
            "pause recurring" if self.on else "resume recurring",
            self.jid,
            "; ".join(filter(None, (self.why, until))),
        )

    def words(self) -> Sequence[Word]:
        return (int(self.on), self.jid, self.who, self.why, self.until_ms)

    def read(self, reply: Reply) -> bool:
        return bool(reply)


class RecurRun(CommandBase, frozen=True, gc=False):
    """Put one job of a template now; the schedule does not change. Returns the jid of the job.

    Works also while the template is paused. Raises JobNotFound. Core: verbs/recur.lua.
    """

    verb: ClassVar[str] = "recur_run"
    request_id_at: ClassVar[int] = 0
    adds: ClassVar[bool] = True

    jid: Name

    @property
    def audit_line(self) -> AuditedChange:
        return AuditedChange("run recurring", self.jid)

    def words(self) -> Sequence[Word]:
        return (self.jid,)

    def read(self, reply: Reply) -> str:
        return text(reply)


class RecurCancel(CommandBase, frozen=True, gc=False):
    """Delete up to 512 templates; jobs that were put are kept. Returns True for each that existed.

    Core: verbs/recur.lua.
    """

    verb: ClassVar[str] = "recur_cancel"
    request_id_at: ClassVar[int] = 0

    jids: Names

    @property
    def audit_line(self) -> AuditedChange:
        return AuditedChange("delete recurring", ", ".join(self.jids))

    def words(self) -> Sequence[Word]:
        return tuple(self.jids)

    def read(self, reply: Reply) -> list[bool]:
        return [bool(result) for result in reply]


VERBS: Mapping[str, type[CommandBase]] = {
    kind.verb: kind
    for kind in (
        Recur,
        RecurGet,
        RecurUpdate,
        RecurTag,
        RecurPause,
        RecurRun,
        RecurCancel,
        RecurUnplanned,
        RecurExtend,
    )
}
