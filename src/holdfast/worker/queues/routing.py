"""Queue resolvers, and the route that a process makes of names, patterns, reservers and resolvers."""

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from socket import gethostname
from time import monotonic
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from holdfast.client.patterns import QueuePriorityPattern
from holdfast.client.queue_names import Fallbacks, is_plain, prioritize_queues, resolve_queue_names
from holdfast.client.sync import Client
from holdfast.commands.queues import QueueNames
from holdfast.errors import HoldfastError, TransportError, UsageError
from holdfast.settings import MAX_WHOLE, check_callable, check_list, check_queue, check_whole
from holdfast.text import counted, one_line
from holdfast.wire.shards import Shard
from holdfast.worker.queues.reserving import KINDS
from holdfast.worker.queues.route import AGAIN, Reserver, Resolves, Route
from holdfast.worker.settings import Taking, WorkerSettings, own_of
from holdfast.worker.store_choice import StoreChoice
from holdfast.worker.supervisor.presence import Resuming, refuse_a_second, resumable

T = TypeVar("T")

KEPT: Final = 5 * 60 * 1000
"""Milliseconds for which patterns read from the store are used."""


class QueueResolver(Protocol):
    """An object that resolves queues; called on every pass."""

    def resolve(self) -> list[str]:
        """The names of the queues, first to last."""
        ...


class QueueIdentifiersTransformer(Protocol):
    """One step from queue identifiers to the names of queues."""

    def transform(self, queue_identifiers: list[str]) -> list[str]:
        """Return the list that replaces a list of names and patterns."""
        ...


class TransformingQueueResolver:
    """Takes names or patterns and applies transformers to them, first to last; without any they stay as they are.

    Raises UsageError for anything but a list of names.
    """

    def __init__(
        self,
        queue_identifiers: Iterable[object],
        transformers: Iterable[QueueIdentifiersTransformer] | None = None,
    ) -> None:
        given = check_list("queue_identifiers", queue_identifiers)
        self.queue_identifiers = [check_queue("queue identifier", one) for one in given]
        self.transformers = list(check_list("transformers", transformers or ()))
        for one in self.transformers:
            check_callable("transform of each of transformers", getattr(one, "transform", None))

    def resolve(self) -> list[str]:
        """The names of the queues, first to last."""
        names = list(self.queue_identifiers)
        for transformer in self.transformers:
            names = transformer.transform(names)
        return names

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.queue_identifiers!r}>"


class DynamicMappingQueueIdentifiersTransformer:
    """Replaces `*`, `!` and `@key` by the known queues they mean, with the identifiers of `client.queue_patterns`.

    The identifiers are read again after that many milliseconds (five minutes when left out); the known queues are read
    each time, unless all are plain names.
    """

    resolve_queue_names = staticmethod(resolve_queue_names)

    def __init__(
        self, client: Client, dynamic_queue_mapping_refresh_frequency_milliseconds: int | None = None
    ) -> None:
        self._client = _blocking(client)
        self._mapping: _Kept[Mapping[str, Sequence[str]]] = _Kept(
            client.queue_patterns.get_queue_identifier_patterns,
            "dynamic_queue_mapping_refresh_frequency_milliseconds",
            dynamic_queue_mapping_refresh_frequency_milliseconds,
        )

    def transform(self, queue_identifiers: list[str]) -> list[str]:
        """The queues the patterns mean, in the order in which each was first matched."""
        if all(map(is_plain, queue_identifiers)):
            return list(dict.fromkeys(queue_identifiers))
        return resolve_queue_names(self.identifiers(), self._client.queues.names, queue_identifiers)

    @property
    def is_old(self) -> bool:
        """Whether the identifiers would be read again."""
        return self._mapping.is_old

    def identifiers(self) -> Mapping[str, Sequence[str]]:
        """The identifiers as they were read last, not too long ago."""
        return self._mapping.get()


class MappingWithFallbacks(DynamicMappingQueueIdentifiersTransformer):
    """The same for the queues of a worker command: a key that is not kept means `default`, and that `*` if it is not
    kept either; `@` alone means the name of this machine.
    """

    def identifiers(self) -> Mapping[str, Sequence[str]]:
        return Fallbacks(super().identifiers(), gethostname())


class DynamicPriorityQueueIdentifiersTransformer:
    """Puts names into the order of the rules of `client.queue_patterns`, which are read again after that many milliseconds
    (five minutes when left out).
    """

    prioritize_queues = staticmethod(prioritize_queues)

    def __init__(
        self, client: Client, dynamic_queue_priorities_refresh_frequency_milliseconds: int | None = None
    ) -> None:
        self._rules: _Kept[Sequence[QueuePriorityPattern]] = _Kept(
            _blocking(client).queue_patterns.get_queue_priority_patterns,
            "dynamic_queue_priorities_refresh_frequency_milliseconds",
            dynamic_queue_priorities_refresh_frequency_milliseconds,
        )

    def transform(self, queue_identifiers: list[str]) -> list[str]:
        """The same names, in the order of the rules; those of a fair rule shuffled."""
        return prioritize_queues(queue_identifiers, self.rules())

    @property
    def is_old(self) -> bool:
        """Whether the rules would be read again."""
        return self._rules.is_old

    def rules(self) -> Sequence[QueuePriorityPattern]:
        """The rules as they were read last, not too long ago."""
        return self._rules.get()


