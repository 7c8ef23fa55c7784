"""The live stream of open pages: numbers that changed, and the names of things that changed. It carries no HTML.

All browsers share one poller and one subscription to the store; both end with the last browser.
"""

import asyncio
import json
import random
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from holdfast.client.descriptors import run_plan
from holdfast.client.listener import AsyncListener
from holdfast.client.plans import all_counts
from holdfast.commands.admin import Watch
from holdfast.commands.views import ListSet
from holdfast.console.read.queries import all_workers
from holdfast.errors import HoldfastError, TransportError
from holdfast.logs import logger
from holdfast.web.places import AllTaken, Places
from holdfast.wire.outage import log_outage, log_recovery
from holdfast.wire.plans import Plan, Planner

if TYPE_CHECKING:
    from holdfast.client.aio import AsyncClient

_STATES: Final = ("running", "waiting", "throttled", "scheduled", "stalled", "depends", "recurring", "failed")
_WATCH_MS: Final = 15_000
_MANY: Final = 500
"""With more queues than this the numbers are read every five seconds."""
_WAITING: Final = 64
"""Events that a browser may be behind before it has to load its page again."""
_IDLE: Final = 10.0
_LONGEST: Final = 300.0
"""Seconds after which a stream ends by itself, so that a server can stop; browsers connect again."""
_PULSE: Final = 15.0
_RECHECK: Final = 3.0
"""Seconds between two checks of whether the user of a stream may still see it: a session may have ended."""
_MOST_STREAMS: Final = 1000
_GATHERED: Final = 0.25
"""Seconds for which reports about messages of topics are gathered."""
_MOST_REPORTS, _MOST_IDS = 32, 100
"""The largest number of reports that are sent together, others are left out; and of ids in one report."""


def counters(ask: Planner) -> Plan[dict[str, int]]:
    """Return the numbers that pages show live: `t.<state>` of the namespace, `q.<queue>.<state>` of each queue."""
    found: dict[str, int] = {f"t.{state}": 0 for state in _STATES}
    counts = yield from all_counts(ask)
    for one in counts:
        for state in _STATES:
            number = getattr(one, state)
            found[f"q.{one.name}.{state}"] = number
            found[f"t.{state}"] += number
    found["t.queues"] = len(counts)
    found["t.workers"] = len((yield from all_workers(ask)))
    found["t.tracked"] = len((yield from ask(ListSet("tracked", "", None, 512))).entries)
    return found


def keys_of(names: set[str]) -> set[str]:
    """Return the names of what pages show, of the counters that changed."""
    found = {"counts"} if names else set[str]()
    for name in names:
        kind, _, rest = name.partition(".")
        if kind == "q":
            queue, _, state = rest.rpartition(".")
            found |= {"queues", f"queue:{queue}"}
            rest = state
        if rest in ("failed", "recurring", "workers", "tracked", "running"):
            found.add("workers" if rest == "running" else rest)
    return found


_JOB_OF_FLOW: Final = re.compile(r"job:(.+)-\d{1,12}", re.DOTALL)


def with_flows(keys: set[str]) -> set[str]:
    """Return the names of what changed, with the flows that the jobs among them may be part of."""
    found = {match[1] for key in keys if (match := _JOB_OF_FLOW.fullmatch(key))}
    return keys | {f"flow:{name}" for name in found} | {"flows"} if found else keys


class Report(msgspec.Struct):
    """Messages of a topic that came or went, as the core reports them: the first ids, and the number of all."""

    event: Literal["message_scheduled", "message_cancelled", "message_completed"]
    topic: str
    ids: list[str]
    count: int


