"""The lease of the one job of a serial worker, and heartbeats of a process without a parent, by a thread."""

import logging
import os
import select
import threading
from collections.abc import Callable, Sequence
from math import inf
from time import monotonic
from typing import Final, Protocol

from holdfast.client.sync import Client
from holdfast.commands.admin import Sweep
from holdfast.commands.leases import Lease
from holdfast.commands.outcomes import Release
from holdfast.errors import HoldfastError
from holdfast.models import JobFacts
from holdfast.wire.outage import Outage
from holdfast.wire.waiting import sleep
from holdfast.work.keeper import SHORT_LEASE, Held, Keeper, run_end
from holdfast.work.observe.board import Asking, open_board
from holdfast.work.parent.presence import Presence, Sign, StoreMessage, StoreMessages, log_quiet
from holdfast.work.parent.renewal import SWEEP
from holdfast.work.performing.making import nothing
from holdfast.work.performing.outcome import log_release
from holdfast.work.signals import Stop, start_without_signals

log = logging.getLogger("holdfast")

REMIND: Final = 0.25  # seconds until a lost lease that is still held is reported once more
TROUBLED: Final = 1.0  # seconds that a keeper waits after something that should not happen


def warn_of_short_lease(lease: float) -> None:
    """Say that a lease is short for a process in which a job can keep the heartbeat from being sent."""
    log.warning(
        "leases last %g s here, less than %g: a job that hogs the interpreter may lose its lease; "
        "raise the queue's heartbeat or the job's timeout, or use --pool process",
        lease,
        SHORT_LEASE,
    )


class Chores(Protocol):
    """What else a keeper's thread does now and then."""

    def due(self) -> float:
        """When to call `attend` next, on the monotonic clock."""
        ...

    def attend(self) -> None:
        """Do what is due."""
        ...

    def hear(self, said: Sequence[StoreMessage]) -> None:
        """This was said to the worker."""
        ...


class NoChores:
    """Nothing else."""

    def due(self) -> float:
        return inf

    def attend(self) -> None:
        pass

    def hear(self, said: Sequence[StoreMessage]) -> None:
        pass


class BeatingThread:
    """Keeps the leases of one process, from a thread that works with a client of its own; hears what is said to `worker`.

    `held` answers the leases there are; `on_news` is called when something was said, or a lease was found lost. These and
    the `chores` are called in the thread, which under gevent is a greenlet.
    """

    def __init__(
        self,
        client: Client,
        worker: str,
        held: Callable[[], list[Held]],
        on_news: Callable[[], None],
        chores: Chores | None = None,
    ) -> None:
        self._client = client
        self._news = StoreMessages(client, [worker])
        self._held = held
        self._on_news = on_news
        self._chores = chores or NoChores()
        self._keeper = Keeper()
        self._wake = Stop()
        self._outage = Outage(client.shard.gate)
        self._heard = -inf
        self._is_early = False
        self._shortest = SHORT_LEASE
        self._thread = threading.Thread(target=self._run, name="holdfast-keeper", daemon=True)

    def start(self) -> None:
        """Begin, and listen already when this returns."""
        self._news.open()
        start_without_signals(self._thread)

    def close(self) -> None:
        """End the thread and wait for it; once more is no harm."""
        if self._wake.requested:
            return
        self._wake.request()
        self._thread.join()
        self._news.close()
        self._wake.close()

    def learn(self, lease: float, since: float = inf) -> None:
        """Take note of a lease of that many seconds, among those `held` by now, taken by a call at `since`.

        The keeper belongs to the thread, which is only woken: what was changed here while it looks would be lost.
        """
        # A message that came during that call may concern this lease.
        is_early = self._heard >= since
        if is_early:
            self._is_early = True
        if is_early or lease < self._keeper.period * 3:
            self._wake.wake()

    def _run(self) -> None:
        self._keeper.begin(monotonic())
        while not self._wake.requested:
            try:
                self._wait()
                if monotonic() >= self._keeper.due():
                    self._beat(monotonic())
                self._learn()
                if monotonic() >= self._chores.due():
                    self._chores.attend()
            except Exception:
                # Whatever it was, a keeper that ends loses the leases unseen.
                log.exception("renewing leases failed; trying again")
                sleep(TROUBLED)

    def _learn(self) -> None:
        """Look soon enough for all that is held. After each look too: what was taken meanwhile had been promised more."""
        is_early, self._is_early = self._is_early, False
        for held in self._held():
            self._keeper.learn(held.lease, held.ends)
            if held.lease < self._shortest:
                self._shortest = held.lease
                warn_of_short_lease(held.lease)
        if is_early:
            self._keeper.hurry()

    def _wait(self) -> None:
        """Wait for what is due, for news, or for being called."""
        if not self._news.is_open and monotonic() >= self._news.at:
            self._news.open()
        due = min(self._keeper.due(), self._chores.due())
        poll = select.poll()
        poll.register(self._wake.fileno(), select.POLLIN)
        if self._news.is_open:
            poll.register(self._news.fileno(), select.POLLIN)
        else:
            due = min(due, self._news.at)
        ready = [descriptor for descriptor, _ in poll.poll(max(0.0, due - monotonic()) * 1000)]
        if self._wake.fileno() in ready:
            self._wake.heard()
            ready.remove(self._wake.fileno())
        heard = self._news.hear() if ready else []
        if heard:
            self._heard = monotonic()
            self._keeper.hurry()
            self._on_news()
            self._chores.hear(heard)

    def _beat(self, now: float) -> None:
        held = self._held()
        for command, batch in self._keeper.look(held, now):
            try:
                self._keeper.answer(batch, self._client.run(command))
                self._outage.over()
            except HoldfastError as error:
                self._keeper.again(now, self._outage.pause(error))
        if any(lease.lost for lease in held):
            self._on_news()


