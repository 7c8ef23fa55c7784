"""What the environment tells a worker where its flags are silent: the variables of older workers."""

from collections.abc import Mapping
from typing import Any

from holdfast.errors import UsageError
from holdfast.work.settings import RESERVERS, ReserverKind

RAN_OUT_OF_NAMES = "no queue given: name at least one with --queue, or set QUEUE or QUEUES"


def told_by(environment: Mapping[str, str]) -> dict[str, Any]:
    """The settings that QUEUES (or QUEUE), INTERVAL, JOB_RESERVER and RUN_AS_SINGLE_PROCESS say. Raises UsageError.

    A variable without text says nothing.
    """
    told: dict[str, Any] = {}
    queues = queues_in(environment.get("QUEUES") or environment.get("QUEUE") or "")
    if queues:
        told["queues"] = queues
    if environment.get("INTERVAL"):
        told["interval"] = _seconds(environment["INTERVAL"])
    if environment.get("JOB_RESERVER"):
        told["reserver"] = reserver_named(environment["JOB_RESERVER"])
    if environment.get("RUN_AS_SINGLE_PROCESS"):
        told["pool"] = "serial"
    return told


def queues_in(text: str) -> tuple[str, ...]:
    """The names between the commas, without the blanks around them."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def reserver_named(text: str) -> ReserverKind:
    """The reserver that `Ordered`, `RoundRobin`, `ShuffledRoundRobin` or our own names mean. Raises UsageError."""
    for kind in RESERVERS:
        if kind.replace("-", "") == text.strip().lower().replace("-", "").replace("_", ""):
            return kind
    raise UsageError(f"JOB_RESERVER is {text!r}; it knows Ordered, RoundRobin and ShuffledRoundRobin")


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"INTERVAL is {text!r}; it is a number of seconds, such as 5.0") from None
