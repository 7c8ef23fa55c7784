"""Those who perform jobs that block: a crew of threads or of greenlets, and the seats they work at."""

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from holdfast.models import JobFacts
from holdfast.work.pools.seats import Seat


class BlockingSeat(Seat):
    """A seat whose job is performed by one of a crew, its `hand`. `is_over`: nobody works on it any more."""

    __slots__ = ("hand", "is_over")

    def __init__(self, facts: JobFacts, worker: str, since: float, number: int) -> None:
        super().__init__(facts, worker, since, number)
        self.hand: Any = None
        self.is_over = False


class Crew(Protocol):
    """Those who perform. All but `run_coroutine` is called by the loop."""

    def start(self, seat: BlockingSeat, work: Callable[[], None]) -> None:
        """Have somebody do `work`, which raises nothing, for a seat."""
        ...

    def give_way(self) -> None:
        """Let them work a little before the loop sleeps, which costs more where all share one thread."""
        ...

    def run_coroutine(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Drive the coroutine of the job that is performed here to its end."""
        ...

    def stop(self, seat: BlockingSeat) -> None:
        """End the work on a seat whose lease was lost, as far as it can be ended."""
        ...

    def unwind(self, seat: BlockingSeat) -> None:
        """The process ends now: raise Terminated in the job of a seat."""
        ...

    def close(self) -> None:
        """Nothing more will be started."""
        ...
