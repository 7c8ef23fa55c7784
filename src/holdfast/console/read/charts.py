"""What charts show: histograms of durations, and what happened in each step of a period."""

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from holdfast.commands.views import Tallies
from holdfast.console.read.queries import Series
from holdfast.errors import UsageError
from holdfast.models import Sample

_EDGES: Final = (
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600,
    43_200, 86_400, 172_800, 604_800,
)  # fmt: skip
"""The ends of the bars of a histogram, in seconds; the last bar has no end."""


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


def added(samples: Iterable[Sample]) -> Sample:
    """Return the durations of several queues as one sample; its standard deviation is left out (0)."""
    count, total = 0, 0.0
    buckets, fine = [0] * PROTOCOL_BUCKETS, dict[int, int]()
    for sample in samples:
        count, total = count + sample.count, total + sample.mean * sample.count
        buckets = [one + other for one, other in zip(buckets, sample.histogram, strict=True)]
        for bucket, number in sample.fine:
            fine[bucket] = fine.get(bucket, 0) + number
    return Sample(count, total / count if count else 0.0, 0.0, tuple(buckets), tuple(sorted(fine.items())))


PROTOCOL_BUCKETS: Final = 148
_PARTS: Final = (
    (range(60), "seconds", 60.0),
    (range(1, 60), "minutes", 1.0),
    (range(1, 24), "hours", 1 / 60),
    (range(1, 7), "days", 1 / 1440),
)
"""The older buckets: the numbers of each unit, and what turns their counts into jobs a minute."""


def per_minute(sample: Sample) -> list[tuple[str, float]]:
    """Return the 148 older buckets as (``3 seconds``, jobs a minute of that length)."""
    labels = [(f"{number} {unit}", factor) for numbers, unit, factor in _PARTS for number in numbers]
    return [(label, value * factor) for (label, factor), value in zip(labels, sample.histogram, strict=True)]


class Period(msgspec.Struct, frozen=True):
    """A period of charts: the length of a step in ms, how many there are, and when the last one ends."""

    step_ms: int
    columns: int
    end_ms: int


_MINUTE_MS: Final = 60_000
RANGES: Final[Mapping[str, tuple[int, int]]] = {
    "90m": (_MINUTE_MS, 90),
    "24h": (10 * _MINUTE_MS, 144),
    "7d": (60 * _MINUTE_MS, 168),
}
"""The periods that end now: the length of a step in ms, and how many there are. The store keeps lines for about a week."""
_LENGTHS: Final = (1, 2, 5, 10, 15, 30, 60)
"""Minutes that a step may have."""
_MOST_COLUMNS: Final = 200
_LONGEST_MS: Final = 8 * 86_400_000


def period(range: str, now_ms: int) -> Period:
    """Return the period of a range: 90m, 24h, 7d, or two times in epoch seconds such as 1795700000-1795703600. Raises UsageError."""
    if range in RANGES:
        return Period(*RANGES[range], now_ms)
    found = re.fullmatch(r"(\d{1,11})-(\d{1,11})", range)
    if not found:
        raise UsageError(
            f"range: expected one of {', '.join(RANGES)} or FROM-TO in epoch seconds, got {range!r:.80}"
        )
    begin, end = int(found[1]) * 1000, min(int(found[2]) * 1000, now_ms)
    if not now_ms - _LONGEST_MS <= begin < end:
        raise UsageError(
            f"range: expected FROM before TO, both within the last eight days, got {range!r:.80}"
        )
    minutes = max((end - begin) / _MINUTE_MS, 1)
    length = next(one for one in _LENGTHS if minutes / one <= _MOST_COLUMNS)
    return Period(length * _MINUTE_MS, math.ceil(minutes / length), end)


