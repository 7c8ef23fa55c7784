"""What a program wants to be told of when a job is settled through its handle: before it is tried, and after it went well."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from holdfast.client.descriptors import AsyncHandle, CommandMethod
from holdfast.commands import Command
from holdfast.settings import check_callable

P = ParamSpec("P")
R = TypeVar("R")

Callback = Callable[[Any], object]


class Hook:
    """A list of callbacks worn as a method that adds one, and answers it: `@job.before_complete` works too."""

    def __init__(self, doc: str) -> None:
        self.name = ""
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, job: None, owner: object) -> "Hook": ...
    @overload
    def __get__(self, job: object, owner: object = None) -> Callable[[Callback], Callback]: ...
    def __get__(self, job: Any, owner: object = None) -> Any:
        if job is None:
            return self

        def add(callback: Callback) -> Callback:
            job._callbacks.setdefault(self.name, []).append(check_callable(self.name, callback))
            return callback

        return add


class Callbacks:
    """Callbacks of one job handle; each gets the job.

    Those before run in the order in which they were added, and what they raise keeps the call from being made. Those
    after run in reverse order, if the store did as it was told. On an async handle they may be `async def`. They hear of
    calls on this object; a worker settles a class job that has any through it too, and completes a function job so to which
    its middleware added some.
    """

    _callbacks: dict[str, list[Callback]]

    before_complete = Hook("Call this before the job is completed or moves to its next queue.")
    after_complete = Hook("Call this when it was.")
    before_fail = Hook("Call this before the job is failed.")
    after_fail = Hook("Call this when it was.")
    before_retry = Hook("Call this before the job is given back for another try.")
    after_retry = Hook("Call this when it was, also when it failed because no retries were left.")
    before_cancel = Hook("Call this before the job is cancelled.")
    after_cancel = Hook("Call this when it was.")
    before_requeue = Hook("Call this before the job is moved or requeued.")
    after_requeue = Hook("Call this when it was.")


def settling(event: str) -> Callable[[Callable[Concatenate[Any, P], Command[R]]], CommandMethod[P, R]]:
    """A verb of a job that has callbacks: `@settling("complete")` in place of `@Verb`."""
    return lambda make: _Settling(event, make)


class _Settling(CommandMethod[P, R]):
    def __init__(self, event: str, make: Callable[Concatenate[Any, P], Command[R]]) -> None:
        self.event = event
        super().__init__(make)

    def written(self) -> Callable[..., Any]:
        plain, event = super().written(), self.event

        def call(job: Any, /, *args: Any, **kwargs: Any) -> Any:
            if not job._callbacks:
                return plain(job, *args, **kwargs)
            if isinstance(job, AsyncHandle):
                return asyncio.ensure_future(_awaited(job, event, lambda: plain(job, *args, **kwargs)))
            return _called(job, event, lambda: plain(job, *args, **kwargs))

        return call


def _of(job: Any, name: str) -> list[Callback]:
    return list(job._callbacks.get(name, ()))


def _called(job: Any, event: str, act: Callable[[], Any]) -> Any:
    for callback in _of(job, "before_" + event):
        callback(job)
    answer = act()
    for callback in reversed(_of(job, "after_" + event)):
        callback(job)
    return answer


async def _awaited(job: Any, event: str, act: Callable[[], Awaitable[Any]]) -> Any:
    for callback in _of(job, "before_" + event):
        await _finished(callback(job))
    answer = await act()
    for callback in reversed(_of(job, "after_" + event)):
        await _finished(callback(job))
    return answer


async def _finished(answer: object) -> None:
    if inspect.isawaitable(answer):
        await answer
