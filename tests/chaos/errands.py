"""Jobs of the chaos tests, as a worker imports them."""

import asyncio
import logging
import os
import tempfile
import time
from pathlib import Path
from threading import Event
from typing import Any

from diary import Diary

import holdfast
from holdfast.worker.performing.outcome import Failed

HERE = Path(os.environ.get("ERRANDS_HERE") or tempfile.gettempdir())
LITTERS = bool(os.environ.get("ERRANDS_LITTER"))
app = holdfast.Client(os.environ.get("HOLDFAST_URL"))


@app.job(queue="q", retries=2, backoff=0, max_losses=254)
def strain(number: int) -> int:
    """One in twenty ends its process at the first run, one in twenty fails for good, until a file says otherwise."""
    job = holdfast.current_job()
    if number % 20 == 7 and job.attempts == 1 and not job.losses:
        os._exit(1)
    if number % 20 == 13 and not (HERE / "mended").exists():
        raise ValueError("on purpose")
    return number


@app.job(queue="q", retries=1000, max_losses=254)
def gathered(numbers: holdfast.Results[int]) -> int:
    """Notes each run in a file."""
    with (HERE / "gathered").open("a") as out:
        out.write(f"{holdfast.current_job().jid}\n")
    return sum(numbers)


@app.job(queue="q", retries=1000, max_losses=254)
def reported(outcomes: holdfast.Results[holdfast.FlowOutcome[int]]) -> list[int]:
    """The same of outcomes: how many were well, and how many not."""
    with (HERE / "gathered").open("a") as out:
        out.write(f"{holdfast.current_job().jid}\n")
    well = sum(one.ok for one in outcomes)
    return [well, len(outcomes) - well]


@app.job(queue="q")
def nothing() -> None:
    """The shortest job."""


@app.job(queue="q")
async def anothing() -> None:
    """The shortest job of an event loop."""


@app.job(queue="q")
async def afail_aloud() -> None:
    """Logs a line, which is kept with its failure."""
    logging.getLogger("errands").error("it does not work")
    raise OSError("on purpose")


@app.job(queue="q")
def meet(name: str, others: int) -> None:
    """Ends when `others` jobs of this name run at once."""
    pause = Event()
    while not all_met(name, others):
        pause.wait(0.002)


@app.job(queue="q")
async def ameet(name: str, others: int) -> None:
    """The same on an event loop."""
    while not all_met(name, others):
        await asyncio.sleep(0.002)


def all_met(name: str, others: int) -> bool:
    place = HERE / f"meeting-{name}"
    place.mkdir(exist_ok=True)
    (place / holdfast.current_job().jid).touch()
    return len(list(place.iterdir())) >= others


diary = Diary(HERE)


@app.job(queue="q", retries=200, backoff=0.02)
def toil(number: int, seconds: float) -> object:
    """Works for a moment. Every 17th fails at its first try, every 23rd fails for good."""
    job = begin()
    try:
        Event().wait(seconds)
    finally:  # also when it is interrupted: it is not under way any more
        diary.note("end", jid=job.jid, token=job.token)
    return outcome_of(job, number)


@app.job(queue="q", retries=200, backoff=0.02)
async def atoil(number: int, seconds: float) -> object:
    """The same on an event loop."""
    job = begin()
    try:
        await asyncio.sleep(seconds)
    finally:
        diary.note("end", jid=job.jid, token=job.token)
    return outcome_of(job, number)


@app.job(queue="q")
def unwind_slowly(seconds: float) -> None:
    """Once it is to end, it takes so many seconds."""
    diary.note("begin", jid=holdfast.current_job().jid)
    try:
        Event().wait(60)
    finally:
        diary.note("unwinds")
        time.sleep(seconds)


@app.job(queue="q")
async def aunwind_slowly(seconds: float) -> None:
    """The same on an event loop."""
    diary.note("begin", jid=holdfast.current_job().jid)
    try:
        await asyncio.sleep(60)
    finally:
        diary.note("unwinds")
        await asyncio.sleep(seconds)


def begin() -> Any:
    job = holdfast.current_job()
    diary.note("begin", jid=job.jid, token=job.token, worker=job.worker_name)
    if LITTERS:
        Path(str(job.sandbox), job.jid).touch()
    return job


def outcome_of(job: Any, number: int) -> Any:
    if number % 23 == 0:
        return Failed("on-purpose", "every 23rd")
    if number % 17 == 0 and job.attempts == 1:
        raise OSError("the first try of every 17th")
    return None


def wait_for(gate: str) -> None:
    diary.note("linger", gate=gate)
    pause = Event()
    while not (HERE / gate).exists():
        pause.wait(0.005)


@app.job(queue="q")
def linger(gate: str) -> None:
    """Waits for a file of that name."""
    wait_for(gate)


@app.job(queue="q")
async def alinger(gate: str) -> None:
    """The same on an event loop."""
    diary.note("linger", gate=gate)
    while not (HERE / gate).exists():
        await asyncio.sleep(0.005)


@app.job(queue="q")
async def hog(gate: str) -> None:
    """The same, and lets nothing else happen on an event loop."""
    wait_for(gate)


@app.job(queue="q")
def split(gate: str) -> None:
    """Forks; both processes use the client, one until a file of that name is there, while the other ends the job."""
    waiting = [app.queues["q"].counts["waiting"]]
    if os.fork() == 0:
        os.setsid()  # or it would end with its job in the pool fork
        waiting.append(app.queues["q"].counts["waiting"])
        wait_for(gate)
        waiting.append(app.queues["q"].counts["waiting"])
        diary.note("split", waiting=waiting)
        os._exit(0)
    waiting.append(app.queues["q"].counts["waiting"])


@app.job(queue="q", retries=1000, backoff=0.05, max_losses=254)
def count_on(number: int) -> int:
    """A member of a flow: slow enough to be killed, and now and then it fails, or ends its process."""
    time.sleep(0.005)
    dice = os.urandom(1)[0]
    if dice < 8:
        raise ValueError("on purpose")
    if dice < 12:
        os._exit(3)
    return number + 1


@app.job(queue="q", retries=1000, backoff=0.05, max_losses=254)
def sum_up(numbers: list[int]) -> int:
    """What follows a group; it notes that it ran."""
    with (HERE / "sums").open("a") as notes:
        notes.write(f"{holdfast.current_job().jid}\n")
    return sum(numbers)
