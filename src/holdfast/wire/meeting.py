"""First contact with a store: check it, load our core where it is missing or older, make the root.

no core, or an older one             load ours
a newer core                         keep it
the same version, another digest     CoreMismatch; but a core from a checkout (`.dev`) may replace any
                                     core of that release, and is older than the release itself
"""

import logging
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

from holdfast.commands import Reply
from holdfast.commands.admin import Info
from holdfast.errors import CoreMismatch, HoldfastError, StoreUnsupported, refusal
from holdfast.models import CoreInfo
from holdfast.settings import Settings
from holdfast.wire.plans import Call, ErrorReply, Plan
from holdfast.wire.repeat import RetryTimer, send_until_done, wait
from holdfast.wire.shards import Shard

if TYPE_CHECKING:
    from holdfast.core.library import Library


def _library() -> "Library":
    # Imported at the first contact with a store: the text of the core is not needed before.
    from holdfast.core.library import library

    return library()


log = logging.getLogger("holdfast")

SECTIONS: Final[list[Call]] = [("INFO", "server"), ("INFO", "memory"), ("INFO", "persistence")]
ASK_FLUSH: Final[list[Call]] = [("CONFIG", "GET", "appendfsync")]
"""INFO for the checks of the store; only the flush policy needs CONFIG, which may be forbidden."""

_replaced: set[str] = set()
"""Digests of cores of our release that this process replaced."""

READS: Final = frozenset(
    {
        "exists", "get", "hget", "hgetall", "hkeys", "hmget", "hscan", "lindex", "llen", "lpos", "lrange",
        "mget", "strlen", "time", "xrevrange", "zcard", "zcount", "zrange", "zrank", "zscan", "zscore",
    }
)  # fmt: skip
"""The commands that the reading functions of the core run, with the permissions of the caller."""
WRITES: Final = frozenset(
    {
        "append", "decrby", "expire", "hdel", "hincrby", "hset", "hsetnx", "incrby", "lpop", "lrem", "lset", "mset",
        "msetnx", "persist", "publish", "rename", "rpush", "set", "setnx", "unlink", "xadd", "zadd", "zincrby",
        "zpopmin", "zrem",
    }
)  # fmt: skip
"""The commands that only the changing functions of the core run."""
_LOAD: Final = "`holdfast lua native | redis-cli -x FUNCTION LOAD REPLACE`"


def meet(shard: Shard, timer: RetryTimer, pause: float = 0.0) -> Plan[CoreInfo]:
    """Check that the store is supported, has a core that this client can use, and has our root.

    Raises StoreUnsupported, CoreMismatch, StoreFull, TransportError.
    """
    settings = shard.settings
    first = [*SECTIONS, _look(shard)]
    if settings.durability == "fsync":
        first += ASK_FLUSH
    replies = yield from send_until_done(first, timer, pause, is_new=shard.info is None)
    for reply in replies:
        if isinstance(reply, ErrorReply) and reply.code in ("NOAUTH", "WRONGPASS"):
            raise StoreUnsupported(
                f"the store refused the credentials: {reply.text}; put the right ones into the URL"
            )
    check_store(facts_of(replies[:3]), settings)
    if settings.durability == "fsync":
        check_flush(replies[4], settings)
    info = yield from _with_core(shard, timer, replies[3])
    check_rights(info.denied, shard.root)
    shard.info = info
    shard.met = True
    return info


def check_rights(denied: Sequence[str], root: str) -> None:
    """Raise StoreUnsupported for a user for whom a call could fail halfway.

    A user without any of the writing commands can change nothing, and may read.
    """
    missing = [name for name in denied if name in READS] if set(denied) >= WRITES else denied
    if missing:
        channels = f" (PUBLISH on the channels {root}*)" if "publish" in missing else ""
        raise StoreUnsupported(
            f"the user of this URL may not run {', '.join(missing)}{channels}, which the core needs: allow these commands"
        )


def _look(shard: Shard) -> Call:
    return ("FCALL", "hf1_info", "1", shard.root, *Info().words())


def _make(shard: Shard) -> Call:
    test_clock = shard.test_clock_ms
    info = Info("make") if test_clock is None else Info("test", test_clock)
    return ("FCALL", "hf1_info", "1", shard.root, *info.words())


