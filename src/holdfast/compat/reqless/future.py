"""A value that one thread sets and others wait for."""

from threading import Event
from typing import Generic, TypeVar

T = TypeVar("T")


class Future(Generic[T]):
    """A value that is set once."""

    _value: T

    def __init__(self) -> None:
        self._set = Event()

    def done(self) -> bool:
        """Return whether the value is set."""
        return self._set.is_set()

    def result(self, timeout: float | None = None) -> T:
        """Wait for the value, for at most `timeout` seconds. Raises TimeoutError."""
        if not self._set.wait(timeout):
            raise TimeoutError(f"no value was set within {timeout} s")
        return self._value

    def set_result(self, result: T) -> None:
        """Set the value, which ends all waits for it."""
        self._value = result
        self._set.set()
