"""The doctor's checks of the store: its version, what a crash can lose, memory, clock, latency, slow calls, replicas."""

from collections.abc import Mapping, Sequence
from time import monotonic, time
from typing import Any, Final, cast

import msgspec

from holdfast.console.health.findings import Calls, Finding, Verdict, refusal_text
from holdfast.models import text
from holdfast.text import counted, size, span
from holdfast.wire.plans import Call, ErrorReply, Plan

PINGS: Final = 50
_CLOCK_READS: Final = 5
_SLOW_ENTRIES: Final = 128
_SECTIONS: Final[tuple[Call, ...]] = tuple(
    ("INFO", name) for name in ("server", "memory", "persistence", "replication", "stats", "errorstats")
)
_SETTINGS: Final = ("appendfsync", "save", "slowlog-log-slower-than")
_DAY: Final = 86_400.0
_MEGABYTE: Final = 1_000_000
ALMOST_FULL: Final = 0.8
"""From this part of its memory on a store needs attention."""
_FULL_AGAIN: Final = 0.99
"""From this part of its memory on a store that has refused calls counts as full."""


class StoreFacts(msgspec.Struct, frozen=True):
    """What the store reports of itself: the lines of INFO, and its settings (None: CONFIG is barred)."""

    info: Mapping[str, str]
    config: Mapping[str, str] | None
    barred: str = ""

    def number(self, name: str) -> float:
        """Return a number of INFO, 0 if it has none of that name."""
        try:
            return float(self.info.get(name, "0"))
        except ValueError:
            return 0.0

    @property
    def refused(self) -> int:
        """How many calls the store has refused for want of memory since it started."""
        count = self.info.get("errorstat_OOM", "").partition("count=")[2].partition(",")[0]
        return int(count) if count.isdecimal() else 0


def store_facts(calls: Calls, *, with_settings: bool = True) -> Plan[StoreFacts]:
    """Read what the store reports of itself. `with_settings` asks for CONFIG too, which many users may not, and which then is logged."""
    asked: Call = ("CONFIG", "GET", *_SETTINGS)
    sections = list((yield from calls.send(*_SECTIONS, *((asked,) if with_settings else ()))))
    config = sections.pop() if with_settings else None
    info: dict[str, str] = {}
    barred = ""
    for section in sections:
        if isinstance(section, ErrorReply):
            barred = refusal_text(section)
            continue
        for line in text(section).splitlines():
            name, colon, value = line.partition(":")
            if colon:
                info[name] = value
    return StoreFacts(
        info, _pairs(config) if config is not None and not isinstance(config, ErrorReply) else None, barred
    )


def _pairs(reply: Any) -> dict[str, str]:
    """Return a reply of CONFIG GET as a mapping: it is a flat list, or a mapping in the newer protocol."""
    if isinstance(reply, Mapping):
        found = cast("Mapping[object, object]", reply)
        return {text(name): text(value) for name, value in found.items()}
    words = cast("Sequence[object]", reply)
    return {text(name): text(value) for name, value in zip(words[::2], words[1::2], strict=True)}


def version(facts: StoreFacts) -> Finding:
    """Check which store it is."""
    if not facts.info:
        return Finding("store", "note", f"INFO is barred: {facts.barred}.", "allow +info to this user")
    valkey = facts.info.get("valkey_version")
    name, number = ("Valkey", valkey) if valkey else ("Redis", facts.info.get("redis_version", "0"))
    mode = facts.info.get("server_mode") or facts.info.get("redis_mode", "standalone")
    shown = f"{name} {number}, {mode}, up for {span(1000 * facts.number('uptime_in_seconds'))}"
    least = (7, 2) if valkey else (7, 0)
    if tuple(int(part) if part.isdecimal() else 0 for part in number.split(".")[:2]) < least:
        return Finding("store", "bad", f"{shown}: too old.", "upgrade to Redis 7.0 or Valkey 7.2, or newer")
    return Finding("store", "ok", f"{shown}.")


