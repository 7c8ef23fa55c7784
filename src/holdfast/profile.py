"""Measure which calls take the store's time, by a slow log that records every command for a while."""

import sys
from collections.abc import Generator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TextIO

from holdfast.commands import Reply
from holdfast.errors import StoreUnsupported, UsageError
from holdfast.models import text
from holdfast.wire.exchange import final_error
from holdfast.wire.plans import Call, ErrorReply, Plan
from holdfast.wire.repeat import RetryTimer, send_until_done

LOG_LENGTH: Final = 100_000
"""How many entries the slow log keeps; the report mentions older ones that are missing."""
_PAGE: Final = -1
_SETTINGS: Final = ("slowlog-log-slower-than", "slowlog-max-len")
_SCRIPTS: Final = frozenset({"FCALL", "FCALL_RO", "EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO"})
_NEVER_INSIDE: Final = frozenset(
    {"AUTH", "BLPOP", "CLIENT", "CONFIG", "FUNCTION", "HELLO", "INFO", "PING", "SCRIPT", "SELECT", "SLOWLOG", "SUBSCRIBE",
     "UNSUBSCRIBE"}
)  # fmt: skip
"""Commands that clients send between calls, and no script."""
_OWN: Final = frozenset({"CONFIG", "SLOWLOG"})
"""Commands of the profiler itself."""
_NO_CLIENT: Final = "?:0"


class Timing(NamedTuple):
    """One command: how often it ran, and microseconds of the store's time, average and total."""

    command: str
    calls: int
    average_us: float
    total_us: int


class Entry(NamedTuple):
    """One entry of the slow log; the command of a script is the function that it calls."""

    command: str
    micros: int
    client: str
    is_script: bool

    def is_inside(self, script: "Entry", no_client: bool) -> bool:
        """Return whether this entry before `script` was done by it: Redis names `no_client` then, Valkey the caller."""
        who = _NO_CLIENT if no_client else script.client
        return self.client == who and self.command not in _NEVER_INSIDE


