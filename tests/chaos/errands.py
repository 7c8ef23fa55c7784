"""Jobs of the chaos tests, as a worker imports them."""

import asyncio
import os
import tempfile
from pathlib import Path
from threading import Event

import holdfast

HERE = Path(os.environ.get("ERRANDS_HERE") or tempfile.gettempdir())
app = holdfast.Client(os.environ.get("HOLDFAST_URL"))


@app.job(queue="q")
def nothing() -> None:
    """The shortest job."""


@app.job(queue="q")
async def anothing() -> None:
    """The shortest job of an event loop."""


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
