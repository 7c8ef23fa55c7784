"""Something to be done in several steps, said once for code that waits and for code that awaits.

A generator yields what talks to the store. In blocking code that is an answer already; in async code it is awaited.
"""

from collections.abc import Awaitable, Generator
from inspect import isawaitable
from typing import Any, TypeVar

R = TypeVar("R")

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
    try:
        while True:
            try:
                answer = await step if isawaitable(step) else step
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as end:
        value: R = end.value
        return value
