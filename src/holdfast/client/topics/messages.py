"""Reserved messages, and checks of ids, bodies and times, for both clients."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from holdfast.client.descriptors import AnyClient, AsyncMethods, CommandMethod, SyncMethods
from holdfast.codecs import encode_data
from holdfast.commands import Command
from holdfast.commands.base import map_reply
from holdfast.commands.topics import How, Message, TopicRelease
from holdfast.errors import UsageError
from holdfast.settings import check_list, check_milliseconds, check_name, check_seconds

LATEST: Final = float(2**43)
"""Epoch seconds; later ones are not exact in milliseconds."""
TINY: Final = 0.01
"""Part of a millisecond: the error of a conversion to seconds and back is smaller."""


class ItemVerbs:
    """A reserved message; its attributes are those at the time of the reservation."""

    _client: AnyClient

    def __init__(self, message: Message, client: AnyClient) -> None:
        self.message = message
        self.settled = False
        """Whether `done` or `give_back` was called here."""
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
        """The body decoded from JSON. Raises CodecError if it is not JSON."""
        return self.message.data

    @property
    def deadline(self) -> float:
        """When the reservation ends, in epoch seconds of the store; then another program may get the message."""
        return self.message.when_ms / 1000

    @CommandMethod
    def done(self) -> Command[bool]:
        """Delete the message, which was handled; False if this reservation has ended. Core: verbs/topic.lua."""
        self.settled = True
        return _only(TopicRelease(self.topic, [(self.id, self.message.when_ms)]))

    @CommandMethod
    def give_back(self, delay: float = 0) -> Command[bool]:
        """Queue the message again, ready in `delay` seconds; False if this reservation has ended.

        Raises UsageError. Core: verbs/topic.lua.
        """
        wait = check_milliseconds("delay", delay)
        self.settled = True
        return _only(TopicRelease(self.topic, [(self.id, self.message.when_ms)], "in", wait))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} of {self.topic}>"


class Item(ItemVerbs, SyncMethods):
    """A reserved message of a sync client. `with item:` deletes it at the end of the block, unless that raises."""

    def __enter__(self) -> "Item":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None and not self.settled:
            self.done()


class AsyncItem(ItemVerbs, AsyncMethods):
    """A reserved message of an async client. `async with item:` deletes it at the end of the block, unless that raises."""

    async def __aenter__(self) -> "AsyncItem":
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        if kind is None and not self.settled:
            await self.done()


def body_of(body: object, most: int) -> bytes:
    """Return the bytes of a body: text as it is, any other value as JSON. Raises UsageError."""
    if not isinstance(body, (str, bytes)):
        try:
            return encode_data(body, most)
        except UsageError as error:
            raise UsageError(f"the body cannot be written as JSON: {error}") from error
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
    """Return ids and bodies, from a mapping or a list of pairs. Raises UsageError."""
    if isinstance(messages, Mapping):
        pairs: Iterable[object] = cast("Any", messages).items()
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
    """Return when a message is ready, as arguments of the core: in `delay` seconds, or at an epoch second. Raises UsageError."""
    if at is None:
        return "in", check_milliseconds("delay", 0 if delay is None else delay)
    if delay is not None:
        raise UsageError("delay and at both give the time: give one of them")
    return "at", epoch_ms("at", at)


def epoch_ms(what: str, moment: object) -> int:
    """Return an epoch second in whole milliseconds, rounded down as the store's own clock. Raises UsageError."""
    return int(check_seconds(what, moment, 0.0, LATEST) * 1000 + TINY)


def held(item: object) -> tuple[str, int | None]:
    """Return an id and the deadline of its reservation, None where only an id is given. Raises UsageError."""
    if isinstance(item, ItemVerbs):
        item.settled = True
        return item.id, item.message.when_ms
    return check_name("id", item), None


def _only(release: TopicRelease) -> Command[bool]:
    return map_reply(release, lambda results: results[0])
