"""Something to be done in several steps, said once for code that waits and for code that awaits.

A generator yields what talks to the store. In blocking code that is an answer already; in async code it is awaited.
"""

from collections.abc import Awaitable, Callable, Generator
from inspect import isawaitable
from typing import Any, TypeVar

R = TypeVar("R")
S = TypeVar("S")

Steps = Generator[Any, Any, R]


def run_steps(steps: Steps[R]) -> R:
    """Go through `steps` in blocking code; answers what they return."""
    return _run(steps, None)


async def await_steps(steps: Steps[R]) -> R:
    """Go through `steps`, awaiting what can be awaited; what that raises is raised where it was yielded."""
    try:
        step = next(steps)
    except StopIteration as end:
        value: R = end.value
        return value
    return await _await(steps, step)


def begin_steps(steps: Steps[R]) -> R | Awaitable[R]:
    """Go through `steps` where only they know the colour: answers what they return, or what is awaited for that."""
    try:
        step = next(steps)
    except StopIteration as end:
        value: R = end.value
        return value
    return _await(steps, step) if isawaitable(step) else _run(steps, step)


def _run(steps: Steps[R], answer: Any) -> R:
    try:
        while True:
            answer = steps.send(answer)
    except StopIteration as end:
        value: R = end.value
        return value


async def _await(steps: Steps[R], step: Any) -> R:
    return await _go_on(steps, step, _waited)


async def _waited(step: Any) -> Any:
    return await step if isawaitable(step) else step


def drive(flow: Generator[S, Any, R], answer: Callable[[S], Any]) -> R:
    """Go through `flow`, whose steps are needs: each goes to `answer`, and what that raises is raised where it was yielded."""
    try:
        step = next(flow)
        while True:
            try:
                answered = answer(step)
            except BaseException as error:
                step = flow.throw(error)
            else:
                step = flow.send(answered)
    except StopIteration as end:
        value: R = end.value
        return value


async def drive_async(flow: Generator[S, Any, R], answer: Callable[[S], Awaitable[Any]]) -> R:
    """The same, where answers are awaited."""
    try:
        step = next(flow)
    except StopIteration as end:
        value: R = end.value
        return value
    return await _go_on(flow, step, answer)


async def _go_on(flow: Generator[S, Any, R], step: S, answer: Callable[[S], Awaitable[Any]]) -> R:
    try:
        while True:
            try:
                answered = await answer(step)
            except BaseException as error:
                step = flow.throw(error)
            else:
                step = flow.send(answered)
    except StopIteration as end:
        value: R = end.value
        return value
