"""Ask the worker of a running job for its stack: a request on the channel of the worker, a reply on a channel of its own."""

import asyncio
import os
from collections.abc import Sequence
from contextlib import closing
from time import monotonic
from typing import Any, Final

import msgspec

from holdfast.client.descriptors import AnyClient
from holdfast.commands.jobs import JobGet
from holdfast.commands.workers import WorkerAsk
from holdfast.errors import HoldfastError, JobNotFound, WrongState
from holdfast.models import JobFacts
from holdfast.settings import check_name, check_seconds
from holdfast.wire.plans import Runner

STACK_TIMEOUT_S: Final = 5.0
AGAIN: Final = 0.2
"""Seconds until a request that no worker has received is sent again: one that has just begun may not listen yet."""
LONGEST: Final = 3600.0
UNDER_WAY: Final = ("running", "stalled")


class LiveStack(msgspec.Struct, frozen=True):
    """The stack of a running job at one moment, as text, innermost frame last, with its `worker` and `pid`.

    `note` explains what is special, for example that other jobs of the process are shown too.
    """

    jid: str
    worker: str
    pid: int
    stack: str
    note: str = ""

    def __str__(self) -> str:
        return self.stack


class StackReply(msgspec.Struct):
    """The reply of a worker: a stack, or the reason why there is none."""

    worker: str = ""
    pid: int = 0
    stack: str = ""
    note: str = ""
    problem: str = ""


class _Request:
    """One request about one job, without the waiting."""

    def __init__(self, client: AnyClient, jid: str, timeout: float) -> None:
        self.jid = check_name("jid", jid)
        self._until = check_seconds("timeout", timeout, 0.001, LONGEST) + monotonic()
        self._name = os.urandom(16).hex()
        self._timeout = timeout
        self._worker = ""
        self.receivers = 0
        self.channel: str = client.shard.answer_channel(self._name)

    def of(self, found: Sequence[JobFacts | None]) -> WorkerAsk:
        """Return the request to the worker that holds the job. Raises JobNotFound, WrongState."""
        [facts] = found
        if facts is None:
            raise JobNotFound(f"job {self.jid} does not exist", "HF_JOB_NOT_FOUND")
        if facts.state not in UNDER_WAY:
            raise WrongState(f"job {self.jid} is {facts.state}, not running", "HF_WRONG_STATE")
        self._worker = facts.worker
        return WorkerAsk(facts.worker, self.jid, self._name)

    def left(self) -> float:
        """Return the seconds to wait for a reply, before the request is sent again if no worker has received it.

        Raises TimeoutError when the time is over.
        """
        left = self._until - monotonic()
        if left > 0:
            return left if self.receivers else min(left, AGAIN)
        why = "" if self.receivers else ": no worker of that name is listening; was the job popped by hand?"
        raise TimeoutError(
            f"worker {self._worker} did not report the stack of job {self.jid} within {self._timeout:g} s{why}"
        )

    def read(self, message: tuple[str, bytes]) -> LiveStack:
        """Read the reply. Raises WrongState when the worker does not perform the job (any more)."""
        try:
            reply = msgspec.json.decode(message[1], type=StackReply)
        except msgspec.MsgspecError as error:
            raise HoldfastError(f"worker {self._worker} sent a reply that cannot be read: {error}") from error
        if reply.problem:
            raise WrongState(f"job {self.jid}: {reply.problem}", "HF_WRONG_STATE")
        return LiveStack(self.jid, reply.worker, reply.pid, reply.stack, reply.note)


def ask_worker(client: AnyClient, jid: str, timeout: float) -> Any:
    """Ask where a job is, and wait for the reply; with an async client this returns an awaitable."""
    ask = _ask if isinstance(client.runner, Runner) else _ask_async
    return ask(client, jid, timeout)


def _ask(client: AnyClient, jid: str, timeout: float) -> LiveStack:
    request = _Request(client, jid, timeout)
    with closing(client.link.listener()) as listener:
        listener.subscribe(request.channel)
        while True:
            if not request.receivers:
                request.receivers = client.run(request.of(client.run(JobGet((request.jid,)))))
            message = listener.receive(request.left())
            if message is not None:
                return request.read(message)


async def _ask_async(client: AnyClient, jid: str, timeout: float) -> LiveStack:
    request = _Request(client, jid, timeout)
    listener = client.link.listener()
    try:
        await listener.subscribe(request.channel)
        while True:
            if not request.receivers:
                request.receivers = await client.run(request.of(await client.run(JobGet((request.jid,)))))
            message = await listener.receive(request.left())
            if message is not None:
                return request.read(message)
            await asyncio.sleep(0)
    finally:
        await listener.close()
