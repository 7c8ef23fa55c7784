"""What does that protocol cost here? Put, pop and complete through the reqless door and through the reference
script, interleaved round by round in one server, each in a database of its own.

The reference is the script of the PyPI package `reqless`, installed under `.holdfast/reference` by its tests; it
is loaded and run, nothing else. Without it only our own figures are printed.
"""

import json
import statistics
import sys
from collections import defaultdict
from secrets import token_hex

from benchmarks.core_cpu import reference_text
from benchmarks.wirecpu import Wire, pack
from holdfast.core.builder import script
from holdfast.testing.store import Engine, ScratchStore

JOBS, WAVE = 2000, 100
BODY = b'{"user":7,"lang":"de","n":"x"}'
STEPS = ("put", "pop", "complete", "lifecycle")


class Door:
    """One script in one database; time grows a little with every call."""

    def __init__(self, url: str, text: str, database: int) -> None:
        self.wire = Wire(url)
        self.wire.call("SELECT", database)
        self.sha = self.wire.call("SCRIPT", "LOAD", text).decode()
        self.now = 1_700_000_000.0
        self.wire.send([self.words("config.set", "jobs-history-count", JOBS)])

    def words(self, command: str, *words: bytes | str | int) -> bytes:
        self.now += 0.001
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


def measure(engine: Engine, rounds: int) -> dict[str, dict[str, float]]:
    """Medians of the rounds, the first dropped: subject → step → µs per job."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with ScratchStore(engine) as store:
        doors = {"holdfast": Door(store.url, script("doors.reqless"), 1)}
        text = reference_text()
        if text:
            doors["reference"] = Door(store.url, text, 0)
        for number in range(rounds + 1):
            for name, door in doors.items():
                steps = door.round()
                if number:
                    for step in STEPS:
                        found[name][step].append(steps[step])
    return {
        name: {step: statistics.median(cpu) for step, cpu in steps.items()} for name, steps in found.items()
    }


def main(engine: Engine = "valkey", rounds: int = 10) -> None:
    result = measure(engine, rounds)
    for name, steps in result.items():
        print(f"{engine} {name:10}" + "".join(f"  {step} {steps[step]:7.2f}" for step in STEPS))
    if "reference" in result:
        ours, theirs = result["holdfast"], result["reference"]
        print(
            f"{engine} {'ratio':10}" + "".join(f"  {step} {theirs[step] / ours[step]:7.2f}" for step in STEPS)
        )


if __name__ == "__main__":
    main("redis" if "redis" in sys.argv[1:] else "valkey")
