"""Frames that show in a stack dump which slot of a process was running: their functions are named after the slot."""

from collections.abc import Callable
from types import FunctionType
from typing import Any, Final, TypeVar

_NAME: Final = "slot "
F = TypeVar("F", bound=Callable[..., Any])


def for_slots(function: F, slots: int) -> list[F]:
    """Return a copy of the function for each slot, with the slot in its name."""
    assert isinstance(function, FunctionType)
    return [_renamed(function, f"{_NAME}{slot}") for slot in range(slots)]


def slot_in(name: str) -> int | None:
    """Return the slot in the name of a function."""
    number = name.removeprefix(_NAME)
    return int(number) if name.startswith(_NAME) and number.isdecimal() else None


def _renamed(function: Any, name: str) -> Any:
    code = function.__code__.replace(co_name=name)
    return FunctionType(code, function.__globals__, name, function.__defaults__, function.__closure__)
