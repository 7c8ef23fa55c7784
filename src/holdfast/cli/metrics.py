"""`holdfast metrics`: the figures of a namespace for Prometheus and OpenTelemetry."""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import click

from holdfast.cli.connection import StorePlace, store_options
from holdfast.cli.examples import examples
from holdfast.cli.output import echo_text, json_option, print_json
from holdfast.cli.program import ProgramCommand
from holdfast.console.handles import Console
from holdfast.console.read.metrics import MOST_QUEUES, Metric
from holdfast.errors import HoldfastError, UsageError, missing_extra
from holdfast.settings import check_host
from holdfast.worker.observe.http import HttpAddress, HttpResponse, HttpThread

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation

FRESH: Final = 1.0
"""Seconds for which figures that were read are served again, so that many scrapers cost no more than one."""


class Scraper:
    """Reads the figures when they are asked for, one reader at a time; an error is counted and logged, not raised."""

    def __init__(self, console: Console, most_queues: int) -> None:
        self._console, self._most = console, most_queues
        self._lock = threading.Lock()
        self._found: list[Metric] = []
        self._at = float("-inf")
        self._trouble = ""

    def read(self) -> list[Metric]:
        """Return the metrics, and those for whether the store could be read and how long that took."""
        with self._lock:
            if time.monotonic() - self._at > FRESH:
                self._found = self._scraped()
                self._at = time.monotonic()
            return self._found

    def _scraped(self) -> list[Metric]:
        begun, found, before = time.monotonic(), list[Metric](), self._trouble
        try:
            found, self._trouble = self._console.metrics(self._most), ""
        except HoldfastError as error:
            self._trouble = str(error)
            if not before:
                echo_text(f"the store cannot be read: {error}", err=True)
        up = Metric(
            "holdfast_up", "1 if the store could be read.", "gauge", (), {(): 0 if self._trouble else 1}
        )
        took = Metric("holdfast_scrape_seconds", "Seconds that reading the store took.", "gauge", ())
        took.add((), time.monotonic() - begun)
        return [*found, up, took]


class _Collector:
    """What the Prometheus package asks for metrics."""

    def __init__(self, scraper: Scraper) -> None:
        self._scraper = scraper

    def describe(self) -> Sequence[Any]:
        """Return nothing: otherwise the package would collect once at registration."""
        return ()

    def collect(self) -> Iterator[Any]:
        """All metrics, as the package has them."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        for metric in self._scraper.read():
            family = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            one = family(metric.name, metric.meaning, labels=metric.labels)
            for labels, value in metric.samples.items():
                one.add_metric(labels, value)
            yield one


def observe(scraper: Scraper) -> None:
    """Register the metrics with the meter provider of OpenTelemetry that this process uses."""
    from opentelemetry import metrics
    from opentelemetry.metrics import Observation

    def callback(name: str) -> "Callable[[CallbackOptions], list[Observation]]":
        def observed(_: "CallbackOptions") -> "list[Observation]":
            return [
                Observation(value, dict(zip(metric.labels, labels, strict=True)))
                for metric in scraper.read()
                if metric.name == name
                for labels, value in metric.samples.items()
            ]

        return observed

    meter = metrics.get_meter("holdfast")
    for metric in scraper.read():
        make = meter.create_observable_counter if metric.kind == "counter" else meter.create_observable_gauge
        name = metric.name.replace("holdfast_", "holdfast.", 1)
        make(name, [callback(metric.name)], description=metric.meaning)


@click.group()
def metrics() -> None:
    """Serve the figures of a namespace for Prometheus and OpenTelemetry."""


_MOST = click.option(
    "--queues",
    "most",
    type=click.IntRange(0, 10_000),
    default=MOST_QUEUES,
    show_default=True,
    help="Number of queues with a series each; the others are counted together.",
)


@examples("holdfast metrics show --queues 10")
@metrics.command()
@_MOST
@store_options
@json_option
def show(most: int, place: StorePlace, as_json: bool) -> None:
    """Print the figures once, in the text format of Prometheus or as JSON."""
    with place.console() as console:
        scraper = Scraper(console, most)
        if as_json:
            print_json([_plain(metric) for metric in scraper.read()])
            return
        registry = _registry(scraper)
        from prometheus_client import exposition

        echo_text(exposition.generate_latest(registry).decode())


def _plain(metric: Metric) -> dict[str, object]:
    samples = [
        {**dict(zip(metric.labels, labels, strict=True)), "value": value}
        for labels, value in metric.samples.items()
    ]
    return {"name": metric.name, "kind": metric.kind, "help": metric.meaning, "samples": samples}


def _registry(scraper: Scraper) -> Any:
    try:
        from prometheus_client import CollectorRegistry
    except ImportError as error:
        raise UsageError(missing_extra("the command metrics", "metrics", error)) from None
    registry = CollectorRegistry()
    registry.register(_Collector(scraper))
    return registry


@examples("holdfast metrics serve --host 0.0.0.0 --port 7172")
@metrics.command(cls=ProgramCommand, path=("metrics",), secret=("url",))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(1, 65535), default=7172, show_default=True, help="Port to listen on."
)
@click.option("--otel", is_flag=True, help="Also register the figures with OpenTelemetry's meter provider.")
@_MOST
@store_options
def serve(host: str, port: int, otel: bool, most: int, place: StorePlace) -> None:
    """Serve the figures at /metrics until INT or TERM.

    Run one for all workers of a namespace. holdfast_up is 0 while the store cannot be read. With --otel, run it as
    `opentelemetry-instrument holdfast metrics serve --otel`, which configures the exporter from the OTEL_ variables.
    """
    with place.unchecked() as client:
        scraper = Scraper(Console(client), most)
        registry = _registry(scraper)
        if otel:
            _observe(scraper)
        _serve(check_host("--host", host), port, registry)


def _observe(scraper: Scraper) -> None:
    try:
        observe(scraper)
    except ImportError as error:
        raise UsageError(missing_extra("--otel", "otel", error)) from None


def _serve(host: str, port: int, registry: Any) -> None:
    from prometheus_client import exposition

    def page() -> HttpResponse:
        return HttpResponse(200, exposition.generate_latest(registry), exposition.CONTENT_TYPE_LATEST)

    thread, address = HttpThread(), HttpAddress(host, port)
    for path in ("/metrics", "/"):
        thread.http.serve(address, path, page)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt), thread:
        echo_text(f"serving metrics on http://{address}/metrics", err=True)
        threading.Event().wait()
