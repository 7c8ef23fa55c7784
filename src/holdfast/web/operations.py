"""Run operations on many jobs in the background of the application, and take over those whose process has ended."""

import asyncio
from typing import Final

from holdfast.console.handles import AsyncConsole
from holdfast.console.operations.operations import Running
from holdfast.console.operations.spec import Spec
from holdfast.errors import HoldfastError
from holdfast.logs import logger
from holdfast.web.live import Hub, cancelled

_LOOK: Final = 20.0
_MOST: Final = 8


class Operations:
    """The operations that this process runs, by id."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._watch: asyncio.Task[None] | None = None

    async def start(self, console: AsyncConsole, spec: Spec) -> str:
        """Note an operation and run it in the background. Returns its id. Raises UsageError, FilterError."""
        return self._run(console, await console.start_operation(spec))

    async def resume(self, console: AsyncConsole, id: str) -> str:
        """Take over an operation that was stopped or whose process has ended. Raises OperationNotFound, WrongState."""
        return self._run(console, await console.resume_operation(id))

    async def undo(self, console: AsyncConsole, id: str) -> str:
        """Undo an operation in the background. Returns the id of the undoing one. Raises WrongState."""
        return self._run(console, await console.undo_operation(id))

    def _run(self, console: AsyncConsole, running: Running) -> str:
        task = asyncio.get_running_loop().create_task(
            self._follow(console, running), name=f"operation {running.id}"
        )
        self._tasks[running.id] = task
        task.add_done_callback(lambda _: self._tasks.pop(running.id, None))
        self._hub.changed("operations", "audit")
        return running.id

    async def _follow(self, console: AsyncConsole, running: Running) -> None:
        try:
            await console.run_operation(running, self._report)
        except HoldfastError as error:
            logger.warning("operation %s was interrupted: %s", running.id, error)
        finally:
            self._hub.changed("operations", f"op:{running.id}", "counts", "queues", "failed")

    def _report(self, running: Running) -> None:
        self._hub.progress(running.id, running.looked, running.spec.candidates)

    def watch(self, console: AsyncConsole) -> None:
        """Begin to look for operations whose process has ended, if that was not begun yet in this event loop."""
        if self._watch is None or self._watch.done():
            self._watch = asyncio.get_running_loop().create_task(
                self._take_over(console), name="holdfast-web-operations"
            )

    async def close(self) -> None:
        """Stop working in this process; what is under way is taken over by another one."""
        mine = [task for task in (self._watch, *self._tasks.values()) if task is not None]
        for task in mine:
            if task.get_loop() is asyncio.get_running_loop():
                await cancelled(task)

    async def _take_over(self, console: AsyncConsole) -> None:
        """Take over operations whose process ended, one after the other, as long as the application runs."""
        while True:
            try:
                for one in await console.operations(limit=25):
                    if one.is_orphaned and one.id not in self._tasks and len(self._tasks) < _MOST:
                        await self.resume(console, one.id)
            except HoldfastError as error:
                logger.debug("operations cannot be looked at: %s", error)
            await asyncio.sleep(_LOOK)
