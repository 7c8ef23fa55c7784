"""Resolvers: they turn names and patterns into the queues of a worker."""

from holdfast.queue_resolvers import (
    DynamicMappingQueueIdentifiersTransformer,
    DynamicPriorityQueueIdentifiersTransformer,
    TransformingQueueResolver,
)

__all__ = [
    "DynamicMappingQueueIdentifiersTransformer",
    "DynamicPriorityQueueIdentifiersTransformer",
    "TransformingQueueResolver",
]
