"""The lease of the one job of a serial worker, kept by a thread beside it."""

import logging
import os
from collections.abc import Callable, Sequence
from time import monotonic

from holdfast.client.sync import Client
from holdfast.commands.admin import Sweep
from holdfast.commands.leases import Lease
from holdfast.commands.outcomes import Release
from holdfast.errors import HoldfastError
from holdfast.models import JobFacts
from holdfast.work.keeper import Held, run_end
from holdfast.work.observe.asking import Asking
from holdfast.work.observe.board import open_board
from holdfast.work.parent.guard import SWEEP
from holdfast.work.parent.news import Said
from holdfast.work.parent.presence import Presence, Sign, log_quiet
from holdfast.work.performing.making import nothing
from holdfast.work.performing.outcome import log_release
from holdfast.work.pools.beating import BeatingThread
from holdfast.work.signals import Stop

log = logging.getLogger("holdfast")


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
        return min(self._presence.due(), self._asking.due(), self._sweep_at)

    def hear(self, said: Sequence[Said]) -> None:
        self._asking.hear(said)

    def attend(self) -> None:
        now = monotonic()
        self._asking.attend({self._worker: os.getpid()})
        if now >= self._presence.due():
            self._say()
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
            self._on_lost()

    def _say(self) -> None:
        sign = Sign(self._worker, os.getpid(), int(self._held is not None))
        quiet = self._presence.say([sign]).get(self._worker, self._quiet)
        if quiet != self._quiet:
            self._quiet = quiet
            self._changed.wake()
            log_quiet(self._worker, quiet)
