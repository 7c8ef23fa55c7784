"""The jobs that workers perform in benchmarks: they do nothing, or say when they were begun."""

import asyncio
import os
import signal
import time
from typing import Any

import holdfast

LOG = "HOLDFAST_BENCH_LOG"
"""The environment variable that names the file to which `stamp` writes."""

app = holdfast.Client("redis://never-connected")


@app.job(name="bench.nothing")
def nothing(text: str) -> None:
    """A plain function job."""


@app.job(name="bench.anothing")
async def anothing(text: str) -> None:
    """An async function job."""


@app.job(name="bench.stamp")
def stamp(sent: int) -> None:
    """Notes how many nanoseconds after `sent` it was begun."""
    note(os.environ[LOG], time.time_ns() - sent)


@app.job(name="bench.astamp")
async def astamp(sent: int) -> None:
    """The same on an event loop, where a plain function would be handed to a thread."""
    note(os.environ[LOG], time.time_ns() - sent)


@app.job(name="bench.nap")
def nap(seconds: float) -> None:
    """Sleeps."""
    time.sleep(seconds)


@app.job(name="bench.anap")
async def anap(seconds: float) -> None:
    """Sleeps on an event loop."""
    await asyncio.sleep(seconds)


@app.job(name="bench.crash")
def crash() -> None:
    """Notes when it was begun, and kills its process the first time."""
    note(os.environ[LOG], time.time_ns())
    if holdfast.current_job().attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)


@app.job(name="bench.hang")
def hang() -> None:
    """Notes when it was begun, and hangs the first time until it is killed."""
    note(os.environ[LOG], time.time_ns())
    if holdfast.current_job().attempt == 1:
        time.sleep(3600)


class Settling:
    """A class job that settles itself."""

    @staticmethod
    def process(job: Any) -> None:
        job.complete()


_files: dict[str, int] = {}


def note(path: str, nanoseconds: int) -> None:
    """Append one number to a file that several processes write to."""
    file = _files.get(path)
    if file is None:
        file = _files[path] = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, b"%d\n" % nanoseconds)
