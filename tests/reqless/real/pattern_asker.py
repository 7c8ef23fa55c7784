"""Runs with the released package on its path: reads cases as JSON, prints what its resolvers make of each."""

import json
import sys
from typing import Any

from reqless.models import QueuePriorityPattern
from reqless.queue_resolvers import (
    DynamicMappingQueueIdentifiersTransformer,
    DynamicPriorityQueueIdentifiersTransformer,
)


def resolved(case: Any) -> list[str] | None:
    """The queues of some patterns; None where this package fails."""
    try:
        return list(DynamicMappingQueueIdentifiersTransformer.resolve_queue_names(*case))
    except Exception:
        return None


def ordered(queues: list[str], rules: list[list[str]]) -> list[str]:
    given = [QueuePriorityPattern(patterns, False) for patterns in rules]
    return list(DynamicPriorityQueueIdentifiersTransformer.prioritize_queues(queues, given))


cases = json.load(sys.stdin)
answers = {
    "resolved": [resolved(case) for case in cases["resolve"]],
    "ordered": [ordered(*case) for case in cases["order"]],
}
print(json.dumps(answers))
