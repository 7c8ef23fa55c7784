"""What a worker answers to those who ask whether it lives, and whether it takes jobs."""

import json
from collections.abc import Callable
from functools import partial

from holdfast.work.parent.http import Answer, Http

WhyNot = Callable[[], list[str]]
"""Why a worker takes no jobs just now, in sentences; none if it does."""


def serve_probes(http: Http, port: int, why_not: WhyNot) -> None:
    """Answer `/live` and `/ready` on a port; 0 is none. Raises UsageError when the port cannot be had."""
    if port:
        http.serve(port, "/live", _live)
        http.serve(port, "/ready", partial(_ready, why_not))


def hindrances(*, stopping: bool, heard: bool, paused: bool) -> list[str]:
    """What keeps any worker from taking jobs; `heard`: the store has answered the last time it was asked."""
    found = {
        "it is stopping": stopping,
        "the store does not answer": not heard,
        "it is paused, or was told to be quiet": paused,
    }
    return [reason for reason, holds in found.items() if holds]


def _live() -> Answer:
    """That it is answered is the proof: whoever answers is who keeps the worker going."""
    return Answer(200, b'{"live": true}\n')


def _ready(why_not: WhyNot) -> Answer:
    reasons = why_not()
    said = {"ready": False, "why": reasons} if reasons else {"ready": True}
    return Answer(503 if reasons else 200, json.dumps(said).encode() + b"\n")
