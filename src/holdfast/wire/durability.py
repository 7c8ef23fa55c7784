"""Whether a store may be trusted with jobs: its version, its eviction policy, its persistence.

Read from INFO, because CONFIG may be barred; only the flush policy has to be asked for.
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
    """Times the first flushes of an embedded store, and says once when its disk makes them slow."""

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
        """Send a step that changes something, and time it."""
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
    """The `name:value` lines of INFO replies. Raises StoreUnsupported when INFO is barred."""
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
    """Refuse a store that is too old, throws keys away, or keeps less than was asked. Raises StoreUnsupported."""
    if settings.ensure_minimum_version:
        _check_version(facts)
    _check_policy(facts.get("maxmemory_policy", "noeviction"))
    if settings.durability != "memory" and facts.get("aof_enabled") != "1":
        raise StoreUnsupported(
            f"durability {settings.durability!r} needs the store's append-only file: "
            "set `appendonly yes` there, or ask for durability='memory'"
        )


def check_flush(reply: object, settings: Settings) -> None:
    """Refuse a store whose log is not flushed before it answers. Raises StoreUnsupported."""
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
    """What CONFIG GET says; a connection of the newer protocol answers with a mapping."""
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
    """Its first two numbers; what follows them, such as `-pre2`, says nothing about age."""
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
