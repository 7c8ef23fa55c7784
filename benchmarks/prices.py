"""What does each promise cost the store? Variants of the library without it (or, for the header, with more of it),
made by patching the assembled text in memory; whole lifecycles, interleaved."""

import statistics
from collections import defaultdict
from collections.abc import Mapping
from functools import partial

from benchmarks.report import Row, Say, shown
from benchmarks.subjects import Native, Round
from benchmarks.wirecpu import Wire
from holdfast.core.library import NAME, PREFIX, library
from holdfast.testing.store import Engine, ScratchStore, find_engine

Patch = Mapping[str, str]

NO_ROOT_READ: Patch = {
    "function M.open(": "local kept_roots = {}\nfunction M.open(",
    'local packed = call("HGET", key, "h")\n  if not packed then refuse.call("NO_ROOT", key) end\n': (
        'local packed = kept_roots[key] or call("HGET", key, "h")\n  kept_roots[key] = packed\n'
    ),
}
NO_WAIT_SAMPLE: Patch = {
    "function M.waited(ctx, queue, samples)\n": "function M.waited(ctx, queue, samples)\n  do return end\n",
}
WIDER_HEADER: Patch = {'"<BHhHhhBI6': f'"<BHhHhhB{"x" * 10}I6'}  # wherever a header is packed or unpacked
ESTIMATES = {
    "root": "every call +0.35 / 0.25",
    "sample": "pop +0.9 / 0.7",
    "replay": "pop +1.1 / 0.75",
    "own jid": "put +1.1 / 0.75",
    "header": "10 B a popped record",
}
"""What the design page expected, µs at batch 1 on Valkey / Redis."""


def patched(text: str, patch: Patch, name: str) -> str:
    """The library under another name, changed. Raises AssertionError if the core no longer reads like that."""
    changes = {
        f"#!lua name={NAME}\n": f"#!lua name={name}\n",
        f'function_name = "{PREFIX}" .. verb': f'function_name = "{name}_" .. verb',
        **patch,
    }
    for before, after in changes.items():
        assert before in text, f"the core does not contain this: {before}"
        text = text.replace(before, after)
    return text


def variants(wire: Wire) -> dict[str, Round]:
    """A whole lifecycle each: as it is, and with one price less (or more)."""
    text = library().text
    made: dict[str, Native] = {}
    for name, patch in {
        "plain": {},
        "rootless": NO_ROOT_READ,
        "sampleless": NO_WAIT_SAMPLE,
        "wider": WIDER_HEADER,
    }.items():
        changed = patched(text, patch, name)
        wire.call("FUNCTION", "LOAD", changed)
        made[name] = Native(wire, name, f"{name}_")
        # What was kept of the root is from before it was told how many jobs to keep.
        wire.call("FUNCTION", "LOAD", "REPLACE", changed)
    runs: dict[str, Round] = {name: native.lifecycle for name, native in made.items()}
    runs["unnumbered"] = partial(made["plain"].lifecycle, numbered=False)
    runs["own jids"] = partial(made["plain"].lifecycle, own_jids=True)
    return runs


def measure(
    engine: Engine, rounds: int, batches: tuple[int, ...], say: Say
) -> dict[tuple[str, int, str], float]:
    """The median difference to the plain library, µs a job, by variant, batch and step."""
    found: dict[tuple[str, int, str], list[float]] = defaultdict(list)
    with ScratchStore(engine=engine) as store:
        wire = Wire(store.url)
        runs = variants(wire)
        for number in range(rounds + 1):
            say(f"{engine}, round {number} of {rounds}")
            for batch in batches:
                steps = {name: run(wire, batch) for name, run in runs.items()}
                if not number:
                    continue
                for name in runs:
                    for step in ("put", "pop", "complete"):
                        found[name, batch, step].append(steps[name][step] - steps["plain"][step])
    return {key: statistics.median(values) for key, values in found.items()}


def bytes_of_padding(engine: Engine, jobs: int) -> float:
    """What ten bytes in the header make of a waiting job, with the allocator's rounding."""
    sizes = []
    for patch in ({}, WIDER_HEADER):
        with ScratchStore(engine=engine) as store:
            wire = Wire(store.url)
            wire.call("FUNCTION", "LOAD", patched(library().text, patch, "sized"))
            native = Native(wire, "size", "sized_")
            wire.send(native.puts(1, 1))
            before = wire.memory()
            wire.in_waves(native.puts(jobs, 100), 1)
            sizes.append((wire.memory() - before) / jobs)
    return sizes[1] - sizes[0]


def rows_of(engine: Engine, price: dict[tuple[str, int, str], float], batches: tuple[int, ...]) -> list[Row]:
    rows = []
    for batch in batches:
        where = f"{engine}, batch {batch}"
        calls = {step: -price["rootless", batch, step] for step in ("put", "pop", "complete")}
        said = ", ".join(f"{step} {cost:+.2f}" for step, cost in calls.items())
        rows += [
            shown(f"{where}: root read first, mean of three calls", sum(calls.values()) / 3, "µs a job", f"{said}; expected: {ESTIMATES['root']}"),
            shown(f"{where}: wait sample at pop", -price["sampleless", batch, "pop"], "µs a job", f"expected: {ESTIMATES['sample']}"),
            shown(f"{where}: numbered pop's replay record", -price["unnumbered", batch, "pop"], "µs a job", f"expected: {ESTIMATES['replay']}"),
            shown(f"{where}: a caller's own jid under a number", price["own jids", batch, "put"], "µs a job", f"expected: {ESTIMATES['own jid']}"),
            shown(f"{where}: ten more bytes of header, lifecycle", sum(price["wider", batch, step] for step in calls), "µs a job", f"expected: {ESTIMATES['header']}"),
        ]  # fmt: skip
    return rows


def run(quick: bool, say: Say) -> list[Row]:
    rows: list[Row] = []
    batches = (1,) if quick else (1, 100)
    engines: tuple[Engine, ...] = ("valkey", "redis")
    for engine in engines:
        if find_engine(engine) is None:
            continue
        rows += rows_of(engine, measure(engine, 2 if quick else 11, batches, say), batches)
        say(f"{engine}: bytes")
        extra = bytes_of_padding(engine, 5_000 if quick else 50_000)
        rows.append(shown(f"{engine}: ten more bytes of header, memory", extra, "B a waiting job"))
    return rows
