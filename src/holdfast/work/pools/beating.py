"""Heartbeats of processes that look after their own leases: by a thread (`serial`), by a task (`asyncio`)."""

import asyncio
import logging
import os
import threading
from time import monotonic
from typing import Final

from holdfast.client.aio import AsyncClient
from holdfast.client.sync import Client
from holdfast.commands.admin import Sweep
from holdfast.commands.leases import Lease
from holdfast.commands.outcomes import Expire
from holdfast.errors import HoldfastError
from holdfast.models import JobFacts
from holdfast.wire.exchange import exchange
from holdfast.wire.outage import Outage
from holdfast.work.keeper import SHORT_LEASE, Held, Keeper, run_end
from holdfast.work.pools.loop import AsyncLoop
from holdfast.work.presence import Presence, Sign

log = logging.getLogger("holdfast")

SWEEP: Final = 60.0


def warn_of_short_leases(lease: float) -> None:
    """Say that a lease is short for a process in which a job can keep the heartbeat from being sent."""
    if lease < SHORT_LEASE:
        log.warning(
            "leases last %g s here, less than %g: a job that hogs the interpreter may lose its lease; "
            "raise the queue's heartbeat or the job's timeout, or use --pool process",
            lease,
            SHORT_LEASE,
        )


class BeatingThread:
    """Keeps the lease of the one job of a serial worker, and says that it lives, from a thread and client of its own."""

    def __init__(self, client: Client, worker: str, presence: Presence) -> None:
        self._client = client
        self._worker = worker
        self._presence = presence
        self._quiet = False
        self._keeper = Keeper()
        self._held: Held | None = None
        self._changed = threading.Event()
        self._closed = False
        self._outage = Outage()
        self._thread = threading.Thread(target=self._run, name="holdfast-keeper", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End the thread and wait for it."""
        self._closed = True
        self._changed.set()
        self._thread.join()
        self._presence.end()

    def begin(self, line: str) -> None:
        pass

    def ask(self, number: int) -> None:
        pass

    def hold(self, facts: JobFacts, since: float) -> None:
        lease = facts.lease_ms / 1000
        self._held = Held(facts.jid, facts.token, self._worker, lease, since, 0, run_end(facts, since))
        if self._keeper.learn(lease):
            warn_of_short_leases(lease)
            self._changed.set()

    def release(self) -> None:
        self._held = None

    def lost(self) -> str:
        return self._held.lost if self._held is not None else ""

    def give_back(self) -> None:
        """The job under way was broken off: let somebody else have it at once."""
        held = self._held
        if held is None:
            return
        try:
            self._client.run(Expire([Lease(held.jid, held.token, held.worker)]))
            log.warning("job %s goes back", held.jid)
        except HoldfastError as error:
            log.warning("job %s goes back when its lease ends: %s", held.jid, error)

    def may_take(self) -> bool:
        return not self._quiet

    def fileno(self) -> int:
        return -1

    def heard(self) -> None:
        pass

    def _run(self) -> None:
        swept = monotonic()
        self._keeper.begin(swept)
        while not self._closed:
            due = min(self._keeper.due(), self._presence.due(), swept + SWEEP)
            self._changed.wait(max(0.0, due - monotonic()))
            self._changed.clear()
            now = monotonic()
            try:
                if now >= self._keeper.due():
                    self._beat(now)
                if now >= self._presence.due():
                    self._say()
                if now >= swept + SWEEP:
                    swept = now
                    self._client.run(Sweep())
            except Exception:
                # Whatever it was, a keeper that ends loses the lease unseen.
                log.exception("the keeper could not do its work; it goes on")

    def _say(self) -> None:
        sign = Sign(self._worker, os.getpid(), int(self._held is not None))
        self._quiet = self._presence.say([sign]).get(self._worker, self._quiet)

    def _beat(self, now: float) -> None:
        held = self._held
        for command, batch in self._keeper.look([held] if held is not None else [], now):
            try:
                self._keeper.answer(batch, self._client.run(command), now)
                self._outage.over()
            except HoldfastError as error:
                self._keeper.again(now, self._outage.pause(error))


class BeatingTask:
    """Keeps all leases of an event loop's worker, from a task with a client of its own."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._keeper = Keeper()
        self._changed = asyncio.Event()
        self._outage = Outage()

    def learn(self, lease: float) -> None:
        """Take note of a lease of that many seconds."""
        if self._keeper.learn(lease):
            warn_of_short_leases(lease)
            self._changed.set()

    def hurry(self) -> None:
        """Something happened to a lease: look now."""
        self._keeper.hurry()
        self._changed.set()

    async def run(self, jobs: AsyncLoop) -> None:
        """Heartbeat what `jobs` holds, and drop what was lost, until cancelled."""
        self._keeper.begin(monotonic())
        while True:
            try:
                async with asyncio.timeout(max(0.0, self._keeper.due() - monotonic())):
                    await self._changed.wait()
            except TimeoutError:
                pass
            self._changed.clear()
            if monotonic() >= self._keeper.due():
                await self._beat(jobs)

    async def _beat(self, jobs: AsyncLoop) -> None:
        now = monotonic()
        held = list(jobs.running.values())
        for command, batch in self._keeper.look(held, now):
            try:
                ends = await self._client.runner.run(exchange(self._client.shard, command))
                self._keeper.answer(batch, ends, now)
                self._outage.over()
            except HoldfastError as error:
                self._keeper.again(now, self._outage.pause(error))
        for seat in held:
            if seat.lost and not seat.task.done():
                jobs.drop(seat)
