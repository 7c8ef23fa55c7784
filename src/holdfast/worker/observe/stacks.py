"""The stack of a job: found among the threads, tasks and greenlets of this process when it is requested.

Jobs record nothing for this, so it costs nothing until then: the frame that performs a job is known by the run it holds.
"""

import asyncio
import gc
import linecache
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any, Final, TypeVar, cast

from holdfast.code.current import RunningJob

MOST_FRAMES: Final = 200
_BENEATH: Final = (str(Path(__file__).parents[2]), str(Path(asyncio.__file__).parent))
"""Where the code lies that calls the code of jobs."""
_ASKED: Final = str(Path(__file__).with_name("board.py"))
_RUN: Final = asyncio.Runner.run.__code__
_DRIVING: Final = str(Path(__file__).parents[1] / "pools" / "greenlet.py")
_PERFORM: Final = str(Path(__file__).parents[1] / "performing" / "perform.py")

Place = tuple[FrameType, int]
"""A frame, and the line in which it is."""


def stack_of_job(jid: str) -> str | None:
    """The stack of a job that this process performs, innermost last, as text; None if it does not."""
    return stacks_of_jobs(jid).get(jid)


def stacks_of_jobs(only: str = "") -> dict[str, str]:
    """The stack of each job that this process performs, or of that one, innermost last, as text, by jid."""
    best: dict[str, list[Place]] = {}
    for stack in _stacks():
        at, jid = next(
            ((n, jid) for n, (frame, _) in enumerate(stack) if (jid := _performed(frame))), (0, "")
        )
        # A plain function under an event loop has two: that of its thread, and that of the task which waits for it.
        if jid and only in ("", jid) and not (jid in best and _is_coroutine(stack[-1][0])):
            best[jid] = _until_asked(stack[at:])
    return {jid: written(_of_the_job(_awaited_in(stack) or stack)) for jid, stack in best.items()}


def written(places: Iterable[Place]) -> str:
    """Frames as a traceback shows them."""
    summary = traceback.StackSummary.extract(iter(places), limit=MOST_FRAMES)
    return "".join(summary.format()).rstrip("\n")


def _performed(frame: FrameType) -> str:
    """The jid of the job that is performed in this frame, "" for most."""
    if frame.f_code.co_filename != _PERFORM:
        return ""
    current = frame.f_locals.get("current")
    return current.facts.jid if isinstance(current, RunningJob) else ""


def _until_asked(stack: list[Place]) -> list[Place]:
    """Without what a signal handler does there, to look for just this stack."""
    files = [frame.f_code.co_filename for frame, _ in stack]
    return stack[: files.index(_ASKED)] if _ASKED in files else stack


def _awaited_in(stack: list[Place]) -> list[Place]:
    """Where a coroutine is that a plain frame runs to its end; nothing if there is none."""
    for frame, _ in stack:
        coroutine = _driven_by(frame)
        if coroutine is not None:
            at = next((n for n, (inner, _) in enumerate(stack) if inner is coroutine.cr_frame), None)
            return _inwards(coroutine) if at is None else stack[at:]
    return []


def _driven_by(frame: FrameType) -> Any:
    """The coroutine that a plain frame runs to its end, here or in another thread; None for any other frame."""
    if frame.f_code.co_filename == _DRIVING:
        return frame.f_locals.get("coroutine")
    task = frame.f_locals.get("task") if frame.f_code is _RUN else None
    return cast("Any", task).get_coro() if isinstance(task, asyncio.Task) else None


def _of_the_job(stack: list[Place]) -> list[Place]:
    """Without what calls the job's own code, if that is reached already."""
    for at, (frame, _) in enumerate(stack):
        if not frame.f_code.co_filename.startswith(_BENEATH):
            return stack[at:]
    return stack


def _is_coroutine(frame: FrameType) -> bool:
    return bool(frame.f_code.co_flags & 0x80)  # CO_COROUTINE


