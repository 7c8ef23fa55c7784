"""What the pool of greenlets does to its processes: the standard library made to wait for greenlets, and forks made safe.

    the command   patches first of all, before anything is imported that talks to a store
    the parent    forks and waits without greenlets: there the patched library is restored, and no event loop runs
    a child       has it patched again, and an event loop of its own, on which nothing of its parent's is ever resumed

A fork copies all greenlets. If its loop were kept, a process that a job forks would continue the other jobs too; and a
loop that runs while its process forks leaves timers to the child that hang it.
"""

import importlib
import os
import sys
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from types import FrameType
from typing import Any, ClassVar, Final, cast

from holdfast.errors import UsageError, missing_extra

_PARTS: Final = ("os", "signal")
"""Functions that fork and that wait for a child's end: patched in children only."""

_WAITING: Final = ("socket", "select", "selectors", "ssl", "time")
"""What runs the event loop of greenlets where it is patched."""

_ABSENT: Final = object()


def patch() -> None:
    """Make the standard library wait for greenlets. Call it before anything else is imported. Raises UsageError."""
    _module("gevent.monkey").patch_all(**dict.fromkeys(_PARTS, False))


def check_patched() -> None:
    """Raise UsageError if the standard library does not wait for greenlets."""
    _module("gevent.monkey")
    if not _is_patched():
        raise UsageError(
            "the pool of greenlets needs a patched standard library: begin the program with "
            "`from gevent import monkey; monkey.patch_all()`, or run `holdfast worker --pool gevent`"
        )


@contextmanager
def forking_greenlets() -> Generator[None]:
    """Let this process fork greenlet workers for the length of a block, and run no event loop meanwhile.

    What it forks has its library patched. Raises UsageError if that of this process is not.
    """
    check_patched()
    # A program that patched all of it: its own children are none that greenlets could wait for.
    _put_back(_PARTS)
    patched = _Parent.patched = _put_back(_WAITING)
    hub = _module("gevent._hub_local").get_hub_if_exists()
    if hub is not None:
        hub.destroy(destroy_loop=True)
    if not _Parent.is_hooked:
        _Parent.is_hooked = True
        os.register_at_fork(after_in_child=_renew_loop)
    try:
        yield
    finally:
        _set(patched)
        _Parent.patched = {}


_Values = dict[tuple[str, str], Any]
"""What modules have under their names."""


def _put_back(parts: Iterable[str]) -> _Values:
    """Restore the functions and classes that modules had before they were patched. Returns the patched ones."""
    before: _Values = {}
    for part in parts:
        module = importlib.import_module(part)
        for name, original in _module("gevent.monkey").saved.get(part, {}).items():
            before[part, name] = getattr(module, name, _ABSENT)
            setattr(module, name, original)
    return before


def _set(values: _Values) -> None:
    for (part, name), value in values.items():
        module = importlib.import_module(part)
        if value is _ABSENT:
            delattr(module, name)
        else:
            setattr(module, name, value)


def place_of_this() -> Callable[[], FrameType | None]:
    """Return a function that returns, in another thread or greenlet, the frame in which the caller is by then."""
    if _is_patched():
        greenlet: Any = importlib.import_module("gevent").getcurrent()
        return lambda: cast("FrameType | None", greenlet.gr_frame)
    thread = threading.get_ident()
    return lambda: sys._current_frames().get(thread)  # pyright: ignore[reportPrivateUsage]


def prepare_child() -> None:
    """Have jobs fork, and wait for processes, as greenlets do."""
    monkey = _module("gevent.monkey")
    if not monkey.is_module_patched("os") or os.fork is monkey.get_original("os", "fork"):
        monkey.patch_os()
        monkey.patch_signal()


def wait_natively() -> None:
    """Have what is connected from now on wait without greenlets: their event loop is broken, and this process is about to end."""
    _put_back(_WAITING)


def thrown(handler: Callable[[int, FrameType | None], Any]) -> Callable[[int, FrameType | None], Any]:
    """Return the handler of a signal with its exceptions raised in this greenlet: a signal may interrupt any of them."""
    gevent = _module("gevent")
    main = gevent.getcurrent()

    def handle(number: int, frame: FrameType | None) -> None:
        try:
            handler(number, frame)
        except BaseException as error:
            gevent.get_hub().loop.run_callback(main.throw, error)

    return handle


class _Parent:
    """Whether forks are made safe in this process, and what was patched in it that its children need."""

    is_hooked = False
    patched: ClassVar[_Values] = {}


def _renew_loop() -> None:
    """In a process that was just forked: what waits on the inherited loop is never resumed."""
    _set(_Parent.patched)
    _Parent.patched = {}
    local, hub = _module("gevent._hub_local"), _module("gevent.hub")
    inherited = local.get_hub_if_exists()
    if inherited is not None:
        inherited.loop.destroy()
    local.set_hub(None)
    local.set_loop(None)
    local.set_hub(hub.Hub(default=True))


def _is_patched() -> bool:
    monkey: Any = sys.modules.get("gevent.monkey")
    return monkey is not None and bool(monkey.is_module_patched("threading"))


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(missing_extra("the pool gevent", "gevent", error)) from error
