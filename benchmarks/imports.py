"""What importing holdfast costs on top of `import redis`: CPU of fresh interpreters, medians, in turn."""

from benchmarks.report import Row, Say, at_most, shown
from holdfast.cli.bench import import_figures

ASKED = {
    "import holdfast": 40.0,
    "from holdfast import Client": 40.0,
    "from holdfast import AsyncClient": 40.0,
}
"""Percent of what `import redis` takes."""


def run(quick: bool, say: Say) -> list[Row]:
    rounds = 5 if quick else 21
    say(f"{rounds} rounds of fresh interpreters")
    rows: list[Row] = []
    for figure in import_figures(rounds, lambda _: None):
        beside = f"{figure.cpu_ms:.0f} ms CPU"
        if figure.what in ASKED:
            rows.append(at_most(figure.what, figure.percent, ASKED[figure.what], "%", beside))
        else:
            rows.append(shown(figure.what, figure.percent, "%", beside))
    return rows
