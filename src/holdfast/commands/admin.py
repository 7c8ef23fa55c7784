"""Commands about the installation: its root, its settings, its core, its audit log."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import msgspec

from holdfast.bounds import Count, Milliseconds, Name, Names, OptionalName, Whole
from holdfast.commands.base import AuditedChange, CommandBase, Reply, Word, seen_words
from holdfast.models import CoreInfo, text, texts
from holdfast.text import counted


class Info(CommandBase, frozen=True, gc=False):
    """Read the version of the core, and the facts of this root.

    `mode` `make` makes the root if it is missing; `test` makes a test root, whose clock is stopped at `clock_ms`
    (only in namespaces that begin with `test`). Core: verbs/info.lua.
    """

    verb: ClassVar[str] = "info"

    mode: Literal["", "make", "test"] = ""
    clock_ms: Milliseconds = 0

    def words(self) -> Sequence[Word]:
        return (self.mode, self.clock_ms)

    def read(self, reply: Reply) -> CoreInfo:
        return CoreInfo.from_row(reply)


class SetClock(CommandBase, frozen=True, gc=False):
    """Set the clock of a test root, in milliseconds. Core: verbs/info.lua."""

    verb: ClassVar[str] = "clock"
    adds: ClassVar[bool] = True

    now_ms: Milliseconds

    def words(self) -> Sequence[Word]:
        return (self.now_ms,)

    def read(self, reply: Reply) -> int:
        return int(reply)


class ConfigGet(CommandBase, frozen=True, gc=False):
    """Read settings, all of them if no key is named. Returns their texts by key, None if not set.

    Core: verbs/configure.lua.
    """

    verb: ClassVar[str] = "config_get"
    reads: ClassVar[bool] = True

    keys: Names = ()

    def words(self) -> Sequence[Word]:
        return tuple(self.keys)

    def read(self, reply: Reply) -> dict[str, str | None]:
        pairs = zip(reply[::2], reply[1::2], strict=True)
        return {text(key): None if value is None else text(value) for key, value in pairs}


class ConfigSet(CommandBase, frozen=True, gc=False):
    """Write one setting, as text. Core: verbs/configure.lua.

    `seen` is the value that it has to have ("" for a setting without one), None for any. Raises WrongState.
    """

    verb: ClassVar[str] = "config_set"
    adds: ClassVar[bool] = True

    key: Name
    value: str
    seen: OptionalName | None = None

    @property
    def audit_line(self) -> AuditedChange:
        return AuditedChange("set config", self.key, self.value)

    def words(self) -> Sequence[Word]:
        return (self.key, self.value, *seen_words(self.seen))

    def read(self, reply: Reply) -> bool:
        return bool(reply)


class ConfigUnset(CommandBase, frozen=True, gc=False):
    """Reset one setting to its default. Returns whether it was set. Core: verbs/configure.lua.

    `seen` is the value that it has to have, None for any. Raises WrongState.
    """

    verb: ClassVar[str] = "config_unset"
    adds: ClassVar[bool] = True
    request_id_at: ClassVar[int] = 0

    key: Name
    seen: OptionalName | None = None

    @property
    def audit_line(self) -> AuditedChange:
        return AuditedChange("unset config", self.key)

    def words(self) -> Sequence[Word]:
        return (self.key, *seen_words(self.seen))

    def read(self, reply: Reply) -> bool:
        return bool(reply)


class Sweep(CommandBase, frozen=True, gc=False):
    """Delete completed jobs beyond the age and count to keep, and unique keys of jobs that are gone. Returns how many.

    Core: verbs/configure.lua.
    """

    verb: ClassVar[str] = "sweep"
    request_id_at: ClassVar[int] = 0

    def words(self) -> Sequence[Word]:
        return ()

    def read(self, reply: Reply) -> int:
        return int(reply)


class VerbFacts(msgspec.Struct, frozen=True, gc=False):
    """One function of the library: its verb, its flags, and the names of its arguments."""

    verb: str
    flags: tuple[str, ...]
    arguments: str


class Describe(CommandBase, frozen=True, gc=False):
    """List the functions of the library in the store. Core: doors/native.lua."""

    verb: ClassVar[str] = "describe"
    reads: ClassVar[bool] = True

    def words(self) -> Sequence[Word]:
        return ()

    def read(self, reply: Reply) -> list[VerbFacts]:
        return [
            VerbFacts(text(row[0]), tuple(flag for flag in text(row[1]).split(",") if flag), text(row[2]))
            for row in reply
        ]


class PatternFacts(msgspec.Struct, frozen=True, gc=False):
    """The patterns of each queue identifier, and the rules for the order of queues; as stored, in JSON."""

    identifiers: Mapping[str, str]
    priorities: tuple[str, ...]


class Patterns(CommandBase, frozen=True, gc=False):
    """Read the queue patterns that workers use. Core: nouns/queue/patterns.lua."""

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


class IdentifiersSet(CommandBase, frozen=True, gc=False):
    """Replace all queue identifiers: each has a JSON list of patterns. One with an empty list is left out.

    Core: nouns/queue/patterns.lua.
    """

    verb: ClassVar[str] = "identifiers_set"
    adds: ClassVar[bool] = True

    identifiers: Mapping[str, str]

    @property
    def audit_line(self) -> AuditedChange:
        kept = {name: msgspec.json.decode(value) for name, value in self.identifiers.items() if value != "[]"}
        return AuditedChange(
            "set queue patterns", counted(len(kept), "identifier"), msgspec.json.encode(kept).decode()
        )

    def words(self) -> Sequence[Word]:
        return tuple(word for pair in self.identifiers.items() for word in pair)

    def read(self, reply: Reply) -> int:
        return int(reply)


class PrioritiesSet(CommandBase, frozen=True, gc=False):
    """Replace the rules for the order of queues: each a JSON object with `pattern` and `fairly`.

    Core: nouns/queue/patterns.lua.
    """

    verb: ClassVar[str] = "priorities_set"
    adds: ClassVar[bool] = True

    rules: Sequence[str]

    @property
    def audit_line(self) -> AuditedChange:
        rules = [msgspec.json.decode(rule) for rule in self.rules]
        detail = msgspec.json.encode([[rule["pattern"], rule["fairly"]] for rule in rules]).decode()
        return AuditedChange("set queue priorities", counted(len(rules), "rule"), detail)

    def words(self) -> Sequence[Word]:
        return tuple(self.rules)

    def read(self, reply: Reply) -> int:
        return int(reply)


class SettingsGet(CommandBase, frozen=True, gc=False):
    """Read the settings that are not configuration keys. Core: nouns/setting/settings.lua."""

    verb: ClassVar[str] = "settings"
    reads: ClassVar[bool] = True

    def words(self) -> Sequence[Word]:
        return ()

    def read(self, reply: Reply) -> dict[str, int]:
        return {text(name): int(value) for name, value in zip(reply[::2], reply[1::2], strict=True)}


class SettingSet(CommandBase, frozen=True, gc=False):
    """Write one of these settings, None for its default. Core: nouns/setting/settings.lua.

    `seen` is the value that it has to have, None for any. Raises WrongState.
    """

    verb: ClassVar[str] = "setting"
    adds: ClassVar[bool] = True
    request_id_at: ClassVar[int] = 0

    name: Name
    value: Whole | None
    seen: int | None = None

    @property
    def audit_line(self) -> AuditedChange:
        return (
            AuditedChange("unset config", self.name)
            if self.value is None
            else AuditedChange("set config", self.name, str(self.value))
        )

    def words(self) -> Sequence[Word]:
        return (self.name, "" if self.value is None else self.value, *seen_words(self.seen))

    def read(self, reply: Reply) -> int:
        return int(reply)


class AuditLine(msgspec.Struct, frozen=True, gc=False):
    """One line of the audit log; `when_ms` is by the store's clock."""

    id: str
    when_ms: int
    who: str
    what: str
    target: str
    detail: str