def persistence(facts: StoreFacts) -> Finding:
    """Check what a crash can lose."""
    info, policy = facts.info, None if facts.config is None else facts.config.get("appendfsync")
    if info.get("aof_enabled") == "1":
        if info.get("aof_last_write_status", "ok") != "ok":
            text_ = "The append-only file cannot be written: what changes now is lost in a crash."
            return Finding("persistence", "bad", text_, "free disk space on the store's machine; see its log")
        return _appending(policy, int(facts.number("aof_delayed_fsync")))
    lost = int(facts.number("rdb_changes_since_last_save"))
    age = span(1000 * max(0.0, time() - facts.number("rdb_last_save_time")))
    remedy = "redis-cli CONFIG SET appendonly yes"
    if facts.config is not None and not facts.config.get("save"):
        return Finding(
            "persistence", "warn", "Persistence is off: a crash or restart loses everything.", remedy
        )
    if info.get("rdb_last_bgsave_status", "ok") != "ok":
        return Finding("persistence", "bad", f"The last snapshot failed; {lost} changes are unsaved.", remedy)
    text_ = f"Snapshots only: a crash now loses {lost} changes; the last snapshot is {age} old."
    if facts.config is None:
        text_ += " Whether snapshots are on is not known, because CONFIG is barred."
    return Finding("persistence", "warn", text_, remedy)


def _appending(policy: str | None, delayed: int) -> Finding:
    if policy is None:
        text_ = "The append-only file is on; its flush policy is not known, because CONFIG GET is barred."
        return Finding("persistence", "note", text_, "redis-cli CONFIG GET appendfsync")
    loses = {
        "always": "a crash loses nothing that was acknowledged",
        "everysec": "a crash of the machine loses up to 2 s, of the process nothing",
    }.get(policy, "a crash of the machine loses what the system has not written yet, up to 30 s")
    text_ = f"The append-only file is flushed with appendfsync {policy}: {loses}."
    if delayed:
        return Finding("persistence", "note", f"{text_} {delayed} flushes were late.", "use a faster disk")
    verdict: Verdict = "ok" if policy in ("always", "everysec") else "warn"
    return Finding(
        "persistence", verdict, text_, "" if verdict == "ok" else "redis-cli CONFIG SET appendfsync everysec"
    )


def eviction(facts: StoreFacts) -> Finding:
    """Check that the store deletes no jobs when memory is short."""
    policy = facts.info.get("maxmemory_policy", "noeviction")
    if policy == "noeviction":
        return Finding(
            "eviction", "ok", "maxmemory-policy noeviction: a full store refuses writes, and deletes nothing."
        )
    is_bad = policy.startswith("allkeys-")
    verdict: Verdict = "bad" if is_bad else "warn"
    what = "jobs" if is_bad else "results and replay records"
    text_ = f"maxmemory-policy {policy} deletes {what} when memory is short."
    return Finding("eviction", verdict, text_, "redis-cli CONFIG SET maxmemory-policy noeviction")


def memory(facts: StoreFacts, flags: str = "") -> Finding:
    """Check how much of the store's memory is used. `flags` complete a command line."""
    used, limit = facts.number("used_memory"), facts.number("maxmemory")
    whole = facts.number("total_system_memory")
    ratio = facts.number("mem_fragmentation_ratio")
    share = memory_share(facts)
    of_what = f"maxmemory {size(limit)}" if limit else f"the machine's {size(whole)}, without maxmemory"
    shown = f"{size(used)} used, {share:.0%} of {of_what}; fragmentation {ratio:.2f}"
    if share >= ALMOST_FULL:
        calls = counted(facts.refused, "call was", "calls were")
        refused = f" {calls} refused since it started." if facts.refused else ""
        now = "The store is full and refuses puts" if is_full(facts) else "The store is almost full"
        text_ = f"{now}: {shown}.{refused} Cancel jobs that are not needed, or raise maxmemory."
        return Finding("memory", "bad", text_, f"holdfast stats{flags}")
    if ratio > 1.5 and used > 100 * _MEGABYTE:
        return Finding("memory", "note", f"{shown}.", "redis-cli CONFIG SET activedefrag yes")
    if not limit:
        return Finding(
            "memory",
            "note",
            f"{shown}: the system may kill the store if it grows.",
            "redis-cli CONFIG SET maxmemory SIZE",
        )
    return Finding("memory", "ok", f"{shown}.")


def memory_share(facts: StoreFacts) -> float:
    """Return the part of the store's memory that is used: of maxmemory, or without it of the machine's."""
    used = facts.number("used_memory")
    return used / (facts.number("maxmemory") or facts.number("total_system_memory") or used or 1)


def is_full(facts: StoreFacts) -> bool:
    """Return whether the store refuses puts now: what counts for its limit is above that.

    One that has refused calls is full from a little less: what a refused call itself took is free again when this is read.
    """
    limit = facts.number("maxmemory")
    counted = facts.number("used_memory") - facts.number("mem_not_counted_for_evict")
    return limit > 0 and counted >= limit * (_FULL_AGAIN if facts.refused else 1)


