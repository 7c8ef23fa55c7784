"""What does a job cost the store? Put, pop and complete through the native door, in batches of 1, 10 and 100,
beside the floor (the same writes as bare commands, no logic) and a no-op function, interleaved round by round.
"""

import statistics
import struct
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from secrets import token_hex

from benchmarks.wirecpu import Wire, chunks, pack
from holdfast.core.library import library
from holdfast.testing.store import Engine, ScratchStore

BODY = b'{"user":7,"lang":"de","n":"x"}'
TOKEN = struct.Struct("<d")
JOBS, WAVE = 2000, 200
NOOP = "#!lua name=noop\nredis.register_function('noop', function() return 1 end)\n"
Round = Callable[[Wire, int], dict[str, float]]


def fcall(verb: str, root: str, *words: bytes | str | int) -> bytes:
    return pack("FCALL", "hf1_" + verb, 1, root, *words)


def timed(wire: Wire, requests: Sequence[bytes], batch: int) -> tuple[float, list[object]]:
    """CPU of sending `requests`, 100 jobs' worth at a time."""
    before = wire.cpu()
    replies = wire.in_waves(requests, max(1, 100 // batch))
    return wire.cpu() - before, replies


class Native:
    """The native door, in a namespace of its own."""

    def __init__(self, wire: Wire, name: str) -> None:
        self.root = f"hf:{{{name}}}:"
        self.number = 0
        wire.call("FCALL", "hf1_info", 1, self.root, "make", 0)

    def round(self, wire: Wire, batch: int) -> dict[str, float]:
        jids = [token_hex(16) for _ in range(JOBS)]
        puts = []
        for part in chunks(jids, batch):
            words: list[bytes | str | int] = []
            for jid in part:
                words += [jid, "app.tasks.send", BODY]
            puts.append(fcall("put", self.root, "", 0, "new", "mail", 0, 5, 0, *words))
        spent = {"put": timed(wire, puts, batch)[0], "pop": 0.0, "complete": 0.0}
        for _ in range(JOBS // WAVE):
            pops = []
            for _ in range(WAVE // batch):
                self.number += 1
                pops.append(fcall("pop", self.root, "host-1-0", "line-abcdefgh", self.number, batch, 0, "mail", 1))
            cpu, replies = timed(wire, pops, batch)
            spent["pop"] += cpu
            ends = []
            for reply in replies:
                words = []
                for at in range(1, len(reply), 4):
                    words += [reply[at], int(TOKEN.unpack_from(reply[at + 1], 16)[0]), "", 0, ""]
                assert len(words) == 5 * batch
                ends.append(fcall("complete", self.root, "host-1-0", *words))
            spent["complete"] += timed(wire, ends, batch)[0]
        return {step: cpu / JOBS for step, cpu in spent.items()}


class Floor:
    """The same writes as bare commands: no logic, no clock."""

    def __init__(self, name: str) -> None:
        self.p = f"floor:{{{name}}}:"
        self.sequence = 0

    def round(self, wire: Wire, batch: int) -> dict[str, float]:
        p, jids = self.p, [token_hex(16) for _ in range(JOBS)]
        short, full = b"h" * 45 + BODY, b"h" * 72 + BODY
        puts: list[bytes] = []
        for part in chunks(jids, batch):
            sets: list[bytes | str | int] = []
            entries: list[bytes | str | int] = []
            for jid in part:
                self.sequence += 1
                sets += [p + "j:" + jid, short]
                entries += [self.sequence, jid]
            puts += [pack("INCRBY", p + "s", len(part)), pack("MSET", *sets), pack("ZADD", p + "w", *entries)]
        spent = {"put": self.send(wire, puts, batch, 3), "pop": 0.0, "complete": 0.0}
        for wave in chunks(jids, WAVE):
            pops: list[bytes] = []
            ends: list[bytes] = []
            for part in chunks(wave, batch):
                keys = [p + "j:" + jid for jid in part]
                sets = [word for key in keys for word in (key, full)]
                leases = [word for jid in part for word in (2000000000000, jid)]
                pops += [pack("ZPOPMIN", p + "w", batch), pack("MGET", *keys), pack("MSET", *sets),
                         pack("ZADD", p + "l", *leases), pack("APPEND", p + "aw", b"8bytes.." * batch),
                         pack("SET", p + "i", b"r" * 48 * batch, "PX", 60000)]  # fmt: skip
                ends += [pack("MGET", *keys), pack("MSET", *sets), pack("ZREM", p + "l", *part),
                         pack("APPEND", p + "ar", b"8bytes.." * batch), pack("RPUSH", p + "c", *part),
                         pack("LPOP", p + "c", batch), pack("UNLINK", *keys)]  # fmt: skip
            spent["pop"] += self.send(wire, pops, batch, 6)
            spent["complete"] += self.send(wire, ends, batch, 7)
        wire.call("UNLINK", p + "aw", p + "ar")
        return {step: cpu / JOBS for step, cpu in spent.items()}

    @staticmethod
    def send(wire: Wire, requests: Sequence[bytes], batch: int, width: int) -> float:
        before = wire.cpu()
        wire.in_waves(requests, max(1, 100 // batch) * width)
        return wire.cpu() - before


def noop(wire: Wire, _batch: int) -> dict[str, float]:
    return {"no-op FCALL": timed(wire, [pack("FCALL", "noop", 1, "k")] * JOBS, 1)[0] / JOBS}


def measure(engine: Engine, rounds: int) -> dict[str, float]:
    """Medians over the rounds, the first dropped: ``<subject> <batch> <step>`` → µs per job."""
    found: dict[str, list[float]] = defaultdict(list)
    with ScratchStore(engine=engine) as store:
        wire = Wire(store.url)
        wire.call("FUNCTION", "LOAD", library().text)
        wire.call("FUNCTION", "LOAD", NOOP)
        native, floor = Native(wire, "bench"), Floor("bench")
        wire.call("FCALL", "hf1_config_set", 1, native.root, "jobs-history-count", 2000)
        subjects: list[tuple[str, int, Round]] = [("no-op", 1, noop)]
        for batch in (1, 10, 100):
            subjects += [("native", batch, native.round), ("floor", batch, floor.round)]
        for number in range(rounds + 1):
            for name, batch, run in subjects:
                steps = run(wire, batch)
                if number:
                    for step, cpu in steps.items():
                        found[f"{name} {batch} {step}"].append(cpu)
                    found[f"{name} {batch} lifecycle"].append(sum(steps.values()))
    return {name: statistics.median(values) for name, values in found.items()}


def main(engine: Engine = "valkey", rounds: int = 12) -> None:
    result = measure(engine, rounds)
    print(f"{engine}: µs of store CPU per job; no-op FCALL {result['no-op 1 no-op FCALL']:.2f}")
    for subject in ("native", "floor"):
        for batch in (1, 10, 100):
            row = "  ".join(f"{step} {result[f'{subject} {batch} {step}']:6.2f}" for step in ("put", "pop", "complete", "lifecycle"))  # fmt: skip
            print(f"  {subject:7} batch {batch:3}: {row}")


if __name__ == "__main__":
    main("redis" if "redis" in sys.argv[1:] else "valkey")
