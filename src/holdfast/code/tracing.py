"""Traces that go from the program that puts a job to the worker that performs it, by OpenTelemetry.

A program that has not loaded that package (extra `otel`) pays a look into a table. What travels with a job is what W3C Trace Context
says, in one line: `traceparent`, and behind a space `tracestate` if there is one.
"""

import sys
from collections.abc import Mapping
from typing import Any, Final

LONGEST: Final = 1024  # bytes that the core takes
SYSTEM: Final = "holdfast"

_API: Final = "opentelemetry.trace"


def is_traced() -> bool:
    """Whether this program has loaded OpenTelemetry, and said where its spans go."""
    api: Any = sys.modules.get(_API)
    ask = getattr(api, "get_tracer_provider", None)  # it may be in the middle of being imported
    return ask is not None and not isinstance(ask(), api.ProxyTracerProvider)


def put_span(queue: str, klass: str, jid: str) -> str:
    """Say that a job is made; answers what travels with it, "" where nobody traces."""
    api: Any = sys.modules[_API]
    attributes = attributes_of(queue, klass, jid, "create")
    span = _tracer().start_span(f"put {queue}", kind=api.SpanKind.PRODUCER, attributes=attributes)
    try:
        return _carried(api.set_span_in_context(span))
    finally:
        span.end()


def attributes_of(queue: str, klass: str, jid: str, operation: str) -> dict[str, Any]:
    """What a span says of a job, by the conventions for messaging."""
    return {
        "messaging.system": SYSTEM,
        "messaging.destination.name": queue,
        "messaging.message.id": jid,
        "messaging.operation.name": "put" if operation == "create" else "perform",
        "messaging.operation.type": operation,
        "holdfast.klass": klass,
    }


def context_of(trace: str) -> Any:
    """The context that a job was put in, of what travelled with it; what cannot be read is an empty one."""
    parent, _, state = trace.partition(" ")
    carrier = {"traceparent": parent, "tracestate": state} if state else {"traceparent": parent}
    return _propagator().extract(carrier)


def start_span(trace: str, name: str, attributes: Mapping[str, Any]) -> Any:
    """A span for the performing of a job, below the one that it was put in."""
    api: Any = sys.modules[_API]
    context = context_of(trace) if trace else None
    return _tracer().start_span(name, context=context, kind=api.SpanKind.CONSUMER, attributes=attributes)


def _carried(context: Any) -> str:
    carrier: dict[str, str] = {}
    _propagator().inject(carrier, context)
    parent, state = carrier.get("traceparent", ""), carrier.get("tracestate", "")
    both = f"{parent} {state}" if state else parent
    return both if len(both) <= LONGEST else parent


def _tracer() -> Any:
    api: Any = sys.modules[_API]
    return api.get_tracer("holdfast")


def _propagator() -> Any:
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator()