class Profiler:
    """Records what the store does while a block runs, and prints it at the end.

        with Profiler(client):      # or `async with`, for an AsyncClient
            work()

    For each command: calls, average and total microseconds; below each command of the core, the commands
    inside. Commands of all clients of this store count. Earlier entries of the slow log
    may be lost. `timings` and `inner` have the figures afterwards; `output` is where they are printed
    [standard output]; `quiet` prints nothing. Raises UsageError, StoreUnsupported where CONFIG or SLOWLOG is barred.
    """

    def __init__(self, client: Any, output: TextIO | None = None, *, quiet: bool = False) -> None:
        if not hasattr(client, "runner"):
            raise UsageError(f"client must be a Client or an AsyncClient, not {type(client).__name__}")
        self._client = client
        self._output = output
        self._quiet = quiet
        self._before: dict[str, str] = {}
        self._first = 0
        self.timings: list[Timing] = []
        self.inner: dict[str, list[Timing]] = {}
        self.missed = 0

    def _ask(self, *calls: Call) -> Plan[list[Reply]]:
        shard = self._client.shard
        replies = yield from send_until_done(
            list(calls), RetryTimer(shard.settings.deadline, shard.clock, store=shard.settings.store)
        )
        for reply in replies:
            if isinstance(reply, ErrorReply):
                if reply.code == "NOPERM":
                    raise StoreUnsupported(f"a profile needs CONFIG and SLOWLOG: {reply.sentence}")
                raise final_error(reply)
        return replies

    def _begin(self) -> Plan[None]:
        [pairs, newest] = yield from self._ask(("CONFIG", "GET", "slowlog-*"), ("SLOWLOG", "GET", 1))
        self._before = _settings(pairs)
        self._first = newest[0][0] + 1 if newest else 0
        yield from self._ask(*_set({"slowlog-max-len": str(LOG_LENGTH), "slowlog-log-slower-than": "0"}))

    def _end(self) -> Plan[None]:
        # The slow log records these commands too, so the settings are restored first, except for the length.
        yield from self._ask(*_set({"slowlog-log-slower-than": self._before["slowlog-log-slower-than"]}))
        try:
            [entries] = yield from self._ask(("SLOWLOG", "GET", _PAGE))
        finally:
            yield from self._ask(*_set({"slowlog-max-len": self._before["slowlog-max-len"]}))
        self._note([entry for entry in reversed(entries) if entry[0] >= self._first])
        if not self._quiet:
            (self._output or sys.stdout).write(self.report())

    def _note(self, entries: Sequence[Reply]) -> None:
        """Sort entries into calls and the commands inside of them: those of a script come before it."""
        self.missed = entries[0][0] - self._first if entries else 0
        outer: dict[str, list[int]] = {}
        inner: dict[str, dict[str, list[int]]] = {}
        before: list[Entry] = []
        all_entries = [_entry(found) for found in entries]
        no_client = any(entry.client == _NO_CLIENT for entry in all_entries)
        for entry in all_entries:
            if not entry.is_script:
                before.append(entry)
                continue
            of_call = inner.setdefault(entry.command, {})
            for one in before:
                (of_call if one.is_inside(entry, no_client) else outer).setdefault(one.command, []).append(
                    one.micros
                )
            before = []
            outer.setdefault(entry.command, []).append(entry.micros)
        for one in before:
            outer.setdefault(one.command, []).append(one.micros)
        self.timings = _timings(outer)
        self.inner = {called: _timings(of_call) for called, of_call in inner.items()}

    def report(self) -> str:
        """Return the figures as text: a line for each command, the longest total first, and the commands inside it."""
        lines = [_line("command", "calls", "average µs", "total µs")]
        for timing in self.timings:
            lines.append(_figures(timing, ""))
            lines += [_figures(one, "  ") for one in self.inner.get(timing.command, [])]
        if self.missed:
            lines.append(f"{self.missed} earlier commands did not fit into the log")
        return "\n".join(lines) + "\n"

    def __enter__(self) -> "Profiler":
        self._client._before_call()
        self._client.runner.run(self._begin())
        return self

    def __exit__(self, *_: object) -> None:
        self._client.runner.run(self._end())

    async def __aenter__(self) -> "Profiler":
        await self._client.runner.run(self._begin())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.runner.run(self._end())


def _entry(found: Reply) -> Entry:
    words = [text(word) for word in found[3]]
    name = words[0].upper()
    called = words[1] if name.startswith("FCALL") and len(words) > 1 else name
    return Entry(called, found[2], text(found[4]), name in _SCRIPTS)


def _settings(pairs: Reply) -> dict[str, str]:
    """Return the reply of CONFIG GET as a dict: it is pairs, or a mapping in the newer protocol."""
    words: list[Reply] = (
        [word for pair in pairs.items() for word in pair] if hasattr(pairs, "items") else pairs
    )
    found = {text(words[at]): text(words[at + 1]) for at in range(0, len(words), 2)}
    return {name: found[name] for name in _SETTINGS}


def _set(settings: Mapping[str, str]) -> Generator[Call]:
    for name, value in settings.items():
        yield ("CONFIG", "SET", name, value)


def _timings(found: Mapping[str, Sequence[int]]) -> list[Timing]:
    rows = [
        Timing(command, len(micros), sum(micros) / len(micros), sum(micros))
        for command, micros in found.items()
        if command not in _OWN
    ]
    return sorted(rows, key=lambda row: (-row.total_us, row.command))


def _figures(timing: Timing, indent: str) -> str:
    return _line(indent + timing.command, timing.calls, f"{timing.average_us:.1f}", timing.total_us)


def _line(command: str, calls: object, average: object, total: object) -> str:
    return f"{command:<32} {calls:>10} {average:>12} {total:>12}"
