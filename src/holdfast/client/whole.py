"""What both clients are as a whole: their names, their place, and the connection that people use."""

import logging
from time import monotonic
from typing import Any, Final, Generic, TypeVar

from holdfast.client.calling import Calling
from holdfast.client.opening.settling import Opening
from holdfast.commands.workers import WorkerSeen
from holdfast.settings import check_name
from holdfast.wire.address import AddressBase
from holdfast.wire.shards import Shard

D = TypeVar("D")
log = logging.getLogger("holdfast")

SIGN: Final = 60.0  # seconds between two signs of life of somebody who pops by hand
MOST_SIGNS: Final = 1000


class Whole(Calling, Generic[D]):
    """The part of a client that has no colour; `D` is what the driver calls a client."""

    link: Any

    def __init__(self, opening: Opening) -> None:
        self.settings = opening.settings
        self.shard: Shard = opening.shard()
        self._opening = opening
        self._worker_name = opening.settings.worker_name
        self._database: D | None = opening.target.existing
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

    def shares_root_with(self, other: Any) -> bool:
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