class PatternResolver(TransformingQueueResolver):
    """What the patterns of a worker mean, in the order of the rules that the store keeps."""

    def __init__(self, client: Client, patterns: tuple[str, ...]) -> None:
        self._mapping = MappingWithFallbacks(client)
        self._rules = DynamicPriorityQueueIdentifiersTransformer(client)
        self._read: tuple[Mapping[str, Sequence[str]], Sequence[QueuePriorityPattern]] | None = None
        super().__init__(patterns, (self._mapping, self._rules))

    @property
    def is_old(self) -> bool:
        """Whether `renew` would ask the store."""
        return self._mapping.is_old or self._rules.is_old

    def renew(self) -> None:
        """Read again what the store keeps of patterns, where that is old. Raises TransportError."""
        self._read = self._mapping.identifiers(), self._rules.rules()

    def choose(self, known: Sequence[str], /) -> list[str]:
        """Which of these queues are meant, first to last, and any that are named outright: by what was read last."""
        if self._read is None:
            return []
        identifiers, rules = self._read
        return prioritize_queues(resolve_queue_names(identifiers, known, self.queue_identifiers), rules)


class _Kept(Generic[T]):
    """A reply of the store, which is requested again when it is too old."""

    def __init__(self, ask: Callable[[], T], what: str, milliseconds: int | None) -> None:
        self._ask = ask
        self._age = check_whole(what, KEPT if milliseconds is None else milliseconds, 0, MAX_WHOLE) / 1000
        self._found: tuple[float, T] | None = None

    @property
    def is_old(self) -> bool:
        return self._found is None or monotonic() - self._found[0] >= self._age

    def get(self) -> T:
        if self._found is None or self.is_old:
            self._found = (monotonic(), self._ask())
        return self._found[1]


def _blocking(client: Client) -> Client:
    if not isinstance(client, Client):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"client must be a blocking holdfast.Client, not {client!r:.80}")
    return client


log = logging.getLogger("holdfast")


def make_route(settings: WorkerSettings, store: StoreChoice, name: str, shard: Shard) -> Route:
    """Return the route of the process `name`; called in that process, before it takes its first job."""
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
        slots=settings.concurrency or 1,
        again=0.0 if settings.drain else AGAIN,
        chooser=chooser,
    )


def _reserver_of(settings: WorkerSettings) -> Reserver | None:
    """Return the reserver of a worker, None for the order of its queues."""
    own: Reserver | None = own_of(settings).reserver
    if own is not None or settings.reserver == "ordered":
        return own
    return KINDS[settings.reserver](settings.queues)


def resolver_of(settings: WorkerSettings, client: Client) -> Resolves | None:
    """Return the resolver of a worker's queues, None for plain names."""
    own: Resolves | None = own_of(settings).resolver
    if own is not None:
        return own
    if all(map(is_plain, settings.queues)):
        return None
    return PatternResolver(client, settings.queues)


def with_what_it_held(settings: WorkerSettings, store: StoreChoice) -> WorkerSettings:
    """Return the settings with the leases that a worker resumes, those held under its name.

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
        log.warning("no jobs are resumed: %s; they are requeued when their leases end", error)
        return settings
    finally:
        client.close()
    log.info("resuming %s", counted(len(held), "job"))
    return msgspec.structs.replace(settings, held=tuple(held))


# Queues of a worker that nothing has used yet: one that resembles a known queue is perhaps a typo.

_COMPARED: Final = 10_000
"""Known names that are compared with a new one."""
_MOST: Final = 100
"""New names that are looked at."""
_SEPARATORS: Final = "-_.:/ "


def note_new_queues(client: Client, settings: WorkerSettings) -> None:
    """Log a WARNING for each queue that is new in this store and resembles a known one, and patterns that match none."""
    if own_of(settings).resolver is not None:
        return
    try:
        known = client.run(QueueNames())
        for name, near in _near_ones(known, filter(is_plain, settings.queues)):
            log.warning(
                'there is no queue "%s" in this store yet; there is "%s", perhaps a typo: the worker waits for jobs of "%s"',
                name,
                near,
                name,
            )
        patterns = [one for one in settings.queues if not is_plain(one) and one != "*"]
        if patterns and known:
            identifiers = MappingWithFallbacks(client).identifiers()
            for pattern in patterns[:_MOST]:
                if pattern[0] != "!" and not resolve_queue_names(identifiers, known, [pattern]):
                    log.info('no queue of this store matches "%s" yet', one_line(pattern))
    except HoldfastError as error:
        log.debug("cannot check which queues are new: %s", error)


def _near_ones(known: Sequence[str], names: Iterable[str]) -> Iterable[tuple[str, str]]:
    there = set(known)
    for name in islice((name for name in names if name not in there), _MOST):
        for other in islice(known, _COMPARED):
            if is_near(name, other):
                yield one_line(name), one_line(other)
                break


def is_near(one: str, other: str) -> bool:
    """Return whether two names differ as by a slip: one letter more, less, or wrong, two exchanged, or only in case.

    Numbers and whole parts between separators differ on purpose: `mail-1` and `mail-2`, `jobs-a` and `jobs-b`.
    """
    if abs(len(one) - len(other)) > 1:
        return False
    one, other = one.casefold(), other.casefold()
    if one == other:
        return True
    start = _shared(one, other)
    left, right = one[start:], other[start:]
    end = _shared(left[::-1], right[::-1])
    before, after = one[:start], left[len(left) - end :]
    left, right = left[: len(left) - end], right[: len(right) - end]
    is_slip = max(len(left), len(right)) <= 1 or (len(left) == 2 and left == right[::-1])
    is_part = before[-1:] in _SEPARATORS and after[:1] in _SEPARATORS
    return is_slip and not is_part and not re.fullmatch(r"\d*", left + right)


def _shared(one: str, other: str) -> int:
    """Return how many letters two texts begin with in common."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))
