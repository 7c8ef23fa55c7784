"""Workers that run by themselves, or as a child of one that forks."""

import os
import signal

import msgspec

from holdfast.work.classes.base import BaseWorker
from holdfast.work.parent.child import Place
from holdfast.work.performing.around import Around
from holdfast.work.performing.chain import own_middleware
from holdfast.work.run import body_of


class Childlike(BaseWorker):
    """What `run` is for a worker that can be either."""

    _child = 0
    """The number of the process that it is the worker of, where that is a child."""

    def run(self) -> None:
        """Work until `stop`, or a signal where this is the main thread. Raises UsageError, StoreUnsupported."""
        if self._within is not None:
            self._child = os.getpid()
            self.before_run()
            self._used_up = self._work_within(*self._within)
        else:
            with self._logging():
                self.before_run()
                self._work()

    def _work_within(self, place: Place, around: Around) -> bool:
        settings = place.settings
        mixed = own_middleware(self)
        for middleware in mixed:
            # Those of the parent were told before: only these are the child's own.
            getattr(middleware, "after_fork", lambda: None)()
        settings = msgspec.structs.replace(
            settings,
            own=self._own(),
            held=() if self._generates else settings.held,
            middleware=(*mixed, *settings.middleware),
        )
        return body_of(settings.pool)(place._replace(settings=settings), around)

    def _leave(self) -> None:
        if self._within is None:
            self._wake_up()
        elif self._child in (os.getpid(), os.getppid()):
            # To a child this signal is nothing but the order to end after the jobs under way. The second case is a
            # job in a process of its own, which stops the worker that forked it.
            os.kill(self._child, signal.SIGQUIT)

    def _wake_up(self) -> None:
        """Have what `run` does in the process that called it, if it runs, see that it should end."""
        raise NotImplementedError

    def _work(self) -> None:
        """Work in the process that called `run`."""
        raise NotImplementedError
