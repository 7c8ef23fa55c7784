"""The patterns that select the queues of workers."""

from holdfast.client.patterns import QueuePatterns

__all__ = ["QueuePatterns"]
