"""Small drawings as SVG. Colours are classes of the style sheet; positions across are in percent, so that text keeps its size."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from markupsafe import Markup

from holdfast.text import axis_duration, counted, narrow_duration, printable_json
from holdfast.web.formatting import thousands

Moments = Sequence[tuple[float, int]]
"""Durations in seconds, each with how often it was measured."""

_WIDTH, _HEIGHT = 96, 24
_EDGES: Final = (
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600, 1200, 3600, 7200, 21_600, 86_400,
    172_800, 604_800,
)  # fmt: skip
"""The ends of the bars of a histogram, in seconds; the last bar has no end."""
_LABELED: Final = (0.001, 0.01, 0.1, 1, 10, 60, 600, 3600, 86_400, 604_800)
_BARS, _AXIS = 184, 208
_FEWEST: Final = 8
_NODE_WIDTH, _NODE_HEIGHT, _GAP_X, _GAP_Y = 188, 44, 56, 12
_MOST_IN_LAYER: Final = 12


def _join(parts: Sequence[Markup]) -> Markup:
    return Markup("").join(parts)


def sparkline(values: Sequence[float], color: str = "running") -> Markup:
    """Return a line of values, 96 pixels wide, from zero to the largest; a flat line if there is nothing."""
    most = max(values, default=0)
    if len(values) < 2 or most <= 0:
        return Markup(
            '<svg class="spark" aria-hidden="true"><path class="flat" d="M0 {y}H{x}"/></svg>'
        ).format(y=_HEIGHT - 2, x=_WIDTH)
    step = (_WIDTH - 4) / (len(values) - 1)
    points = [(round(index * step, 1), round(_HEIGHT - 2 - value / most * (_HEIGHT - 4), 1)) for index, value in enumerate(values)]  # fmt: skip
    line = "M" + "L".join(f"{x:g} {y:g}" for x, y in points)
    end_x, end_y = points[-1]
    return Markup(
        '<svg class="spark c-{color}" aria-hidden="true"><path class="area" d="{line}V{base}H0Z"/><path d="{line}"/>'
        '<circle cx="{x}" cy="{y}" r="2"/></svg>'
    ).format(color=color, line=line, base=_HEIGHT, x=end_x, y=end_y)


# Histograms.


def histogram(
    moments: Moments,
    p50: float | None = None,
    p95: float | None = None,
    earlier: Moments = (),
    color: str = "running",
    label: str = "",
) -> Markup:
    """Return bars on a logarithmic scale of durations, those of an earlier day as outlines, and where p50 and p95 lie."""
    now, past = _binned(moments), _binned(earlier)
    used = [index for index in range(len(_EDGES) + 1) if now[index] or past[index]]
    if not used:
        return Markup('<p class="none">No measurements on this day.</p>')
    end = used[-1] + (p95 is not None and _bin(p95) >= used[-1])  # room for the name of the line
    first, last = _range(used[0], min(end, len(_EDGES)))
    width, most = 100 / (last - first + 1), max(*now, *past)
    parts = [_bar(index, first, width, past[index], most, "past", "") for index in range(first, last + 1)]
    parts += [
        _bar(index, first, width, now[index], most, "bar", _between(index))
        for index in range(first, last + 1)
    ]
    parts.append(Markup('<line x1="0" x2="100%" y1="{y}" y2="{y}"/>').format(y=_AXIS))
    parts += [_axis_label(index, first, width) for index in range(first, last + 1) if _EDGES[index - 1 : index] and _EDGES[index - 1] in _LABELED]  # fmt: skip
    parts += _quantiles([("p50", p50), ("p95", p95)], first, last, width)
    return Markup('<svg class="histo c-{}" role="img" aria-label="{}">{}</svg>').format(
        color, _described(label, now, p50, p95), _join(parts)
    )


def _range(first: int, last: int) -> tuple[int, int]:
    """Return a range of bars that is wide enough to read as a distribution."""
    while last - first + 1 < _FEWEST:
        first, last = max(first - 1, 0), min(last + 1, len(_EDGES))
    return first, last


def _binned(moments: Moments) -> list[int]:
    found = [0] * (len(_EDGES) + 1)
    for seconds, count in moments:
        found[_bin(seconds)] += count
    return found


def _bin(seconds: float) -> int:
    return sum(edge < seconds for edge in _EDGES)


def _between(index: int) -> str:
    if index == 0:
        return f"up to {axis_duration(_EDGES[0])}"
    low = axis_duration(_EDGES[index - 1])
    return f"over {low}" if index == len(_EDGES) else f"{low} to {axis_duration(_EDGES[index])}"


def _bar(index: int, first: int, width: float, count: int, most: int, kind: str, title: str) -> Markup:
    if not count:
        return Markup("")
    height = max(count / most * (_BARS - 6), 2)
    inside = Markup("<title>{}: {:,}</title>").format(title, count) if title else ""
    return Markup(
        '<rect class="{}" x="{:.2f}%" width="{:.2f}%" y="{:.1f}" height="{:.1f}" rx="3">{}</rect>'
    ).format(kind, (index - first + 0.1) * width, width * 0.8, _AXIS - height, height, inside)


def _axis_label(index: int, first: int, width: float) -> Markup:
    return Markup('<text x="{:.2f}%" y="{}" text-anchor="{}">{}</text>').format(
        (index - first) * width,
        _AXIS + 16,
        "start" if index == first else "middle",
        axis_duration(_EDGES[index - 1]),
    )


def _quantiles(
    found: Sequence[tuple[str, float | None]], first: int, last: int, width: float
) -> list[Markup]:
    """Return lines at percentiles. The lower one has its name at the left, the higher one at the right, unless it would be cut off."""
    parts: list[Markup] = []
    for row, (name, seconds) in enumerate(found):
        if seconds is None or seconds <= 0:
            continue
        across = min(max((_place(seconds) - first) * width, 0), 100)
        is_left = across > (8, 92)[row]
        label = Markup('<text class="q" x="{:.2f}%" dx="{}" y="{}" text-anchor="{}">{}</text>').format(
            across, -5 if is_left else 5, 11 + 13 * (row == is_left), "end" if is_left else "start", name
        )  # fmt: skip
        line = Markup('<line class="q" x1="{x:.2f}%" x2="{x:.2f}%" y1="2" y2="{y}"/>').format(
            x=across, y=_AXIS
        )
        parts += [line, label]
    return parts


def _place(seconds: float) -> float:
    """Return where a duration lies, in bars from the first one."""
    index = _bin(seconds)
    low = _EDGES[index - 1] if index else 0
    high = _EDGES[index] if index < len(_EDGES) else low * 2
    return index + min((seconds - low) / (high - low), 1)


def bars(moments: Moments) -> list[tuple[str, int]]:
    """Return the bars of a histogram that are not empty, as their durations and counts: the same for a table."""
    return [(_between(index), count) for index, count in enumerate(_binned(moments)) if count]


def _described(label: str, now: Sequence[int], p50: float | None, p95: float | None) -> str:
    text = f"{label or 'Distribution'}: {counted(sum(now), 'job')}"
    for name, seconds in (("median", p50), ("95th percentile", p95)):
        if seconds is not None:
            text += f", {name} {narrow_duration(seconds)}"
    return text


# Strips and shares.


def strip(times_ms: Sequence[float], from_ms: float, to_ms: float, color: str = "accent") -> Markup:
    """Return points along a line of time with its hours."""
    length = max(to_ms - from_ms, 1)
    hours = [Markup('<text x="{}%" y="30" text-anchor="{}">{}</text>').format(share * 25, ("start", "middle", "middle", "middle", "end")[share], f"+{share * length / 14_400_000:g} h" if share else "now") for share in range(5)]  # fmt: skip
    points = [
        Markup('<circle cx="{:.2f}%" cy="10" r="3"/>').format((when - from_ms) / length * 100)
        for when in times_ms
        if from_ms <= when <= to_ms
    ]
    return Markup(
        '<svg class="strip c-{}" role="img" aria-label="{} in this time"><line x1="0" x2="100%" y1="10" y2="10"/>{}{}</svg>'
    ).format(color, len(points), _join(points), _join(hours))


def share(parts: Sequence[tuple[str, int]], of: int = 0) -> Markup:
    """Return a bar whose sections are proportional to the numbers of some states; if they are fewer than `of`, the rest of it is empty."""
    total = max(sum(count for _, count in parts), of)
    rects: list[Markup] = []
    at = 0.0
    for state, count in parts:
        width = count / total * 100 if total else 0
        rects.append(Markup('<rect class="c-{}" x="{:.2f}%" width="{:.2f}%" height="8"><title>{}: {:,}</title></rect>').format(state, at, width, state, count))  # fmt: skip
        at += width
    label = ", ".join(f"{count} {state}" for state, count in parts if count) or "none"
    return Markup('<svg class="share" role="img" aria-label="{}">{}</svg>').format(label, _join(rects))


# Graphs.


class GraphNode(msgspec.Struct, frozen=True):
    """A job in a graph, or several that are drawn together: its id, its name, its state, its URL ("" for none).

    `note` stands below the name ("": the state), `full` is the title, `parts` are how many of its jobs are in which state.
    """

    id: str
    label: str
    state: str
    href: str = ""
    note: str = ""
    full: str = ""
    parts: tuple[tuple[str, int], ...] = ()


Edge = tuple[str, str, str]
"""From which node to which, and the policy: `fail`, `run`, `wait`, `rescue`, or "" where it is not known."""
_DASHED: Final = ("run", "wait", "rescue")
"""The policies whose edges do not look like the others."""


def layers(nodes: Sequence[str], edges: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Return the nodes in columns: each one right of all that it comes after. Circles are cut where they close."""
    before: dict[str, list[str]] = {node: [] for node in nodes}
    for source, target in edges:
        if source in before and target in before and source != target:
            before[target].append(source)
    depth = dict.fromkeys(before, 0)
    for _ in range(min(len(before), 200)):  # longest paths; a circle would grow without end
        changed = False
        for node, sources in before.items():
            least = max((depth[source] + 1 for source in sources), default=0)
            if least > depth[node] and least < len(before):
                depth[node], changed = least, True
        if not changed:
            break
    after = {source for sources in before.values() for source in sources}
    for node in [
        one for one in after if not before[one]
    ]:  # what waits for nothing stands beside the first that waits for it
        depth[node] = max(min(depth[other] for other, sources in before.items() if node in sources) - 1, 0)
    columns: dict[int, list[str]] = {}
    for node in before:
        columns.setdefault(depth[node], []).append(node)
    return [columns[index] for index in sorted(columns)]


