"""The parent's care for its children's leases: heartbeats, giving back, and whom to stop for what."""

import logging
import os
import signal
from collections.abc import Iterable
from time import monotonic
from typing import Final, Protocol

from holdfast.client.sync import Client
from holdfast.commands.admin import Sweep
from holdfast.errors import HoldfastError
from holdfast.wire.outage import Outage
from holdfast.wire.waiting import hold
from holdfast.work.keeper import Held, Keeper
from holdfast.work.observe.asking import Asking
from holdfast.work.observe.board import open_board
from holdfast.work.parent.debts import Debts
from holdfast.work.parent.news import Said
from holdfast.work.parent.presence import Presence, Sign
from holdfast.work.parent.slate import Slate
from holdfast.work.settings import WorkerSettings

log = logging.getLogger("holdfast")

SWEEP: Final = 60.0
PARTING: Final = 2.0  # seconds that a parent about to end tries to give leases back
HALT: Final = 0.05  # seconds that a signal may take to halt a child
_Key = tuple[int, int, str, int]


class Charge(Protocol):
    """A child process, as its guard sees it."""

    @property
    def pid(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def slate(self) -> Slate: ...
    def poke(self) -> None:
        """Make it look at its slate."""


class Guard:
    """Keeps the leases on the slates of children alive (`beats`), and gives back those of the dead."""

    def __init__(self, client: Client, settings: WorkerSettings, beats: bool) -> None:
        self._client = client
        self._debts = Debts(client, settings.queues)
        self._presence = Presence(client, settings)
        self._asking = Asking(client, open_board())
        self._beats = beats
        self._keeper = Keeper()
        self._known: dict[_Key, Held] = {}
        self._stopped: set[int] = set()
        self._outage = Outage(client.shard.away)
        now = monotonic()
        self._keeper.begin(now)
        self._sweep_at = now + SWEEP

    def due(self) -> float:
        """When to call `attend` next, on the monotonic clock."""
        due = min(self._keeper.due(), self._presence.due(), self._asking.due(), self._sweep_at)
        owed = self._debts.due()
        return due if owed is None else min(due, owed)

    def learn(self, child: Charge) -> None:
        """A child said that it holds a shorter lease than before, or that it heard something."""
        self._keeper.learn(child.slate.shortest_lease())
        self._presence.hurry()

    def hear(self, said: Iterable[Said]) -> None:
        """This was said to children, or they are not heard any more, which is news too: look now."""
        self._keeper.hurry()
        self._presence.hurry()
        self._asking.hear(said)

    @property
    def is_heard(self) -> bool:
        """Whether the store has answered the last sign of life."""
        return self._presence.is_heard

    def owe(self, child: Charge) -> bool:
        """A child died: what it held is to be given back. Answers whether it was we who stopped it."""
        stopped = child.pid in self._stopped
        self._stopped.discard(child.pid)
        self._debts.add(child.name, child.slate, child.pid, quiet=stopped)
        return stopped

    def attend(self, children: Iterable[Charge]) -> None:
        """Do what is due: give back, heartbeat, say who lives, sweep."""
        children, now = list(children), monotonic()
        self._debts.pay()
        self._asking.attend({child.name: child.pid for child in children})
        if now >= self._keeper.due():
            self._look(children, now)
        if now >= self._presence.due():
            self._say(children)
        if now >= self._sweep_at:
            self._sweep_at = now + SWEEP
            self._sweep()
        # What a child would inherit by a fork should not be an open connection.
        self._client.link.close()

    def finish(self) -> None:
        """Give back the last leases, of which nobody will take care any more, and say that all are gone."""
        end = monotonic() + PARTING
        while (due := self._debts.due()) is not None and monotonic() < end:
            hold(max(0.0, due - monotonic()))
            self._debts.pay()
        self._presence.end()

    def _say(self, children: list[Charge]) -> None:
        signs = [Sign(child.name, child.pid, len(child.slate.read_all())) for child in children]
        quiet = self._presence.say(signs)
        for child in children:
            told = quiet.get(child.name, child.slate.quiet)
            if told != child.slate.quiet:
                log.info("worker %s was told to %s", child.name, "be quiet" if told else "go on")
                child.slate.quiet = told
                child.poke()

    def _look(self, children: list[Charge], now: float) -> None:
        held = self._held(children) if self._beats else {}
        for command, batch in self._keeper.look(held, now):
            try:
                self._keeper.answer(batch, self._client.run(command), now)
            except HoldfastError as error:
                self._keeper.again(now, self._outage.pause(error))
            else:
                self._outage.over()
        for lease, child in held.items():
            if lease.lost and _stop_if_still(child, lease):
                self._stopped.add(child.pid)

    def _held(self, children: list[Charge]) -> dict[Held, Charge]:
        """All that stands on the slates; what stood there before keeps its last renewal."""
        held: dict[Held, Charge] = {}
        known, self._known = self._known, {}
        for child in children:
            for holding in child.slate.read_all():
                key = (child.pid, holding.seat, holding.jid, holding.token)
                lease = known.get(key) or Held(
                    holding.jid,
                    holding.token,
                    child.name,
                    holding.lease,
                    holding.since,
                    holding.seat,
                    holding.ends,
                )
                self._known[key] = lease
                held[lease] = child
        return held

    def _sweep(self) -> None:
        try:
            self._client.run(Sweep())
        except HoldfastError as error:
            log.debug("sweeping failed: %s", error)


def _stop_if_still(child: Charge, lease: Held) -> bool:
    """Kill a child for a job it must not work on any more, and for no other job. Answers whether it did."""
    if not _holds(child, lease):
        return False
    # It is halted first: it cannot go on to its next job between our look and the end.
    _halt(child.pid)
    if _holds(child, lease):
        log.warning(
            "job %s: %s; its process %d is stopped and its work dropped", lease.jid, lease.lost, child.pid
        )
        os.kill(child.pid, signal.SIGKILL)
        return True
    os.kill(child.pid, signal.SIGCONT)
    return False


def _halt(pid: int) -> None:
    """Halt a child of ours; when this returns it stands still, or is in the kernel for so long that it changes nothing."""
    os.kill(pid, signal.SIGSTOP)
    end = monotonic() + HALT
    what = os.WSTOPPED | os.WEXITED | os.WNOWAIT | os.WNOHANG
    while os.waitid(os.P_PID, pid, what) is None and monotonic() < end:
        hold(HALT / 100)


def _holds(child: Charge, lease: Held) -> bool:
    holding = child.slate.read(lease.seat)
    return holding is not None and (holding.jid, holding.token) == (lease.jid, lease.token)