def _with_core(shard: Shard, timer: RetryTimer, reply: Reply) -> Plan[CoreInfo]:
    """Load the core and make the root until `info` comes from a usable core and an existing root."""
    replaced, missing, makes = 0, 0, False
    while replaced < 4:
        if not isinstance(reply, ErrorReply):
            info = CoreInfo.from_row(reply)
            if not must_load(info.version, info.digest):
                return info
            _say_replaced(info.version, info.digest)
            yield from _load(shard, timer)
            replaced += 1
        elif "Function not found" in reply.text:
            # Functions may be flushed again and again, until the deadline.
            yield from _load(shard, timer, wait(reply, timer) if missing else 0.0)
            missing += 1
        elif reply.code != "HF_NO_ROOT":
            raise _refused(reply, shard.root, makes=makes)
        makes = True
        [reply] = yield from send_until_done([_make(shard)], timer, is_new=shard.info is None)
    raise CoreMismatch("the store's core keeps changing: clients of different builds replace it in turn")


def _say_replaced(version: str, digest: str) -> None:
    """Warn, once for each digest, about programs of other builds that replace our core in turn."""
    from holdfast.core.library import shown_core

    ours = _library()
    if release_of(version) != release_of(ours.version) or digest in _replaced:
        return
    _replaced.add(digest)
    log.warning(
        "the store had another build of the core (holdfast's functions in the store): %s; it was replaced by %s. Programs of different "
        "builds share this store, and each replaces the core of the other; use one build",
        shown_core(version, digest),
        shown_core(ours.version, ours.digest),
    )


def _load(shard: Shard, timer: RetryTimer, pause: float = 0.0) -> Plan[None]:
    if not shard.settings.load_core:
        raise CoreMismatch(
            f"the store does not have this client's core, and load_core is off: load it with {_LOAD}"
        )
    load: list[Call] = [("FUNCTION", "LOAD", "REPLACE", _library().text)]
    [reply] = yield from send_until_done(load, timer, pause, is_new=shard.info is None)
    if isinstance(reply, ErrorReply):
        raise _not_loaded(reply) if reply.is_denied else _refused(reply, shard.root)
    if shard.on_load is not None:
        shard.on_load(_library().digest)


def must_load(version: str, digest: str) -> bool:
    """Return whether our core must replace the one found, by version and digest. Raises CoreMismatch."""
    ours = _library()
    if digest == ours.digest:
        return False
    found, own = release_of(version), release_of(ours.version)
    if found != own:
        return found < own
    if ours.version.endswith(".dev") or version.endswith(".dev"):
        return True
    raise CoreMismatch(
        f"the store holds another core of version {version} (digest {digest[:12]}, ours {ours.digest[:12]}): "
        "use clients of one build, or another store"
    )


def is_ours(digest: str) -> bool:
    """Return whether `digest` is the one of this client's core."""
    return digest == _library().digest


def release_of(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, without `.dev`."""
    return tuple(int(number) for number in re.findall(r"\d+", version.removesuffix(".dev")))


def _not_loaded(reply: ErrorReply) -> StoreUnsupported:
    from holdfast.core.library import shown_core

    ours = _library()
    return StoreUnsupported(
        f"the store does not have this client's core {shown_core(ours.version, ours.digest)}, and the user of "
        f"this URL may not load it ({reply.text}): load it as an administrator with {_LOAD}"
    )


def _refused(reply: ErrorReply, root: str, *, makes: bool = False) -> HoldfastError:
    if reply.is_denied:
        what = "create the namespace, which does not exist yet," if makes else "use the namespace"
        return StoreUnsupported(
            f"the user of this URL may not {what} with the keys {root}*: {reply.sentence}"
        )
    if reply.code.startswith("HF_"):
        return refusal(reply.text)
    return CoreMismatch(f"the core could not be used: {reply.text}")


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
    if facts.get("redis_mode") == "sentinel" or facts.get("server_mode") == "sentinel":
        raise StoreUnsupported(
            "the URL leads to a sentinel, which keeps no jobs: give the URL of the primary, which "
            "`redis-cli -p 26379 SENTINEL get-master-addr-by-name NAME` prints"
        )
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


def _flush_policy(reply: object) -> object:
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
            f"the store's maxmemory-policy is {policy}, which deletes jobs when memory is short: "
            "set `maxmemory-policy noeviction`"
        )
    if policy.startswith("volatile-"):
        log.warning(
            "the store's maxmemory-policy is %s: results and replay records may be deleted early when memory is short; "
            "set `maxmemory-policy noeviction`",
            policy,
        )
