"""Runs in a process of its own, with a released package on its path: stories about its client, or its forking worker.

    visitor.py stories URL SCRIPT        prints {story: how it went wrong, or ""}
    visitor.py worker URL SCRIPT QUEUE…  works until it is told to stop
    visitor.py put|look URL SCRIPT       puts jobs for that worker; prints what became of them

SCRIPT is a file that the package is given in place of its own script, or `own`.
"""

import importlib
import json
import pkgutil
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


def give_script(script: str) -> None:
    """Let the package find our text where it looks for its own."""
    if script == "own":
        return
    text, usual = Path(script).read_bytes(), pkgutil.get_data
    pkgutil.get_data = lambda package, name: text if name.endswith(".lua") else usual(package, name)


class World:
    """What a story gets: a client on an empty database, and a clock to move."""

    def __init__(self, url: str, own: bool) -> None:
        import reqless

        self.package: Any = reqless
        self.url, self.own = url, own
        self.client: Any = reqless.Client(url, hostname="box")
        self.store: Any = getattr(self.client, "database", None) or self.client.redis
        self.store.flushdb()

    @property
    def is_older(self) -> bool:
        """Whether this client speaks the protocol before."""
        return not hasattr(self.client, "queue_patterns")

    def other(self, name: str = "elsewhere") -> Any:
        return self.package.Client(self.url, hostname=name)

    def channel(self, what: str) -> str:
        """Where an event, or what a worker must know (`w:<name>`), is told."""
        return "ql:" + what

    def pass_time(self, seconds: float) -> None:
        """Clients bring the time, so it is theirs to move."""
        global ahead
        ahead += seconds

    def refused(self, call: Callable[[], object]) -> str:
        try:
            call()
        except self.package.exceptions.ReqlessError as error:
            return str(error)
        raise AssertionError("this was to be refused")


ahead, _clock = 0.0, time.time


def stories() -> Iterator[tuple[str, Callable[[World], None]]]:
    for module in ("stories_of_jobs", "stories_of_queues", "stories_of_people"):
        for name, found in vars(importlib.import_module(module)).items():
            if name.startswith("story_"):
                yield name.removeprefix("story_"), found


def tell(url: str, script: str) -> None:
    global ahead
    time.time = lambda: _clock() + ahead
    told: dict[str, str] = {}
    for name, story in stories():
        ahead = 0.0
        try:
            story(World(url, script == "own"))
            told[name] = ""
        except Exception:
            told[name] = traceback.format_exc()
    print(json.dumps(told))


def client_of(url: str) -> Any:
    import reqless

    return reqless.Client(url, hostname="forker")


def work(url: str, queues: list[str]) -> None:
    client = client_of(url)
    module = "reqless.workers" if hasattr(client, "queue_patterns") else "reqless.workers.forking"
    worker: Any = importlib.import_module(module).ForkingWorker(queues, client, interval=0.05, workers=2)
    worker.run()


def put(url: str) -> None:
    client = client_of(url)
    for n in range(4):
        client.queues["mail"].put("real_jobs.Sum", json.dumps({"numbers": [n, n + 1]}), jid=f"sum-{n}")
    client.queues["mail"].put("real_jobs.Stumbles", "{}", jid="stumbles")
    client.queues["print"].put("real_jobs.Falls", "{}", jid="falls")


def look(url: str) -> None:
    client = client_of(url)
    print("complete:", *sorted(client.jobs.complete()))
    print("failed:", *(f"{group} {count}" for group, count in client.jobs.failed().items()))
    print("sum-3:", json.loads(client.jobs["sum-3"].data)["sum"])


if __name__ == "__main__":
    what, url, script, *queues = sys.argv[1:]
    give_script(script)
    if what == "worker":
        work(url, queues)
    elif what == "stories":
        tell(url, script)
    else:
        (put if what == "put" else look)(url)
