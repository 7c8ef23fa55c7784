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
from holdfast.core.bundle import bundle
from holdfast.testing.store import Engine, ScratchStore, find_engine

JOBS, WAVE = 2000, 100
BODY = b'{"user":7,"lang":"de","n":"x"}'
STEPS = ("put", "pop", "complete", "lifecycle")
OLDER = {"queue.put": "put", "queue.pop": "pop", "job.complete": "complete"}
REFERENCES = {
    "reqless": Path(".holdfast/reference/reqless/lua/reqless.lua"),
    "qless": Path(".holdfast/reference-older/reqless/lua/qless.lua"),
}
SHARE = {"reqless": 1 / 3, "qless": 1 / 2}
"""Of the reference's CPU, what a lifecycle may cost."""


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

    def round(self) -> dict[str, float]:
        jids = [token_hex(16) for _ in range(JOBS)]
        spent = {"pop": 0.0, "complete": 0.0}
        spent["put"], _ = self.timed(
            [self.words("queue.put", "w-1", "mail", jid, "app.tasks.send", BODY, 0) for jid in jids]
        )
        for _ in range(JOBS // (2 * WAVE)):
            cpu, replies = self.timed([self.words("queue.pop", "mail", "w-1", 1) for _ in range(2 * WAVE)])
            spent["pop"] += cpu * 2 * WAVE / JOBS
            popped = [json.loads(reply)[0]["jid"] for reply in replies]
            cpu, _ = self.timed([self.words("job.complete", jid, "w-1", "mail", BODY) for jid in popped])
            spent["complete"] += cpu * 2 * WAVE / JOBS
        return {**spent, "lifecycle": sum(spent.values())}


def measure(engine: Engine, protocol: str, rounds: int) -> dict[str, dict[str, float]]:
    """Medians of the rounds, the first dropped: subject → step → µs per job."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
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
                    for step in STEPS:
                        found[name][step].append(steps[step])
    return {
        name: {step: statistics.median(cpu) for step, cpu in steps.items()} for name, steps in found.items()
    }


def run(quick: bool, say: Say) -> list[Row]:
    rows: list[Row] = []
    engines: tuple[Engine, ...] = ("valkey", "redis")
    for engine in engines:
        for protocol in REFERENCES if find_engine(engine) is not None else ():
            say(f"{engine} {protocol}")
            found = measure(engine, protocol, 2 if quick else 10)
            theirs = found.get("reference")
            for step in STEPS:
                what, ours = f"{engine}: {step} through the {protocol} door", found["holdfast"][step]
                beside = f"reference {theirs[step]:.1f} µs" if theirs else ""
                if theirs and step == "lifecycle":
                    rows.append(at_most(what, ours, theirs[step] * SHARE[protocol], "µs", beside))
                else:
                    rows.append(shown(what, ours, "µs", beside))
    return rows
