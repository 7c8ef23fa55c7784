"""A rule for the order of queues."""

from holdfast.client.patterns import QueuePriorityPattern

__all__ = ["QueuePriorityPattern"]
