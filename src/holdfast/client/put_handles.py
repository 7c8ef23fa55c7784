"""Handles of jobs that were put, which wait for their results."""

import functools
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import msgspec

from holdfast.client.descriptors import AnyClient
from holdfast.client.unserved import without_workers
from holdfast.code.outcomes import result_of
from holdfast.code.registry import Registered
from holdfast.code.signature import hints_of
from holdfast.code.steps import await_steps, run_steps
from holdfast.codecs import from_plain
from holdfast.commands.base import NotedJid
from holdfast.commands.jobs import Outcome
from holdfast.errors import CodecError, JobNotFound

if TYPE_CHECKING:
    from holdfast.client.handles import AsyncJob, Job

R_co = TypeVar("R_co", covariant=True)


class AnyHandle(Generic[R_co]):
    """The base of the sync and the async handle: the jid, the outcome once it is known, and how to decode the result.

    `returns` is the type of the result, or the function whose annotation names it. `keeps` is false when the
    store keeps no result; `is_put`: it is made by a put.
    """

    __slots__ = ("_is_put", "_jid", "_noted", "app", "ended", "keeps", "returns")

    def __init__(
        self, app: AnyClient, jid: str, returns: object, keeps: bool = True, is_put: bool = False
    ) -> None:
        self.app = app
        self.returns = returns
        self._noted = jid if isinstance(jid, NotedJid) else None
        self._jid = jid if self._noted is None else str(jid)
        self._is_put = is_put
        self.keeps = keeps
        self.ended: Outcome | None = None

    @property
    def jid(self) -> str:
        """The jid of the job. After a put in `batch` with a unique key that another job holds, that of this job from when the
        batch is sent."""
        return self._noted.standing if self._noted is not None and self._noted.standing else self._jid

    @property
    def is_new(self) -> bool | None:
        """Whether the put made the job; False: there was a job of this `jid`, or one that holds the unique key.

        The job of this `jid` was left as it is with `only_new=True` (the put did nothing), else moved into the queue and begins a new life: a worker that ran it loses it. Without `jid=` it
        is True. None where it is not known: of a handle that no put returned, and of a put with `jid=` or a unique key that is not sent yet
        (in `batch`) or is sent by its job (in `on_completion`). With `only_new=True` it may be False for the job of
        this very put, if its reply was lost and the put was sent again.
        """
        if self._noted is not None:
            return self._noted.is_new
        return True if self._is_put else None

    def learn(self, outcome: Outcome) -> Outcome:
        """Keep the outcome of a job that has ended, which cannot change any more. Returns it."""
        if outcome.status in ("done", "failed", "cancelled"):
            self.ended = outcome
        return outcome

    def read(self, outcome: Outcome, hint: str = "") -> R_co:
        """Return the result. Raises JobFailed, JobCancelled, JobNotFound or TimeoutError for other outcomes, CodecError."""
        result = outcome.result_of(self.jid, self.app.settings.flags, hint)
        if result is None and self.keeps:
            # A job that returned None left `null`.
            raise JobNotFound(f"job {self.jid} is complete, but its result is not kept", "HF_JOB_NOT_FOUND")
        value: R_co = _decoded(self.returns, result)
        return value

    def __repr__(self) -> str:
        name = f"{self.returns.name} " if isinstance(self.returns, Registered) else ""
        return f"<{type(self).__name__} {name}{self.jid}>"


