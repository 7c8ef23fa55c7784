"""The job that is being performed here and now, and where its puts go."""

from collections import deque
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from math import inf
from typing import Any, Final, Protocol

from holdfast.models import JobFacts


def not_lost() -> str:
    """Nothing is known of a lost lease."""
    return ""


class Running:
    """A job under way; its `Job` object is made when somebody asks for it.

    `lost` is the reason if its lease is known to be lost, else ""; `sandbox`, if it has one, is its directory, and
    `enter_sandbox` makes it the working directory, if class jobs of this pool run there;
    `lines` are the last that it logged; `begun` is on the monotonic clock, where somebody measures; `slot` is the one of
    many it is performed at; `interrupted` is when it was last interrupted, on the monotonic clock.
    """

    __slots__ = (
        "_make",
        "begun",
        "enter_sandbox",
        "facts",
        "interrupted",
        "lines",
        "lost",
        "made",
        "sandbox",
        "slot",
    )

    def __init__(
        self, facts: JobFacts, make: Callable[[JobFacts], Any], lost: Callable[[], str] = not_lost
    ) -> None:
        self.facts = facts
        self._make = make
        self.lost = lost
        self.made: Any = None
        self.sandbox: Callable[[], str] | None = None
        self.enter_sandbox: Callable[[], None] | None = None
        self.lines: deque[str] | None = None
        self.begun = 0.0
        self.interrupted = -inf
        self.slot: Any = None

    def make_by(self, make: Callable[[JobFacts], Any]) -> None:
        """From now on `make` makes the object, if nobody has asked for it."""
        self._make = make

    def job(self) -> Any:
        """The `Job` of this run, the same one each time."""
        if self.made is None:
            self.made = self._make(self.facts)
            self.made.run_of = self
        return self.made


running: Final[ContextVar[Running | None]] = ContextVar("holdfast_running", default=None)


def current_job() -> Any:
    """Return the job this code is performing (`Job`, inside `async def` `AsyncJob`), or None outside of one."""
    current = running.get()
    return None if current is None else current.job()


class Collecting(Protocol):
    """Whoever keeps puts back, instead of sending them."""

    def take(self, client: Any, put: Any, /) -> str:
        """Keep one put back; answers its jid."""
        ...

    def take_all(self, client: Any, puts: Sequence[Any], /) -> list[Any]:
        """Keep the puts of one step back; answers what each would."""
        ...


collecting: Final[ContextVar[Collecting | None]] = ContextVar("holdfast_collecting", default=None)
"""Set inside a block of `job.on_completion()`."""
