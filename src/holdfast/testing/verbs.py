"""What a worker for tests can be told, said once for both colours."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from holdfast.testing.clock import span
from holdfast.testing.steps import Flow, Performed, Steps

P = ParamSpec("P")
R = TypeVar("R")


class Blocking:
    """A worker whose caller waits."""


class Awaiting:
    """A worker that is awaited."""


class Told(Generic[P, R]):
    """A flow of steps worn as a method; the worker it hangs on decides who waits."""

    def __init__(self, make: Callable[Concatenate[Any, P], Flow[R]]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, worker: None, owner: object) -> "Told[P, R]": ...
    @overload
    def __get__(self, worker: "Blocking", owner: object = None) -> Callable[P, R]: ...
    @overload
    def __get__(self, worker: "Awaiting", owner: object = None) -> Callable[P, Awaitable[R]]: ...
    def __get__(self, worker: Any, owner: object = None) -> Any:
        if worker is None:
            return self
        make: Callable[..., Flow[R]] = self._make

        def tell(*args: Any, **kwargs: Any) -> Any:
            return worker._drive(make(worker, *args, **kwargs))

        return tell


class WorkerVerbs:
    """What a worker for tests can be told."""

    _steps: Steps

    @Told
    def run_one(self, *, raises: bool = True) -> Flow[Performed | None]:
        """Perform the next job that is ready; None if there is none. Raises JobFailed."""
        return self._steps.one(raises)

    @Told
    def drain(self, *, raises: bool = True) -> Flow[list[Performed]]:
        """Perform what is ready, and what becomes ready thereby, until nothing is; delayed jobs stay.

        Raises JobFailed, WorkError when there is no end of it.
        """
        return self._steps.drain(raises)

    @Told
    def run_for(
        self,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        raises: bool = True,
    ) -> Flow[list[Performed]]:
        """Let so much time pass, and perform each job when it is due. Raises as `drain`, UsageError without a clock."""
        return self._steps.run_for(span(days, hours, minutes, seconds), raises)

    @Told
    def run_until(self, moment: datetime | float, *, raises: bool = True) -> Flow[list[Performed]]:
        """Let time pass until `moment`, a datetime with its time zone or epoch seconds, and perform each job when due.

        Raises as `run_for`.
        """
        return self._steps.run_until(moment, raises)
