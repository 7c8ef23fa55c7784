"""What do the layers of the core cost? Put, pop and complete through the native library and through `flat.lua`, the
same reads, checks and writes written out by hand: no `ctx`, no tables of keys, no forms of order and record.

Both run in one server, interleaved round by round, each in a namespace of its own. Where a call is rare (folding the
samples, dropping old jobs) the flat one calls the core's own code.
"""

import statistics
import sys
from collections import defaultdict
from pathlib import Path

from benchmarks.subjects import Native
from benchmarks.wirecpu import Wire
from holdfast.core.library import head, in_order, library, source
from holdfast.testing.store import Engine, ScratchStore

FLAT = Path(__file__).parent / "flat.lua"
STEPS = ("put", "pop", "complete")


def flat_library() -> str:
    """The hand-written functions, behind the modules whose rare parts they call."""
    modules = dict.fromkeys([*in_order("nouns.job.retention"), *in_order("nouns.queue.stats")])
    parts = [
        "#!lua name=flat", head(),
        *(f'loaded["{name}"] = (function()\n{_with_fold(source(name))}end)()' for name in modules),
        'local FLAT_KEYS, FLAT_STATS = require("base.keys"), require("nouns.queue.stats")',
        'local FLAT_RETENTION, FLAT_READY = require("nouns.job.retention"), ready',
        'local FLAT_AT = { record = require("base.record").native, bounds = { retention_slack = 64, ages = 64, steps = 5 } }',
        FLAT.read_text(),
    ]  # fmt: skip
    return "\n".join(parts)


def _with_fold(text: str) -> str:
    if "local function fold(" not in text:
        return text
    head, _, _ = text.rpartition("return M\n")
    return head + "M.fold = fold\nreturn M\n"


class Flat(Native):
    """The flat functions on a root that the library made."""

    def __init__(self, wire: Wire, name: str) -> None:
        super().__init__(wire, name)
        self.prefix = "flat_"


def measure(engine: Engine, rounds: int) -> dict[tuple[str, int, str], float]:
    """Medians of the rounds, the first dropped: (subject, batch, step) → µs per job."""
    found: dict[tuple[str, int, str], list[float]] = defaultdict(list)
    with ScratchStore(engine) as store:
        wire = Wire(store.url)
        wire.call("FUNCTION", "LOAD", library().text)
        wire.call("FUNCTION", "LOAD", flat_library())
        subjects = [("layered", Native(wire, "layered")), ("flat", Flat(wire, "flat"))]
        for number in range(rounds + 1):
            for batch in (1, 10, 100):
                for name, subject in subjects if number % 2 else reversed(subjects):
                    steps = subject.lifecycle(wire, batch)
                    for step in STEPS if number else ():
                        found[name, batch, step].append(steps[step])
                    if number:
                        found[name, batch, "lifecycle"].append(sum(steps.values()))
    return {key: statistics.median(values) for key, values in found.items()}


def main(engine: Engine = "valkey", rounds: int = 12) -> None:
    result = measure(engine, rounds)
    for batch in (1, 10, 100):
        for name in ("layered", "flat"):
            row = "".join(f"  {step} {result[name, batch, step]:6.2f}" for step in (*STEPS, "lifecycle"))
            print(f"{engine} {name:8} batch {batch:3}{row}")


if __name__ == "__main__":
    main("redis" if "redis" in sys.argv[1:] else "valkey")
