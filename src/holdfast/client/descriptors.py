"""Descriptors that turn a command or a plan into a method or an attribute of sync and async handles.

A handle belongs to a client and runs commands through it. `CommandMethod` is a method that sends a command, `CommandProperty`
an attribute whose reading sends one, `SettableFact` a local fact whose assignment sends one. On the handles of an async
client everything that talks to the store returns an awaitable.
"""

import functools
import importlib
from collections.abc import Awaitable, Callable, Sequence
from types import FunctionType, MethodType
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, cast, overload

from holdfast.code.steps import Coro, Steps, await_steps, run_steps
from holdfast.code.unawaited import named
from holdfast.commands import Command
from holdfast.commands.workers import WorkerSeen
from holdfast.settings import Settings
from holdfast.wire.plans import Plan, Planner
from holdfast.wire.shards import Shard

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")
T = TypeVar("T")
H = TypeVar("H")
"""The class in which a method is defined."""


class AnyClient(Protocol):
    """A Client or an AsyncClient, as its handles use it: what sends calls returns a result, or an awaitable of it."""

    @property
    def settings(self) -> Settings: ...
    @property
    def shard(self) -> Shard: ...
    @property
    def worker_name(self) -> str: ...
    @property
    def runner(self) -> Any: ...
    @property
    def link(self) -> Any: ...
    @property
    def queues(self) -> Any: ...
    @property
    def jobs(self) -> Any: ...
    @property
    def recurring(self) -> Any: ...
    @property
    def throttles(self) -> Any: ...
    def job(self, jid: str, /) -> Any: ...
    def acting_as(self, actor: str) -> "AnyClient": ...
    def run(self, command: Command[object], /) -> Any: ...
    def store_time(self) -> Any: ...
    def wait_for(self, jid: str, timeout: float | None = None) -> Any: ...
    def close(self) -> Any: ...
    def _plan_of(self, command: Command[R], /) -> Plan[R]: ...
    def _put_together(self, puts: Sequence[Any], /) -> Any: ...
    def _ends_of(self, jids: Sequence[str], timeout: float | None = None) -> Any: ...
    def _heartbeat_of(self, worker: str, /) -> WorkerSeen | None: ...


def run_plan(client: AnyClient, make: Callable[..., Plan[object]], *args: object) -> Any:
    """Run the plan that `make` returns; with an async client this returns an awaitable."""
    return client.runner.run(make(client._plan_of, *args))  # pyright: ignore[reportPrivateUsage]


def put_together(client: AnyClient, puts: Sequence[object]) -> Any:
    """Send puts merged into as few calls as possible. Returns a jid or HoldfastError for each, or an awaitable of that."""
    return client._put_together(puts)  # pyright: ignore[reportPrivateUsage]


def heartbeat_of(client: AnyClient, worker: str) -> WorkerSeen | None:
    """Return the command that lists a program that pops by itself as a worker; None within a minute of the last."""
    return client._heartbeat_of(worker)  # pyright: ignore[reportPrivateUsage]


def ends_of(client: AnyClient, jids: Sequence[str], timeout: float | None) -> Any:
    """Return an iterator, or async iterator, of each jid with its Outcome when the job has ended."""
    return client._ends_of(jids, timeout)  # pyright: ignore[reportPrivateUsage]


class ClientPart:
    """The base of objects that need only a client, such as `client.config`."""

    _client: AnyClient

    def __init__(self, client: AnyClient) -> None:
        self._client = client


class Named(ClientPart):
    """The base of objects with a handle for each name, such as `client.queues["mail"]`, which cannot be iterated.

    Without the two None, Python would try `[0]`, `[1]`, … for `for` and `in`.
    """

    __iter__: ClassVar[None] = None
    __contains__: ClassVar[None] = None


T_co = TypeVar("T_co", covariant=True)


class Part(Generic[T_co]):
    """A handle of a client, made at first use: `config: "Part[Config]" = Part("config.Config")`.

    `where` names the class below `holdfast.client`; it is called with the client. From then on it is an ordinary
    attribute of this client.
    """

    def __init__(self, where: str) -> None:
        self._module, _, self._class = where.rpartition(".")
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        """Return what `help(Client)` shows of it."""
        return f"<{self._class} of the client: holdfast.client.{self._module}>"

    @overload
    def __get__(self, client: None, owner: object) -> "Part[T_co]": ...
    @overload
    def __get__(self, client: object, owner: object = None) -> T_co: ...
    def __get__(self, client: object | None, owner: object = None) -> object:
        if client is None:
            return self
        kind = getattr(importlib.import_module(f"holdfast.client.{self._module}"), self._class)
        # Two threads may both make one: the first stays.
        return vars(client).setdefault(self._name, kind(client))


