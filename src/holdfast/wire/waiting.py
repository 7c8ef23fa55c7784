"""Waiting between two tries, for callers that block."""

from threading import Event

_never = Event()


def hold(seconds: float) -> None:
    """Block this thread; under gevent, this greenlet."""
    _never.wait(seconds)
