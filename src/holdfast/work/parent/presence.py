"""What a worker reports of itself: at its start, every ten seconds, and that it is gone at its end.

The reply to each report is whether the worker is to be quiet, which is to take no more jobs.
"""

import json
import logging
import os
import socket
from collections.abc import Iterable, Sequence
from time import monotonic, time
from typing import Final, NamedTuple

from holdfast.client.sync import Client
from holdfast.commands.workers import WorkerForget, WorkerSeen
from holdfast.core.library import VERSION
from holdfast.errors import HoldfastError, TransportError
from holdfast.settings import MAX_BATCH
from holdfast.work.settings import WorkerSettings

log = logging.getLogger("holdfast")

PERIOD: Final = 10.0
AGAIN: Final = 2.0  # seconds to the next, when the store did not answer
SOON: Final = 1.0  # seconds between two signs of life, however often one is asked for
MOST_QUEUES: Final = 4096  # bytes of JSON


def log_quiet(worker: str, quiet: bool) -> None:
    """Log that an operator has made a worker quiet, or has resumed it."""
    if quiet:
        log.info("worker %s is quiet: it takes no more jobs until it is resumed", worker)
    else:
        log.info("worker %s was resumed: it takes jobs again", worker)


class Sign(NamedTuple):
    """One worker as it is just now: its name, its process, how many jobs it performs, and for how long it is stuck."""

    name: str
    pid: int
    busy: int
    stuck: float = 0.0


class Presence:
    """Says for one or more workers that they live. Whoever owns it asks `due` and calls `say`.

    `is_heard`: the store has answered the last time.
    """

    def __init__(self, client: Client, settings: WorkerSettings) -> None:
        self._client = client
        self._facts = _facts_of(settings)
        self._begun: dict[int, int] = {}
        self._names: set[str] = set()
        self._said = 0.0
        self._due = 0.0
        self.is_heard = False

    def due(self) -> float:
        """When to call `say` next, on the monotonic clock."""
        return self._due

    def hurry(self) -> None:
        """Something was said to one of the workers: ask soon."""
        self._due = min(self._due, self._said + SOON)

    def say(self, signs: Iterable[Sign]) -> dict[str, bool]:
        """Say that these live. Answers which of them are to be quiet; nothing when the store did not answer."""
        said, now = list(signs), monotonic()
        self._said, self._due = now, now + (PERIOD if said else SOON)
        if not said:
            return {}
        self._begun = {sign.pid: self._begun.get(sign.pid, round(time() * 1000)) for sign in said}
        answers = self._answers([WorkerSeen(sign.name, self._of(sign)) for sign in said])
        self._names.update(sign.name for sign in said)
        self.is_heard = not any(isinstance(answer, TransportError) for answer in answers)
        if not self.is_heard:
            self._due = now + AGAIN
        quiet: dict[str, bool] = {}
        for sign, answer in zip(said, answers, strict=True):
            if isinstance(answer, HoldfastError):
                log.debug("the store does not know that %s lives: %s", sign.name, answer)
            else:
                quiet[sign.name] = answer
        return quiet

    def _answers(self, commands: list[WorkerSeen]) -> list[bool | HoldfastError]:
        try:
            return self._client.run_all(commands)
        except HoldfastError as error:
            return [error] * len(commands)

    def end(self) -> None:
        """All of them are gone: the list of workers need not show them until they are too old. Closes the client."""
        names = sorted(self._names)
        try:
            for at in range(0, len(names), MAX_BATCH):
                self._client.run(WorkerForget(names[at : at + MAX_BATCH]))
        except HoldfastError as error:
            log.debug("the store still lists workers that have ended: %s", error)
        finally:
            self._client.close()

    def _of(self, sign: Sign) -> dict[str, str]:
        started = self._begun[sign.pid]
        facts = {**self._facts, "pid": str(sign.pid), "busy": str(sign.busy), "started": str(started)}
        return {**facts, "stuck": f"{sign.stuck:.0f}"} if sign.stuck else facts


def _facts_of(settings: WorkerSettings) -> dict[str, str]:
    return {
        "host": socket.gethostname(),
        "parent": str(os.getpid()),
        "version": VERSION,
        "pool": settings.pool,
        "queues": _queues_text(settings.queues),
        "slots": str(settings.concurrency),
    }


def _queues_text(queues: Sequence[str]) -> str:
    """The queues as a JSON list, as many as a fact has room for."""
    most = len(queues)
    while len(text := json.dumps(queues[:most], ensure_ascii=False).encode()) > MOST_QUEUES:
        most = most * MOST_QUEUES // len(text)
    return text.decode()
