"""How many bytes does a job take, waiting and completed? And does a call cost more when a million jobs wait?

The limits count klass and data together as the body: 14 bytes of klass leave 16 of data for a body of 30.
"""

import statistics
from collections import defaultdict
from pathlib import Path
from secrets import token_hex

from benchmarks.report import Row, Say, at_most, shown
from benchmarks.subjects import KLASS, QUEUE, WORKER, Native, done, rows_of
from benchmarks.wirecpu import Wire, Word, chunks
from holdfast.core.library import library
from holdfast.testing.store import Engine, ScratchStore, find_engine

LIMITS: dict[str, tuple[int, int]] = {"valkey": (248, 225), "redis": (338, 252)}
MILLION: dict[str, int] = {"valkey": 268, "redis": 335}
SHORT, LONG = (b'{"n":"' + b"x" * (size - 8 - len(KLASS)) + b'"}' for size in (30, 200))
LONG_LIMITS = {"valkey": 435, "redis": 515}
STEP = 500
FEW = 2000


def put(native: Native, wire: Wire, jobs: int, body: bytes = SHORT) -> None:
    """Jobs with random ids."""
    for part in chunks([token_hex(16) for _ in range(jobs)], STEP):
        words: list[Word] = [word for jid in part for word in (jid, KLASS, body)]
        wire.send([native.words("put", "", 0, "new", QUEUE, 0, 5, 0, *words)])


def complete_all(native: Native, wire: Wire) -> None:
    while rows := rows_of(wire.send([native.pop(STEP, 0, numbered=False)])[0], 1):
        wire.send([native.words("complete", WORKER, *done(rows))])


def per_job(engine: Engine, jobs: int) -> tuple[float, float, float]:
    """Bytes per waiting and completed job with a body of 30 bytes, and per waiting job with one of 200."""
    with ScratchStore(engine=engine) as store:
        wire = Wire(store.url)
        wire.call("FUNCTION", "LOAD", library().text)
        native = _prepared(wire, jobs)
        empty = wire.memory()
        put(native, wire, jobs)
        waiting = wire.memory()
        complete_all(native, wire)
        completed = wire.memory()
        store.flush()
        native = _prepared(wire, jobs)
        before = wire.memory()
        put(native, wire, jobs, LONG)
        long = wire.memory()
    return (waiting - empty) / jobs, (completed - empty) / jobs, (long - before) / jobs


def _prepared(wire: Wire, jobs: int) -> Native:
    """A namespace that keeps all its completed jobs, once everything that comes into being just once is there."""
    native = Native(wire, "memory")
    wire.send([native.words("config_set", "jobs-history-count", jobs * 2)])
    put(native, wire, 1)
    complete_all(native, wire)
    return native


def crowded(engine: Engine, many: int, rounds: int, say: Say) -> list[Row]:
    """Bytes and costs per call with `many` jobs waiting, against the same calls with 2 000 waiting."""
    with ScratchStore(engine=engine) as store:
        wire = Wire(store.url)
        wire.call("FUNCTION", "LOAD", library().text)
        few, crowd = Native(wire, "few"), Native(wire, "crowd")
        put(few, wire, FEW)
        before, resident = wire.memory(), _resident(store.pid)
        say(f"{engine}: putting {many:,} jobs")
        put(crowd, wire, many)
        bytes_each = (wire.memory() - before) / many
        resident_each = (_resident(store.pid) - resident) / many
        found: dict[tuple[str, int, str], list[float]] = defaultdict(list)
        for number in range(rounds + 1):
            say(f"{engine}: calls among {many:,} jobs, round {number} of {rounds}")
            for batch in (1, 100):
                for name, native in (("few", few), ("crowd", crowd)):
                    for step, cpu in native.lifecycle(wire, batch).items():
                        found[name, batch, step] += [cpu] if number else []
    cost = {key: statistics.median(values) for key, values in found.items()}
    rows = [
        at_most(f"{engine}: a job among {many:,} waiting", bytes_each, MILLION[engine], "B")
        if many >= 1_000_000
        else shown(f"{engine}: a job among {many:,} waiting", bytes_each, "B"),
        shown(f"{engine}: resident memory of the same", resident_each, "B"),
    ]
    for batch in (1, 100):
        for step in ("put", "pop", "complete"):
            one, other = cost["few", batch, step], cost["crowd", batch, step]
            what = f"{engine}: {step}, batch {batch}, {many:,} waiting against {FEW:,}"
            rows.append(at_most(what, other / one, 2, "×", f"{one:.1f} and {other:.1f} µs a job"))
    return rows


def _resident(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) * 1024


def run(quick: bool, say: Say) -> list[Row]:
    rows: list[Row] = []
    engines: tuple[Engine, ...] = ("valkey", "redis")
    for engine in engines:
        if find_engine(engine) is None:
            continue
        say(f"{engine}: bytes per job")
        waiting, completed, long = per_job(engine, 50_000)
        limits = LIMITS[engine]
        rows += [
            at_most(f"{engine}: waiting job, klass and data 30 B, jid 32", waiting, limits[0], "B"),
            at_most(f"{engine}: completed job, the same", completed, limits[1], "B"),
            at_most(f"{engine}: waiting job, klass and data 200 B", long, LONG_LIMITS[engine], "B"),
        ]
        rows += crowded(engine, 50_000 if quick else 1_000_000, 2 if quick else 7, say)
    return rows
