"""What do the older protocols cost here? Put, pop and complete through the reqless and the qless door and through
the reference script of each, interleaved round by round in one server, each in a database of its own.

The references are the scripts of the PyPI package `reqless`, installed under `.holdfast` by the tests; they are
loaded and run, nothing else. Without them only our own figures are shown.
"""

import json
import statistics
from collections import defaultdict
from pathlib import Path
from secrets import token_hex

from benchmarks.report import Row, Say, at_most, shown
from benchmarks.wirecpu import Wire, pack
from holdfast.core.texts import bundle
from holdfast.testing.store import Engine, ScratchStore, find_engine

JOBS, WAVE = 2000, 100
BODY = b'{"user":7,"lang":"de","n":"x"}'
SIZES = (10, 100)
STEPS = ("put", "pop", "complete", "lifecycle", *(f"pop of {size}" for size in SIZES))
OLDER = {"queue.put": "put", "queue.pop": "pop", "job.complete": "complete"}
REFERENCES = {
    "reqless": Path(".holdfast/reference/reqless/lua/reqless.lua"),
    "qless": Path(".holdfast/reference-older/reqless/lua/qless.lua"),
}
MOST = 1.0
"""Of the reference's CPU, what a lifecycle may cost: the median over pairs of rounds."""
PAIRS = 12


class Door:
    """One script in one database; time grows a little with every call."""

    def __init__(self, url: str, text: str, database: int, older: bool = False) -> None:
        self.wire = Wire(url)
        self.older = older
        self.wire.call("SELECT", database)
        self.sha = self.wire.call("SCRIPT", "LOAD", text).decode()
        self.now = 1_700_000_000.0
        self.wire.send([self.words("config.set", "jobs-history-count", JOBS)])

    def words(self, command: str, *words: bytes | str | int) -> bytes:
        self.now += 0.001
        command = OLDER.get(command, command) if self.older else command
        return pack("EVALSHA", self.sha, 0, command, f"{self.now:.3f}", *words)

    def timed(self, requests: list[bytes]) -> tuple[float, list[bytes]]:
        before = self.wire.cpu()
        replies = self.wire.in_waves(requests, WAVE)
        return (self.wire.cpu() - before) / len(requests), replies

    def put_jobs(self) -> tuple[float, list[str]]:
        jids = [token_hex(16) for _ in range(JOBS)]
        puts = [self.words("queue.put", "w-1", "mail", jid, "app.tasks.send", BODY, 0) for jid in jids]
        return self.timed(puts)[0], jids

    def completed(self, jids: list[str]) -> float:
        return self.timed([self.words("job.complete", jid, "w-1", "mail", BODY) for jid in jids])[0]

    def round(self) -> dict[str, float]:
        """µs a job: its lifecycle by calls for one job, then pops of more of them."""
        spent = {"put": self.put_jobs()[0], "pop": 0.0, "complete": 0.0}
        for _ in range(JOBS // (2 * WAVE)):
            cpu, replies = self.timed([self.words("queue.pop", "mail", "w-1", 1) for _ in range(2 * WAVE)])
            spent["pop"] += cpu * 2 * WAVE / JOBS
            spent["complete"] += (
                self.completed([json.loads(reply)[0]["jid"] for reply in replies]) * 2 * WAVE / JOBS
            )
        spent["lifecycle"] = sum(spent.values())
        for size in SIZES:
            _, jids = self.put_jobs()
            cpu, _ = self.timed([self.words("queue.pop", "mail", "w-1", size) for _ in range(JOBS // size)])
            spent[f"pop of {size}"] = cpu / size
            self.completed(jids)
        return spent


def measure(engine: Engine, protocol: str, rounds: int) -> dict[str, list[dict[str, float]]]:
    """The rounds of each subject, the first dropped: step → µs per job."""
    found: dict[str, list[dict[str, float]]] = defaultdict(list)
    texts = {"holdfast": bundle(f"doors.{protocol}")}
    if REFERENCES[protocol].exists():
        texts["reference"] = REFERENCES[protocol].read_text()
    with ScratchStore(engine) as store:
        doors = {
            name: Door(store.url, text, place, protocol == "qless")
            for place, (name, text) in enumerate(texts.items())
        }
        for number in range(rounds + 1):
            for name, door in doors.items():
                steps = door.round()
                if number:
                    found[name].append(steps)
    return found


def row(what: str, step: str, found: dict[str, list[dict[str, float]]]) -> Row:
    ours = [steps[step] for steps in found["holdfast"]]
    cpu = statistics.median(ours)
    if "reference" not in found:
        return shown(what, cpu, "µs")
    theirs = [steps[step] for steps in found["reference"]]
    shares = sorted(one / other for one, other in zip(ours, theirs, strict=True))
    beside = (
        f"{cpu:.1f} µs, reference {statistics.median(theirs):.1f} µs; {shares[0]:.2f} to {shares[-1]:.2f}"
    )
    share = statistics.median(shares)
    unit = "× reference"
    return (
        at_most(what, share, MOST, unit, beside) if step == "lifecycle" else shown(what, share, unit, beside)
    )


def run(quick: bool, say: Say) -> list[Row]:
    rows: list[Row] = []
    engines: tuple[Engine, ...] = ("valkey", "redis")
    for engine in engines:
        for protocol in REFERENCES if find_engine(engine) is not None else ():
            say(f"{engine} {protocol}")
            found = measure(engine, protocol, 2 if quick else PAIRS)
            rows += [row(f"{engine}: {step} through the {protocol} door", step, found) for step in STEPS]
    return rows
