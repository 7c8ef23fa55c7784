"""The order of queues: reservers, which workers get in place of names, and strategies, which reservers get."""

from holdfast.worker.queues import strategies
from holdfast.worker.queues.reserving import Delegating, Ordered, RoundRobin, ShuffledRoundRobin
from holdfast.worker.queues.route import Reserver

__all__ = ["Delegating", "Ordered", "Reserver", "RoundRobin", "ShuffledRoundRobin", "strategies"]