class Stream:
    """One browser that listens: its events that were not sent yet."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[tuple[str, Any]] = asyncio.Queue(_WAITING)

    def send(self, kind: str, content: Any) -> None:
        """Add an event; a browser that is too far behind loads its page again."""
        if self.events.full():
            while not self.events.empty():
                self.events.get_nowait()
            kind, content = "resync", {}
        self.events.put_nowait((kind, content))


class Hub:
    """The counters of a namespace, and those that watch them. `version` counts the changes, for browsers that poll."""

    def __init__(self, client: "AsyncClient") -> None:
        self._client = client
        self._streams: set[Stream] = set()
        self._places = Places(_MOST_STREAMS)
        self._poller: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._looked = asyncio.Event()
        self._used = 0.0
        self.counters: dict[str, int] = {}
        self.version = 0
        self._changes: dict[str, int] = {}
        self._reports: dict[tuple[str, str], Report] = {}
        self.is_away = False
        """Whether the store did not respond when it was asked last."""

    def changed(self, *keys: str) -> None:
        """Note that this process changed something, before the store reports it."""
        self._publish({}, set(keys))

    def progress(self, id: str, done: int, of: int) -> None:
        """Send how far an operation is."""
        for stream in self._streams:
            stream.send("op", {"id": id, "done": done, "of": of})

    async def look(self) -> None:
        """Begin to look at the store before a page is made, so that nothing is lost between that and its first event.

        The page then has the numbers too.
        """
        if not self.is_away:
            await self._awake()

    async def snapshot(self, since: int) -> dict[str, Any]:
        """Return everything for a browser that polls: the numbers, and what changed since a version."""
        await self._awake()
        keys = sorted(key for key, version in self._changes.items() if version > since)
        return {"tick": self.counters, "k": keys, "v": self.version, "away": self.is_away}

    def limit_streams(self, most: int) -> None:
        """Let there be fewer streams at once than otherwise."""
        self._places.most = min(self._places.most, most)

    async def events(self, who: str, may_watch: Callable[[], Awaitable[bool]]) -> AsyncGenerator[bytes]:
        """Yield the stream of one browser of a user, as server-sent events; a user who has too many gets none.

        It ends within seconds when `may_watch` returns False.
        """
        try:
            with self._places.taken(who):
                async with aclosing(self._events(may_watch)) as events:
                    async for event in events:
                        yield event
        except AllTaken:
            yield _event("bye", {"after": 30})

    async def _events(self, may_watch: Callable[[], Awaitable[bool]]) -> AsyncGenerator[bytes]:
        stream = Stream()
        self._streams.add(stream)
        try:
            await self._awake()
            yield _event("tick", self.counters)
            if self.is_away:
                yield _event("store", {"away": True})
            now = monotonic()
            ends, pulse_at, check_at = now + _LONGEST * random.uniform(0.8, 1.2), now + _PULSE, now + _RECHECK
            while (now := monotonic()) < ends:
                if now >= check_at:
                    if not await may_watch():
                        break
                    check_at = now + _RECHECK
                if now >= pulse_at:
                    pulse_at = now + _PULSE
                    yield b": still here\n\n"
                try:
                    left = min(ends, pulse_at, check_at) - now
                    kind, content = await asyncio.wait_for(stream.events.get(), max(0.0, left))
                except TimeoutError:
                    continue
                pulse_at = monotonic() + _PULSE
                yield _event(kind, content)
            yield _event("bye", {"after": 1})
        finally:
            self._streams.discard(stream)

    async def close(self) -> None:
        """End the poller, and with it all streams."""
        for stream in self._streams:
            stream.send("bye", {"after": 2})
        if self._poller is not None and self._loop is asyncio.get_running_loop():
            await cancelled(self._poller)

    async def _awake(self) -> None:
        """Start the poller if it does not run, and wait for the first numbers."""
        loop = asyncio.get_running_loop()
        self._used = monotonic()
        if self._poller is None or self._poller.done() or self._loop is not loop:
            # Noted before anything is awaited: requests of one moment start one poller.
            self._loop, self._looked = loop, asyncio.Event()
            self._poller = loop.create_task(self._poll(self._looked), name="holdfast-web-live")
        await self._looked.wait()

    async def _poll(self, looked: asyncio.Event) -> None:
        listening = asyncio.create_task(self._listen(), name="holdfast-web-changes")
        try:
            try:
                await self._look()
            finally:
                looked.set()
            while self._streams or monotonic() - self._used < _IDLE:
                await asyncio.sleep(5.0 if len(self.counters) > _MANY * len(_STATES) else 1.0)
                await self._look()
        finally:
            await cancelled(listening)

    async def _look(self) -> None:
        try:
            found: dict[str, int] = await run_plan(self._client, counters)
        except HoldfastError as error:
            if isinstance(error, TransportError):
                log_outage(self._client.shard.gate, error)
            elif not self.is_away:
                logger.warning("the live numbers cannot be read, trying again: %s", error)
            self._note_away(True)
            return
        if self.is_away:
            log_recovery(self._client.shard.gate)
        self._note_away(False)
        changed: dict[str, int | None] = {
            name: value for name, value in found.items() if self.counters.get(name) != value
        }
        changed.update({name: None for name in self.counters if name not in found})  # browsers drop them
        is_first = not self.counters
        self.counters = found
        if changed and not is_first:
            self._publish(changed, keys_of(set(changed)))

    def _note_away(self, is_away: bool) -> None:
        if is_away != self.is_away:
            self.is_away = is_away
            for stream in self._streams:
                stream.send("store", {"away": is_away})

    async def _listen(self) -> None:
        """Publish what the store reports as changed. It reports only while somebody watches."""
        renewing = asyncio.create_task(self._keep_watching())
        changes, reports = f"{self._client.root}e:c", f"{self._client.root}e:m"
        listener = AsyncListener(self._client, [changes, reports])
        try:
            async with aclosing(listener.listen()) as messages:
                async for message in messages:
                    if message["channel"] == reports:
                        self._gather(message["data"])
                    else:
                        self._publish({}, {message["data"]})
        except HoldfastError as error:
            logger.warning(
                "changes cannot be followed, so pages update only when their numbers change: %s", error
            )
        finally:
            await cancelled(renewing)

    def _gather(self, text: str) -> None:
        """Note a report about messages of a topic. Other messages, and reports beyond the limit, are ignored."""
        with suppress(msgspec.MsgspecError):
            report = msgspec.json.decode(text, type=Report)
            if not self._reports:
                asyncio.get_running_loop().call_later(_GATHERED, self._send_reports)
            if len(self._reports) < _MOST_REPORTS or (report.event, report.topic) in self._reports:
                known = self._reports.setdefault(
                    (report.event, report.topic), Report(report.event, report.topic, [], 0)
                )
                known.ids += report.ids[: _MOST_IDS - len(known.ids)]
                known.count += report.count

    def _send_reports(self) -> None:
        for one in self._reports.values():
            for stream in self._streams:
                stream.send(one.event, {"topic": one.topic, "ids": one.ids, "count": one.count})
        self._reports.clear()

    async def _keep_watching(self) -> None:
        while True:
            with suppress(HoldfastError):
                await self._client.run(Watch(_WATCH_MS))
            await asyncio.sleep(_WATCH_MS / 3000)

    def _publish(self, numbers: Mapping[str, int | None], keys: set[str]) -> None:
        if keys:
            keys = with_flows(keys)
            self.version += 1
            self._changes.update(dict.fromkeys(keys, self.version))
            if len(self._changes) > 10_000:
                self._changes = dict(sorted(self._changes.items(), key=lambda one: one[1])[-5000:])
        for stream in self._streams:
            if numbers:
                stream.send("tick", dict(numbers))
            if keys:
                stream.send("change", {"k": sorted(keys), "v": self.version})


async def cancelled(task: "asyncio.Task[None]") -> None:
    """Cancel a task and wait until it has ended."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def _event(kind: str, content: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(content, separators=(',', ':'))}\n\n".encode()
