"""Which queue goes first: what workers are given in place of names, and what reservers are given in place of queues."""

from holdfast.work import strategies
from holdfast.work.reserving import Delegating, Ordered, RoundRobin, ShuffledRoundRobin
from holdfast.work.route import Reserver

__all__ = ["Delegating", "Ordered", "Reserver", "RoundRobin", "ShuffledRoundRobin", "strategies"]
