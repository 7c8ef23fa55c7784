"""Which queue goes first: what workers are given in place of names, and what reservers are given in place of queues."""

from holdfast.work.queues import strategies
from holdfast.work.queues.reserving import Delegating, Ordered, RoundRobin, ShuffledRoundRobin
from holdfast.work.queues.route import Reserver

__all__ = ["Delegating", "Ordered", "Reserver", "RoundRobin", "ShuffledRoundRobin", "strategies"]