class SyncMethods:
    """The base of the handles of a sync client."""

    _client: AnyClient

    def run(self, command: Command[R], /) -> R:
        """Run a command through the client of this handle."""
        return cast("R", self._client.run(command))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._client!r}>"


class AsyncMethods:
    """The base of the handles of an async client.

    Its methods return what has to be awaited; if it is dropped without that, a RuntimeWarning names the method.
    """

    _client: AnyClient

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name in dir(cls):
            method = getattr(cls, name, None)
            awaited = getattr(method, "awaited", None) if isinstance(method, FunctionType) else None
            if awaited is not None:
                setattr(cls, name, awaited(f"{cls.__name__}.{name}", issubclass(cls, CoroutineHandle)))

    def run(self, command: Command[R], /) -> Awaitable[R]:
        """Run a command through the client of this handle."""
        return cast("Awaitable[R]", self._client.run(command))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._client!r}>"


class CoroutineHandle(AsyncMethods):
    """The base of async handles whose methods return coroutines, never futures: type checkers find a missing `await`."""


def with_name(call: Any) -> Any:
    """Have `call`, which returns a coroutine on async handles, name it there after the method. Returns `call`."""

    def awaited(name: str, _: bool) -> Callable[..., object]:
        @functools.wraps(call)
        def call_async(handle: Any, /, *args: object, **kwargs: object) -> object:
            return named(call(handle, *args, **kwargs), name)

        vars(call_async).pop("awaited", None)
        return call_async

    call.awaited = awaited
    return call


async def sent(handle: Any, command: Command[R]) -> R:
    """Send a command with the client of an async handle when this is awaited."""
    result: R = await handle._client.run(command)
    return result


class Method(Generic[P, R, A]):
    """A method that returns `R` on a sync handle and `A`, which is awaited, on an async handle.

    A type checker sees this descriptor. The class gets the function `method` in its place, which costs less to call; its
    attribute `awaited(name, is_coroutine)` makes the one of an async handle.
    """

    make: Callable[..., object]
    method: Any

    def __set_name__(self, owner: type, name: str) -> None:
        if self.method.__name__.startswith("_"):
            self.method.__name__, self.method.__qualname__ = name, f"{owner.__name__}.{name}"
        setattr(owner, name, self.method)

    @overload
    def __get__(self, handle: None, owner: object) -> Self: ...
    @overload
    def __get__(self, handle: SyncMethods, owner: object = None) -> Callable[P, R]: ...
    @overload
    def __get__(self, handle: CoroutineHandle, owner: object = None) -> Callable[P, Coro[R]]: ...
    @overload
    def __get__(self, handle: AsyncMethods, owner: object = None) -> Callable[P, A]: ...
    def __get__(self, handle: SyncMethods | AsyncMethods | None, owner: object = None) -> object:
        return self if handle is None else MethodType(self.method, handle)


class CommandMethod(Method[P, R, Awaitable[R]]):
    """A method that sends the command that `make` returns."""

    def __init__(self, make: Callable[Concatenate[H, P], Command[R]]) -> None:
        self.make = make
        self.__doc__ = make.__doc__

        @functools.wraps(make)
        def call(handle: Any, /, *args: P.args, **kwargs: P.kwargs) -> object:
            return handle._client.run(make(handle, *args, **kwargs))

        def awaited(name: str, is_coroutine: bool) -> Callable[..., object]:
            @functools.wraps(make)
            def call_async(handle: Any, /, *args: P.args, **kwargs: P.kwargs) -> object:
                command = make(handle, *args, **kwargs)
                if is_coroutine:
                    return named(sent(handle, command), name)
                return handle._client.run(command, name)

            call_async.__name__, call_async.__qualname__ = call.__name__, call.__qualname__
            return call_async

        self.method = call
        self.method.make, self.method.awaited = make, awaited


class Assignable(Generic[T]):
    """The assignment of a descriptor: it sends the command that `write` returns, and is refused on an async handle."""

    name = ""
    write: Callable[[Any, T], Command[object]]

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __set__(self, handle: SyncMethods, value: T) -> None:
        target: Any = handle
        if isinstance(target, AsyncMethods):
            raise TypeError(f"an assignment cannot be awaited; write `await ….set_{self.name}(…)`")
        target.run(self.write(target, value))


class SettableMethod(Assignable[T], CommandMethod[P, R]):
    """A method that sends one command, and whose name can be assigned, which sends another: `throttle.maximum = 5`.

    Some older clients call it, others assign to it.
    """

    def __init__(
        self, make: Callable[Concatenate[H, P], Command[R]], write: Callable[[H, T], Command[object]]
    ) -> None:
        super().__init__(make)
        self.write = write

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.method.__name__ = name


