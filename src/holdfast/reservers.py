"""The order of queues: reservers, which workers get in place of names, and strategies, which reservers get."""

from holdfast.work.queues import strategies
from holdfast.work.queues.reserving import Delegating, Ordered, RoundRobin, ShuffledRoundRobin
from holdfast.work.queues.route import Reserver

__all__ = ["Delegating", "Ordered", "Reserver", "RoundRobin", "ShuffledRoundRobin", "strategies"]
