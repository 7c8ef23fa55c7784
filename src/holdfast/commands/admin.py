"""Commands about the installation: its root, its settings, its core."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import msgspec

from holdfast.commands.base import Reply, Spoken, Word
from holdfast.models import CoreInfo, text


class Info(Spoken, frozen=True, gc=False):
    """What the core says of itself and of this root.

    `mode` `make` makes the root if it is missing; `test` makes a test root, whose clock stands at `clock_ms`
    (only in namespaces that begin with `test`). Core: verbs/info.lua.
    """

    verb: ClassVar[str] = "info"

    mode: Literal["", "make", "test"] = ""
    clock_ms: int = 0

    def words(self) -> Sequence[Word]:
        return (self.mode, self.clock_ms)

    def read(self, reply: Reply) -> CoreInfo:
        return CoreInfo.from_row(reply)


class SetClock(Spoken, frozen=True, gc=False):
    """Set the clock of a test root, in milliseconds. Core: verbs/info.lua."""

    verb: ClassVar[str] = "clock"
    adds: ClassVar[bool] = True

    now_ms: int

    def words(self) -> Sequence[Word]:
        return (self.now_ms,)

    def read(self, reply: Reply) -> int:
        return int(reply)


class ConfigGet(Spoken, frozen=True, gc=False):
    """Read settings, all of them when no key is named. Answers raw texts, None if unset.

    Core: verbs/configure.lua.
    """

    verb: ClassVar[str] = "config_get"
    reads: ClassVar[bool] = True

    keys: Sequence[str] = ()

    def words(self) -> Sequence[Word]:
        return tuple(self.keys)

    def read(self, reply: Reply) -> dict[str, str | None]:
        pairs = zip(reply[::2], reply[1::2], strict=True)
        return {text(key): None if value is None else text(value) for key, value in pairs}


class ConfigSet(Spoken, frozen=True, gc=False):
    """Write one setting, as text. Core: verbs/configure.lua."""

    verb: ClassVar[str] = "config_set"
    adds: ClassVar[bool] = True

    key: str
    value: str

    def words(self) -> Sequence[Word]:
        return (self.key, self.value)

    def read(self, reply: Reply) -> bool:
        return bool(reply)


class ConfigUnset(Spoken, frozen=True, gc=False):
    """Return one setting to its default. Answers whether it was set. Core: verbs/configure.lua."""

    verb: ClassVar[str] = "config_unset"
    adds: ClassVar[bool] = True
    line_at: ClassVar[int] = 0

    key: str

    def words(self) -> Sequence[Word]:
        return (self.key,)

    def read(self, reply: Reply) -> bool:
        return bool(reply)


class Sweep(Spoken, frozen=True, gc=False):
    """Drop completed jobs that are too old. Answers how many. Core: verbs/configure.lua."""

    verb: ClassVar[str] = "sweep"
    line_at: ClassVar[int] = 0

    def words(self) -> Sequence[Word]:
        return ()

    def read(self, reply: Reply) -> int:
        return int(reply)


class VerbFacts(msgspec.Struct, frozen=True, gc=False):
    """One function of the library: its verb, its flags, its arguments in words."""

    verb: str
    flags: tuple[str, ...]
    arguments: str


class Describe(Spoken, frozen=True, gc=False):
    """What functions the store's library has. Core: doors/native.lua."""

    verb: ClassVar[str] = "describe"
    reads: ClassVar[bool] = True

    def words(self) -> Sequence[Word]:
        return ()

    def read(self, reply: Reply) -> list[VerbFacts]:
        return [
            VerbFacts(text(row[0]), tuple(flag for flag in text(row[1]).split(",") if flag), text(row[2]))
            for row in reply
        ]


VERBS: Mapping[str, type[Spoken]] = {
    kind.verb: kind for kind in (Info, SetClock, ConfigGet, ConfigSet, ConfigUnset, Sweep, Describe)
}
