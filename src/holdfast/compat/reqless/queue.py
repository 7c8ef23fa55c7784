"""Queues, and the jids of their jobs by state."""

from holdfast.client.handles import Queue
from holdfast.client.tables import QueueJobs as Jobs

__all__ = ["Jobs", "Queue"]
