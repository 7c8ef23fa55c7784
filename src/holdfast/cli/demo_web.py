"""The web UI beside the demo: its process, and jobs that give every page something to show."""

import importlib.util
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from holdfast import Client
from holdfast.cli import demo_jobs
from holdfast.errors import HoldfastError

QUEUE: Final = "samples"
"""The queue of the jobs that are for looking only."""
THROTTLE: Final = "demo-printer"
_PATIENCE: Final = 30.0


def is_installed() -> bool:
    """Return whether the packages of the web UI are there."""
    return all(importlib.util.find_spec(name) for name in ("starlette", "jinja2", "uvicorn"))


class DemoWeb:
    """`holdfast web` for the namespace of a run, in a directory of its own; it ends with the block."""

    def __init__(self, url: str, namespace: str, directory: Path) -> None:
        self._directory = directory / "web"
        words = [sys.executable, "-m", "holdfast.cli.main", "web", "--foreground", "--in-background"]
        words += [
            "--url",
            url,
            "--namespace",
            namespace,
            "--app-dir",
            str(self._directory),
            "--environment",
            "demo",
        ]
        directory.mkdir(exist_ok=True)
        with (directory / "web.log").open("wb") as log:
            self._process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        self._process.kill()
        self._process.wait()

    def link(self) -> str:
        """Wait until the server listens, and return a link that works once. Raises HoldfastError if it does not start."""
        from holdfast.web.serving import Folder

        folder = Folder(self._directory)
        until = time.monotonic() + _PATIENCE
        while (found := folder.running()) is None:
            if self._process.poll() is not None or time.monotonic() > until:
                raise HoldfastError("the web UI did not start")
            time.sleep(0.05)
        return f"{found.url}login?token={folder.sessions(found.server).link_token()}"


def fill(client: Client, run: str) -> None:
    """Put what pages show: a failure group, a recurring job, a full throttle, a tracked job, dependencies, messages."""
    name = demo_jobs.__name__
    client.throttles[THROTTLE].set_maximum(1)
    queue = client.queues[QUEUE]
    queue.put_many([(f"{name}.picky", _call(number)) for number in range(24)])
    held: list[tuple[str, dict[str, Any]]] = [(f"{name}.hold", _call(run))] * 3
    queue.put_many(held, throttles=[THROTTLE])
    first = queue.put(f"{name}.hold", _call(run), throttles=[THROTTLE], tags=["demo", "first"])
    for number in range(2):
        middle = queue.put(f"{name}.picky", _call(number), depends=[first], tags=["demo"])
        queue.put(f"{name}.nothing", _call(), depends=[middle])
    client.job(first).track()
    queue.recur(f"{name}.nothing", _call(), 60, jid="every-minute")
    for number, text in enumerate(("Ciao", "Do you need a hand?", "See you tomorrow")):
        client.topics["greetings"].put(f"greeting-{number}", text, delay=60.0 * (number + 1))


def _call(*args: object) -> dict[str, Any]:
    return {"args": list(args), "kwargs": {}}