class Handle(AnyHandle[R_co]):
    """A job that was put by a Client. Once the outcome is known, no more calls are sent."""

    __slots__ = ()

    def result(self, timeout: float | None = None) -> R_co:
        """Wait for the result of the function, for at most `timeout` seconds; None: for ever.

        The store publishes the end of the job; nothing is polled. Raises JobFailed with group, message and remote
        traceback, JobCancelled with who cancelled it and when, JobNotFound if the job or its result is not kept any
        more, TimeoutError. With `result_keep=0`, returns None. Core: verbs/await.lua.
        """
        outcome = self._wait(timeout)
        return self.read(outcome, run_steps(without_workers(self.app)) if outcome.status == "open" else "")

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the job has ended, whatever its outcome. Returns False after `timeout` seconds."""
        return self._wait(timeout).status != "open"

    @property
    def job(self) -> "Job":
        """The `Job` as it is now. Raises JobNotFound. Core: verbs/inspect.lua."""
        job: Job = self.app.job(self.jid)
        return job

    @property
    def state(self) -> str:
        """The state of the job now, as in `Job.state`; of a job that was deleted `complete` or `cancelled` while the store
        still knows its outcome, then `gone`. Core: verbs/inspect.lua, verbs/await.lua."""
        try:
            return self.job.state
        except JobNotFound:
            return _last_state(self._wait(0))

    @property
    def progress(self) -> float | None:
        """The progress that the job last reported, from 0 to 1; None: none. Raises JobNotFound. Core: verbs/inspect.lua."""
        return self.job.progress_fraction

    def cancel(self) -> bool:
        """Cancel the job; return whether it existed and was not complete. Raises DependencyRefused. Core: verbs/cancel.lua."""
        return bool(self.app.jobs.cancel(self.jid)[0])

    def _wait(self, timeout: float | None) -> Outcome:
        return self.ended or self.learn(self.app.wait_for(self.jid, timeout))


class AsyncHandle(AnyHandle[R_co]):
    """A job that was put by an AsyncClient. `await handle` is `await handle.result()`."""

    __slots__ = ()

    async def result(self, timeout: float | None = None) -> R_co:
        """Wait for the result of the function, for at most `timeout` seconds. Raises as `Handle.result` does."""
        outcome = await self._wait(timeout)
        return self.read(
            outcome, await await_steps(without_workers(self.app)) if outcome.status == "open" else ""
        )

    async def wait(self, timeout: float | None = None) -> bool:
        """Wait until the job has ended, whatever its outcome. Returns False after `timeout` seconds."""
        outcome = await self._wait(timeout)
        return outcome.status != "open"

    @property
    async def job(self) -> "AsyncJob":
        """The `AsyncJob` as it is now: `await handle.job`. Raises JobNotFound. Core: verbs/inspect.lua."""
        job: AsyncJob = await self.app.job(self.jid)
        return job

    @property
    async def state(self) -> str:
        """The state of the job now, as `Handle.state`: `await handle.state`."""
        try:
            return (await self.job).state
        except JobNotFound:
            return _last_state(await self._wait(0))

    @property
    async def progress(self) -> float | None:
        """The progress that the job last reported, as `Handle.progress`: `await handle.progress`."""
        return (await self.job).progress_fraction

    async def cancel(self) -> bool:
        """Cancel the job, as `Handle.cancel`."""
        return bool((await self.app.jobs.cancel(self.jid))[0])

    async def _wait(self, timeout: float | None) -> Outcome:
        return self.ended or self.learn(await self.app.wait_for(self.jid, timeout))

    def __await__(self) -> Generator[object, None, R_co]:
        return self.result().__await__()


def _last_state(outcome: Outcome) -> str:
    """The state of a job whose record is gone, from its outcome."""
    return "complete" if outcome.status == "done" else outcome.status


_NULL: Final = b"null"


def _decoded(returns: object, result: bytes | None) -> Any:
    if result is None or result == _NULL:  # what is skipped has no result of the type that it declares
        return None
    try:
        return decoder_of(returns)(result)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        name = returns.name if isinstance(returns, Registered) else "the job"
        raise CodecError(f"the result of {name} is not of the type that it declares: {error}") from error


@functools.lru_cache(maxsize=1024)
def decoder_of(returns: object) -> Callable[[bytes], Any]:
    """Return what decodes the result of a function, or of an annotation."""
    try:
        wanted = returns
        if isinstance(returns, Registered):
            wanted = result_of(hints_of(returns.function).get("return", Any))
        return msgspec.json.Decoder(wanted, dec_hook=from_plain).decode
    except Exception:
        # JSON cannot be decoded to the type of the annotation: return the plain JSON value.
        return msgspec.json.Decoder().decode
