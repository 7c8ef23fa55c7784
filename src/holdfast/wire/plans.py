"""Plans and their runners.

A plan is a generator that yields steps (lists of calls) and is sent their replies. Plans are the same for sync and async
clients. A refusal by the store is an `ErrorReply` among the replies; a `LinkError` is thrown into the plan when a step did
not complete.

Runners pass the steps of a plan to a link, and the replies back to the plan; one blocks, one is awaited.
"""

import re
from collections.abc import Generator
from typing import Final, Protocol, TypeVar, cast

import msgspec

from holdfast.commands import Command, Reply, Word

R = TypeVar("R")
S = TypeVar("S")

_THROWN = re.compile(r"(?:[\w.]+:\d+: )?(.*) script: (?:\w+, )?on @[\w.]+:\d+\.", re.DOTALL)
"""The text of an error thrown in a script: the store adds the line before and the script after it."""

_RIGHTS: Final = frozenset({"NOPERM", "NOAUTH", "WRONGPASS"})
_DENIED_INSIDE: Final = ("ACL failure in script", "can't run this command or subcommand")
"""The error text for a forbidden command inside the core: of Valkey and Redis from 7.2, and of Redis 7.0."""

Call = tuple[Word, ...]
Replies = list[Reply]


class Step(msgspec.Struct, frozen=True, gc=False):
    """Calls that are sent together on one connection, after `pause` seconds. Without calls, it is only the pause."""

    calls: list[Call]
    pause: float = 0.0


class ErrorReply(msgspec.Struct, frozen=True, gc=False):
    """An error reply of the store: its whole text."""

    text: str

    @property
    def code(self) -> str:
        """The first word: `OOM`, `BUSY`, `HF_LEASE_LOST`…"""
        return self.text.partition(" ")[0]

    @property
    def is_denied(self) -> bool:
        """Whether the user of the connection lacks a permission, for this call or for a command inside the core."""
        return self.code in _RIGHTS or any(text in self.text for text in _DENIED_INSIDE)

    @property
    def sentence(self) -> str:
        """The text for users, without the line of the script."""
        thrown = _THROWN.fullmatch(self.text)
        return thrown[1] if thrown else self.text


def error_reply(error: Exception) -> ErrorReply:
    """Return the error text as the store sent it: the driver removes some code words."""
    code = getattr(error, "status_code", None)
    text = str(error)
    if isinstance(code, str) and code != "ERR" and not text.startswith(code):
        return ErrorReply(f"{code} {text}")
    return ErrorReply(text)


class LinkError(Exception):
    """A step that did not complete. `sent`: some of it may have reached the store.

    `after`: it was not tried, because the store is unavailable; try again after this many seconds. `refused`: nothing listens
    there, or the name is not known.
    """

    def __init__(
        self,
        detail: str,
        *,
        sent: bool = True,
        timed_out: bool = False,
        after: float = 0.0,
        refused: bool = False,
    ) -> None:
        super().__init__(detail)
        self.refused = refused
        self.after = after
        self.sent = sent
        self.timed_out = timed_out


def is_demoted(replies: Replies) -> bool:
    """Return whether the node refuses writes: a new connection may lead to its successor."""
    return any(type(reply) is ErrorReply and reply.code == "READONLY" for reply in replies)


Plan = Generator[Step, Replies, R]


class Planner(Protocol):
    """A function that turns a command into a plan: `exchange`, bound to a shard."""

    def __call__(self, command: Command[R]) -> Plan[R]: ...


class SyncSender(Protocol):
    """The part of a link that a Runner uses."""

    def send(self, step: Step) -> Replies: ...


class AsyncSender(Protocol):
    """The part of a link that an AsyncRunner uses."""

    async def send(self, step: Step) -> Replies: ...


class Runner:
    """Run plans in blocking code."""

    def __init__(self, link: SyncSender) -> None:
        self.link = link

    def run(self, plan: Plan[R]) -> R:
        """Run a plan to its end and return its result."""
        send = self.link.send
        try:
            step = next(plan)
            while True:
                try:
                    replies = send(step)
                except LinkError as error:
                    step = plan.throw(error)
                else:
                    step = plan.send(replies)
        except StopIteration as done:
            return cast("R", done.value)


class AsyncRunner:
    """Run plans on an event loop."""

    def __init__(self, link: AsyncSender) -> None:
        self.link = link

    async def run(self, plan: Plan[R]) -> R:
        """Run a plan to its end and return its result."""
        send = self.link.send
        try:
            step = next(plan)
            while True:
                try:
                    replies = await send(step)
                except LinkError as error:
                    step = plan.throw(error)
                else:
                    step = plan.send(replies)
        except StopIteration as done:
            return cast("R", done.value)