def replication(facts: StoreFacts) -> Finding:
    """Check the role of the store, and its replicas."""
    if facts.info.get("role") in ("slave", "replica"):
        link = facts.info.get("master_link_status", "unknown")
        text_ = f"This is a replica (its link is {link}): it refuses writes, and workers cannot use it."
        return Finding("replication", "bad", text_, "put the URL of the primary into HOLDFAST_URL")
    count = int(facts.number("connected_slaves"))
    if not count:
        return Finding("replication", "ok", "A primary without replicas.")
    lags = [_lag(value) for name, value in facts.info.items() if name[:5] == "slave" and name[5:].isdecimal()]
    text_ = f"A primary with {counted(count, 'replica')}; the slowest is {max(lags, default=0)} s behind."
    verdict: Verdict = "warn" if max(lags, default=0) > 10 else "ok"
    return Finding(
        "replication", verdict, text_, "" if verdict == "ok" else "look at the network and the replica's log"
    )


def _lag(line: str) -> int:
    lags = [part.removeprefix("lag=") for part in line.split(",") if part.startswith("lag=")]
    return int(lags[0]) if lags and lags[0].isdecimal() else 0


def latency(calls: Calls, pings: int = PINGS) -> Plan[Finding]:
    """Measure round trips, one after the other."""
    times: list[float] = []
    for _ in range(pings):
        begun = monotonic()
        yield from calls.send(("PING",))
        times.append(1000 * (monotonic() - begun))
    times.sort()
    half, most = times[pings // 2], times[pings * 95 // 100]
    text_ = f"{pings} pings: half within {half:.1f} ms, 95 % within {most:.1f} ms."
    if half > 50 or most > 200:
        return Finding(
            "latency", "warn", text_, "run clients and workers closer to the store; see the slow log"
        )
    if half > 5 or most > 50:
        return Finding("latency", "note", text_, "run clients and workers closer to the store")
    return Finding("latency", "ok", text_)


def clock(calls: Calls) -> Plan[Finding]:
    """Compare the clock of the store with that of this machine, as exactly as the quickest of five calls allows."""
    best, offset = float("inf"), 0.0
    for _ in range(_CLOCK_READS):
        begun = time()
        [reply] = yield from calls.send(("TIME",))
        took = time() - begun
        if isinstance(reply, ErrorReply):
            return Finding(
                "clock", "note", f"Not checked: {refusal_text(reply)}.", "allow +time to this user"
            )
        if took < best:
            best, offset = took, int(reply[0]) + int(reply[1]) / 1e6 - begun - took / 2
    way = "ahead of" if offset > 0 else "behind"
    text_ = f"The store's clock is {abs(offset):.3f} s {way} this machine's (± {best / 2:.3f} s)."
    if abs(offset) > 1:
        remedy = "run NTP on both machines: leases and delays use the store's clock"
        return Finding("clock", "warn" if abs(offset) > 60 else "note", text_, remedy)
    return Finding("clock", "ok", text_)


def slow_log(calls: Calls) -> Plan[Finding]:
    """Look for calls of our functions in the slow log of the last day."""
    [reply] = yield from calls.send(("SLOWLOG", "GET", _SLOW_ENTRIES))
    if isinstance(reply, ErrorReply):
        return Finding(
            "slow log",
            "note",
            f"SLOWLOG is barred: {refusal_text(reply)}.",
            "allow +slowlog|get to this user",
        )
    entries = [_entry(row) for row in cast("Sequence[Sequence[Any]]", reply)]
    ours = [(ms, name) for when, ms, name in entries if name and when > time() - _DAY]
    if not ours:
        return Finding("slow log", "ok", f"No call of holdfast among the last {len(entries)} slow ones.")
    longest, name = max(ours)
    text_ = f"{len(ours)} slow calls of holdfast in a day; the longest is {name} with {longest:.1f} ms."
    verdict: Verdict = "warn" if longest >= 100 else "note"
    return Finding("slow log", verdict, text_, "redis-cli SLOWLOG GET 10")


def _entry(row: Sequence[Any]) -> tuple[float, float, str]:
    """Return when a call was made, how many ms it took, and its verb if it is a function of the core."""
    words = [text(word) for word in row[3][:2]]
    is_ours = len(words) == 2 and words[0].upper().startswith("FCALL") and words[1].startswith("hf1_")
    return float(row[1]), float(row[2]) / 1000, words[1].removeprefix("hf1_") if is_ours else ""
