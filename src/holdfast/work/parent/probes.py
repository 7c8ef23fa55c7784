"""What a worker answers to those who ask whether it lives, and whether it takes jobs."""

import json
from collections.abc import Callable
from functools import partial

from holdfast.work.parent.http import Address, Answer, Http
from holdfast.work.settings import WorkerSettings

Stuck = Callable[[], list[str]]
"""Return which processes are stuck, in sentences; none if all respond."""
WhyNot = Callable[[], list[str]]
"""Why a worker takes no jobs just now, in sentences; none if it does."""


def nobody() -> list[str]:
    """Nothing is stuck."""
    return []


def serve_probes(http: Http, settings: WorkerSettings, why_not: WhyNot, stuck: Stuck = nobody) -> None:
    """Serve `/live` and `/ready` where the settings say; port 0: off. Raises UsageError if that cannot be listened on."""
    if settings.health_port:
        address = Address(settings.health_host, settings.health_port)
        http.serve(address, "/live", partial(_live, stuck))
        http.serve(address, "/ready", partial(_ready, why_not, stuck))


def hindrances(*, stopping: bool, heard: bool, paused: bool) -> list[str]:
    """Return what keeps a worker from taking jobs; `heard`: the last call to the store succeeded."""
    found = {
        "it is stopping": stopping,
        "the store does not answer": not heard,
        "it is paused or quiet": paused,
    }
    return [reason for reason, holds in found.items() if holds]


def _live(stuck: Stuck) -> Answer:
    """Always 200: the parent that runs the worker is the process that responds."""
    return _answer(200, {"live": True}, stuck())


def _ready(why_not: WhyNot, stuck: Stuck) -> Answer:
    reasons = why_not()
    body: dict[str, object] = {"ready": False, "why": reasons} if reasons else {"ready": True}
    return _answer(503 if reasons else 200, body, stuck())


def _answer(status: int, body: dict[str, object], stuck: list[str]) -> Answer:
    return Answer(status, json.dumps({**body, "stuck": stuck} if stuck else body).encode() + b"\n")
