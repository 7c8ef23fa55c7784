"""Frozen data read from the core's replies.

Names that end in `_ms` are whole milliseconds of the store's clock; times without a unit in their name are seconds.
"""

from holdfast.models.job import Failure, HistoryEntry, JobFacts, Progress, State, text, texts
from holdfast.models.queue import CoreInfo, Counts, Sample, Stats

__all__ = [
    "CoreInfo",
    "Counts",
    "Failure",
    "HistoryEntry",
    "JobFacts",
    "Progress",
    "Sample",
    "State",
    "Stats",
    "text",
    "texts",
]
