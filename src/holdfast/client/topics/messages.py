"""Delayed messages as handles: what was reserved, and what is told of it; said once for both colours."""

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Final, cast

from holdfast.client.descriptors import AsyncHandle, CommandMethod, SyncHandle
from holdfast.codecs import encode_data
from holdfast.commands import Command
from holdfast.commands.base import then
from holdfast.commands.topics import How, Message, TopicRelease
from holdfast.errors import UsageError
from holdfast.settings import check_list, check_milliseconds, check_name, check_seconds

LATEST: Final = float(2**43)
"""Epoch seconds; beyond them milliseconds are not exact any more."""
TINY: Final = 0.01
"""Of a millisecond: less than that is lost on the way through seconds."""


class ItemVerbs:
    """A message that is reserved for whoever holds this, until its deadline; nothing of it is read again."""

    _client: Any

    def __init__(self, message: Message, client: Any) -> None:
        self.message = message
        self.settled = False
        """Whether `done` or `give_back` was said of it here."""
        self._client = client

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self.message.topic

    @property
    def id(self) -> str:
        """The id under which it was put."""
        return self.message.id

    @property
    def body(self) -> str:
        """The body, as text."""
        return self.message.body

    @property
    def data(self) -> Any:
        """The body read as JSON. Raises CodecError if it is none."""
        return self.message.data

    @property
    def deadline(self) -> float:
        """Until when it is reserved, in epoch seconds of the store; later it may come back and go to somebody else."""
        return self.message.when_ms / 1000

    @CommandMethod
    def done(self) -> Command[bool]:
        """Delete the message, which was handled; False if this reservation is over. Core: verbs/topic.lua."""
        self.settled = True
        return _only(TopicRelease(self.topic, [(self.id, self.message.when_ms)]))

    @CommandMethod
    def give_back(self, delay: float = 0) -> Command[bool]:
        """Queue the message again, ready in `delay` seconds; False if this reservation is over.

        Raises UsageError. Core: verbs/topic.lua.
        """
        wait = check_milliseconds("delay", delay)
        self.settled = True
        return _only(TopicRelease(self.topic, [(self.id, self.message.when_ms)], "in", wait))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} of {self.topic}>"


class Item(ItemVerbs, SyncHandle):
    """A reserved message of a blocking client. `with item:` is done with it at the end, unless something is raised."""

    def __enter__(self) -> "Item":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and not self.settled:
            self.done()


class AsyncItem(ItemVerbs, AsyncHandle):
    """A reserved message of an async client. `async with item:` is done with it at the end, unless something is raised."""

    async def __aenter__(self) -> "AsyncItem":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and not self.settled:
            await self.done()


def body_of(body: object, most: int) -> bytes:
    """The bytes of a body: text as it is, any other value as JSON. Raises UsageError."""
    if not isinstance(body, (str, bytes)):
        try:
            return encode_data(body, most)
        except UsageError as error:
            raise UsageError(f"the body cannot be taken: {error}") from error
    try:
        text = body.encode() if isinstance(body, str) else body.decode().encode()
    except UnicodeError as error:
        raise UsageError(f"the body is not valid UTF-8: {error}") from None
    if len(text) > most:
        raise UsageError(
            f"the body has {len(text)} bytes, more than the {most} allowed: "
            "store it elsewhere and put a reference, or raise max_data"
        )
    return text


def bodies_of(messages: object, most: int) -> list[tuple[str, bytes]]:
    """Ids and bodies, from a mapping or a list of pairs. Raises UsageError."""
    if isinstance(messages, Mapping):
        pairs: Iterable[Any] = cast("Any", messages).items()
    else:
        pairs = check_list("messages", messages)
    found: list[tuple[str, bytes]] = []
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(cast("Any", pair)) != 2:
            raise UsageError(f"messages are pairs of an id and a body, not {pair!r:.80}")
        id, body = cast("Any", pair)
        found.append((check_name("id", id), body_of(body, most)))
    return found


def moment_of(delay: object, at: object) -> tuple[How, int]:
    """When a message is ready, as the core is told it: in `delay` seconds, or at an epoch second. Raises UsageError."""
    if at is None:
        return "in", check_milliseconds("delay", 0 if delay is None else delay)
    if delay is not None:
        raise UsageError("delay and at both give the time: give one of them")
    return "at", epoch_ms("at", at)


def epoch_ms(what: str, moment: object) -> int:
    """An epoch second as the millisecond it is in, because the store's own now is cut, too. Raises UsageError."""
    return int(check_seconds(what, moment, 0.0, LATEST) * 1000 + TINY)


def held(item: object) -> tuple[str, int | None]:
    """An id and the deadline of the reservation that is meant: any, where only the id is given. Raises UsageError."""
    if isinstance(item, ItemVerbs):
        item.settled = True
        return item.id, item.message.when_ms
    return check_name("id", item), None


def _only(release: TopicRelease) -> Command[bool]:
    return then(release, lambda answers: answers[0])
