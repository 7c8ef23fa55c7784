"""Taking over the messages of an older scheduler, which keeps them on the same store under keys of its own.

A message is put here before it is removed there, so whatever breaks in between loses none: it is found again, and is
known by its body. One that an older program takes at the same moment may be delivered by both.
"""

import logging
import time
from collections.abc import Sequence
from typing import Any, Final

from holdfast.commands.topics import Message, TopicGet, TopicPut
from holdfast.errors import UsageError
from holdfast.models.texts import text
from holdfast.settings import check_name
from holdfast.wire.exchange import final_error
from holdfast.wire.plans import Ask, Call, ErrorReply, Plan, Replies, in_slices
from holdfast.wire.repeat import Patience, patient
from holdfast.wire.shards import Shard

log = logging.getLogger("holdfast")

PREFIX: Final = "__REDIS_SCHED_"
PAGE: Final = 100
SECONDS_END: Final = 1e11
"""Times below it are seconds (until the year 5138), others milliseconds (from 1973 on)."""


def adopted(shard: Shard, ask: Ask, topic: str, prefix: str) -> Plan[int]:
    """Take over what is queued, and what was reserved by somebody who did not end it in time; how many messages."""
    older = _Older(shard, prefix, topic)
    yield from older.bring_back()
    size = yield from older.size()
    count = seen = skipped = 0
    # What older programs put meanwhile may be left for the next time, so this comes to an end.
    while seen < size:
        page = yield from older.queued(skipped)
        if not page:
            break
        gone = yield from _put(ask, topic, page)
        yield from older.remove([id for id, _, _ in page if id in gone])
        count += sum(id in gone and body is not None for id, _, body in page)
        seen += len(page)
        skipped += len(page) - len(gone)
    return count


def _put(ask: Ask, topic: str, page: Sequence[tuple[bytes, int, bytes | None]]) -> Plan[set[bytes]]:
    """Put messages here; the ids of those that are here now, and of those that have no body and are no messages."""
    named: dict[str, tuple[bytes, int, bytes]] = {}
    gone: set[bytes] = set()
    for id, when, body in page:
        if body is None:
            gone.add(id)
            continue
        try:
            named[check_name("id", id.decode())] = (id, when, body)
        except (UsageError, UnicodeError) as error:
            log.warning("a message of the older topic %s stays where it is: %s", topic, error)
    if not named:
        return gone
    words = [word for name, (_, when, body) in named.items() for word in (name, when, body)]
    yield from ask(TopicPut(topic, "at", words))
    here: list[Message | None] = []
    yield from in_slices(ask, lambda names: TopicGet(topic, names), list(named), here)
    for name, found in zip(named, here, strict=True):
        id, _, body = named[name]
        if found is not None and found.body == text(body):
            gone.add(id)
        else:
            log.warning(
                "a message %s of the older topic %s stays where it is: another has its id", name, topic
            )
    return gone


class _Older:
    """A topic as the older scheduler keeps it."""

    def __init__(self, shard: Shard, prefix: str, topic: str) -> None:
        self._shard = shard
        self._bodies, self._queued, self._reserved = (
            f"{prefix}{part}__{topic}" for part in ("JOBS", "QUEUED", "RESERVED")
        )

    def bring_back(self) -> Plan[None]:
        """Queue again what was not ended in time."""
        now = time.time() * 1000
        [rows] = yield from self._ask([("ZRANGE", self._reserved, 0, -1, "WITHSCORES")])
        for at in range(0, len(rows), 2):
            if _milliseconds(rows[at + 1]) <= now:
                yield from self._ask(
                    [("ZADD", self._queued, rows[at + 1], rows[at]), ("ZREM", self._reserved, rows[at])]
                )

    def size(self) -> Plan[int]:
        """How many are queued."""
        [count] = yield from self._ask([("ZCARD", self._queued)])
        return int(count)

    def queued(self, skipped: int) -> Plan[list[tuple[bytes, int, bytes | None]]]:
        """A page of ids with ready times in ms and bodies, the earliest first, but for the first `skipped`."""
        [rows] = yield from self._ask([("ZRANGE", self._queued, skipped, skipped + PAGE - 1, "WITHSCORES")])
        if not rows:
            return []
        [bodies] = yield from self._ask([("HMGET", self._bodies, *rows[::2])])
        times = [_milliseconds(score) for score in rows[1::2]]
        return list(zip(rows[::2], times, bodies, strict=True))

    def remove(self, ids: Sequence[bytes]) -> Plan[None]:
        """Remove messages, but leave a body that somebody took meanwhile."""
        if not ids:
            return
        calls: list[Call] = [("ZREM", self._queued, *ids)]
        calls += [("ZSCORE", self._reserved, id) for id in ids]
        _, *held = yield from self._ask(calls)
        free = [id for id, score in zip(ids, held, strict=True) if score is None]
        if free:
            yield from self._ask([("HDEL", self._bodies, *free)])

    def _ask(self, calls: list[Call]) -> Plan[Replies]:
        replies: list[Any] = yield from patient(
            calls, Patience(self._shard.settings.deadline, self._shard.clock)
        )
        for reply in replies:
            if isinstance(reply, ErrorReply):
                raise final_error(reply)
        return replies


def _milliseconds(score: bytes) -> int:
    """A time as the older scheduler wrote it, never below zero."""
    value = max(0.0, float(score))
    return int(min(value * 1000 if value < SECONDS_END else value, 2.0**53 - 1))
