"""Which queues a worker looks into, and in which order: asked on every pass.

A resolver says which queues there are (names stay as they are, patterns are looked up), a reserver which of them goes
first. A route of plain names in their own order costs nothing.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from holdfast.wire.shards import Shard


class Reserver(Protocol):
    """Whatever says which queue goes first."""

    @property
    def description(self) -> str:
        """Its queues and its rule, for titles and logs."""
        ...

    def order(self, known: Sequence[str]) -> Sequence[str]:
        """The queues to look into on this pass, first to last, of those that are known to be meant."""
        ...

    def prep_for_work(self) -> None:
        """Called in each process before it takes its first job."""
        ...


class Resolves(Protocol):
    """Whatever says which queues are meant just now. It may ask the store."""

    def resolve(self) -> Sequence[str]: ...


class Route:
    """The queues of one process of a worker. `shard` is where they are.

    A `resolver` that is left out means the plain names of `queues`; a `reserver` that is left out, their own order.
    """

    def __init__(
        self,
        shard: Shard,
        queues: Sequence[str],
        resolver: Resolves | None = None,
        reserver: Reserver | None = None,
    ) -> None:
        self._shard = shard
        self._resolver = resolver
        self._reserver = reserver
        self._known = tuple(queues) if resolver is None else ()
        self._keys: dict[str, str] = {}
        self._keys_of: tuple[str, ...] = ()
        self.asks_store: Final = resolver is not None

    def refresh(self) -> None:
        """Look up which queues are meant; before each pass, where `asks_store`. Raises what the resolver raises."""
        if self._resolver is not None:
            self._known = tuple(self._resolver.resolve())

    def order(self) -> tuple[str, ...]:
        """The queues to look into on this pass, first to last."""
        return self._known if self._reserver is None else tuple(self._reserver.order(self._known))

    def keys(self) -> dict[str, str]:
        """The bells to listen to, each with its queue."""
        if self._keys_of is not self._known:
            self._keys = {self._shard.bell_key(queue): queue for queue in self._known}
            self._keys_of = self._known
        return self._keys
