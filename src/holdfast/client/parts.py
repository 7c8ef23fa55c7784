"""Parts of a client that are loaded when they are first asked for, so that importing a client costs little."""

import importlib
from typing import Any, Generic, TypeVar, overload

T_co = TypeVar("T_co", covariant=True)


class Part(Generic[T_co]):
    """A handle of a client, made when first asked for: `config: "Part[Config]" = Part("config.Config")`.

    `where` names the class below `holdfast.client`; it is called with the client. Found once, it is an ordinary
    attribute of this client, so nothing is paid twice.
    """

    def __init__(self, where: str) -> None:
        self._module, _, self._class = where.rpartition(".")
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        """What `help(Client)` shows of it."""
        return f"<{self._class} of the client: holdfast.client.{self._module}>"

    @overload
    def __get__(self, client: None, owner: object) -> "Part[T_co]": ...
    @overload
    def __get__(self, client: object, owner: object = None) -> T_co: ...
    def __get__(self, client: object | None, owner: object = None) -> Any:
        if client is None:
            return self
        kind = getattr(importlib.import_module(f"holdfast.client.{self._module}"), self._class)
        # Two threads may both make one: whichever is first stays.
        return vars(client).setdefault(self._name, kind(client))
