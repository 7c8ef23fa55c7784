"""OpenTelemetry traces from the program that puts a job to the worker that performs it.

For a program that has not imported that package (extra `otel`), the cost is one dictionary lookup. The option `trace` of a
job is one line of W3C Trace Context: `traceparent`, and after a space `tracestate` if there is one.
"""

import logging
import sys
from collections.abc import Mapping
from typing import Any, Final

log = logging.getLogger("holdfast")

LONGEST: Final = 1024  # bytes that the core takes
SYSTEM: Final = "holdfast"

_API: Final = "opentelemetry.trace"


def is_traced() -> bool:
    """Return whether this program has imported OpenTelemetry and configured a tracer provider."""
    api: Any = sys.modules.get(_API)
    ask = getattr(api, "get_tracer_provider", None)  # it may be half imported
    return ask is not None and not isinstance(ask(), api.ProxyTracerProvider)


def put_span(queue: str, klass: str, jid: str) -> str:
    """Record the span of a put. Returns the option `trace` of the job, "" without a valid span. What fails is logged."""
    attributes = attributes_of(queue, klass, jid, "create")
    try:
        api = _api()
        span = _tracer().start_span(f"put {queue}", kind=api.SpanKind.PRODUCER, attributes=attributes)
        try:
            return _carried(api.set_span_in_context(span))
        finally:
            span.end()
    except Exception as error:
        # Of the tracer or its exporter: the job is put all the same.
        from holdfast.code.failure import brief  # a program that only puts does without

        log.warning("the span of a put into %s could not be recorded: %s", queue, brief(error))
        return ""


def attributes_of(queue: str, klass: str, jid: str, operation: str) -> dict[str, str]:
    """Return the attributes of a span of a job, by the conventions for messaging."""
    return {
        "messaging.system": SYSTEM,
        "messaging.destination.name": queue,
        "messaging.message.id": jid,
        "messaging.operation.name": "put" if operation == "create" else "perform",
        "messaging.operation.type": operation,
        "holdfast.klass": klass,
    }


def context_of(trace: str) -> object:
    """Return the context of the put, from the option `trace` of a job; an empty one if that cannot be read."""
    parent, _, state = trace.partition(" ")
    carrier = {"traceparent": parent, "tracestate": state} if state else {"traceparent": parent}
    return _propagator().extract(carrier)


def start_span(trace: str, name: str, attributes: Mapping[str, object]) -> Any:
    """Return a new span for the performance of a job, a child of the span of its put."""
    api = _api()
    context = context_of(trace) if trace else None
    return _tracer().start_span(name, context=context, kind=api.SpanKind.CONSUMER, attributes=attributes)


def _carried(context: object) -> str:
    carrier: dict[str, str] = {}
    _propagator().inject(carrier, context)
    parent, state = carrier.get("traceparent", ""), carrier.get("tracestate", "")
    both = f"{parent} {state}" if state else parent
    return both if len(both) <= LONGEST else parent


def _api() -> Any:
    return sys.modules[_API]


def _tracer() -> Any:
    return _api().get_tracer("holdfast")


def _propagator() -> Any:
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator()
