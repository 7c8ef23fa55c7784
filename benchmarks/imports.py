"""What importing holdfast costs on top of `import redis`: CPU of fresh interpreters, medians, in turn."""

import os
import statistics
import subprocess
import sys
from collections.abc import Mapping
from typing import Final, NamedTuple

from benchmarks.report import Row, Say, at_most, shown

ASKED = {
    "import holdfast": 40.0,
    "from holdfast import Client": 40.0,
    "from holdfast import AsyncClient": 40.0,
}
"""Percent of what `import redis` takes."""


BARE: Final = "pass"
DRIVER: Final = "import redis"
OURS: Final[Mapping[str, str]] = {
    "import holdfast": f"{DRIVER}; import holdfast",
    "from holdfast import Client": f"{DRIVER}; from holdfast import Client",
    "from holdfast import AsyncClient": f"{DRIVER}; from holdfast import AsyncClient",
}
"""What is measured on top of the driver's own import, which every user of a store pays anyway."""


class ImportFigure(NamedTuple):
    """One import: milliseconds of CPU, and its share of what `import redis` takes, in percent."""

    what: str
    cpu_ms: float
    percent: float


def import_figures(rounds: int) -> list[ImportFigure]:
    """Start each interpreter `rounds` times; return medians, without the time of the bare interpreter."""
    programs = (BARE, DRIVER, *OURS.values())
    for program in programs:
        _cpu_ms(program)  # the first start writes the compiled files
    taken: dict[str, list[float]] = {program: [] for program in programs}
    for _ in range(rounds):
        for program in programs:
            taken[program].append(_cpu_ms(program))
    median = {program: statistics.median(times) for program, times in taken.items()}
    base = max(median[DRIVER] - median[BARE], 0.1)
    found = [ImportFigure(DRIVER, base, 100.0)]
    for what, program in OURS.items():
        ours = median[program] - median[DRIVER]
        found.append(ImportFigure(what, ours, 100 * ours / base))
    return found


def _cpu_ms(program: str) -> float:
    """Milliseconds of CPU that one interpreter takes. Raises RuntimeError if it fails."""
    # What is installed is compiled once, so a checkout in which nothing may be kept would be measured for compiling.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.DEVNULL, env=kept)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"{sys.executable} cannot run {program!r}")
    return (used.ru_utime + used.ru_stime) * 1000


def run(quick: bool, say: Say) -> list[Row]:
    rounds = 5 if quick else 21
    say(f"{rounds} rounds of fresh interpreters")
    rows: list[Row] = []
    for figure in import_figures(rounds):
        beside = f"{figure.cpu_ms:.0f} ms CPU"
        if figure.what in ASKED:
            rows.append(at_most(figure.what, figure.percent, ASKED[figure.what], "%", beside))
        else:
            rows.append(shown(figure.what, figure.percent, "%", beside))
    return rows