class SerialHolder:
    """Holds one lease, and says that the worker lives. Its thread works with `client`, which is nobody else's.

    In that thread `on_lost` is called when the lease is lost, and again as long as it is held; `told` once, with the jid.
    """

    def __init__(
        self,
        client: Client,
        worker: str,
        presence: Presence,
        on_lost: Callable[[], None] = nothing,
        told: Callable[[str], object] = lambda jid: None,
    ) -> None:
        self._client = client
        self._worker = worker
        self._held: Held | None = None
        self._presence = presence
        self._asking = Asking(client, open_board())
        self._on_lost = on_lost
        self._told = told
        self._told_of: Held | None = None
        self._remind_at = inf
        self._quiet = False
        self._changed = Stop()
        self._sweep_at = monotonic() + SWEEP
        self._beating = BeatingThread(client, worker, self._all_held, self._hear, self)

    def start(self) -> None:
        """Begin."""
        self._beating.start()

    def close(self) -> None:
        """End the thread and wait for it."""
        self._beating.close()
        self._presence.end()
        self._changed.close()

    def begin(self, line: str) -> None:
        pass

    def ask(self, number: int) -> None:
        pass

    def hold(self, facts: JobFacts, since: float) -> None:
        lease = facts.lease_ms / 1000
        self._held = Held(facts.jid, facts.token, self._worker, lease, 0, run_end(facts, since))
        self._beating.learn(min(lease, self._held.ends - since), since)

    def release(self) -> None:
        self._held = None

    def count(self) -> int:
        """How many jobs are held: one or none."""
        return len(self._all_held())

    def lost(self) -> str:
        return self._held.lost if self._held is not None else ""

    def give_back(self, cause: str) -> None:
        """Release the lease of the running job, which the signal `cause` stopped: another worker can take it at once."""
        held, self._held = self._held, None
        if held is None or held.lost:
            return
        # The thread must have ended: it would notice that the lease ended, and renew it.
        self._beating.close()
        try:
            self._client.run(Release([Lease(held.jid, held.token, held.worker)], "preempted", cause))
            log_release(held.jid, "preempted", cause)
        except HoldfastError as error:
            log.warning("job %s is requeued when its lease ends: %s", held.jid, error)

    def may_take(self) -> bool:
        return not self._quiet

    def fileno(self) -> int:
        return self._changed.fileno()

    def heard(self) -> None:
        self._changed.heard()

    # Chores of the thread.

    def due(self) -> float:
        return min(self._presence.due(), self._asking.due(), self._sweep_at, self._remind_at)

    def hear(self, said: Sequence[StoreMessage]) -> None:
        self._asking.hear(said)

    def attend(self) -> None:
        now = monotonic()
        self._asking.attend({self._worker: os.getpid()})
        if now >= self._presence.due():
            self._say()
        if now >= self._remind_at:
            self._remind_at = inf
            self._hear()
        if now >= self._sweep_at:
            self._sweep_at = now + SWEEP
            self._client.run(Sweep())

    def _all_held(self) -> list[Held]:
        held = self._held
        return [held] if held is not None else []

    def _hear(self) -> None:
        self._presence.hurry()
        held = self._held
        if held is not None and held.lost and held is not self._told_of:
            self._told_of = held
            self._told(held.jid)
        if held is not None and held.lost:
            # Once is not enough: the main thread may not have begun the job yet, and then has nothing to interrupt.
            self._remind_at = monotonic() + REMIND
            self._on_lost()

    def _say(self) -> None:
        sign = Sign(self._worker, os.getpid(), int(self._held is not None))
        quiet = self._presence.say([sign]).get(self._worker, self._quiet)
        if quiet != self._quiet:
            self._quiet = quiet
            self._changed.wake()
            log_quiet(self._worker, quiet)
