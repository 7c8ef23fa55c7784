"""Strategies: iterables to give to reservers as their queues; each is iterated again on every pass."""

from holdfast.worker.queues.strategies import filtering, ordering, sources

__all__ = ["filtering", "ordering", "sources"]
