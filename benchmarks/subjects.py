"""What `core_cpu` compares, each a class whose rounds answer µs of store CPU per job and step.

A round puts JOBS jobs, then pops and completes them in waves of WAVE, so that the running set has a realistic size.
Requests are built beforehand and sent 100 jobs' worth at a time.
"""

import json
import struct
from collections.abc import Callable, Sequence
from itertools import count
from secrets import token_hex
from typing import Any

from benchmarks.wirecpu import Wire, chunks, pack

Word = bytes | str | int
Steps = dict[str, float]
Round = Callable[[Wire, int], Steps]

BODY = b'{"user":7,"lang":"de","n":"x"}'
KLASS, QUEUE, WORKER, LINE = "app.tasks.send", "mail", "host-1-0", "line-abcdefgh"
TOKEN = struct.Struct("<d")
TOKEN_AT = 16
JOBS, WAVE = 2000, 200
ROW = 4


def send(wire: Wire, requests: Sequence[bytes], batch: int, width: int = 1) -> tuple[float, list[Any]]:
    """CPU of sending `requests`, `width` of which make up a batch, 100 jobs' worth at a time; and the replies."""
    before = wire.cpu()
    replies = wire.in_waves(requests, max(1, 100 // batch) * width)
    return wire.cpu() - before, replies


def rows_of(reply: Sequence[Any], first: int) -> list[tuple[bytes, int]]:
    """(jid, token) of the rows that begin at `first`."""
    return [
        (reply[at], int(TOKEN.unpack_from(reply[at + 1], TOKEN_AT)[0]))
        for at in range(first, len(reply), ROW)
    ]


class Native:
    """The native door, in a namespace of its own; `prefix` picks the library."""

    def __init__(self, wire: Wire, name: str, prefix: str = "hf1_") -> None:
        self.root = f"hf:{{{name}}}:"
        self.prefix = prefix
        self._numbers = count(1)
        self._fcall(wire, "info", "make", 0)
        self._fcall(wire, "config_set", "jobs-history-count", 2000)

    def lifecycle(self, wire: Wire, batch: int, *, numbered: bool = True, own_jids: bool = False) -> Steps:
        """put, pop, complete. `numbered`: pops are repeatable. `own_jids`: puts are too, for jids of a caller's own."""
        cpu, _ = send(wire, self.puts(JOBS, batch, own_jids), batch)
        spent = {"put": cpu, "pop": 0.0, "complete": 0.0}
        for _ in range(JOBS // WAVE):
            cpu, replies = send(wire, [self.pop(batch, 1, numbered) for _ in range(WAVE // batch)], batch)
            spent["pop"] += cpu
            granted = [rows_of(reply, 1) for reply in replies]
            assert all(len(rows) == batch for rows in granted)
            cpu, _ = send(wire, [self.words("complete", WORKER, *done(rows)) for rows in granted], batch)
            spent["complete"] += cpu
        return {step: cpu / JOBS for step, cpu in spent.items()}

    def complete_pop(self, wire: Wire, batch: int) -> Steps:
        """A busy worker: complete some, take as many, in one call. Half of twice as many jobs runs throughout."""
        send(wire, self.puts(2 * JOBS, 100), 100)
        requests = [
            self.words("complete_pop", WORKER, LINE, next(self._numbers), batch, 0, 1, QUEUE, 1, *done(part))
            for part in chunks(self._popped(wire, JOBS), batch)
        ]
        cpu, replies = send(wire, requests, batch)
        taken = [row for reply in replies for row in rows_of(reply, 2)]
        assert len(taken) == JOBS
        for part in chunks(taken, 100):
            wire.send([self.words("complete", WORKER, *done(part))])
        return {"complete_pop": cpu / JOBS}

    def _popped(self, wire: Wire, jobs: int) -> list[tuple[bytes, int]]:
        """(jid, token) of so many jobs that were put before."""
        replies = wire.in_waves([self.pop(100, 0) for _ in range(jobs // 100)], 1)
        return [row for reply in replies for row in rows_of(reply, 1)]

    def heartbeat(self, wire: Wire, batch: int) -> Steps:
        """Leases pushed further away, 200 of them running."""
        send(wire, self.puts(WAVE, 100), 100)
        running = self._popped(wire, WAVE)
        requests = [
            self.words("heartbeat", 0, *(word for jid, token in part for word in (WORKER, jid, token, "")))
            for part in chunks(running, batch)
        ]
        cpu, replies = send(wire, requests * (JOBS // WAVE), batch)
        assert all(end > 0 for reply in replies for end in reply)
        send(wire, [self.words("complete", WORKER, *done(running))], 100)
        return {"heartbeat": cpu / JOBS}

    def empty_pop(self, wire: Wire, _batch: int) -> Steps:
        """A pop that finds nothing."""
        cpu, replies = send(wire, [self.pop(1, 1) for _ in range(JOBS)], 1)
        assert all(len(reply) == 1 for reply in replies)
        return {"empty pop": cpu / JOBS}

    def puts(self, jobs: int, batch: int, own_jids: bool = False) -> list[bytes]:
        requests = []
        for part in chunks([token_hex(16) for _ in range(jobs)], batch):
            words = [word for jid in part for word in (jid, KLASS, BODY)]
            line, number, mode = (LINE + "p", next(self._numbers), "move") if own_jids else ("", 0, "new")
            requests.append(self.words("put", line, number, mode, QUEUE, 0, 5, 0, *words))
        return requests

    def pop(self, batch: int, mode: int, numbered: bool = True) -> bytes:
        line, number = (LINE, next(self._numbers)) if numbered else ("", 0)
        return self.words("pop", WORKER, line, number, batch, 0, QUEUE, mode)

    def words(self, verb: str, *words: Word) -> bytes:
        return pack("FCALL", self.prefix + verb, 1, self.root, *words)

    def _fcall(self, wire: Wire, verb: str, *words: Word) -> Any:
        return wire.send([self.words(verb, *words)])[0]


def done(rows: Sequence[tuple[bytes, int]]) -> list[Word]:
    """The words that complete these jobs."""
    return [word for jid, token in rows for word in (jid, token, "", 0, "")]


class Floor:
    """The same writes as bare commands: no logic, no clock."""

    def __init__(self, name: str) -> None:
        self.p = f"floor:{{{name}}}:"
        self.sequence = 0

    def lifecycle(self, wire: Wire, batch: int) -> Steps:
        p, jids = self.p, [token_hex(16) for _ in range(JOBS)]
        short, full = b"h" * 45 + BODY, b"h" * 72 + BODY
        puts: list[bytes] = []
        for part in chunks(jids, batch):
            sets: list[Word] = []
            entries: list[Word] = []
            for jid in part:
                self.sequence += 1
                sets += [p + "j:" + jid, short]
                entries += [self.sequence, jid]
            puts += [pack("INCRBY", p + "s", len(part)), pack("MSET", *sets), pack("ZADD", p + "w", *entries)]
        spent = {"put": send(wire, puts, batch, 3)[0], "pop": 0.0, "complete": 0.0}
        for wave in chunks(jids, WAVE):
            pops: list[bytes] = []
            ends: list[bytes] = []
            for part in chunks(wave, batch):
                keys = [p + "j:" + jid for jid in part]
                sets = [word for key in keys for word in (key, full)]
                leases = [word for jid in part for word in (2000000000000, jid)]
                pops += [pack("ZPOPMIN", p + "w", batch), pack("MGET", *keys), pack("MSET", *sets),
                         pack("ZADD", p + "l", *leases), pack("APPEND", p + "aw", b"8bytes.." * batch),
                         pack("SET", p + "i", b"r" * 33 * batch, "PX", 60000)]  # fmt: skip
                ends += [pack("MGET", *keys), pack("MSET", *sets), pack("ZREM", p + "l", *part),
                         pack("APPEND", p + "ar", b"8bytes.." * batch), pack("RPUSH", p + "c", *part),
                         pack("LPOP", p + "c", batch), pack("UNLINK", *keys)]  # fmt: skip
            spent["pop"] += send(wire, pops, batch, 6)[0]
            spent["complete"] += send(wire, ends, batch, 7)[0]
        wire.call("UNLINK", p + "aw", p + "ar")
        return {step: cpu / JOBS for step, cpu in spent.items()}


class Reference:
    """The older core as a black box: its text is loaded and its protocol spoken, nothing else is known of it."""

    def __init__(self, wire: Wire, text: str) -> None:
        self.sha: bytes = wire.call("SCRIPT", "LOAD", text)
        # It takes the caller's clock: a millisecond a call, so that no lease ends on the way.
        self._now = count(1_700_000_000_000)
        wire.send([self._words("config.set", "jobs-history-count", 2000)])

    def lifecycle(self, wire: Wire, _batch: int) -> Steps:
        """One by one, for its puts and completions know no batches."""
        jids = [token_hex(16) for _ in range(JOBS)]
        puts = [self._words("queue.put", WORKER, QUEUE, jid, KLASS, BODY, 0) for jid in jids]
        spent = {"put": send(wire, puts, 1)[0], "pop": 0.0, "complete": 0.0}
        for _ in range(JOBS // WAVE):
            cpu, replies = send(wire, [self._words("queue.pop", QUEUE, WORKER, 1) for _ in range(WAVE)], 1)
            spent["pop"] += cpu
            popped = [job["jid"] for reply in replies for job in json.loads(reply)]
            assert len(popped) == WAVE
            ends = [self._words("job.complete", jid, WORKER, QUEUE, BODY) for jid in popped]
            spent["complete"] += send(wire, ends, 1)[0]
        return {step: cpu / JOBS for step, cpu in spent.items()}

    def _words(self, command: str, *words: Word) -> bytes:
        return pack("EVALSHA", self.sha, 0, command, f"{next(self._now) / 1000:.3f}", *words)
