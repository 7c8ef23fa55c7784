"""Commands of those who look after an installation: rules for queues, settings, the audit log, watching."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import msgspec

from holdfast.commands.base import Reply, Spoken, Word
from holdfast.models import text, texts


class PatternFacts(msgspec.Struct, frozen=True, gc=False):
    """Which queues the identifiers stand for, and the rules of their order; all as stored, which is JSON."""

    identifiers: Mapping[str, str]
    priorities: tuple[str, ...]


class Patterns(Spoken, frozen=True, gc=False):
    """Read the patterns of queues that workers go by. Core: nouns/patterns.lua."""

    verb: ClassVar[str] = "patterns"
    reads: ClassVar[bool] = True

    def words(self) -> Sequence[Word]:
        return ()

    def read(self, reply: Reply) -> PatternFacts:
        names, rules = reply
        return PatternFacts(
            {text(name): text(value) for name, value in zip(names[::2], names[1::2], strict=True)},
            texts(rules),
        )


class IdentifiersSet(Spoken, frozen=True, gc=False):
    """Replace what the identifiers stand for: each a JSON list of patterns. An empty one is left out.

    Core: nouns/patterns.lua.
    """

    verb: ClassVar[str] = "identifiers_set"
    adds: ClassVar[bool] = True

    identifiers: Mapping[str, str]

    def words(self) -> Sequence[Word]:
        return tuple(word for pair in self.identifiers.items() for word in pair)

    def read(self, reply: Reply) -> int:
        return int(reply)


class PrioritiesSet(Spoken, frozen=True, gc=False):
    """Replace the rules of the order of queues: each a JSON object with `pattern` and `fairly`.

    Core: nouns/patterns.lua.
    """

    verb: ClassVar[str] = "priorities_set"
    adds: ClassVar[bool] = True

    rules: Sequence[str]

    def words(self) -> Sequence[Word]:
        return tuple(self.rules)

    def read(self, reply: Reply) -> int:
        return int(reply)


class SettingsGet(Spoken, frozen=True, gc=False):
    """Read the settings that are no configuration keys. Core: nouns/settings.lua."""

    verb: ClassVar[str] = "settings"
    reads: ClassVar[bool] = True

    def words(self) -> Sequence[Word]:
        return ()

    def read(self, reply: Reply) -> dict[str, int]:
        return {text(name): int(value) for name, value in zip(reply[::2], reply[1::2], strict=True)}


class SettingSet(Spoken, frozen=True, gc=False):
    """Write one of those settings, None for its default. Core: nouns/settings.lua."""

    verb: ClassVar[str] = "setting"
    adds: ClassVar[bool] = True
    line_at: ClassVar[int] = 0

    name: str
    value: int | None

    def words(self) -> Sequence[Word]:
        return (self.name, "" if self.value is None else self.value)

    def read(self, reply: Reply) -> int:
        return int(reply)


class AuditLine(msgspec.Struct, frozen=True, gc=False):
    """One line of the audit log; `when_ms` by the store's clock."""

    id: str
    when_ms: int
    who: str
    what: str
    target: str
    detail: str


class Audit(Spoken, frozen=True, gc=False):
    """Write down who did what to what; answers the id of the line. Core: nouns/audit.lua."""

    verb: ClassVar[str] = "audit"
    line_at: ClassVar[int] = 0

    who: str
    what: str
    target: str = ""
    detail: str = ""

    def words(self) -> Sequence[Word]:
        return (self.who, self.what, self.target, self.detail)

    def read(self, reply: Reply) -> str:
        return text(reply)


class AuditList(Spoken, frozen=True, gc=False):
    """Read up to 128 lines of the audit log, newest first, before the one of id `before`.

    Core: nouns/audit.lua.
    """

    verb: ClassVar[str] = "audit_list"
    reads: ClassVar[bool] = True

    before: str = ""
    count: int = 25

    def words(self) -> Sequence[Word]:
        return (self.before, self.count)

    def read(self, reply: Reply) -> list[AuditLine]:
        return [AuditLine(text(row[0]), int(row[1]), *(text(value) for value in row[2:6])) for row in reply]


class Watch(Spoken, frozen=True, gc=False):
    """Have changes told on the namespace's channel for `length_ms`, at most a minute.

    Answers until when, in milliseconds of the store's clock. Core: verbs/watch.lua.
    """

    verb: ClassVar[str] = "watch"

    length_ms: int

    def words(self) -> Sequence[Word]:
        return (self.length_ms,)

    def read(self, reply: Reply) -> int:
        return int(reply)


VERBS: Mapping[str, type[Spoken]] = {
    kind.verb: kind
    for kind in (
        Patterns,
        IdentifiersSet,
        PrioritiesSet,
        SettingsGet,
        SettingSet,
        Audit,
        AuditList,
        Watch,
    )
}
