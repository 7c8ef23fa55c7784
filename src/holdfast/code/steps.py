"""Something to be done in several steps, said once for code that waits and for code that awaits.

A generator yields what talks to the store. In blocking code that is an answer already; in async code it is awaited.
"""

from collections.abc import Generator
from inspect import isawaitable
from typing import Any, TypeVar

R = TypeVar("R")

Steps = Generator[Any, Any, R]


def run_steps(steps: Steps[R]) -> R:
    """Go through `steps` in blocking code; answers what they return."""
    try:
        answer = next(steps)
        while True:
            answer = steps.send(answer)
    except StopIteration as end:
        value: R = end.value
        return value


async def await_steps(steps: Steps[R]) -> R:
    """Go through `steps`, awaiting what can be awaited; what that raises is raised where it was yielded."""
    try:
        step = next(steps)
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