class Audit(CommandBase, frozen=True, gc=False):
    """Add a line to the audit log: who did what, to which target. Returns its id. Core: nouns/operation/audit.lua."""

    verb: ClassVar[str] = "audit"
    request_id_at: ClassVar[int] = 0

    who: Name
    what: str
    target: OptionalName = ""
    detail: str = ""

    def words(self) -> Sequence[Word]:
        return (self.who, self.what, self.target, self.detail)

    def read(self, reply: Reply) -> str:
        return text(reply)


class AuditList(CommandBase, frozen=True, gc=False):
    """Read up to 128 lines of the audit log, newest first, before the line with id `before`.

    Core: nouns/operation/audit.lua.
    """

    verb: ClassVar[str] = "audit_list"
    reads: ClassVar[bool] = True

    before: str = ""
    count: Count = 25

    def words(self) -> Sequence[Word]:
        return (self.before, self.count)

    def read(self, reply: Reply) -> list[AuditLine]:
        return [AuditLine(text(row[0]), int(row[1]), *(text(value) for value in row[2:6])) for row in reply]


class Watch(CommandBase, frozen=True, gc=False):
    """Publish changes on the channel of the namespace for `length_ms`, at most a minute.

    Returns the end, in milliseconds of the store's clock. Core: verbs/watch.lua.
    """

    verb: ClassVar[str] = "watch"

    length_ms: Milliseconds

    def words(self) -> Sequence[Word]:
        return (self.length_ms,)

    def read(self, reply: Reply) -> int:
        return int(reply)


VERBS: Mapping[str, type[CommandBase]] = {
    kind.verb: kind
    for kind in (
        Info,
        SetClock,
        ConfigGet,
        ConfigSet,
        ConfigUnset,
        Sweep,
        Describe,
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
