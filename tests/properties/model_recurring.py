"""The reference model: templates, and the jobs they put when they are due (core-protocol 6)."""

from dataclasses import dataclass
from math import ceil
from typing import Any

from model_parts import Job
from model_putting import No
from model_settings import SettingModel
from model_wishes import ExtraOptions

SPAWNED_AT_ONCE = 100


@dataclass
class Template:
    """A template; times in ms. `next` is when its next job is put, if it is not paused."""

    jid: str
    queue: str
    klass: str
    data: bytes
    interval: int
    priority: int
    retries: int
    backlog: int
    next: int
    since: int
    wish: ExtraOptions
    count: int = 0
    paused: bool = False


class RecurringModel(SettingModel):
    def __init__(self, now: int) -> None:
        super().__init__(now)
        self.templates: dict[str, Template] = {}

    def template(self, jid: str) -> Template:
        if jid not in self.templates:
            raise No("HF_JOB_NOT_FOUND")
        return self.templates[jid]

    def recur(
        self,
        queue: str,
        jid: str,
        klass: str,
        data: bytes,
        times: tuple[int, int],
        numbers: Any,
        options: Any,
        mode: str = "set",
    ) -> str:
        """`times` are interval and offset, `numbers` priority, retries and backlog. Count and pause stay, and with `keep`
        the next occurrence, a new interval counted from the last one."""
        old = self.templates.get(jid)
        wish, when = ExtraOptions.of(options), self.now + times[1]
        if old and mode == "keep":
            when = old.next + times[0] - old.interval
        made = Template(
            jid, queue, klass, data, times[0], *numbers, when, self.now, wish, old.count if old else 0
        )
        made.paused = bool(old and old.paused)
        self.drop_own(made, {queue, old.queue if old else queue})
        made.wish.tags = made.wish.tags or []
        self.templates[jid] = made
        self.queue(queue)
        return jid

    def drop_own(self, template: Template, queues: set[str]) -> None:
        owns = {f"ql:q:{queue}" for queue in queues}
        template.wish.throttles = [name for name in template.wish.throttles if name not in owns]

    def recur_get(self, *jids: str) -> list[Any]:
        return [self.template_row(self.templates[jid]) if jid in self.templates else None for jid in jids]

    def template_row(self, t: Template) -> tuple[Any, ...]:
        return (
            *(t.jid, t.queue, t.klass, t.data, t.interval, t.backlog, t.priority, t.retries, t.count, t.next),
            *(tuple(t.wish.tags or []), (*t.wish.throttles, f"ql:q:{t.queue}"), t.wish.options, t.since, int(t.paused)),
        )  # fmt: skip

    def recur_update(self, jid: str, changes: dict[str, Any]) -> int:
        """Jobs that were put stay as they are. A new interval counts from the last occurrence."""
        t = self.template(jid)
        for key, value in changes.items():
            if key == "interval":
                t.next += value - t.interval
            if key == "queue":
                self.drop_own(t, {t.queue, value})
                self.queue(value)
            setattr(t, key, value)
        return 1

    def recur_tag(self, mode: str, jid: str, tags: tuple[str, ...]) -> tuple[str, ...]:
        t = self.template(jid)
        had = t.wish.tags or []
        if mode == "add":
            t.wish.tags = list(dict.fromkeys([*had, *tags]))
        else:
            t.wish.tags = [tag for tag in had if tag not in tags]
        return tuple(t.wish.tags)

    def recur_pause(self, on: bool, jid: str) -> int:
        """What was missed in a pause is left out."""
        t = self.template(jid)
        if t.paused == on:
            return 0
        t.paused = on
        if not on and t.next < self.now:
            t.next += ceil((self.now - t.next) / t.interval) * t.interval
        return 1

    def recur_run(self, jid: str) -> str:
        return self.put_occurrence(self.template(jid), self.now)

    def recur_cancel(self, jids: tuple[str, ...]) -> list[int]:
        return [int(self.templates.pop(jid, None) is not None) for jid in jids]

    # --- spawning ----------------------------------------------------------------------------------------------

    def due_templates(self, queue: str) -> list[Template]:
        due = [t for t in self.templates.values() if t.queue == queue and t.next <= self.now and not t.paused]
        return sorted(due, key=lambda t: (t.next, t.jid))

    def bring_due(self, name: str, has_room: bool) -> None:
        """Recurring jobs first, unless the queue is full; then those whose time has come."""
        left = SPAWNED_AT_ONCE if has_room else 0
        for template in self.due_templates(name):
            left = self.spawn(template, left)
        super().bring_due(name, has_room)

    def spawn(self, t: Template, left: int) -> int:
        """Makes up what was missed, oldest first, but for what exceeds the backlog."""
        when = t.next
        missed = (self.now - when) / t.interval
        if left > 0 and t.backlog and missed > t.backlog:
            when += ceil(missed - t.backlog) * t.interval
        while left > 0 and when <= self.now:
            self.put_occurrence(t, when)
            when, left = when + t.interval, left - 1
        t.next = when
        return left

    def put_occurrence(self, t: Template, when: int) -> str:
        t.count += 1
        while f"{t.jid}-{t.count}" in self.jobs:
            t.count += 1
        jid = f"{t.jid}-{t.count}"
        job = Job(
            jid, t.klass, t.data, t.queue, t.priority, t.retries, t.retries, when, when, spawned_from=t.jid
        )
        self.jobs[jid] = job
        job.history.append(("put", when, t.queue))
        job.tags = dict.fromkeys(t.wish.tags or [], self.now)
        job.throttles = list(t.wish.throttles)
        job.options = dict(t.wish.options)
        if "expires" in job.options:
            job.options["expires"] += when
        self.place(job, 0)
        return jid

    def is_used(self, name: str) -> bool:
        return super().is_used(name) or self.templates_of(name) > 0

    def templates_of(self, queue: str) -> int:
        return sum(t.queue == queue for t in self.templates.values())

    def due_times(self, queues: tuple[str, ...]) -> list[int]:
        coming = [
            t.next
            for t in self.templates.values()
            if t.queue in queues
            and not t.paused
            and not self.queues[t.queue].is_paused(self.now)
            and self.has_room(t.queue)
        ]
        return [*super().due_times(queues), *coming]
