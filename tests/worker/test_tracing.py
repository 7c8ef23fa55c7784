"""Spans from put to perform, by OpenTelemetry: the context travels with the job (observability of the issue)."""

import asyncio
import importlib
import json
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, TraceState
from worker_kit import until

from holdfast import AsyncClient, Client
from holdfast.code.tracing import LONGEST, context_of, is_traced

TRACED = """
import os
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SimpleSpanProcessor
from chores import HERE, add, app, note

FILE = open(HERE / "spans", "a", buffering=1)
exporter = ConsoleSpanExporter(out=FILE, formatter=lambda span: span.to_json(indent=None) + "\\n")
provider = TracerProvider()
late = os.environ.get("CHORES_LATE")
if not late:
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)


@app.job(queue="q")
def begin_tracing() -> None:
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=3_600_000))
    trace.set_tracer_provider(provider)


@app.job(queue="q")
def outer() -> None:
    with trace.get_tracer("jobs").start_as_current_span("inside"):
        add.put(1)


@app.job(queue="q")
async def aouter() -> None:
    with trace.get_tracer("jobs").start_as_current_span("inside"):
        pass


@app.job(queue="q")
def wrong() -> None:
    raise LookupError("no such thing")


class Gone:
    @staticmethod
    def process(job):
        job.complete("elsewhere")
"""


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """What this program traces, from now on to the end of the test."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    return exporter


@pytest.fixture
def traced(shop: Any) -> Iterator[Any]:
    (shop.here / "traced.py").write_text(TRACED)
    before = trace._TRACER_PROVIDER
    module = importlib.import_module("traced")
    shop.traced = module
    yield shop
    module.FILE.close()
    trace._TRACER_PROVIDER, trace._TRACER_PROVIDER_SET_ONCE._done = before, False
    del sys.modules["traced"]


@pytest.mark.full
def test_a_program_that_does_not_trace_puts_jobs_as_ever(client: Client) -> None:
    assert not is_traced()
    job = client.jobs[client.queues["q"].put("K")]
    assert (job.facts.options, job.facts.flags) == ({}, 0)


@pytest.mark.full
def test_a_put_is_a_span_below_the_current_one_and_travels_with_the_job(
    client: Client, spans: InMemorySpanExporter
) -> None:
    queue = client.queues["q"]
    with trace.get_tracer("t").start_as_current_span("request") as request:
        jids = [queue.put("K", {"a": 1}, priority=3), *queue.put_many([("K", {}), ("L", {})])]
    first, *_ = made = [span for span in spans.get_finished_spans() if span.kind is SpanKind.PRODUCER]
    assert [span.attributes["messaging.message.id"] for span in made] == jids
    assert (first.name, first.parent.span_id) == ("put q", request.get_span_context().span_id)
    assert first.attributes["messaging.system"] == "holdfast"
    assert first.attributes["holdfast.klass"] == "K"
    for span, job in zip(made, [client.jobs[jid] for jid in jids], strict=True):
        carried = trace.get_current_span(context_of(job.facts.options["trace"])).get_span_context()
        assert (carried.trace_id, carried.span_id) == (span.context.trace_id, span.context.span_id)
    job = client.jobs[jids[0]]
    assert (job.priority, job["a"]) == (3, 1)


@pytest.mark.full
def test_an_async_put_is_traced_too_and_vendors_keep_their_state(
    url: str, namespace: str, spans: InMemorySpanExporter
) -> None:
    state = TraceState([("vendor", "x")])
    remote = trace.SpanContext(7, 8, True, trace.TraceFlags(1), state)

    async def put() -> str:
        async with AsyncClient(url, namespace=namespace) as client:
            with trace.use_span(trace.NonRecordingSpan(remote)):
                jid = await client.queues["q"].put("K")
            job = await client.jobs[jid]
            return str(job.facts.options["trace"])

    carried = asyncio.run(put())
    assert carried.startswith(f"00-{7:032x}-")
    assert carried.endswith("-01 vendor=x")
    assert len(carried) < LONGEST


@pytest.mark.parametrize("text", ["", "nonsense", "00-0-0-00", "00-" + "z" * 32 + "-1-01 a=b"])
def test_a_trace_that_cannot_be_read_is_none(text: str) -> None:
    assert not trace.get_current_span(context_of(text)).get_span_context().is_valid


def told(shop: Any) -> dict[str, Any]:
    lines = (shop.here / "spans").read_text().splitlines()
    return {span["name"]: span for span in map(json.loads, lines)}


@pytest.mark.full
def test_each_job_is_a_span_below_its_put_and_what_its_code_does_is_below_that(
    traced: Any, pool: str
) -> None:
    module = traced.traced
    module.outer.put()
    module.aouter.put()
    module.wrong.put()
    traced.q.put(module.Gone)
    worker = traced.start(pool, "-m", "traced", "--drain")
    assert worker.wait(30) == 0, worker.said()
    spans = told(traced)
    outer, inside = spans["perform traced.outer"], spans["inside"]
    put = next(
        span
        for span in map(json.loads, (traced.here / "spans").read_text().splitlines())
        if span["name"] == "put q" and span["attributes"]["holdfast.klass"] == "traced.outer"
    )
    assert outer["parent_id"] == put["context"]["span_id"]
    assert outer["kind"] == "SpanKind.CONSUMER"
    assert outer["attributes"]["holdfast.outcome"] == "completed"
    assert outer["attributes"]["messaging.destination.name"] == "q"
    assert inside["parent_id"] in (
        outer["context"]["span_id"],
        spans["perform traced.aouter"]["context"]["span_id"],
    )
    # The job that the job put belongs to the same trace.
    assert spans["perform chores.add"]["context"]["trace_id"] == outer["context"]["trace_id"]
    wrong = spans["perform traced.wrong"]
    assert wrong["status"]["status_code"] == "ERROR"
    assert wrong["attributes"]["error.type"] == "q-LookupError"
    assert "no such thing" in wrong["events"][0]["attributes"]["exception.message"]
    assert spans["perform traced.Gone"]["attributes"]["holdfast.outcome"] == "moved"


@pytest.mark.full
@pytest.mark.parametrize("pool", ["process", "asyncio"])
def test_what_an_exporter_keeps_back_is_sent_before_a_child_ends(
    traced: Any, pool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHORES_LATE", "1")
    worker = traced.start(pool, "-m", "traced")
    traced.traced.begin_tracing.put().result(30)
    traced.chores.add.put(1).result(30)
    (traced.here / "spans").write_text("")
    worker.signal(signal.SIGQUIT)
    assert worker.wait() == 0, worker.said()
    until(lambda: "perform chores.add" in (traced.here / "spans").read_text(), "the span was sent")
