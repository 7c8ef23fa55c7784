"""Which queues a worker looks into: the protocol, and resolvers over the patterns kept in the store."""

from holdfast.client.patterns import QueuePriorityPattern
from holdfast.work.queues.routing import (
    DynamicMappingQueueIdentifiersTransformer,
    DynamicPriorityQueueIdentifiersTransformer,
    QueueIdentifiersTransformer,
    QueueResolver,
    TransformingQueueResolver,
)

__all__ = [
    "DynamicMappingQueueIdentifiersTransformer",
    "DynamicPriorityQueueIdentifiersTransformer",
    "QueueIdentifiersTransformer",
    "QueuePriorityPattern",
    "QueueResolver",
    "TransformingQueueResolver",
]
