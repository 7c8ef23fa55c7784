"""The route of one process, made in it: of what the worker was told, by names, patterns, or objects of its program."""

from holdfast.client.sync import Client
from holdfast.wire.shards import Shard
from holdfast.work.patterns import is_plain
from holdfast.work.reserving import KINDS
from holdfast.work.resolving import (
    DynamicPriorityQueueIdentifiersTransformer,
    MappingWithFallbacks,
    TransformingQueueResolver,
)
from holdfast.work.route import AGAIN, Reserver, Resolves, Route
from holdfast.work.settings import WorkerSettings
from holdfast.work.store_choice import StoreChoice


def make_route(settings: WorkerSettings, store: StoreChoice, name: str, shard: Shard) -> Route:
    """The route of the process `name`; called in that process, before it takes its first job."""
    resolver: Resolves | None = None
    if not all(map(is_plain, settings.queues)):
        # A client of its own, which gives up soon: a pass that cannot look is not worth waiting for.
        resolver = by_patterns(store.beating_client(name), settings.queues)
    reserver: Reserver | None = None
    if settings.reserver != "ordered":
        reserver = KINDS[settings.reserver](settings.queues)
        reserver.prep_for_work()
    again = 0.0 if settings.drain else AGAIN
    return Route(shard, settings.queues, resolver, reserver, seats=settings.concurrency or 1, again=again)


def by_patterns(client: Client, patterns: tuple[str, ...]) -> TransformingQueueResolver:
    """What the patterns of a worker mean, in the order of the rules that the store keeps."""
    return TransformingQueueResolver(
        patterns, (MappingWithFallbacks(client), DynamicPriorityQueueIdentifiersTransformer(client))
    )
