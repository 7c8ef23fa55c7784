"""The jobs that workers perform in benchmarks: they do nothing, or say when they were begun."""

import os
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
