"""What is talked about: frozen data, read from the core's replies. Times are whole milliseconds of the
store's clock unless a name says otherwise; properties ending in no unit are seconds."""

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
