"""The metrics of a worker for Prometheus (extra `metrics`): its supervisor reads them from the ledgers of its children."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

from holdfast.errors import UsageError, missing_extra
from holdfast.release import VERSION
from holdfast.worker.observe.http import Http, HttpAddress, HttpResponse
from holdfast.worker.observe.ledger import BOUNDS, OUTCOMES, Ledger, LedgerRow, open_ledgers, watch_troubles
from holdfast.worker.settings import WorkerSettings

PATH: Final = "/metrics"
PARENT: Final = "(parent)"
"""The name of the parent's own ledger: no worker has it."""


class State(NamedTuple):
    """The state of a child: whether it runs, how many jobs it runs, how often it was started, and how often it crashed."""

    alive: bool
    busy: int
    started: int = 1
    failed: int = 0


def serve_metrics(http: Http, settings: WorkerSettings, states: Callable[[], Sequence[State]]) -> None:
    """Serve `/metrics` on the host and port of the settings; port 0: off. Call it before the first fork.

    Raises UsageError when the port cannot be opened, or the package is missing.
    """
    if not settings.metrics_port:
        return
    try:
        from prometheus_client import CollectorRegistry, exposition
    except ImportError as error:
        raise UsageError(missing_extra("--metrics-port", "metrics", error)) from None
    registry = CollectorRegistry()
    registry.register(_Collector(settings, states))

    def page() -> HttpResponse:
        return HttpResponse(200, exposition.generate_latest(registry), exposition.CONTENT_TYPE_LATEST)

    http.serve(HttpAddress(settings.metrics_host, settings.metrics_port), PATH, page)


class _Collector:
    """The collector for the package. All processes of a worker are counted together."""

    def __init__(self, settings: WorkerSettings, states: Callable[[], Sequence[State]]) -> None:
        self._settings = settings
        self._name = settings.base_name  # that of this process, the parent
        self._states = states
        names = [settings.worker_name(number) for number in range(settings.workers)]
        if settings.pool != "serial":
            names.append(PARENT)
        watch_troubles(open_ledgers(names[-1]).own)
        self._ledgers = [ledger for name in names for ledger in open_ledgers(name)]

    def describe(self) -> Iterable[Any]:
        """Return nothing: otherwise the package would collect once at registration, before there are children."""
        return ()

    def collect(self) -> Iterator[Any]:
        """Return all metrics, as they are now."""
        from prometheus_client.core import InfoMetricFamily

        yield InfoMetricFamily(
            "holdfast_worker",
            "Name and version of this worker.",
            {
                "version": VERSION,
                "pool": self._settings.pool,
                "name": self._name,
            },
        )
        yield from _of_jobs(_together(self._ledgers))
        yield from _of_processes(self._states(), self._settings.concurrency)
        yield _counter(
            "holdfast_store_outages",
            "Number of times a process found the store unavailable.",
            sum(one.outages for one in self._ledgers),
        )
        yield _counter(
            "holdfast_heartbeat_gaps",
            "Number of times the renewal of leases was late by half an interval or more.",
            sum(one.gaps for one in self._ledgers),
        )


def _together(ledgers: Sequence[Ledger]) -> list[LedgerRow]:
    """The rows of all, added up."""
    outcomes: dict[tuple[str, str], Counter[str]] = {}
    seconds: Counter[tuple[str, str]] = Counter()
    buckets: dict[tuple[str, str], list[int]] = {}
    for row in (row for ledger in ledgers for row in ledger.rows()):
        name = row.queue, row.klass
        outcomes.setdefault(name, Counter()).update(row.outcomes)
        seconds[name] += row.seconds  # type: ignore[assignment]
        before = buckets.get(name, [0] * len(row.buckets))
        buckets[name] = [a + b for a, b in zip(before, row.buckets, strict=True)]
    return [LedgerRow(*name, dict(outcomes[name]), seconds[name], buckets[name]) for name in outcomes]


def _of_jobs(rows: Sequence[LedgerRow]) -> Iterator[Any]:
    from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

    ended = CounterMetricFamily(
        "holdfast_jobs", "Runs of jobs by outcome.", labels=["queue", "klass", "outcome"]
    )
    took = HistogramMetricFamily(
        "holdfast_job_seconds", "Duration of runs of jobs.", labels=["queue", "klass"]
    )
    bounds = [*map(str, BOUNDS), "+Inf"]
    for row in rows:
        for outcome in OUTCOMES:
            if row.outcomes[outcome]:
                ended.add_metric([row.queue, row.klass, outcome], row.outcomes[outcome])
        counts = list(zip(bounds, accumulate(row.buckets), strict=True))
        took.add_metric([row.queue, row.klass], counts, row.seconds)
    yield ended
    yield took


def _of_processes(states: Sequence[State], slots: int) -> Iterator[Any]:
    from prometheus_client.core import GaugeMetricFamily

    alive, busy = sum(state.alive for state in states), sum(state.busy for state in states)
    places = GaugeMetricFamily("holdfast_worker_slots", "Slots for jobs.", labels=["state"])
    places.add_metric(["busy"], busy)
    places.add_metric(["free"], max(0, alive * slots - busy))
    yield places
    yield GaugeMetricFamily("holdfast_worker_processes", "Processes that run jobs.", value=alive)
    yield _counter(
        "holdfast_worker_restarts",
        "Number of processes replaced.",
        sum(max(0, state.started - 1) for state in states),
    )
    yield _counter(
        "holdfast_worker_crashes",
        "Number of processes that ended unexpectedly.",
        sum(state.failed for state in states),
    )


def _counter(name: str, what: str, value: int) -> Any:
    from prometheus_client.core import CounterMetricFamily

    return CounterMetricFamily(name, what, value=value)
