"""The route of one process, made in it: of what the worker was told, by names, patterns, or objects of its program."""

import logging

import msgspec

from holdfast.client.sync import Client
from holdfast.errors import TransportError
from holdfast.wire.shards import Shard
from holdfast.work.patterns import is_plain
from holdfast.work.reserving import KINDS
from holdfast.work.resolving import (
    DynamicPriorityQueueIdentifiersTransformer,
    MappingWithFallbacks,
    TransformingQueueResolver,
)
from holdfast.work.resuming import Resuming, refuse_a_second, resumable
from holdfast.work.route import AGAIN, Reserver, Resolves, Route
from holdfast.work.settings import WorkerSettings
from holdfast.work.store_choice import StoreChoice

log = logging.getLogger("holdfast")


def make_route(settings: WorkerSettings, store: StoreChoice, name: str, shard: Shard) -> Route:
    """The route of the process `name`; called in that process, before it takes its first job."""
    # A client of its own, which gives up soon: a pass that cannot look is not worth waiting for.
    client = store.beating_client(name)
    resolver = resolver_of(settings, client)
    reserver: Reserver | None = None
    if settings.reserver != "ordered":
        reserver = KINDS[settings.reserver](settings.queues)
        reserver.prep_for_work()
    again = 0.0 if settings.drain else AGAIN
    first = Resuming(client, name, settings.held) if settings.held else None
    seats = settings.concurrency or 1
    return Route(shard, settings.queues, resolver, reserver, first=first, seats=seats, again=again)


def resolver_of(settings: WorkerSettings, client: Client) -> Resolves | None:
    """What says which queues a worker serves, None for the plain names that it was told."""
    if all(map(is_plain, settings.queues)):
        return None
    return by_patterns(client, settings.queues)


def with_what_it_held(settings: WorkerSettings, store: StoreChoice) -> WorkerSettings:
    """The settings of a worker that is to go on with old jobs, with the leases that stand under its name.

    Raises UsageError when another worker of that name is alive.
    """
    if not settings.resume or settings.held:
        return settings
    client = store.beating_client(settings.worker_name(0))
    try:
        refuse_a_second(client, settings.name)
        resolver = resolver_of(settings, client)
        served = set(settings.queues if resolver is None else resolver.resolve())
        held = resumable(client, settings.name, served.__contains__)
    except TransportError as error:
        log.warning("no jobs are resumed, they are handed out again when their leases end: %s", error)
        return settings
    finally:
        client.close()
    log.info("%d jobs to go on with", len(held))
    return msgspec.structs.replace(settings, held=tuple(held))


def by_patterns(client: Client, patterns: tuple[str, ...]) -> TransformingQueueResolver:
    """What the patterns of a worker mean, in the order of the rules that the store keeps."""
    return TransformingQueueResolver(
        patterns, (MappingWithFallbacks(client), DynamicPriorityQueueIdentifiersTransformer(client))
    )
