"""What both clients share: their settings, names and connection; raw protocol commands; the time of a namespace."""

import logging
from math import isfinite
from time import monotonic, time
from typing import Any, Final, Generic, TypeVar, cast

from holdfast.client.opening import Opening
from holdfast.commands.admin import Info
from holdfast.commands.call import Call
from holdfast.commands.workers import WorkerSeen
from holdfast.errors import UsageError
from holdfast.settings import Settings, check_name
from holdfast.wire.address import AddressBase
from holdfast.wire.exchange import exchange
from holdfast.wire.plans import Plan
from holdfast.wire.shards import Shard


def time_of(shard: Shard) -> Plan[float]:
    """Epoch seconds: by this machine's clock, but in a test root by its own, which a test moves."""
    info = shard.info
    if info is None or info.is_test:
        info = yield from exchange(shard, Info())
    return info.now_ms / 1000 if info.is_test else time()


class Calling:
    """What both clients do when they are called themselves."""

    settings: Settings
    run: Any

    def __call__(self, command: str, *args: str | bytes | float) -> Any:
        """Run one command of the reqless protocol, `client("queue.counts", "mail")`, and return its raw reply.

        That is text (JSON text where the protocol says JSON), a whole number, a list of texts or None. The time is the
        store's. A full store takes none of them, whatever they do. Raises UsageError, Refused with the protocol's
        sentence, StoreFull. Core: doors/native_call.lua.
        """
        most = self.settings.max_data
        return self.run(Call(check_name("command", command), tuple(argument(arg, most) for arg in args)))


def argument(arg: object, most: int) -> str | bytes:
    """An argument of a command or script as it travels: text, bytes or a finite number. Raises UsageError."""
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

SIGN: Final = 60.0  # seconds between two signs of life of somebody who pops by hand
MOST_SIGNS: Final = 1000


class ClientBase(Calling, Generic[D]):
    """The part of a client that has no colour; `D` is what the driver calls a client."""

    link: Any

    def __init__(self, opening: Opening) -> None:
        self.settings = opening.settings
        self.shard: Shard = opening.shard()
        self._opening = opening
        self._worker_name = opening.settings.worker_name
        self._database = cast("D | None", opening.target.existing)
        self._signs: dict[str, float] = {}
        if opening.on_load is not None:
            self.shard.on_load = self._loaded

    @property
    def root(self) -> str:
        """The namespace's root: what all its keys begin with."""
        return self.shard.root

    @property
    def store_url(self) -> str | None:
        """The URL from which another client of the same store is made; None for the embedded store."""
        return None if self._opening.embedded else self.settings.url

    @property
    def worker_name(self) -> str:
        """The name under which this client pops."""
        return self._worker_name

    @worker_name.setter
    def worker_name(self, name: str) -> None:
        self._worker_name = check_name("worker_name", name)

    @property
    def database(self) -> D:
        """A connection of the driver to the same store, for whatever holdfast has no word for; it answers text.

        Made when first asked for, and the one that was given, as it is, where one was. Our own calls do not use it
        otherwise. Nothing is sent by asking for it, but an embedded store is started by its first command.
        """
        if self._database is None:
            self._database = self.new_redis_connection()
        return self._database

    @property
    def redis(self) -> D:
        """`database`, under the name that Ruby programs know."""
        return self.database

    def new_redis_connection(self) -> D:
        """Another connection of the driver to the same store and database, with the same settings.

        For subscriptions and forked children, and on an event loop for each other loop. It is the caller's to close.
        """
        address: AddressBase = self.link.address
        made: D = address.redis()
        return made

    def sign_of_life(self, worker: str) -> WorkerSeen | None:
        """What makes a program that pops by hand a known worker; None if it was said within the last minute."""
        now = monotonic()
        if now < self._signs.get(worker, 0.0):
            return None
        if len(self._signs) >= MOST_SIGNS:
            self._signs.clear()
        self._signs[worker] = now + SIGN
        return WorkerSeen(worker)

    def _loaded(self, digest: str) -> None:
        told = self._opening.on_load
        if told is not None:
            try:
                told(self.database, digest)
            except Exception:  # it is told, not asked: the call goes on
                log.exception("on_lua_script_reload_callback failed")

    def _shares_root_with(self, other: Any) -> bool:
        """Whether both talk to the same namespace of the same store, as far as is known without asking."""
        if other._opening.place == self._opening.place:
            return True
        mine, others = self.shard.info, other.shard.info
        # Two addresses of one store: a root's epoch is its own.
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
