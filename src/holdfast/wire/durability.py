"""Checks of a store: its version, its eviction policy, its persistence.

They read INFO, because CONFIG may be forbidden; only the flush policy needs CONFIG GET.
"""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from holdfast.errors import StoreUnsupported
from holdfast.settings import Settings
from holdfast.wire.plans import Call, ErrorReply, Plan, Replies, Step

log = logging.getLogger("holdfast")

SECTIONS: Final[list[Call]] = [("INFO", "server"), ("INFO", "memory"), ("INFO", "persistence")]
ASK_FLUSH: Final[list[Call]] = [("CONFIG", "GET", "appendfsync")]


class FlushWatch:
    """Time the first flushes of an embedded store, and log once if its disk makes them slow."""

    ENOUGH = 50
    SLOW = 0.003

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._times = 0
        self._seconds = 0.0

    @property
    def is_over(self) -> bool:
        """Whether enough flushes were timed."""
        return self._times >= self.ENOUGH

    def timed(self, step: Step) -> Plan[Replies]:
        """Send a step that changes data, and time it."""
        begun = self._clock()
        replies = yield step
        self._times += 1
        self._seconds += self._clock() - begun
        if self.is_over and self._seconds > self.SLOW * self._times:
            log.warning(
                "this disk takes %.1f ms to flush a call; durability='process' would not wait for the disk, "
                "but a power loss, or a crash of the store while the disk is slow, may lose the last two seconds",
                self._seconds / self._times * 1000,
            )
        return replies


def facts_of(sections: list[object]) -> dict[str, str]:
    """Return the `name:value` lines of INFO replies. Raises StoreUnsupported if INFO is forbidden."""
    facts: dict[str, str] = {}
    for section in sections:
        if isinstance(section, ErrorReply):
            raise StoreUnsupported(f"the user of this URL must be allowed to run INFO: {section.text}")
        text = section.decode("utf-8", "replace") if isinstance(section, bytes) else str(section)
        for line in text.splitlines():
            name, colon, value = line.partition(":")
            if colon:
                facts[name] = value
    return facts


def check_store(facts: dict[str, str], settings: Settings) -> None:
    """Raise StoreUnsupported for a store that is too old, evicts keys, or has a lower durability than `settings`."""
    if settings.ensure_minimum_version:
        _check_version(facts)
    _check_policy(facts.get("maxmemory_policy", "noeviction"))
    if settings.durability != "memory" and facts.get("aof_enabled") != "1":
        raise StoreUnsupported(
            f"durability {settings.durability!r} needs the store's append-only file: "
            "set `appendonly yes` there, or ask for durability='memory'"
        )


def check_flush(reply: object, settings: Settings) -> None:
    """Raise StoreUnsupported for a store that replies before its log is flushed."""
    if isinstance(reply, ErrorReply):
        if settings.trust_store:
            return
        raise StoreUnsupported(
            f"durability 'fsync' cannot be verified because CONFIG is barred ({reply.text}): "
            "allow `CONFIG GET appendfsync`, or pass trust_store=True if you know that it is `always`"
        )
    policy = _flush_policy(reply)
    if policy != b"always":
        raise StoreUnsupported(
            "durability 'fsync' needs `appendfsync always` in the store's configuration, "
            f"which has {policy!r}: change it there, or ask for durability='process'"
        )


def _flush_policy(reply: Any) -> Any:
    """Return the value in a reply to CONFIG GET: a flat list, or a mapping in the newer protocol."""
    if type(reply) is dict:
        return cast("Mapping[bytes, bytes]", reply).get(b"appendfsync")
    words = cast("Sequence[bytes]", reply) if type(reply) is list else ()
    return words[1] if len(words) > 1 else b"unknown"


def _check_version(facts: dict[str, str]) -> None:
    valkey = facts.get("valkey_version")
    name, found, least = (
        ("Valkey", valkey, (7, 2)) if valkey else ("Redis", facts.get("redis_version", "0"), (7, 0))
    )
    if _version(found) < least:
        raise StoreUnsupported(
            f"{name} {found} is too old: holdfast needs Redis 7.0 or Valkey 7.2, or newer; upgrade the store"
        )


def _version(text: str) -> tuple[int, int]:
    """Return the first two numbers of a version; (0, 0) if there are none."""
    found = re.match(r"(\d+)(?:\.(\d+))?", text)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def _check_policy(policy: str) -> None:
    if policy.startswith("allkeys-"):
        raise StoreUnsupported(
            f"the store's maxmemory-policy is {policy}, which throws jobs away when memory is short: "
            "set `maxmemory-policy noeviction`"
        )
    if policy.startswith("volatile-"):
        log.warning(
            "the store's maxmemory-policy is %s: results and replay records may go early when memory is short; "
            "`noeviction` is better",
            policy,
        )
