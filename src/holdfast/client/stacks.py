"""Asking where a running job is just now: a question on the channel of its worker, and the answer on one of its own."""

import asyncio
import os
from collections.abc import Sequence
from contextlib import closing
from time import monotonic
from typing import Any, Final

import msgspec

from holdfast.commands.jobs import JobGet
from holdfast.commands.workers import WorkerAsk
from holdfast.errors import HoldfastError, JobNotFound, WrongState
from holdfast.models import JobFacts
from holdfast.settings import check_name, check_seconds

PATIENCE: Final = 5.0
LONGEST: Final = 3600.0
UNDER_WAY: Final = ("running", "stalled")


class LiveStack(msgspec.Struct, frozen=True):
    """Where a running job was at one moment: under which `worker` and `pid`, and the `stack` as text, innermost last.

    `note` says what of it is not as usual, for example that other jobs of the process are shown too.
    """

    jid: str
    worker: str
    pid: int
    stack: str
    note: str = ""

    def __str__(self) -> str:
        return self.stack


class Answer(msgspec.Struct):
    """What a worker answers: a stack, or why there is none."""

    worker: str = ""
    pid: int = 0
    stack: str = ""
    note: str = ""
    problem: str = ""


class _Question:
    """One question about one job, without the waiting: which words are said, and what an answer means."""

    def __init__(self, client: Any, jid: str, timeout: float) -> None:
        self.jid = check_name("jid", jid)
        self._until = check_seconds("timeout", timeout, 0.001, LONGEST) + monotonic()
        self._name = os.urandom(16).hex()
        self._timeout = timeout
        self._worker = ""
        self._heard_by = 0
        self.channel: str = client.shard.answer_channel(self._name)

    def of(self, found: Sequence[JobFacts | None]) -> WorkerAsk:
        """The question, to the worker that holds the job. Raises JobNotFound, WrongState."""
        [facts] = found
        if facts is None:
            raise JobNotFound(f"job {self.jid} does not exist", "HF_JOB_NOT_FOUND")
        if facts.state not in UNDER_WAY:
            raise WrongState(
                f"job {self.jid} is {facts.state}: nobody performs it just now", "HF_WRONG_STATE"
            )
        self._worker = facts.worker
        return WorkerAsk(facts.worker, self.jid, self._name)

    def was_heard_by(self, count: int) -> None:
        self._heard_by = count

    def left(self) -> float:
        """How many seconds to wait. Raises TimeoutError when there are none."""
        left = self._until - monotonic()
        if left > 0:
            return left
        why = "" if self._heard_by else ": nobody listens under that name; was it taken by hand?"
        raise TimeoutError(
            f"worker {self._worker} did not report within {self._timeout:g} s where job {self.jid} is{why}"
        )

    def answer(self, message: tuple[str, bytes]) -> LiveStack:
        """Read the answer. Raises WrongState when the worker does not perform the job (any more)."""
        try:
            said = msgspec.json.decode(message[1], type=Answer)
        except msgspec.MsgspecError as error:
            raise HoldfastError(f"worker {self._worker} answered nonsense: {error}") from error
        if said.problem:
            raise WrongState(f"job {self.jid}: {said.problem}", "HF_WRONG_STATE")
        return LiveStack(self.jid, said.worker, said.pid, said.stack, said.note)


def ask(client: Any, jid: str, timeout: float) -> LiveStack:
    """Ask where a job is, and wait for the answer."""
    question = _Question(client, jid, timeout)
    with closing(client.link.listener()) as listener:
        listener.subscribe(question.channel)
        question.was_heard_by(client.run(question.of(client.run(JobGet((question.jid,))))))
        while True:
            message = listener.receive(question.left())
            if message is not None:
                return question.answer(message)


async def ask_async(client: Any, jid: str, timeout: float) -> LiveStack:
    """The same for an async client."""
    question = _Question(client, jid, timeout)
    listener = client.link.listener()
    try:
        await listener.subscribe(question.channel)
        question.was_heard_by(await client.run(question.of(await client.run(JobGet((question.jid,))))))
        while True:
            left = question.left()
            message = await listener.receive(left)
            if message is not None:
                return question.answer(message)
            await asyncio.sleep(0)
    finally:
        await listener.close()
