"""What does a job cost the store? µs of its main thread per job, by every form of call, beside the floor (the same
writes as bare commands, no logic) and the older core, interleaved round by round."""

import statistics
from collections import defaultdict
from pathlib import Path

from benchmarks.report import Row, Say, at_least, at_most, shown
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
RATIO = {"valkey": {1: 6.8, 10: 15.5, 100: 19.5}, "redis": {1: 6, 10: 12, 100: 14.5}}

Found = dict[tuple[str, int, str], float]
"""µs per job by subject, batch and step."""


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
        if reference is not None and batch != 10:
            found.append(("reference", batch, reference.lifecycle))
        found.append(("native", batch, native.complete_pop))
    return [*found, ("native", 1, native.heartbeat), ("native", 100, native.heartbeat)]


def measure(engine: Engine, rounds: int, say: Say) -> tuple[Found, dict[int, float]]:
    """Medians over the rounds, the first dropped; and the median ratio to the reference by batch."""
    found: dict[tuple[str, int, str], list[float]] = defaultdict(list)
    with ScratchStore(engine=engine) as store:
        wire = Wire(store.url)
        compared = subjects(wire)
        for number in range(rounds + 1):
            say(f"{engine}, round {number} of {rounds}")
            for name, batch, run in compared:
                steps = run(wire, batch)
                if "put" in steps:
                    steps["lifecycle"] = sum(steps.values())
                for step, cpu in steps.items():
                    found[name, batch, step] += [cpu] if number else []
    ratios = {
        batch: statistics.median(
            theirs / ours
            for theirs, ours in zip(
                # The reference has no batches: its lifecycle is always that of single calls.
                found["reference", 1, "lifecycle"], found["native", batch, "lifecycle"], strict=True
            )
        )
        for batch in (1, 10, 100)
        if ("reference", 1, "lifecycle") in found
    }  # fmt: skip
    return {key: statistics.median(values) for key, values in found.items()}, ratios


def rows_of(engine: Engine, found: Found, ratios: dict[int, float]) -> list[Row]:
    """The table of one engine."""
    calibration, page = found["no-op", 1, "EVALSHA"], CALIBRATION[engine]
    rows = [
        shown(f"{engine}: no-op EVALSHA (calibration)", calibration, "µs", f"{page} where the limits were set: × {calibration / page:.2f}"),
        shown(f"{engine}: no-op FCALL, one key", found["no-op", 1, "FCALL"], "µs"),
    ]  # fmt: skip
    for batch in (1, 10, 100):
        ours, floor = found["native", batch, "lifecycle"], found["floor", batch, "lifecycle"]
        beside = f"floor {floor:.1f}: × {ours / floor:.2f}; {_steps(found, 'native', batch)}"
        rows.append(
            at_most(f"{engine}: lifecycle, batch {batch}", ours, LIFECYCLE[engine][batch], "µs", beside)
        )
    rows += [
        at_most(f"{engine}: {step}, batch 1", found["native", 1, step], limit, "µs", f"floor {found['floor', 1, step]:.1f}")
        for step, limit in STEPS[engine].items()
    ]  # fmt: skip
    for batch, asked in RATIO[engine].items():
        if batch in ratios:
            theirs, at_once = (found["reference", size, "lifecycle"] for size in (1, 100))
            beside = f"reference {theirs:.0f} µs (popping 100 at once, which is all it has of batches: {at_once:.0f})"
            rows.append(
                at_least(f"{engine}: reference / ours, batch {batch}", ratios[batch], asked, "×", beside)
            )
    for step, limits in (("complete_pop", COMPLETE_POP[engine]), ("heartbeat", HEARTBEAT[engine])):
        rows += [
            at_most(f"{engine}: {step}, batch {batch}", found["native", batch, step], limit, "µs")
            for batch, limit in limits.items()
        ]
    rows.append(at_most(f"{engine}: empty pop", found["native", 1, "empty pop"], EMPTY_POP[engine], "µs"))
    return rows


def _steps(found: Found, name: str, batch: int) -> str:
    return ", ".join(f"{step} {found[name, batch, step]:.1f}" for step in ("put", "pop", "complete"))


def run(quick: bool, say: Say) -> list[Row]:
    rows: list[Row] = []
    engines: tuple[Engine, ...] = ("valkey", "redis")
    for engine in engines:
        if find_engine(engine) is None:
            rows.append(Row(f"{engine}: not installed, not measured", ""))
            continue
        rows += rows_of(engine, *measure(engine, 2 if quick else 15, say))
    if reference_text() is None:
        rows.append(Row(f"the reference was not at hand: {HOW}", ""))
    return rows
