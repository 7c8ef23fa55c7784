"""The base of both clients: settings, names and connections, commands of the reqless protocol, the time of a namespace.

Workers use these attributes of a client; with an async client the calls are awaited:

    client.root                      the namespace's root, `hf:{<namespace>}:`
    client.settings                  the frozen Settings
    client.shard                     `.info` (CoreInfo: heartbeat, grace) after the first call, and names of keys and channels
    client.run(command)              one command; async: sent with the other calls of this iteration of the loop
    client.run_all([command, …])     one pipeline; results or the HoldfastError of each, in order
    client.runner.run(plan)          any plan; `exchange(client.shard, command)` is the plan of one command
    client.link.wake_up()            a WakeUp: `wait(keys, timeout) -> key | None`; sync also `send(keys, timeout)`,
                                     `fileno()` for a selector, `receive()`, and `interrupt()`
    client.link.listener()           a Listener: `subscribe(*channels)`, `receive(timeout) -> (channel, bytes) | None`

A wake-up or a listener has a connection of its own. They raise ConnectionLost and reconnect at the next use. Links
and jids may be used after a fork: a child opens its own connections and generates other jids.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from math import isfinite
from time import monotonic
from typing import Any, Final, Generic, TypeVar, cast

from holdfast.client.descriptors import Part
from holdfast.client.opening import Opening
from holdfast.client.tables import ClientVerbs
from holdfast.commands import Command
from holdfast.commands.base import Call
from holdfast.commands.workers import WorkerSeen
from holdfast.errors import UsageError
from holdfast.settings import Settings, check_each, check_name, check_timeout
from holdfast.wire.address import AddressBase
from holdfast.wire.shards import Shard, UnservedWatch


def argument(arg: object, most: int) -> str | bytes:
    """Return an argument of a command or script as it is sent: text, bytes or a finite number. Raises UsageError."""
    if isinstance(arg, bool) or not isinstance(arg, (str, bytes, int, float)):
        raise UsageError(f"an argument of a command is text, bytes or a number, not {type(arg).__name__}")
    if isinstance(arg, (int, float)):
        if not isfinite(arg):
            raise UsageError(f"an argument of a command is a finite number, not {arg!r}")
        return repr(arg)
    try:
        size = len(arg.encode() if isinstance(arg, str) else arg)
    except UnicodeError:
        raise UsageError(f"the argument {arg!r:.80} cannot be written as UTF-8") from None
    if size > most:
        raise UsageError(f"an argument of {size:,} bytes is more than the {most:,} of max_data")
    return arg


D = TypeVar("D")
log = logging.getLogger("holdfast")

HEARTBEAT: Final = 60.0
"""Seconds between two heartbeats of a worker name under which a program pops by itself."""
MOST_NAMES: Final = 1000


class ClientBase(ClientVerbs, Generic[D]):
    """The part of a client that sync and async share; `D` is the driver's class of clients."""

    link: Any
    _is_served = False
    """Whether a worker was seen in the store of this client."""
    has_functions = False
    """Whether this client has function jobs."""

    def __init__(self, opening: Opening) -> None:
        self._client: Any = self
        self.settings: Settings = opening.settings
        self.shard: Shard = opening.shard()
        self._opening = opening
        self._worker_name = opening.settings.worker_name
        self._database = cast("D | None", opening.target.existing)
        self._heartbeats: dict[str, float] = {}
        if opening.embedded:
            self.shard.unserved = UnservedWatch(self.shard.clock, self._place)
        if opening.on_load is not None:
            self.shard.on_load = self._loaded

    def _act_for(self, client: Any, actor: str) -> None:
        """Share the attributes of another client, except its handles, and audit each change as done by `actor`.

        Both wait for results on one connection. Raises UsageError.
        """
        from holdfast.commands.operations import audited  # loaded here: only programs of operators need it

        waits, who = client._results, check_name("actor", actor)
        own: dict[str, Any] = client.__dict__
        kind = cast("type[object]", client.__class__)
        shared = {name: own[name] for name in own if not isinstance(getattr(kind, name, None), Part)}
        self.__dict__.update({**shared, "_results": waits, "_client": self})
        self._audited: Callable[[Command[Any]], Command[Any]] = partial(audited, who)

    def __call__(self, command: str, *args: str | bytes | float) -> Any:
        """Run one command of the reqless protocol, `client("queue.counts", "mail")`, and return its raw reply.

        That is text (JSON text where the protocol has JSON), a whole number, a list of texts or None. The time is the
        store's. A full store refuses all of them. Raises UsageError, Refused with the protocol's
        sentence, StoreFull. Core: doors/native_call.lua.
        """
        most = self.settings.max_data
        call = Call(check_name("command", command), tuple(argument(arg, most) for arg in args))
        return self._client.run(call)

    @property
    def root(self) -> str:
        """The namespace's root: the prefix of all its keys."""
        return self.shard.root

    @property
    def store_url(self) -> str | None:
        """The URL from which another client of the same store is made; None for the embedded store."""
        return None if self._opening.embedded else self.settings.url

    def _place(self) -> str:
        """Store and namespace in words, without secrets."""
        return f'{self._opening.shown_with_directory()}, namespace "{self.settings.namespace}"'

    @property
    def worker_name(self) -> str:
        """The name under which this client pops."""
        return self._worker_name

    @worker_name.setter
    def worker_name(self, name: str) -> None:
        self._worker_name = check_name("worker_name", name)

    @property
    def database(self) -> D:
        """A connection of the driver to the same store, for what holdfast has no method for; it returns text.

        It is made at first use; if the client was created with a connection, it is that one, and only then holdfast's own calls use
        it too. Nothing is sent; an embedded store is started by the first command.
        """
        if self._database is None:
            self._database = self.new_redis_connection()
        return self._database

    @property
    def redis(self) -> D:
        """`database`, under the name of the Ruby client."""
        return self.database

    def new_redis_connection(self) -> D:
        """Return a new connection of the driver to the same store and database, with the same settings.

        It is for subscriptions, forked children and other event loops. The caller closes it.
        """
        address: AddressBase = self.link.address
        made: D = address.redis()
        return made

    def _heartbeat_of(self, worker: str) -> WorkerSeen | None:
        """Return the command that lists a program that pops by itself as a worker; None within a minute of the last."""
        now = monotonic()
        if now < self._heartbeats.get(worker, 0.0):
            return None
        if len(self._heartbeats) >= MOST_NAMES:
            self._heartbeats.clear()
        self._heartbeats[worker] = now + HEARTBEAT
        return WorkerSeen(worker)

    def _loaded(self, digest: str) -> None:
        on_load = self._opening.on_load
        if on_load is not None:
            try:
                on_load(self.database, digest)
            except Exception:  # the call continues, whatever the callback does
                log.exception("on_lua_script_reload_callback failed")

    def _ends_of(self, jids: Sequence[str], timeout: float | None = None) -> object:
        """Wait for the ends of jobs: yield (jid, Outcome) of each when it has ended, for at most `timeout` seconds.

        Up to 512 are one call; later calls are for those whose end was published. Core: verbs/await.lua.
        """
        client: Any = self
        return client._results.ends_of(check_each("jid", jids), check_timeout(timeout))

    def _shares_root_with(self, other: Any) -> bool:
        """Whether both use the same namespace of the same store, as far as is known without a call."""
        if other._opening.place == self._opening.place:
            return True
        mine, others = self.shard.info, other.shard.info
        # Two addresses may lead to one store: each root has an epoch of its own.
        same_root = mine is not None and others is not None and mine.epoch == others.epoch
        return same_root and bool(self.shard.root == other.shard.root)

    def __eq__(self, other: object) -> bool:
        same: Any = other
        return type(other) is type(self) and same._opening.place == self._opening.place

    def __hash__(self) -> int:
        return hash(self._opening.place)

    def __repr__(self) -> str:
        place, namespace = self._opening.shown(), self.settings.namespace
        given = "".join(f" {name}={value!r}" for name, value in self._opening.shown_options())
        return f"<{type(self).__name__} {place} namespace={namespace!r}{given}>"