class PlanMethod(Method[P, R, Awaitable[R]]):
    """A method that runs a plan of several calls. `make` gets the handle and what turns a command into a plan."""

    def __init__(self, make: Callable[Concatenate[H, Planner, P], Plan[R]]) -> None:
        self.make = make
        self.__doc__ = make.__doc__

        @functools.wraps(make, ("__name__", "__qualname__", "__doc__"), ())
        def call(handle: Any, /, *args: P.args, **kwargs: P.kwargs) -> object:
            client = handle._client
            return client.runner.run(make(handle, client._plan_of, *args, **kwargs))

        # `make` has one argument more.
        del call.__wrapped__
        self.method = with_name(call)
        self.method.make = make


class StepMethod(Method[P, R, Coro[R]]):
    """A method in several steps. `make` is a generator function that yields what returns an awaitable on an async handle."""

    def __init__(self, make: Callable[Concatenate[H, P], Steps[R]]) -> None:
        self.make = make
        self.__doc__ = make.__doc__

        @functools.wraps(make)
        def call(handle: Any, /, *args: P.args, **kwargs: P.kwargs) -> object:
            steps = make(handle, *args, **kwargs)
            return run_steps(steps) if isinstance(handle, SyncMethods) else await_steps(steps)

        self.method = with_name(call)


class CommandProperty(Generic[R]):
    """An attribute whose reading sends the command that `make` returns."""

    def __init__(self, make: Callable[[H], Command[R]]) -> None:
        self.make: Callable[..., Any] = make
        self.__doc__ = make.__doc__

    def read(self, handle: Any) -> object:
        """Send the command."""
        run = handle._client.run
        method = (self.name_on(handle),) if isinstance(handle, AsyncMethods) else ()
        result: object = run(self.make(handle), *method)
        return result

    def name_on(self, handle: object) -> str:
        """Return its name, for the warning if what it returned is never awaited."""
        return f"{type(handle).__name__}.{self.make.__name__.lstrip('_')}"

    @overload
    def __get__(self, handle: None, owner: object) -> Self: ...
    @overload
    def __get__(self, handle: SyncMethods, owner: object = None) -> R: ...
    @overload
    def __get__(self, handle: AsyncMethods, owner: object = None) -> Awaitable[R]: ...
    def __get__(self, handle: SyncMethods | AsyncMethods | None, owner: object = None) -> object:
        return self if handle is None else self.read(handle)


class PlanProperty(CommandProperty[R]):
    """An attribute whose reading runs a plan of several calls."""

    def __init__(self, make: Callable[[H, Planner], Plan[R]]) -> None:
        self.make = make
        self.__doc__ = make.__doc__

    def read(self, handle: Any) -> object:
        """Run the plan."""
        client = handle._client
        result = client.runner.run(self.make(handle, client._plan_of))
        return named(result, self.name_on(handle)) if isinstance(handle, AsyncMethods) else result


class Fact(Generic[T]):
    """An attribute that is read from its handle."""

    name = ""

    def __init__(self, read: Callable[[H], T]) -> None:
        self.read: Callable[..., T] = read
        self.__doc__ = read.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, handle: None, owner: object) -> Self: ...
    @overload
    def __get__(self, handle: object, owner: object = None) -> T: ...
    def __get__(self, handle: Any, owner: object = None) -> object:
        return self if handle is None else self.of(handle)

    def of(self, handle: Any) -> T:
        """Return the value."""
        return self.read(handle)


class SettableFact(Assignable[T], Fact[T]):
    """A local fact whose assignment sends a command."""

    def __init__(self, read: Callable[[H], T], make: Callable[[H, T], Command[object]]) -> None:
        super().__init__(read)
        self.make = self.write = make


class SettableProperty(Assignable[T], CommandProperty[T]):
    """An attribute whose reading sends one command and whose assignment sends another."""

    def __init__(self, make: Callable[[H], Command[T]], write: Callable[[H, T], Command[object]]) -> None:
        super().__init__(make)
        self.write = write


F = TypeVar("F", bound=Callable[..., object])


class Registrar:
    """A method that adds a callback and returns it, so it works as a decorator: `@job.before_complete`.

    Its handle adds the callback in `_add_callback(name, callback)`.
    """

    name = ""

    def __init__(self, doc: str) -> None:
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, handle: None, owner: object) -> Self: ...
    @overload
    def __get__(self, handle: object, owner: object = None) -> Callable[[F], F]: ...
    def __get__(self, handle: Any, owner: object = None) -> object:
        if handle is None:
            return self

        def add(callback: F) -> F:
            handle._add_callback(self.name, callback)
            return callback

        return add
