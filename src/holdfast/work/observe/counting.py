"""Counting jobs where they are performed, and troubles where they are noticed; only where somebody asked for metrics."""

from time import monotonic

from holdfast.code.current import Running
from holdfast.wire.away import OUTAGES
from holdfast.work.keeper import GAPS
from holdfast.work.observe.ledger import Ledger
from holdfast.work.observe.results import result_of
from holdfast.work.performing.outcome import Ending


class Counting:
    """A companion that writes into a ledger how each job ended, and after how long."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._begun: dict[Running, float] = {}
        watch_troubles(ledger)

    def begin(self, current: Running) -> None:
        self._begun[current] = monotonic()
        self._ledger.begin(current.facts.queue, current.facts.klass)

    def end(self, current: Running, ending: Ending) -> None:
        begun = self._begun.pop(current)
        facts, outcome = current.facts, result_of(current, ending).outcome
        self._ledger.end(facts.queue, facts.klass, outcome, monotonic() - begun)


def watch_troubles(ledger: Ledger) -> None:
    """Have this process write into a ledger that the store is away, or that leases were not looked after."""
    OUTAGES.told = ledger.note_outage
    GAPS.told = ledger.note_gap