def graph(nodes: Sequence[GraphNode], edges: Sequence[Edge], own: str = "") -> Markup:
    """Return a graph of jobs, left to right; of a column with many nodes the first twelve and how many more there are."""
    found = {node.id: node for node in nodes}
    places, more = _placed(layers(list(found), [(source, target) for source, target, _ in edges]), own)
    high = max([y for _, y in places.values()] + [y for _, y, _ in more]) + _NODE_HEIGHT if places else 0
    wide = max(x for x, _ in places.values()) + _NODE_WIDTH if places else 0
    lines = [_edge(places[a], places[b], policy) for a, b, policy in edges if a in places and b in places]
    boxes = [_node(found[name], place, name == own) for name, place in places.items()]
    rest = [Markup('<text class="small" x="{}" y="{}">and {} more</text>').format(x + 12, y + 18, count) for x, y, count in more]  # fmt: skip
    return Markup('<svg class="graph" width="{w}" height="{h}" viewBox="-2 -2 {w} {h}">{}{}{}</svg>').format(
        _join(lines), _join(boxes), _join(rest), w=wide + 4, h=high + 4
    )


def _placed(
    columns: Sequence[Sequence[str]], own: str
) -> tuple[Mapping[str, tuple[int, int]], list[tuple[int, int, int]]]:
    kept = [sorted(column, key=lambda name: name != own)[:_MOST_IN_LAYER] for column in columns]
    tallest = max((len(column) for column in kept), default=0)
    places: dict[str, tuple[int, int]] = {}
    more: list[tuple[int, int, int]] = []
    for index, (column, shown) in enumerate(zip(columns, kept, strict=True)):
        x = index * (_NODE_WIDTH + _GAP_X)
        top = (tallest - len(shown)) * (_NODE_HEIGHT + _GAP_Y) // 2
        for row, name in enumerate(shown):
            places[name] = (x, top + row * (_NODE_HEIGHT + _GAP_Y))
        if len(column) > len(shown):
            more.append((x, top + len(shown) * (_NODE_HEIGHT + _GAP_Y), len(column) - len(shown)))
    return places, more


