"""From names and patterns to the queues that a worker looks into."""

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
