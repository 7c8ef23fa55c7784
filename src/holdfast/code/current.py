"""The job that is being performed here and now."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final

from holdfast.models import JobFacts


class Running:
    """A job under way; its `Job` object is made when somebody asks for it."""

    __slots__ = ("_make", "facts", "made")

    def __init__(self, facts: JobFacts, make: Callable[[JobFacts], Any]) -> None:
        self.facts = facts
        self._make = make
        self.made: Any = None

    def job(self) -> Any:
        """The `Job` of this run, the same one each time."""
        if self.made is None:
            self.made = self._make(self.facts)
        return self.made


running: Final[ContextVar[Running | None]] = ContextVar("holdfast_running", default=None)


def current_job() -> Any:
    """Return the job this code is performing (`Job`, inside `async def` `AsyncJob`), or None outside of one."""
    current = running.get()
    return None if current is None else current.job()
