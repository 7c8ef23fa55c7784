"""What the doctor finds, and how its checks send calls: without loading a core, and past what its user may not do."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, TypeVar

import msgspec

from holdfast.commands import Command
from holdfast.settings import Settings
from holdfast.wire.plans import Call, ErrorReply, Plan, Replies
from holdfast.wire.repeat import RetryTimer, send_until_done
from holdfast.wire.shards import Shard

R = TypeVar("R")

Verdict = Literal["ok", "note", "warn", "bad"]
WORST: Final[tuple[Verdict, ...]] = ("ok", "note", "warn", "bad")


class Finding(msgspec.Struct, frozen=True):
    """The result of one check: a sentence with figures, and what to do, as a command line or setting."""

    check: str
    verdict: Verdict
    text: str
    remedy: str = ""


def at_store(command: str, settings: Settings) -> str:
    """Return a command whose `redis-cli` reaches the store of these settings, and not the one of this machine."""
    return command.replace("redis-cli", settings.redis_cli, 1)


def addressed(findings: Iterable[Finding], settings: Settings) -> list[Finding]:
    """Return findings whose remedies reach this store."""
    return [msgspec.structs.replace(one, remedy=at_store(one.remedy, settings)) for one in findings]


class Report(msgspec.Struct, frozen=True):
    """All findings, in the order of the checks."""

    findings: Sequence[Finding]

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all."""
        return WORST[max((WORST.index(finding.verdict) for finding in self.findings), default=0)]

    def count(self, verdict: Verdict) -> int:
        """Return how many findings have a verdict."""
        return sum(finding.verdict == verdict for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """Return `verdict` and `findings`, each with `check`, `verdict`, `text`, `remedy`."""
        return {"verdict": self.verdict, "findings": [msgspec.to_builtins(one) for one in self.findings]}


class NotChecked(Exception):
    """A call of a check was refused, so that the check has no result."""


class Calls:
    """The calls of the doctor's checks: each is tried for `patience` seconds, and never loads or changes anything."""

    def __init__(self, shard: Shard, patience: float) -> None:
        self.shard = shard
        self._patience = patience

    def send(self, *calls: Call) -> Plan[Replies]:
        """Send calls together; a refusal is an ErrorReply among the replies. Raises TransportError."""
        return send_until_done(
            list(calls), RetryTimer(self._patience, self.shard.clock, store=self.shard.settings.store)
        )

    def ask(self, command: Command[R]) -> Plan[R]:
        """Run one reading command. Raises NotChecked, TransportError."""
        [result] = yield from self.ask_all([command])
        return result

    def ask_all(self, commands: Sequence[Command[R]]) -> Plan[list[R]]:
        """Run reading commands in one pipeline. Raises NotChecked, TransportError."""
        if not commands:
            return []
        replies = yield from self.send(*[self._call(command) for command in commands])
        for reply in replies:
            if isinstance(reply, ErrorReply):
                raise NotChecked(refusal_text(reply))
        return [command.read(reply) for command, reply in zip(commands, replies, strict=True)]

    def _call(self, command: Command[Any]) -> Call:
        return ("FCALL", f"hf1_{command.verb}", 1, self.shard.root, *command.words())


def refusal_text(reply: ErrorReply) -> str:
    """Return why a call was refused."""
    if reply.is_denied:
        return f"the user of this URL lacks the right ({reply.sentence})"
    if "Function not found" in reply.text:
        return "the core in the store does not know this call: it is older than this program"
    return reply.sentence
