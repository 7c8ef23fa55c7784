"""What gives each job its sandbox: the working directory, the one of a worker beside it, or one of many, when it asks."""

import os
from pathlib import Path
from typing import cast

from holdfast.code.current import Running
from holdfast.work.performing.outcome import Ending
from holdfast.work.performing.sandboxes import Lent, Sandbox, Sandboxes


class InSandbox:
    """A companion for jobs that are performed one at a time, inside the sandbox, wherever the last one went."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def begin(self, current: Running) -> None:
        self._sandbox.tidy()
        self._sandbox.enter()
        current.sandbox = self._where

    def end(self, current: Running, ending: Ending) -> None:
        self._sandbox.tidy()

    def _where(self) -> str:
        return self._sandbox.path


class BesideSandbox(InSandbox):
    """The same in a process that stays in a directory of its own, to which each job gives it back."""

    def __init__(self, sandbox: Sandbox) -> None:
        super().__init__(sandbox)
        self._home = ""

    def begin(self, current: Running) -> None:
        self._home = str(Path.cwd())
        self._sandbox.tidy()
        current.sandbox = self._where

    def end(self, current: Running, ending: Ending) -> None:
        os.chdir(self._home)
        self._sandbox.tidy()


class LentSandboxes:
    """A companion for jobs that are performed side by side: each has a directory from the moment it asks for one.

    What such a job does to the working directory, it does to its neighbours; it is put right when there are none.
    `around` is the directory that they work in, None for wherever their process is.
    """

    def __init__(self, around: Sandbox | None, sandboxes: Sandboxes) -> None:
        self._around = around
        self._sandboxes = sandboxes
        self._count = 0

    def begin(self, current: Running) -> None:
        current.sandbox = _OnDemand(self._sandboxes)
        if not self._count and self._around is not None:
            self._around.enter()
        self._count += 1

    def end(self, current: Running, ending: Ending) -> None:
        self._count -= 1
        lent = cast("_OnDemand", current.sandbox).lent
        if lent is not None:
            lent.end()


class _OnDemand:
    __slots__ = ("_sandboxes", "lent")

    def __init__(self, sandboxes: Sandboxes) -> None:
        self._sandboxes = sandboxes
        self.lent: Lent | None = None

    def __call__(self) -> str:
        if self.lent is None:
            self.lent = self._sandboxes.take()
        return self.lent.path
