"""What does a job cost the store? µs of its main thread per job, by every form of call, beside the floor (the same
writes as bare commands, no logic) and the older core, interleaved round by round.

Where the older core is at hand, a limit is read at its pace: what took it 189.2 µs (Redis: 156.1) when the limits were
set takes it another time here, and so do we. `make bench` prints both figures.
"""

import statistics
from collections import defaultdict
from pathlib import Path

from benchmarks.report import Row, Say, at_least, at_most, number, shown
from benchmarks.subjects import JOBS, Floor, Native, Reference, Round, Steps, send
from benchmarks.wirecpu import Wire, pack
from holdfast.core.library import library
from holdfast.testing.store import Engine, ScratchStore, find_engine

REFERENCE = Path(__file__).resolve().parents[1] / ".holdfast" / "reference"
HOW = "pip install --no-deps --target .holdfast/reference reqless==1.0.0a3"
NOOP = "#!lua name=noop\nredis.register_function('noop', function() return 1 end)\n"
NOOP_SCRIPT = "return 1"
CALIBRATION = {"valkey": 1.2, "redis": 0.83}  # µs of a no-op EVALSHA where the limits were set
LIFECYCLE = {"valkey": {1: 28, 10: 12, 100: 9.5}, "redis": {1: 26, 10: 13, 100: 10.5}}
STEPS = {
    "valkey": {"put": 7, "pop": 12.5, "complete": 9.5},
    "redis": {"put": 6.8, "pop": 12, "complete": 8.5},
}
COMPLETE_POP = {"valkey": {1: 17.5, 10: 7, 100: 5.8}, "redis": {1: 15.5, 10: 7, 100: 5.8}}
HEARTBEAT = {"valkey": {1: 7, 100: 2}, "redis": {1: 6.5, 100: 2}}
EMPTY_POP = {"valkey": 5.5, "redis": 4.5}
PACE = {"valkey": 189.2, "redis": 156.1}  # µs of the reference's lifecycle where the limits were set
RATIO = {"valkey": {1: 6.8, 10: 15.5, 100: 19.5}, "redis": {1: 6, 10: 12, 100: 14.5}}

Key = tuple[str, int, str]
"""Subject, batch, step."""


class Found:
    """µs per job by subject, batch and step, a list of rounds each."""

    def __init__(self, engine: Engine) -> None:
        self.engine: Engine = engine
        self.rounds: dict[Key, list[float]] = defaultdict(list)

    def median(self, name: str, batch: int, step: str) -> float:
        return statistics.median(self.rounds[name, batch, step])

    def has_reference(self) -> bool:
        return ("reference", 1, "lifecycle") in self.rounds

    def times(self, batch: int, step: str) -> float:
        """How many of ours go into one lifecycle of the reference, which ran right beside it."""
        theirs, ours = self.rounds["reference", batch, "lifecycle"], self.rounds["native", batch, step]
        return statistics.median(one / other for one, other in zip(theirs, ours, strict=True))

    def row(self, step: str, batch: int, limit: float, beside: str = "") -> Row:
        """The row of one figure, read at the reference's pace where that is known."""
        what, value = f"{self.engine}: {step}, batch {batch}", self.median("native", batch, step)
        beside += f"{', ' if beside else ''}best round {min(self.rounds['native', batch, step]):.1f}"
        if not self.has_reference():
            return at_most(what, value, limit, "µs", beside)
        pace = PACE[self.engine] / self.times(batch, step)
        return Row(what, f"{number(value)} µs, at pace {number(pace)}", f"≤ {number(limit)} µs", pace <= limit,
                   f"{beside}; reference {self.median('reference', batch, 'lifecycle'):.0f}, best {min(self.rounds['reference', batch, 'lifecycle']):.0f}")  # fmt: skip


def reference_text() -> str | None:
    """The text of the older core, None if it is not at hand."""
    path = REFERENCE / "reqless" / "lua" / "reqless.lua"
    return path.read_text() if path.exists() else None


