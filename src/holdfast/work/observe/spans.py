"""A span for each job that a worker performs, below the one of the program that put it; what the job's code traces is below it."""

import sys
from typing import Any

from holdfast.code.current import Running
from holdfast.code.tracing import attributes_of, is_traced, start_span
from holdfast.work.observe.results import GOOD, result_of
from holdfast.work.performing.outcome import Ending


class Spans:
    """A companion that spans each job, wherever OpenTelemetry is loaded by the time it begins."""

    def __init__(self) -> None:
        self._open: dict[Running, tuple[Any, Any]] = {}

    def begin(self, current: Running) -> None:
        if not is_traced():
            return
        facts = current.facts
        attributes = {
            **attributes_of(facts.queue, facts.klass, facts.jid, "process"),
            "messaging.client.id": facts.worker,
            "holdfast.attempt": facts.attempts,
        }
        span = start_span(str(facts.options.get("trace", "")), f"perform {facts.klass}", attributes)
        api: Any = sys.modules["opentelemetry.context"]
        trace: Any = sys.modules["opentelemetry.trace"]
        self._open[current] = span, api.attach(trace.set_span_in_context(span))

    def end(self, current: Running, ending: Ending) -> None:
        span, token = self._open.pop(current, (None, None))
        if span is None:
            return
        result = result_of(current, ending)
        span.set_attribute("holdfast.outcome", result.outcome)
        if result.outcome not in GOOD:
            trace: Any = sys.modules["opentelemetry.trace"]
            span.set_status(trace.StatusCode.ERROR, result.group or result.outcome)
            if result.group:
                span.set_attribute("error.type", result.group)
            if result.message:
                span.add_event("exception", {"exception.message": result.message})
        span.end()
        sys.modules["opentelemetry.context"].detach(token)
