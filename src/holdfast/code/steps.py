"""Drivers for generators that are written once for blocking and for async code.

A generator yields the results of calls to the store: in blocking code the result itself, in async code an awaitable.
"""

from collections.abc import Awaitable, Callable, Coroutine, Generator
from inspect import isawaitable
from typing import Any, TypeVar

A = TypeVar("A")
R = TypeVar("R")
S = TypeVar("S")

Steps = Generator[object, Any, R]
Coro = Coroutine[Any, Any, R]
"""What an `async def` returns."""


def run_steps(steps: Steps[R]) -> R:
    """Run `steps` in blocking code. Returns their result."""
    return _run(steps, None)


async def await_steps(steps: Steps[R]) -> R:
    """Run `steps`, awaiting each awaitable; an exception is raised at the `yield`. Returns their result."""
    try:
        step = next(steps)
    except StopIteration as end:
        value: R = end.value
        return value
    return await _await(steps, step)


def begin_steps(steps: Steps[R]) -> R | Awaitable[R]:
    """Run `steps` that may be blocking or async. Returns their result, or an awaitable of it."""
    try:
        step = next(steps)
    except StopIteration as end:
        value: R = end.value
        return value
    return _await(steps, step) if isawaitable(step) else _run(steps, step)


def _run(steps: Steps[R], answer: object) -> R:
    try:
        while True:
            answer = steps.send(answer)
    except StopIteration as end:
        value: R = end.value
        return value


async def _await(steps: Steps[R], step: object) -> R:
    return await _continue(steps, step, _waited)


async def _waited(step: object) -> object:
    return await step if isawaitable(step) else step


def drive(steps: Generator[S, A, R], answer: Callable[[S], A]) -> R:
    """Run `steps`: pass each step to `answer` and send the result back; an exception is raised at the `yield`."""
    try:
        step = next(steps)
        while True:
            try:
                result = answer(step)
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as end:
        value: R = end.value
        return value


async def drive_async(steps: Generator[S, A, R], answer: Callable[[S], Awaitable[A]]) -> R:
    """Run `steps` as `drive` does, awaiting each result of `answer`."""
    try:
        step = next(steps)
    except StopIteration as end:
        value: R = end.value
        return value
    return await _continue(steps, step, answer)


async def _continue(steps: Generator[S, A, R], step: S, answer: Callable[[S], Awaitable[A]]) -> R:
    try:
        while True:
            try:
                result = await answer(step)
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as end:
        value: R = end.value
        return value