class Steps(msgspec.Struct, frozen=True):
    """A period in steps of equal length that ends at `end_ms`: what happened in each step, by name, the oldest first.

    Counts of a step may be fractions: a line that covers several steps is spread over them.
    """

    end_ms: int
    step_seconds: int
    values: dict[str, tuple[float, ...]]

    def of(self, name: str) -> tuple[float, ...]:
        """Return the counts of one kind."""
        return self.values[name]

    def a_minute(self, name: str) -> tuple[float, ...]:
        """Return the counts of one kind as numbers a minute, with one digit."""
        return tuple(round(value * 60 / self.step_seconds, 1) for value in self.values[name])

    @property
    def times(self) -> tuple[int, ...]:
        """The ends of the steps, in epoch seconds."""
        columns = max((len(values) for values in self.values.values()), default=0)
        return tuple(self.end_ms // 1000 - (columns - 1 - at) * self.step_seconds for at in range(columns))


def steps(
    lines: Sequence[Sequence[Series]], names: Sequence[str], end_ms: int, step_ms: int, columns: int
) -> Steps:
    """Return what happened in several queues together in each of `columns` steps until `end_ms`."""

    def added_up(name: str) -> tuple[float, ...]:
        found = (rates(series, name, end_ms, step_ms, columns) for series in lines or [()])
        return tuple(float(sum(column)) for column in zip(*found, strict=True))

    return Steps(end_ms, step_ms // 1000, {name: added_up(name) for name in names})


def rates(series: Sequence[Series], name: str, end_ms: int, step_ms: int, columns: int) -> list[float]:
    """Return what happened in each of the last `columns` steps; a longer period is spread over the steps that it covers."""
    found = [0.0] * columns
    begin = end_ms - columns * step_ms
    for line in series:
        value = getattr(line, name)
        start, length = line.when_ms - line.seconds * 1000, max(line.seconds * 1000, 1.0)
        if not value or line.when_ms <= begin:
            continue
        first = max(int((start - begin) // step_ms), 0)
        last = min(int((line.when_ms - begin) // step_ms), columns - 1)
        for column in range(first, last + 1):
            low = begin + column * step_ms
            part = min(low + step_ms, line.when_ms) - max(low, start)
            if part > 0:
                found[column] += value * part / length
    return found


_FINE_MS: Final = 180 * _MINUTE_MS
"""How long the store keeps each line of a queue; older ones are thinned out."""
_COARSE_MS: Final = 20 * _MINUTE_MS
"""The longest time between two lines after thinning: the first line of each ten minutes is kept."""


def waiting_at(lines: Sequence[Tallies], times: Sequence[int]) -> tuple[int | None, ...]:
    """Return how many jobs waited at each of these times, in epoch seconds, as the lines of a queue noted it.

    The last line is that of now. A count holds for a step; for longer where nothing changed until the next line, or where the
    lines between were thinned out. It is None where it was not noted.
    """
    step_ms = max((times[-1] - times[-2]) * 1000 if len(times) > 1 else 0, _MINUTE_MS)
    moments = [line.when_ms for line in lines]
    return tuple(_waiting(lines, bisect_right(moments, time * 1000), time * 1000, step_ms) for time in times)


def _waiting(lines: Sequence[Tallies], next: int, time_ms: int, step_ms: int) -> int | None:
    """Return how many waited at a time, before which are the first `next` lines."""
    before, after = lines[max(next - 1, 0)], lines[min(next, len(lines) - 1)]
    if after is lines[-1] and after.when_ms - time_ms < _MINUTE_MS:
        return _noted(after)  # a chart that ends now ends with the count of now
    if next == 0:
        return None
    age, gap = time_ms - before.when_ms, after.when_ms - before.when_ms
    is_thin = lines[-1].when_ms - after.when_ms > _FINE_MS and gap <= _COARSE_MS
    is_same = msgspec.structs.astuple(before)[1:] == msgspec.structs.astuple(after)[1:]
    return _noted(before) if age < step_ms or is_thin or is_same else None


def _noted(line: Tallies) -> int | None:
    return line.waiting if line.waiting >= 0 else None
