"""Facts that may be changed on a handle alone: the store learns nothing of it."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class Local(Generic[T]):
    """A fact of a handle that can be assigned there. It is read once, so a list that is changed in place stays so."""

    def __init__(self, read: Callable[[Any], T]) -> None:
        self.read = read
        self.name = ""
        self.__doc__ = read.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, handle: None, owner: object) -> "Local[T]": ...
    @overload
    def __get__(self, handle: object, owner: object = None) -> T: ...
    def __get__(self, handle: Any, owner: object = None) -> Any:
        if handle is None:
            return self
        known: dict[str, Any] = handle._local
        if self.name not in known:
            known[self.name] = self.read(handle)
        return known[self.name]

    def differs(self, handle: Any) -> bool:
        """Whether it was changed on this handle."""
        known: dict[str, Any] = handle._local
        return self.name in known and bool(known[self.name] != self.read(handle))

    def __set__(self, handle: Any, value: T) -> None:
        handle._local[self.name] = value
