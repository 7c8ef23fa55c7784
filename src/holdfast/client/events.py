"""`client.events`: events of tracked jobs; and callbacks for one channel of JSON messages.

Each event is published with the jid to those that listen at that moment. Core: nouns/event/event.lua.
"""

import inspect
import logging
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, contextmanager
from functools import partial
from typing import Any, ClassVar, Final, NamedTuple

from holdfast.client.descriptors import Registrar
from holdfast.client.listener import AsyncListener, InTask, InThread, Listener, Message
from holdfast.client.opening import StoreSource, source_of
from holdfast.codecs import decode
from holdfast.errors import UnknownEvent, UsageError
from holdfast.settings import check_callable, unknown_option

log = logging.getLogger("holdfast")


Handler = Callable[[Any], object]
"""What gets each message of a channel, decoded from JSON."""


class SubscriberBase:
    """The base of both subscribers."""

    def __init__(self, channel: str, fn: Handler, *, awaits: bool) -> None:
        check_callable("fn", fn)
        if not awaits and inspect.iscoroutinefunction(fn):
            raise UsageError("fn is an async function, which only an AsyncSubscriber awaits")
        self.channel = channel
        self._fn = fn

    def _call(self, message: Message) -> object:
        return self._fn(decode(message["data"]))

    def _failed(self, message: Message) -> None:
        log.exception("a message on %s could not be handled: %.200s", self.channel, message["data"])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.channel}>"


class Subscriber(SubscriberBase):
    """Calls `fn` with each message of a channel, decoded from JSON, in a thread of its own; also a context manager.

    `database` is a `Client` or a `redis.Redis`, `channel` a name as the store has it, such as
    `client.shard.worker_channel("box-7-0")`. Errors of `fn`, and messages that are not JSON, are logged. Raises UsageError.
    """

    def __init__(self, database: object, channel: str, fn: Handler) -> None:
        super().__init__(channel, fn, awaits=False)
        self._listener = Listener(database, [channel])
        follow = partial(self._listener.for_each, self._call, self._failed)
        self._background = InThread(self._listener, follow)

    def start(self) -> "Subscriber":
        """Begin; return when the subscription is active. Raises ConnectionLost, StoreUnsupported."""
        self._background.start()
        return self

    def stop(self) -> None:
        """End the thread and the subscription; may be started again."""
        self._background.stop()

    def __enter__(self) -> "Subscriber":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


class AsyncSubscriber(SubscriberBase):
    """As `Subscriber` in a task, of an `AsyncClient` or a `redis.asyncio.Redis`; `fn` may be `async`."""

    def __init__(self, database: object, channel: str, fn: Handler) -> None:
        super().__init__(channel, fn, awaits=True)
        self._listener = AsyncListener(database, [channel])
        follow = partial(self._listener.for_each, self._call, self._failed)
        self._background = InTask(self._listener, follow)

    async def start(self) -> "AsyncSubscriber":
        """Begin; return when the subscription is active. Raises ConnectionLost, StoreUnsupported."""
        await self._background.start()
        return self

    async def stop(self) -> None:
        """End the task and the subscription; may be started again."""
        await self._background.stop()

    async def __aenter__(self) -> "AsyncSubscriber":
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()


Callback = Callable[[str], object]

EVENTS: Final = ("canceled", "completed", "failed", "popped", "put", "stalled", "track", "untrack")
_ON: Final = tuple("on_" + event for event in EVENTS)


class Event(NamedTuple):
    """One thing that happened to a tracked job: its name, one of `Events.events`, and the jid."""

    event: str
    jid: str