def _stacks() -> Iterator[list[Place]]:
    """Every stack of this process, outermost first."""
    for frame in list(sys._current_frames().values()):  # pyright: ignore[reportPrivateUsage]
        yield _outwards(frame)
    for task in _tasks():
        yield _inwards(task.get_coro())
    if "greenlet" in sys.modules:
        kind: Any = sys.modules["greenlet"].greenlet
        for thing in gc.get_objects():
            # Of a lazy object, as Django has them, isinstance would ask for the class, and so load it.
            if issubclass(type(thing), kind):
                frame = thing.gr_frame
                if frame is not None:
                    yield _outwards(frame)


def _tasks() -> list[Any]:
    try:
        return list(asyncio.all_tasks())
    except RuntimeError:
        return []  # there is no loop in this thread


def _outwards(frame: FrameType | None) -> list[Place]:
    stack: list[Place] = []
    while frame is not None:
        stack.append((frame, frame.f_lineno))
        frame = frame.f_back
    stack.reverse()
    return stack


def _inwards(waiting: Any) -> list[Place]:
    """The frames of a coroutine that waits: each waits for the next."""
    stack: list[Place] = []
    while waiting is not None and len(stack) < MOST_FRAMES:
        frame = getattr(waiting, "cr_frame", None) or getattr(waiting, "gi_frame", None)
        if frame is None:
            break
        stack.append((frame, frame.f_lineno))
        waiting = getattr(waiting, "cr_await", None) or getattr(waiting, "gi_yieldfrom", None)
    return stack


class Dumped:
    """What the interpreter's fault handler wrote of a process: stacks of its threads, even where no code of ours can run."""

    def __init__(self, text: str) -> None:
        self.threads: list[list[tuple[str, int, str]]] = []
        for line in text.splitlines():
            if line.startswith(("Thread ", "Current thread ", "Stack ")):
                self.threads.append([])
            elif line.startswith('  File "') and self.threads:
                place = _read(line)
                if place is not None:
                    self.threads[-1].insert(0, place)

    def of_jobs(self) -> list[str]:
        """The stacks that perform jobs, innermost last, as text."""
        found = [stack for stack in self.threads if any(file == _PERFORM for file, _, _ in stack)]
        return [_shown(stack) for stack in found]

    def of_all(self) -> list[str]:
        """Every stack."""
        return [_shown(stack) for stack in self.threads if stack]


def _read(line: str) -> tuple[str, int, str] | None:
    file, _, rest = line.removeprefix('  File "').rpartition('", line ')
    number, _, function = rest.partition(" in ")
    return (file, int(number), function) if number.isdecimal() else None


def _shown(stack: list[tuple[str, int, str]]) -> str:
    begun = max((at for at, (file, _, _) in enumerate(stack) if file == _PERFORM), default=-1)
    own = next((at for at in range(begun + 1, len(stack)) if not stack[at][0].startswith(_BENEATH)), 0)
    lines: list[str] = []
    for file, number, function in stack[own:]:
        lines.append(f'  File "{file}", line {number}, in {function}')
        source = linecache.getline(file, number).strip()
        if source:
            lines.append(f"    {source}")
    return "\n".join(lines)


_SLOT: Final = "slot "
F = TypeVar("F", bound=Callable[..., Any])


def for_slots(function: F, slots: int) -> list[F]:
    """Return a copy of the function for each slot, with the slot in its name."""
    assert isinstance(function, FunctionType)
    return [_renamed(function, f"{_SLOT}{slot}") for slot in range(slots)]


def slot_in(name: str) -> int | None:
    """Return the slot in the name of a function."""
    number = name.removeprefix(_SLOT)
    return int(number) if name.startswith(_SLOT) and number.isdecimal() else None


def _renamed(function: Any, name: str) -> Any:
    code = function.__code__.replace(co_name=name)
    return FunctionType(code, function.__globals__, name, function.__defaults__, function.__closure__)
