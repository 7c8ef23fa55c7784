"""The command that asks for everything that decides whether a job runs."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from holdfast.commands.base import Reply, Spoken, Word
from holdfast.models import text


class Explain(Spoken, frozen=True, gc=False):
    """Everything that decides whether a job runs, of one instant: facts by name, times in ms.

    What is not there is left out; a job that is not kept has only `now`, `jid`, `state` (gone) and `result`.
    Core: verbs/explain.lua.
    """

    verb: ClassVar[str] = "explain"
    reads: ClassVar[bool] = True

    jid: str

    def words(self) -> Sequence[Word]:
        return (self.jid,)

    def read(self, reply: Reply) -> dict[str, Any]:
        return {text(reply[at]): _plain(reply[at + 1]) for at in range(0, len(reply), 2)}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in cast("Sequence[Any]", value)]
    return text(value) if isinstance(value, bytes) else value


VERBS: Mapping[str, type[Spoken]] = {kind.verb: kind for kind in (Explain,)}
