"""The queues of a worker: the protocol of resolvers, and resolvers for the patterns in the store."""

from holdfast.client.patterns import QueuePriorityPattern
from holdfast.worker.queues.routing import (
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
