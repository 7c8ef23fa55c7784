"""Questions about where jobs are, as whoever listens for their workers deals with them: one at a time, and none for long."""

import logging
from collections import deque
from collections.abc import Iterable, Mapping
from math import inf
from time import monotonic
from typing import Final

import msgspec

from holdfast.client.stacks import Answer
from holdfast.client.sync import Client
from holdfast.commands.workers import WorkerAnswer
from holdfast.errors import HoldfastError
from holdfast.work.observe.board import MOST_TEXT, Board
from holdfast.work.observe.stacks import Dumped
from holdfast.work.parent.news import Said

log = logging.getLogger("holdfast")

PATIENCE: Final = 1.0
"""Seconds that a process has to say where its job is, before what the fault handler wrote must do."""
LONGEST_WAIT: Final = 3.0  # seconds that it has if that does not say it
GLANCE: Final = 0.02  # seconds between two looks at whether it did
MOST_WAITING: Final = 16
LONGEST_NAME: Final = 200  # bytes of a name

STUCK: Final = (
    "the process is inside code that cannot be interrupted; this is where its threads were that perform jobs"
)


class Asking:
    """Asks processes, and answers. Its owner calls `attend` at `due()`."""

    def __init__(self, client: Client, board: Board) -> None:
        self._client = client
        self._board = board
        self._waiting: deque[Said] = deque()
        self._asked: Said | None = None
        self._pid = 0
        self._until = 0.0
        self._look_at = inf

    def hear(self, said: Iterable[Said]) -> None:
        """Take the questions among what was said; of too many the last are not heard."""
        for one in said:
            if one.event == "stack":
                self._take(one)

    def _take(self, question: Said) -> None:
        names = (question.question, question.jid)
        if len(self._waiting) < MOST_WAITING and all(
            0 < len(name.encode()) <= LONGEST_NAME for name in names
        ):
            self._waiting.append(question)
            self._look_at = min(self._look_at, monotonic())

    def due(self) -> float:
        """When to call `attend`, on the monotonic clock."""
        return self._look_at

    def attend(self, processes: Mapping[str, int]) -> None:
        """See whether there is an answer, or take up the next question. `processes`: which one each worker is."""
        now = monotonic()
        if now < self._look_at:
            return
        if self._asked is None and self._waiting:
            self._begin(self._waiting.popleft(), processes, now)
        elif self._asked is not None:
            answer = self._found(self._asked, now)
            if answer is not None:
                self._tell(self._asked, answer)
                self._asked = None
        self._look_at = now + GLANCE if self._asked is not None or self._waiting else inf

    def _begin(self, asked: Said, processes: Mapping[str, int], now: float) -> None:
        self._pid = processes.get(asked.worker, 0)
        if not self._pid:
            self._tell(asked, Answer(asked.worker, problem=f"{asked.worker} has no process just now"))
            return
        self._asked, self._until = asked, now + PATIENCE
        self._board.ask(asked.jid, self._pid)

    def _found(self, asked: Said, now: float) -> Answer | None:
        reply = self._board.reply()
        if reply is None and now < self._until:
            return None
        if reply is not None and reply.stack:
            return Answer(asked.worker, reply.pid, reply.stack)
        stacks = [] if reply is not None else Dumped(self._board.dump()).of_jobs()
        if stacks:
            return Answer(asked.worker, self._pid, "\n\n".join(stacks)[-MOST_TEXT:], STUCK)
        if reply is None and now < self._until + LONGEST_WAIT - PATIENCE:
            return None
        return Answer(asked.worker, self._pid, problem=f"process {self._pid} does not perform it just now")

    def _tell(self, asked: Said, answer: Answer) -> None:
        try:
            self._client.run(WorkerAnswer(asked.question, msgspec.json.encode(answer)))
        except HoldfastError as error:
            log.debug("nobody learns where job %s is: %s", asked.jid, error)
