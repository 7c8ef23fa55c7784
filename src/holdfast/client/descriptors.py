"""Descriptors that turn a command into a method or an attribute of a sync or an async handle.

A handle belongs to a client and runs commands through it. `CommandMethod` is a command worn as a method, `CommandProperty` one that
reading an attribute sends, `SettableFact` a fact whose assignment is a command. On the handles of an async client
what talks to the store answers an awaitable.
"""

import functools
import importlib
from collections.abc import Awaitable, Callable
from types import MethodType
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

from holdfast.commands import Command
from holdfast.wire.plans import Plan, Planner


class Named:
    """Names its things in brackets, `client.queues["mail"]`, and has one for whatever name; so it is no collection.

    Said to Python because it would go through `[0]`, `[1]`, … otherwise, for `for` and `in` alike.
    """

    __iter__: ClassVar[None] = None
    __contains__: ClassVar[None] = None


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


P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class SyncHandle:
    """A thing of a blocking client."""

    _client: Any

    def run(self, command: Command[R], /) -> R:
        """Run a command through the client this handle belongs to."""
        return cast("R", self._client.run(command))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._client!r}>"


class AsyncHandle:
    """A thing of an async client."""

    _client: Any

    def run(self, command: Command[R], /) -> Awaitable[R]:
        """Run a command through the client this handle belongs to."""
        return cast("Awaitable[R]", self._client.run(command))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._client!r}>"


class CommandMethod(Generic[P, R]):
    """A command worn as a method; the handle it hangs on decides the colour."""

    def __init__(self, make: Callable[Concatenate[Any, P], Command[R]]) -> None:
        self.make = make
        self.__doc__ = make.__doc__
        self.method = functools.wraps(make)(self.written())

    def __set_name__(self, owner: type, name: str) -> None:
        if self.method.__name__.startswith("_"):
            self.method.__name__, self.method.__qualname__ = name, f"{owner.__name__}.{name}"

    @overload
    def __get__(self, handle: None, owner: object) -> "CommandMethod[P, R]": ...
    @overload
    def __get__(self, handle: SyncHandle, owner: object = None) -> Callable[P, R]: ...
    @overload
    def __get__(self, handle: AsyncHandle, owner: object = None) -> Callable[P, Awaitable[R]]: ...
    def __get__(self, handle: SyncHandle | AsyncHandle | None, owner: object = None) -> Any:
        return self if handle is None else MethodType(self.method, handle)

    def written(self) -> Callable[..., Any]:
        """The method as both colours have it; help shows what `make` says and takes."""
        make: Callable[..., Command[Any]] = self.make

        def call(handle: SyncHandle | AsyncHandle, /, *args: Any, **kwargs: Any) -> Any:
            return handle.run(make(handle, *args, **kwargs))

        return call


class SettableMethod(CommandMethod[P, R]):
    """A command worn as a method, and the assignment to its name another: refused on an async handle.

    For what one older client asks by calling it and another tells by assigning to it.
    """

    def __init__(
        self, make: Callable[Concatenate[Any, P], Command[R]], tell: Callable[[Any, Any], Command[Any]]
    ) -> None:
        super().__init__(make)
        self.tell = tell
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        super().__set_name__(owner, name)
        self.name = name

    def __set__(self, handle: SyncHandle, value: object) -> None:
        write(handle, self.name, self.tell, value)


class PlanMethod(Generic[P, R]):
    """A plan of several calls worn as a method. `make` is given the handle and what turns a command into a plan."""

    def __init__(self, make: Callable[Concatenate[Any, Planner, P], Plan[R]]) -> None:
        self.make = make
        self.__doc__ = make.__doc__

        @functools.wraps(make, ("__name__", "__qualname__", "__doc__"), ())
        def call(handle: Any, /, *args: Any, **kwargs: Any) -> Any:
            client = handle._client
            return client.runner.run(make(handle, client._plan_of, *args, **kwargs))

        # It is not called as `make` is, which has one argument more.
        del call.__wrapped__
        self.method = call

    @overload
    def __get__(self, handle: None, owner: object) -> "PlanMethod[P, R]": ...
    @overload
    def __get__(self, handle: SyncHandle, owner: object = None) -> Callable[P, R]: ...
    @overload
    def __get__(self, handle: AsyncHandle, owner: object = None) -> Callable[P, Awaitable[R]]: ...
    def __get__(self, handle: SyncHandle | AsyncHandle | None, owner: object = None) -> Any:
        return self if handle is None else MethodType(self.method, handle)


class CommandProperty(Generic[R]):
    """A question to the store worn as an attribute."""

    def __init__(self, make: Callable[[Any], Command[R]]) -> None:
        self.make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, handle: None, owner: object) -> "CommandProperty[R]": ...
    @overload
    def __get__(self, handle: SyncHandle, owner: object = None) -> R: ...
    @overload
    def __get__(self, handle: AsyncHandle, owner: object = None) -> Awaitable[R]: ...
    def __get__(self, handle: SyncHandle | AsyncHandle | None, owner: object = None) -> Any:
        if handle is None:
            return self
        return handle.run(self.make(handle))


class PlanProperty(Generic[R]):
    """A question of several calls worn as an attribute."""

    def __init__(self, make: Callable[[Any, Planner], Plan[R]]) -> None:
        self.make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, handle: None, owner: object) -> "PlanProperty[R]": ...
    @overload
    def __get__(self, handle: SyncHandle, owner: object = None) -> R: ...
    @overload
    def __get__(self, handle: AsyncHandle, owner: object = None) -> Awaitable[R]: ...
    def __get__(self, handle: SyncHandle | AsyncHandle | None, owner: object = None) -> Any:
        if handle is None:
            return self
        held: Any = handle
        client = held._client
        return client.runner.run(self.make(handle, client._plan_of))


class SettableFact(Generic[T]):
    """A local fact whose assignment is a command: at once on a sync handle, refused on an async one."""

    def __init__(self, read: Callable[[Any], T], make: Callable[[Any, T], Command[Any]]) -> None:
        self.read = read
        self.make = make
        self.name = ""
        self.__doc__ = read.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, handle: None, owner: object) -> "SettableFact[T]": ...
    @overload
    def __get__(self, handle: object, owner: object = None) -> T: ...
    def __get__(self, handle: object | None, owner: object = None) -> Any:
        return self if handle is None else self.read(handle)

    def __set__(self, handle: SyncHandle, value: T) -> None:
        write(handle, self.name, self.make, value)


class SettableProperty(CommandProperty[T]):
    """A question worn as an attribute, and its assignment a command: refused on an async handle."""

    def __init__(self, ask: Callable[[Any], Command[T]], make: Callable[[Any, T], Command[Any]]) -> None:
        super().__init__(ask)
        self.tell = make
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __set__(self, handle: SyncHandle, value: T) -> None:
        write(handle, self.name, self.tell, value)


def write(handle: Any, name: str, make: Callable[[Any, T], Command[Any]], value: T) -> None:
    """Send what an assignment means. Raises TypeError naming the twin on an async handle."""
    if isinstance(handle, AsyncHandle):
        raise TypeError(f"an assignment cannot be awaited: write `await ….set_{name}(…)`")
    handle.run(make(handle, value))
