"""What listens may be given a client of ours or one of the driver: what of either it needs."""

from typing import Any, Protocol

import msgspec

from holdfast.client.opening.settling import Opening, settle
from holdfast.errors import UsageError
from holdfast.settings import Settings
from holdfast.wire.shards import Shard


class Source(Protocol):
    """What of a client is needed for listening."""

    @property
    def settings(self) -> Settings: ...
    @property
    def shard(self) -> Shard: ...
    @property
    def link(self) -> Any: ...


class Driven(msgspec.Struct, frozen=True):
    """The same of a client of the driver: only its address is used, never its connections."""

    opening: Opening
    shard: Shard
    link: Any

    @property
    def settings(self) -> Settings:
        return self.opening.settings


def source_of(database: Any, *, awaited: bool, namespace: str = "default") -> Source:
    """`database` itself if it is a client of ours, else what is made of a redis-py client. Raises UsageError.

    `awaited`: of the async kind, which must be the kind that was given.
    """
    if isinstance(database, Driven):
        return database
    if not isinstance(getattr(database, "shard", None), Shard) and not hasattr(database, "connection_pool"):
        raise UsageError(f"database must be a client of holdfast or of redis-py, not {database!r:.80}")
    if awaited != hasattr(database, "__aenter__"):
        raise UsageError(
            f"database must be of the {'async' if awaited else 'blocking'} kind here: {database!r:.80}"
        )
    if hasattr(database, "shard"):
        client: Source = database
        return client
    return _driven(database, awaited, namespace)


def _driven(database: Any, awaited: bool, namespace: str) -> Driven:
    from holdfast.wire import aio, shared, sync  # both colours, for those alone who come from the driver

    opening = settle(database, {"namespace": namespace}, aio.DRIVE if awaited else sync.DRIVE)
    link = shared.AsyncSharedLink if awaited else shared.SharedLink
    return Driven(opening, opening.shard(), link(opening.settings, opening.target))
