"""The verbs that only some jobs need, in both tongues: recurring jobs, labels, dependencies, failures."""

from typing import Any

from calls import Core, flat, wished, word

from holdfast.commands.operations import OperationFacts, OperationGet, Operations
from holdfast.models import text, texts


def facts_of(facts: OperationFacts) -> tuple[Any, ...]:
    """What the model knows of an operation."""
    return (
        *(facts.spec, facts.state, facts.runner, facts.lease_ms, facts.created_ms, facts.updated_ms),
        *(facts.cursor, facts.looked, facts.matched, facts.changed, facts.same, facts.refused),
    )


class WholeCore(Core):
    # --- recurring jobs ----------------------------------------------------------------------------------------

    def recur(
        self,
        queue: str,
        jid: str,
        klass: str,
        data: bytes,
        times: Any,
        numbers: Any,
        options: Any,
        mode: str = "set",
        line: str = "",
        number: int = 0,
    ) -> Any:
        words = (line, number, mode, queue, jid, klass, data, *times, *numbers, len(options), *flat(options))
        return text(self.door("recur", *words))

    def recur_get(self, *jids: str) -> Any:
        return [self.template(row) if row else None for row in self.door.look("recur_get", *jids)]

    @staticmethod
    def template(row: Any) -> Any:
        (jid, queue, klass, data), numbers, (tags, throttles, options, since, paused) = (
            row[:4],
            row[4:10],
            row[10:15],
        )
        values = [value if isinstance(value, int) else text(value) for value in options[1::2]]
        wished = dict(zip(texts(options[::2]), values, strict=True))
        named = texts(tags), texts(throttles), wished, int(since), int(paused)
        return (text(jid), text(queue), text(klass), data, *[int(value) for value in numbers], *named)

    def recur_update(self, jid: str, changes: dict[str, Any], line: str = "", number: int = 0) -> Any:
        return self.door("recur_update", line, number, jid, *flat(list(changes.items())))

    def recur_tag(self, mode: str, jid: str, tags: tuple[str, ...]) -> Any:
        return texts(self.door("recur_tag", mode, jid, *tags))

    def recur_pause(self, on: bool, jid: str, line: str = "", number: int = 0) -> Any:
        return self.door("recur_pause", line, number, int(on), jid)

    def recur_run(self, jid: str, line: str = "", number: int = 0) -> Any:
        return text(self.door("recur_run", line, number, jid))

    def recur_cancel(self, jids: tuple[str, ...], line: str = "", number: int = 0) -> Any:
        return self.door("recur_cancel", line, number, *jids)

    # --- labels ------------------------------------------------------------------------------------------------

    def tag(self, mode: str, jid: str, tags: tuple[str, ...]) -> Any:
        return texts(self.door("tag", mode, jid, *tags))

    def tags(self, least: int, offset: int, count: int) -> Any:
        reply = self.door.look("tags", least, offset, count)
        return [(text(reply[i]), int(reply[i + 1])) for i in range(0, len(reply), 2)]

    def track(self, on: bool, jid: str) -> Any:
        return self.door("track", "", 0, int(on), jid)

    def tracked(self) -> Any:
        reply = self.door.look("tracked")
        return [(text(reply[i]), int(reply[i + 1]), int(reply[i + 2])) for i in range(0, len(reply), 3)]

    def log(self, jid: str, message: str, line: str = "", number: int = 0) -> Any:
        return self.door("log", line, number, jid, message, "")

    def report(self, worker: str, jid: str, token: int, progress: str, note: str, lines: Any) -> Any:
        return self.door("report", "", 0, worker, jid, token, progress, note, *lines)

    # --- failures, dependencies --------------------------------------------------------------------------------

    def unfail(self, queue: str, group: str, count: int, line: str = "", number: int = 0) -> Any:
        return self.door("unfail", line, number, queue, group, count)

    def act(self, action: str, common: str, jobs: Any, line: str = "", number: int = 0) -> Any:
        reply = self.door("act", line, number, action, common, "", "", "", 0, "", 0, 0, *flat(jobs))
        return [word(one) if isinstance(one, bytes) else one for one in reply]

    def act_in(
        self, progress: Any, action: str, common: str, jobs: Any, line: str = "", number: int = 0
    ) -> Any:
        reply = self.door("act", line, number, action, common, "", *progress, *flat(jobs))
        return [word(one) if isinstance(one, bytes) else one for one in reply]

    def depend(self, mode: str, jid: str, parents: tuple[str, ...], line: str = "", number: int = 0) -> Any:
        return self.door("depend", line, number, mode, jid, *parents)

    # --- operations, the audit log -----------------------------------------------------------------------------

    def operation_start(self, id: str, runner: str, length: int, spec: str) -> Any:
        return self.door("operation_set", "", 0, id, runner, length, spec, "start")

    def operation_take(self, id: str, runner: str, length: int) -> Any:
        return self.door("operation_set", "", 0, id, runner, length, "", "take")

    def operation_finish(self, id: str, runner: str, state: str, line: str = "", number: int = 0) -> Any:
        return self.door("operation_set", line, number, id, runner, 0, state, "finish")

    def operation_get(self, id: str, offset: int, count: int) -> Any:
        reply = self.door.look("operation_get", id, offset, count)
        found = OperationGet(id).read(reply)
        if found is None:
            return None
        refusals = [(text(jid), word(code)) for jid, code in reply[2]]
        return facts_of(found.facts), refusals, list(found.changed), found.chunks

    def operations(self, offset: int, count: int) -> Any:
        found = Operations(offset, count).read(self.door.look("operations", offset, count))
        return [(facts.id, facts_of(facts)) for facts in found]

    def audited(
        self, who: str, what: str, target: str, verb: str, *args: Any, line: str = "", number: int = 0
    ) -> Any:
        plain = self.door
        within: Any = lambda verb, *words: plain("audited", line, number, who, what, target, "", verb, *words)  # noqa: E731
        self.door = within
        try:
            return getattr(self, verb)(*args)
        finally:
            self.door = plain

    # --- throttles ---------------------------------------------------------------------------------------------

    def throttle_named(self, name: str, maximum: int, expires: int, line: str = "", number: int = 0) -> Any:
        return self.door("throttle_set", line, number, name, maximum, expires)

    def throttle_delete(self, name: str, line: str = "", number: int = 0) -> Any:
        return self.door("throttle_delete", line, number, name)

    def throttle_release(self, name: str, jids: tuple[str, ...], line: str = "", number: int = 0) -> Any:
        return self.door("throttle_release", line, number, name, *jids)

    def throttle_get(self, name: str) -> Any:
        return tuple(self.door.look("throttle_get", name))

    # --- follow-ups --------------------------------------------------------------------------------------------

    def complete_x(self, worker: str, jid: str, token: int, end: Any, on: Any, jobs: Any) -> Any:
        queue, delay, parents = on
        words = [word for numbers, one in jobs for word in (*numbers, *wished(one))]
        reply = self.door(
            "complete_x", worker, jid, token, *end, queue, delay, len(parents), *parents, *words
        )
        return word(reply[0])
