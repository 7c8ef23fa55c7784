"""The patterns by which workers choose queues."""

from holdfast.client.patterns import QueuePatterns

__all__ = ["QueuePatterns"]