def _edge(source: tuple[int, int], target: tuple[int, int], policy: str) -> Markup:
    x, y = source[0] + _NODE_WIDTH, source[1] + _NODE_HEIGHT // 2
    to_x, to_y = target[0], target[1] + _NODE_HEIGHT // 2
    half = max((to_x - x) // 2, 24)
    kind = f" {policy}" if policy in _DASHED else ""
    return Markup('<path class="edge{}" d="M{} {}C{} {} {} {} {} {}"/>').format(kind, x, y, x + half, y, to_x - half, to_y, to_x, to_y)  # fmt: skip


def _node(node: GraphNode, place: tuple[int, int], is_own: bool) -> Markup:
    x, y = place
    inside = Markup(
        '<title>{full}</title><rect x="{x}" y="{y}" width="{w}" height="{h}" rx="8"/><circle class="c-{state}" cx="{cx}" cy="{cy}" r="4.5"/>'
        '<text x="{tx}" y="{ty}">{cut}</text><text class="small" x="{tx}" y="{sy}">{note}</text>{parts}'
    ).format(full=thousands(node.full or f"{node.label}, {node.state}"), state=node.state, x=x, y=y, w=_NODE_WIDTH, h=_NODE_HEIGHT, cx=x + 17, cy=y + 22, tx=x + 32,
             ty=y + 19, sy=y + 34, cut=thousands(_cut(node.label)), note=thousands(node.note or node.state), parts=_parts(node.parts, x + 8, y + _NODE_HEIGHT - 5))  # fmt: skip
    kind = Markup(' class="own"') if is_own else ""
    return Markup('<a href="{}"{}>{}</a>').format(node.href, kind, inside) if node.href else Markup("<g{}>{}</g>").format(kind, inside)  # fmt: skip


def _parts(parts: Sequence[tuple[str, int]], x: int, y: int) -> Markup:
    """Return a thin bar along the lower side of a node, whose sections are proportional to the numbers of some states."""
    total, at = sum(count for _, count in parts), float(x)
    bars: list[Markup] = []
    for state, count in parts:
        width = count / total * (_NODE_WIDTH - 16)
        bar = Markup('<rect class="part c-{}" x="{:.1f}" y="{}" width="{:.1f}" height="3"/>')
        bars.append(bar.format(state, at, y, width))
        at += width
    return _join(bars)


def _cut(label: str) -> str:
    """Return the end of a class name, which differs most between classes, as long as fits into a node."""
    text = printable_json(label)
    return text if len(text) <= 20 else "…" + text[-19:]


# Timelines.

_TICKS: Final = 4


def span(ready_ms: int, start_ms: int, end_ms: int, from_ms: int, to_ms: int, state: str) -> Markup:
    """Return the bar of a job on a line of time: a light part while it waited for a worker, then a full one while it ran.

    Times are epoch milliseconds; what did not happen is 0.
    """
    length = max(to_ms - from_ms, 1)

    def part(kind: str, begin: int, end: int, high: int) -> Markup:
        at = min(max((begin - from_ms) / length * 100, 0), 99.6)
        width = max(min((end - from_ms) / length * 100, 100) - at, 0.4)
        bar = Markup('<rect class="{}" x="{:.2f}%" width="{:.2f}%" y="{}" height="{}"/>')
        return bar.format(kind, at, width, (14 - high) // 2, high)

    waits = (
        part("wait", ready_ms, start_ms or end_ms, 4) if 0 < ready_ms < (start_ms or end_ms) else Markup("")
    )
    runs = part(f"c-{state}", start_ms, max(end_ms, start_ms), 10) if start_ms else Markup("")
    if not waits and not runs and end_ms:  # it failed for others, and never ran
        runs = part(f"c-{state}", end_ms, end_ms, 10)
    return Markup('<svg class="span" aria-hidden="true">{}{}</svg>').format(waits, runs)


def ticks(from_ms: int, to_ms: int) -> Markup:
    """Return the durations since the beginning of a line of time, along it."""
    texts = [
        Markup('<text x="{}%" y="11" text-anchor="{}">{}</text>').format(
            at * 100 // _TICKS,
            "start" if not at else "end" if at == _TICKS else "middle",
            f"+{narrow_duration((to_ms - from_ms) * at / _TICKS / 1000)}" if at else "0",
        )
        for at in range(_TICKS + 1)
    ]
    return Markup('<svg class="ticks" aria-hidden="true">{}</svg>').format(_join(texts))


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "spark_svg": sparkline,
    "histogram_svg": histogram,
    "histogram_bars": bars,
    "strip_svg": strip,
    "share_svg": share,
    "graph_svg": graph,
    "span_svg": span,
    "ticks_svg": ticks,
}
