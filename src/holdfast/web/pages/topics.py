"""Topics: delayed messages under ids that their senders chose; put, deliver now, postpone, give back, cancel."""

import secrets
from typing import Final

import msgspec

from holdfast.commands.topics import Message, TopicCounts
from holdfast.console.read.queries import Page
from holdfast.errors import Refused, UnknownName
from holdfast.text import counted, duration, one_line
from holdfast.web.context import Context
from holdfast.web.views import ActionRoute, Body, Done, View

_ID_BYTES: Final = 8
_PREVIEW: Final = 200
DELAY: Final = 5.0
"""Seconds after which a message is ready, as the form proposes."""


class TopicsQuery(msgspec.Struct, frozen=True):
    """Which page of topics."""

    after: str = ""
    first: int = 1
    limit: int = 25


class TopicsPage(msgspec.Struct, frozen=True):
    """A page of topics."""

    now_ms: int
    found: Page[TopicCounts]
    query: TopicsQuery


async def topics(ctx: Context, query: TopicsQuery) -> TopicsPage:
    """Return a page of topics, in order of first use."""
    ctx.now_ms = await ctx.console.now_ms()
    found = await ctx.console.topics(after=query.after, limit=query.limit)
    return TopicsPage(ctx.now_ms, found, query)


class TopicQuery(msgspec.Struct, frozen=True):
    """Which page of the messages that are queued."""

    after: str = ""
    first: int = 1
    limit: int = 25


class MessageLine(msgspec.Struct, frozen=True):
    """A message with the beginning of its body; `when_ms` is when it is ready, or when its reservation ends."""

    id: str
    preview: str
    size: int
    when_ms: int


class TopicPage(msgspec.Struct, frozen=True):
    """A topic, with a page of its queued messages by ready time, and its first reserved ones by deadline.

    A topic without messages is not known to the store; its page is the form for the first one. `new_id` is a random id for it.
    """

    now_ms: int
    counts: TopicCounts
    queued: tuple[MessageLine, ...]
    reserved: tuple[MessageLine, ...]
    next: str
    new_id: str
    query: TopicQuery


async def topic(ctx: Context, name: str, query: TopicQuery) -> TopicPage:
    """Return one topic."""
    ctx.now_ms = await ctx.console.now_ms()
    new_id = secrets.token_hex(_ID_BYTES)
    try:
        found = await ctx.console.topic(name, query.limit, after=query.after)
    except UnknownName:
        return TopicPage(ctx.now_ms, TopicCounts(name, 0, 0, 0), (), (), "", new_id, query)
    queued, reserved = (tuple(_line(ctx, one) for one in some) for some in (found.queued, found.reserved))
    return TopicPage(ctx.now_ms, found.counts, queued, reserved, found.next, new_id, query)


def _line(ctx: Context, message: Message) -> MessageLine:
    return MessageLine(message.id, _preview(ctx, message.body), len(message.body.encode()), message.when_ms)


def _preview(ctx: Context, body: str) -> str:
    """Return the beginning of a body on one line, with what has to be hidden masked."""
    body = ctx.site.mask.json_text(body)
    return one_line(body[:_PREVIEW]) + ("…" if len(body) > _PREVIEW else "")


# What is done to messages.


class Put(Body, frozen=True, kw_only=True):
    """A message, ready in `delay` seconds; an empty id stands for a random one."""

    topic: str
    id: str = ""
    body: str = ""
    delay: float = DELAY


async def put(ctx: Context, body: Put) -> Done:
    """Put a message into a topic. An id that the topic has already is refused."""
    id = body.id.strip() or secrets.token_hex(_ID_BYTES)
    if not await ctx.console.put_message(body.topic, id, body.body, body.delay):
        raise Refused(f'the topic "{body.topic:.200}" has a message "{id:.200}" already; choose another id')
    return _done(f"Message {id} is ready in {duration(body.delay)}.", body.topic, 1, result={"id": id})


class Messages(Body, frozen=True, kw_only=True):
    """Some messages of a topic."""

    topic: str
    id: list[str]


class Delayed(Messages, frozen=True, kw_only=True):
    """Some messages of a topic, to be ready in `delay` seconds."""

    delay: float = 0.0


async def cancel(ctx: Context, body: Messages) -> Done:
    """Delete messages, queued or reserved."""
    existed = await ctx.console.delete_messages(body.topic, *body.id)
    return _counted("cancelled", body, existed, "there is no such message")


async def deliver(ctx: Context, body: Messages) -> Done:
    """Make queued messages ready now."""
    moved = await ctx.console.reschedule_messages(body.topic, *body.id)
    return _counted("ready now", body, moved, "it is not queued")


async def postpone(ctx: Context, body: Delayed) -> Done:
    """Make queued messages ready in `delay` seconds from now."""
    moved = await ctx.console.reschedule_messages(body.topic, *body.id, delay=body.delay)
    return _counted(f"ready in {duration(body.delay)}", body, moved, "it is not queued")


async def give_back(ctx: Context, body: Delayed) -> Done:
    """End reservations: the messages are queued again."""
    moved = await ctx.console.release_messages(body.topic, *body.id, delay=body.delay)
    return _counted("queued again", body, moved, "it is not reserved")


def _counted(what: str, body: Messages, changed: list[bool], why: str) -> Done:
    """Return what was done; raise an error if the only message was not changed."""
    count = sum(changed)
    if len(body.id) == 1 and not count:
        raise UnknownName(f'message "{body.id[0]:.200}": {why}')
    text = (
        f"Message {body.id[0]} is {what}."
        if len(body.id) == 1
        else f"{count:,} of {counted(len(body.id), 'message')}: {what}."
    )
    return _done(text, body.topic, count)


def _done(text: str, topic: str, count: int, result: object = None) -> Done:
    return Done(text=text, changed=count, keys=("topics", f"topic:{topic}"), result=result)


VIEWS: Final = (
    View(path="/topics", template="topics.html", load=topics, query=TopicsQuery, summary="A page of topics."),
    View(path="/topics/{name}", template="topic.html", load=topic, query=TopicQuery, summary="One topic."),
)
ACTIONS: Final = (
    ActionRoute(noun="topics", verb="put", body=Put, run=put, summary="Put a message into a topic."),
    ActionRoute(
        noun="topics", verb="cancel", body=Messages, run=cancel, summary="Delete messages of a topic."
    ),
    ActionRoute(
        noun="topics", verb="deliver", body=Messages, run=deliver, summary="Make queued messages ready now."
    ),
    ActionRoute(
        noun="topics",
        verb="postpone",
        body=Delayed,
        run=postpone,
        summary="Change when queued messages are ready.",
    ),
    ActionRoute(
        noun="topics",
        verb="give-back",
        body=Delayed,
        run=give_back,
        summary="End reservations; the messages are queued again.",
    ),
)
