"""Reply values as text."""

from collections.abc import Sequence
from typing import Any


def text(value: Any) -> str:
    """A reply value as text; bytes that are none, which another client may have left, show as such."""
    return value.decode("utf-8", "replace") if type(value) is bytes else str(value)


def texts(values: Sequence[Any]) -> tuple[str, ...]:
    """Reply values as text."""
    return tuple([text(value) for value in values])
