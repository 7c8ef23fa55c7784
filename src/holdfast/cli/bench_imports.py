"""What importing holdfast costs: CPU of fresh interpreters, in turn, so that a busy moment hits all alike."""

import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from holdfast.errors import HoldfastError

BARE: Final = "pass"
DRIVER: Final = "import redis"
OURS: Final[Mapping[str, str]] = {
    "import holdfast": f"{DRIVER}; import holdfast",
    "from holdfast import Client": f"{DRIVER}; from holdfast import Client",
    "from holdfast import AsyncClient": f"{DRIVER}; from holdfast import AsyncClient",
}
"""What is measured on top of the driver's own import, which every user of a store pays anyway."""
ROUNDS: Final = 5


class ImportFigure(NamedTuple):
    """One import: milliseconds of CPU, and its share of what `import redis` takes, in percent."""

    what: str
    cpu_ms: float
    percent: float


def import_figures(rounds: int, advance: Callable[[int], None]) -> list[ImportFigure]:
    """Start each interpreter `rounds` times; `advance` hears of each round. Medians, the bare interpreter taken off."""
    programs = (BARE, DRIVER, *OURS.values())
    for program in programs:
        _cpu_ms(program)  # the first start writes the compiled files
    taken: dict[str, list[float]] = {program: [] for program in programs}
    for _ in range(rounds):
        for program in programs:
            taken[program].append(_cpu_ms(program))
        advance(1)
    median = {program: statistics.median(times) for program, times in taken.items()}
    base = max(median[DRIVER] - median[BARE], 0.1)
    found = [ImportFigure(DRIVER, base, 100.0)]
    for what, program in OURS.items():
        ours = median[program] - median[DRIVER]
        found.append(ImportFigure(what, ours, 100 * ours / base))
    return found


def _cpu_ms(program: str) -> float:
    """Milliseconds of CPU that one interpreter takes. Raises HoldfastError if it fails."""
    # What is installed is compiled once, so a checkout in which nothing may be kept would be measured for compiling.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.DEVNULL, env=kept)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise HoldfastError(f"{sys.executable} cannot run {program!r}")
    return (used.ru_utime + used.ru_stime) * 1000
