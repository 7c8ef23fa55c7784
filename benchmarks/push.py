"""How many due messages of a topic does `holdfast topics push` deliver to a fast receiver? The real command, signed deliveries; from
the first to the last that arrives; CPU of the command."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.report import Row, Say, at_least, shown
from holdfast import Client
from holdfast.testing.store import ScratchStore

RECEIVER = """
import asyncio, json, sys, time
OK = b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok"
count, times, over = int(sys.argv[1]), [], asyncio.Event()

class Hook(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.read = transport, b""

    def data_received(self, data):
        self.read += data
        head, blank, rest = self.read.partition(b"\\r\\n\\r\\n")
        while blank:
            length = int(head.lower().partition(b"content-length:")[2].partition(b"\\r\\n")[0])
            if len(rest) < length:
                return
            self.transport.write(OK)
            times.append(time.perf_counter())
            if len(times) == count:
                over.set()
            self.read = rest[length:]
            head, blank, rest = self.read.partition(b"\\r\\n\\r\\n")

async def main():
    server = await asyncio.get_running_loop().create_server(Hook, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.wait_for(over.wait(), 600)
    print(json.dumps(times[-1] - times[0]), flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""
"""A receiver that does as little as it can."""


class Run(NamedTuple):
    rate: float
    cpu: float


def run(quick: bool, say: Say) -> list[Row]:
    count, rounds = (1000, 1) if quick else (10_000, 5)
    rows: list[Row] = []
    for concurrency in (50, 1):
        runs = [_pushed(count, concurrency, say) for _ in range(rounds)]
        rate, cpu = (statistics.median(column) for column in zip(*runs, strict=True))
        what = f"{count:,} due messages, --concurrency {concurrency}"
        beside = f"CPU of push {cpu:.0f} µs a message; best run {max(one.rate for one in runs):,.0f}"
        if concurrency > 1:
            rows.append(at_least(what, rate, 1000, "messages/s", beside))
        else:
            rows.append(shown(what, rate, "messages/s", beside))
    return rows


def _pushed(count: int, concurrency: int, say: Say) -> Run:
    say(f"{count} messages, {concurrency} at once")
    with ScratchStore() as store, tempfile.TemporaryDirectory() as folder, _receiver(count) as receiver:
        with Client(store.url) as client:
            client.topics["t"].put_many([(f"message-{n}", '{"user": 7}') for n in range(count)])
        assert receiver.stdout is not None
        port = receiver.stdout.readline().strip()
        secret = Path(folder) / "secret"
        secret.write_text("0123456789abcdef")
        secret.chmod(0o600)
        words = ["--topic", "t", "--webhook", f"http://127.0.0.1:{port}/hook", "--secret-file", str(secret)]
        words += ["--concurrency", str(concurrency), "--url", store.url]
        pusher = subprocess.Popen(
            [sys.executable, "-m", "holdfast.cli.main", "topics", "push", *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            seconds = json.loads(receiver.stdout.readline())
            return Run((count - 1) / seconds, _cpu(pusher.pid) / count * 1e6)
        finally:
            pusher.terminate()
            pusher.wait(60)


def _cpu(pid: int) -> float:
    """Seconds of CPU that a process has used, its start included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _receiver(count: int) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-c", RECEIVER, str(count)], stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