def noop(wire: Wire, _batch: int) -> Steps:
    """What calling costs: an FCALL and an EVALSHA that do nothing."""
    sha = wire.call("SCRIPT", "LOAD", NOOP_SCRIPT)
    return {
        "FCALL": send(wire, [pack("FCALL", "noop", 1, "k")] * JOBS, 1)[0] / JOBS,
        "EVALSHA": send(wire, [pack("EVALSHA", sha, 0)] * JOBS, 1)[0] / JOBS,
    }


def subjects(wire: Wire) -> list[tuple[str, int, Round]]:
    """All that is compared, in the order of one round."""
    wire.call("FUNCTION", "LOAD", library().text)
    wire.call("FUNCTION", "LOAD", NOOP)
    native, floor, text = Native(wire, "bench"), Floor("bench"), reference_text()
    found: list[tuple[str, int, Round]] = [("no-op", 1, noop), ("native", 1, native.empty_pop)]
    reference = None if text is None else Reference(wire, text)
    for batch in (1, 10, 100):
        found += [("native", batch, native.lifecycle), ("floor", batch, floor.lifecycle)]
        if reference is not None:
            found.append(("reference", batch, reference.lifecycle))
        found.append(("native", batch, native.complete_pop))
    return [*found, ("native", 1, native.heartbeat), ("native", 100, native.heartbeat)]


def measure(engine: Engine, rounds: int, say: Say) -> Found:
    """All rounds but the first."""
    found = Found(engine)
    with ScratchStore(engine=engine) as store:
        wire = Wire(store.url)
        compared = subjects(wire)
        for done in range(rounds + 1):
            say(f"{engine}, round {done} of {rounds}")
            for name, batch, run in compared:
                steps = run(wire, batch)
                if "put" in steps:
                    steps["lifecycle"] = sum(steps.values())
                for step, cpu in steps.items():
                    found.rounds[name, batch, step] += [cpu] if done else []
    return found


def rows_of(found: Found) -> list[Row]:
    """The table of one engine."""
    engine = found.engine
    calibration, page = found.median("no-op", 1, "EVALSHA"), CALIBRATION[engine]
    was = f"{page} where the limits were set: × {calibration / page:.2f}"
    rows = [
        shown(f"{engine}: no-op EVALSHA (calibration)", calibration, "µs", was),
        shown(f"{engine}: no-op FCALL, one key", found.median("no-op", 1, "FCALL"), "µs"),
    ]
    for batch, limit in LIFECYCLE[engine].items():
        floor = found.median("floor", batch, "lifecycle")
        share = found.median("native", batch, "lifecycle") / floor
        rows.append(found.row("lifecycle", batch, limit, f"floor {floor:.1f}: × {share:.2f}"))
    if found.has_reference():
        rows += [
            at_least(
                f"{engine}: reference / ours, batch {batch}", found.times(batch, "lifecycle"), asked, "×"
            )
            for batch, asked in RATIO[engine].items()
        ]
    for step, limit in STEPS[engine].items():
        rows.append(found.row(step, 1, limit, f"floor {found.median('floor', 1, step):.1f}"))
    for step, limits in (("complete_pop", COMPLETE_POP[engine]), ("heartbeat", HEARTBEAT[engine])):
        rows += [found.row(step, batch, limit) for batch, limit in limits.items()]
    return [*rows, found.row("empty pop", 1, EMPTY_POP[engine])]


def run(quick: bool, say: Say) -> list[Row]:
    rows: list[Row] = []
    engines: tuple[Engine, ...] = ("valkey", "redis")
    for engine in engines:
        if find_engine(engine) is None:
            rows.append(Row(f"{engine}: not installed, not measured", ""))
        else:
            rows += rows_of(measure(engine, 1 if quick else 15, say))
    if reference_text() is None:
        rows.append(Row(f"the reference was not at hand: {HOW}", ""))
    return rows
