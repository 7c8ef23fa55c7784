"""The route of one process, made in it: of what the worker was told, by names, patterns, or objects of its program."""

import logging

import msgspec

from holdfast.client.sync import Client
from holdfast.errors import TransportError
from holdfast.wire.shards import Shard
from holdfast.work.own import Taking, own_of
from holdfast.work.parent.resuming import Resuming, refuse_a_second, resumable
from holdfast.work.queues.patterns import is_plain
from holdfast.work.queues.reserving import KINDS
from holdfast.work.queues.resolving import PatternResolver
from holdfast.work.queues.route import AGAIN, Reserver, Resolves, Route
from holdfast.work.settings import WorkerSettings
from holdfast.work.store_choice import StoreChoice

log = logging.getLogger("holdfast")


def make_route(settings: WorkerSettings, store: StoreChoice, name: str, shard: Shard) -> Route:
    """The route of the process `name`; called in that process, before it takes its first job."""
    # A client of its own, which gives up soon: a pass that cannot look is not worth waiting for.
    client = store.beating_client(name)
    own = own_of(settings)
    reserver = _reserver_of(settings)
    if reserver is not None:
        reserver.prep_for_work()
    resolver = resolver_of(settings, client)
    chooser = resolver if isinstance(resolver, PatternResolver) else None
    return Route(
        shard,
        settings.queues,
        None if chooser else resolver,
        reserver,
        source=None if own.ask is None else Taking(client, name, own.ask()),
        first=Resuming(client, name, settings.held) if settings.held else None,
        seats=settings.concurrency or 1,
        again=0.0 if settings.drain else AGAIN,
        chooser=chooser,
    )


def _reserver_of(settings: WorkerSettings) -> Reserver | None:
    """Whatever says which queue goes first, None for the order they have."""
    own: Reserver | None = own_of(settings).reserver
    if own is not None or settings.reserver == "ordered":
        return own
    return KINDS[settings.reserver](settings.queues)


def resolver_of(settings: WorkerSettings, client: Client) -> Resolves | None:
    """What says which queues a worker serves, None for the plain names that it was told."""
    own: Resolves | None = own_of(settings).resolver
    if own is not None:
        return own
    if all(map(is_plain, settings.queues)):
        return None
    return PatternResolver(client, settings.queues)


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
    log.info("resuming %d jobs", len(held))
    return msgspec.structs.replace(settings, held=tuple(held))