class EventsBase:
    """The callbacks of events; `with client.events as on:` gives this to register them: `on.failed(fn)`."""

    namespace: ClassVar[str] = "ql:"
    """The prefix of channels in older clients; holdfast's channels are under the root of the namespace."""
    events: ClassVar[tuple[str, ...]] = EVENTS
    _awaits: ClassVar[bool] = False

    canceled = Registrar("Register what is called with the jid of a job that was cancelled.")
    completed = Registrar(
        "Register what is called with the jid of a completed job, also of one that continues in another queue."
    )
    failed = Registrar("Register what is called with the jid of a failed job.")
    popped = Registrar("Register what is called with the jid of a job that a worker took.")
    put = Registrar("Register what is called with the jid of a job that was put again.")
    stalled = Registrar("Register what is called with the jid of a job whose lease was lost.")
    track = Registrar("Register what is called with the jid of a job that is tracked from now on.")
    untrack = Registrar("Register what is called with the jid of a job that is not tracked any more.")

    _listener: Any

    def __init__(self, source: StoreSource) -> None:
        self._source = source
        self._callbacks: dict[str, Callback] = {}
        self._names: dict[str, str] = {}

    def on(self, event: str, fn: Callback) -> None:
        """Call `fn` with the jid at each `event`, in place of an earlier callback.

        Raises UnknownEvent, which is a NotImplementedError, and UsageError.
        """
        check_callable("fn", fn)
        if not self._awaits and inspect.iscoroutinefunction(fn):
            raise UsageError("fn is an async function, which only the events of an AsyncClient await")
        self._callbacks[_checked(event)] = fn

    def _add_callback(self, event: str, fn: Callback) -> None:
        self.on(event, fn)

    def off(self, event: str) -> Callback | None:
        """Remove the callback of `event` and return it. Raises UnknownEvent."""
        return self._callbacks.pop(_checked(event), None)

    def unlisten(self) -> None:
        """End `listen`: from any thread, with an AsyncClient from any task; without a `listen` nothing happens."""
        self._listener.unlisten()

    stop = unlisten

    @property
    def is_listening(self) -> bool:
        """Whether the subscription is active."""
        return bool(self._listener.is_listening)

    def _channels(self) -> list[str]:
        """Return the channels to listen to; tests move clients to another namespace (holdfast.testing)."""
        self._names = {self._source.shard.event_channel(event): event for event in EVENTS}
        return list(self._names)

    def _register(self, callbacks: dict[str, Callback]) -> None:
        for name in callbacks:
            if name not in _ON:
                raise unknown_option("listen", name, _ON)
        for name, fn in callbacks.items():
            self.on(name.removeprefix("on_"), fn)

    def _event(self, message: Message) -> Event:
        return Event(self._names[message["channel"]], message["data"])

    def _call_back(self, message: Message) -> object:
        """Return the result of the callback of an event, None without one."""
        event, jid = self._event(message)
        fn = self._callbacks.get(event)
        return None if fn is None else fn(jid)

    def _failed(self, message: Message) -> None:
        log.exception("the callback of the event %s of job %s failed", *self._event(message))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of the namespace {self._source.settings.namespace}>"


class Events(EventsBase):
    """The events of a sync client, on a connection of their own.

    `database` is a `Client`, or a `redis.Redis` with the `namespace` of the jobs.
    `with client.events as on: on.failed(fn)` and `client.events(register)`, which calls `register(on)`, register and
    then listen, as `listen(on_failed=fn)` does, until another thread or a callback calls `unlisten`.
    """

    def __init__(self, database: object, namespace: str = "default") -> None:
        super().__init__(source_of(database, awaited=False, namespace=namespace))
        self._listener: Listener = Listener(self._source, self._channels())
        self._background = InThread(self._listener, self.listen)

    def listen(self, **callbacks: Callback) -> None:
        """Call back at each event until `unlisten`. `on_failed=fn` and the like register first.

        Errors of callbacks are logged. A lost connection is restored, but events published meanwhile are lost. Raises UsageError, ConnectionLost, StoreUnsupported.
        """
        self._register(callbacks)
        self._listener.channels = self._channels()
        self._listener.for_each(self._call_back, self._failed)

    @contextmanager
    def thread(self) -> "Generator[Events]":
        """Listen in a thread while the block runs: it begins when the subscription is active."""
        self._background.start()
        try:
            yield self
        finally:
            self._background.stop()

    def wait_until_listening(self, timeout: float | None = None) -> None:
        """Wait until another thread listens, for at most `timeout` seconds. Raises TimeoutError."""
        self._listener.wait_until_listening(timeout)

    def __call__(self, register: "Callable[[Events], object]") -> None:
        check_callable("register", register)(self)
        self.listen()

    def __enter__(self) -> "Events":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.listen()


class AsyncEvents(EventsBase):
    """The events of an async client, on a connection of their own; callbacks may be `async`.

    `database` is an `AsyncClient`, or a `redis.asyncio.Redis` with the `namespace` of the jobs.
    `async with client.events as on:` listens in a task while the block runs, which begins when the subscription is
    active. `async for event, jid in client.events:` yields each event without callbacks.
    """

    _awaits = True

    def __init__(self, database: object, namespace: str = "default") -> None:
        super().__init__(source_of(database, awaited=True, namespace=namespace))
        self._listener: AsyncListener = AsyncListener(self._source, self._channels())
        self._background = InTask(self._listener, self.listen)

    async def listen(self, **callbacks: Callback) -> None:
        """Call back at each event until `unlisten`. `on_failed=fn` and the like register first.

        Errors of callbacks are logged. A lost connection is restored, but events published meanwhile are lost. Raises UsageError, ConnectionLost, StoreUnsupported.
        """
        self._register(callbacks)
        self._listener.channels = self._channels()
        await self._listener.for_each(self._call_back, self._failed)

    async def wait_until_listening(self, timeout: float | None = None) -> None:
        """Wait until another task listens, for at most `timeout` seconds. Raises TimeoutError."""
        await self._listener.wait_until_listening(timeout)

    async def __call__(self, register: "Callable[[AsyncEvents], object]") -> None:
        check_callable("register", register)(self)
        await self.listen()

    async def __aenter__(self) -> "AsyncEvents":
        await self._background.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._background.stop()

    async def __aiter__(self) -> AsyncGenerator[Event]:
        self._listener.channels = self._channels()
        async with aclosing(self._listener.listen()) as messages:
            async for message in messages:
                yield self._event(message)


def _checked(event: str) -> str:
    if event not in EVENTS:
        raise UnknownEvent(str(unknown_option("holdfast", str(event), EVENTS, "event")))
    return event
