"""Charts of letters: histograms, and what sparklines show."""

from collections.abc import Sequence
from typing import Final

from holdfast.console.queries import Series
from holdfast.models import Sample

_EDGES: Final = (
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600,
    43_200, 86_400, 172_800, 604_800,
)  # fmt: skip
"""The ends of the bars of a histogram, in seconds; the last bar has no end."""


def bar(value: float, most: float, width: int) -> str:
    """Return a bar as long as a value is, of at most `width`; at least one letter for what is not 0."""
    return "█" * (max(round(value / most * width), 1) if value > 0 and most > 0 else 0)


def histogram(samples: Sequence[Sample]) -> list[tuple[str, list[int]]]:
    """Return rows of a label such as ``≤ 20 ms`` and the counts of each sample, from the first one with any to the last."""
    counts = [_counts(sample) for sample in samples]
    used = [index for index in range(len(_EDGES) + 1) if any(one[index] for one in counts)]
    if not used:
        return []
    return [(_label(index), [one[index] for one in counts]) for index in range(used[0], used[-1] + 1)]


def _counts(sample: Sample) -> list[int]:
    found = [0] * (len(_EDGES) + 1)
    for middle, count in sample.moments():
        found[sum(edge < middle for edge in _EDGES)] += count
    return found


def _label(index: int) -> str:
    return f"≤ {short(_EDGES[index])}" if index < len(_EDGES) else f"> {short(_EDGES[-1])}"


def short(seconds: float) -> str:
    """Return a length of time in one unit: ``3 ms``, ``1.5 s``, ``12 min``, ``3.2 h``, ``4 d``."""
    for least, length, unit in ((172_800, 86_400, "d"), (7200, 3600, "h"), (120, 60, "min"), (1, 1, "s")):
        if seconds >= least:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds * 1000:.3g} ms"


def rates(series: Sequence[Series], name: str, end_ms: int, step_ms: int, columns: int) -> list[float]:
    """Return what happened in each of the last `columns` steps; a longer period is spread over the steps that it covers."""
    found = [0.0] * columns
    begin = end_ms - columns * step_ms
    for line in series:
        start, length = line.when_ms - line.seconds * 1000, max(line.seconds * 1000, 1.0)
        for column in range(columns):
            low, high = begin + column * step_ms, begin + (column + 1) * step_ms
            part = min(high, line.when_ms) - max(low, start)
            if part > 0:
                found[column] += getattr(line, name) * part / length
    return found
