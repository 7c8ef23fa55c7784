"""What the pool of greenlets does to its processes: the standard library made to wait for greenlets, and forks made safe.

    the command   patches first of all, before anything is imported that talks to a store
    the parent    forks and waits for children as ever: these two parts of the library stay as they are there
    a child       gets the rest, and an event loop of its own, on which nothing of its parent's is ever resumed

A fork copies all greenlets. Were its loop kept, a process that a job forks would go on with the other jobs as well.
"""

import importlib
import os
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, cast

from holdfast.errors import UsageError

_PARTS: Final = ("os", "signal")
"""What a supervising parent needs as it was: how to fork, and how to hear of a child's end."""


def patch() -> None:
    """Make the standard library wait for greenlets. Call it before anything else is imported. Raises UsageError."""
    _module("gevent.monkey").patch_all(**dict.fromkeys(_PARTS, False))


def prepare_parent() -> None:
    """Have this process fork greenlet workers. Raises UsageError if the standard library was not patched."""
    monkey = _module("gevent.monkey")
    if not _is_patched():
        raise UsageError(
            "the pool of greenlets needs a patched standard library: begin the program with "
            "`from gevent import monkey; monkey.patch_all()`, or run `holdfast worker --pool gevent`"
        )
    for part in _PARTS:
        # A program that patched all of it: its own children are none that greenlets could wait for.
        module = importlib.import_module(part)
        for name, original in monkey.saved.get(part, {}).items():
            setattr(module, name, original)
    if not _Hook.is_set:
        _Hook.is_set = True
        os.register_at_fork(after_in_child=_renew_loop)


def place_of_this() -> Callable[[], FrameType | None]:
    """A function that answers, from another thread or greenlet, where the one that calls this is by then."""
    if _is_patched():
        greenlet: Any = importlib.import_module("gevent").getcurrent()
        return lambda: cast("FrameType | None", greenlet.gr_frame)
    thread = threading.get_ident()
    return lambda: sys._current_frames().get(thread)  # pyright: ignore[reportPrivateUsage]


def prepare_child() -> None:
    """Have jobs fork, and wait for processes, as greenlets do."""
    monkey = _module("gevent.monkey")
    monkey.patch_os()
    monkey.patch_signal()


class _Hook:
    """Whether forks are made safe in this process."""

    is_set = False


def _renew_loop() -> None:
    """In a process that was just forked: what waits on the inherited loop is never resumed."""
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
        raise UsageError(
            f"the pool of greenlets needs gevent: pip install 'holdfast[gevent]' ({error})"
        ) from error
