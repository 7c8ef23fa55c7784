"""A job that lost its lease twice, performed by a forked child of its own, so that it takes nobody along.

The child settles the job itself. If it dies, its parent gives the lease back.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Coroutine
from contextvars import copy_context
from typing import Any, Final, NoReturn

from holdfast.commands.leases import Lease
from holdfast.commands.outcomes import Expire
from holdfast.models import JobFacts
from holdfast.work import signals
from holdfast.work.around import Around
from holdfast.work.making import make_performer
from holdfast.work.outcome import Ending
from holdfast.work.route import Route
from holdfast.work.seat import Turns
from holdfast.work.settings import WorkerSettings
from holdfast.work.store_choice import StoreChoice

log = logging.getLogger("holdfast")

DANGEROUS: Final = 2
"""So many lost leases make a job one that is performed alone."""


class Alone:
    """Forks for dangerous jobs; `store` and `settings` are the worker's, `around` is the process's."""

    def __init__(self, store: StoreChoice, settings: WorkerSettings, around: Around) -> None:
        self._store = store
        self._settings = settings
        self._around = around

    def fork(self, facts: JobFacts) -> int:
        """Begin to perform a job in a child. Answers its pid."""
        log.warning("job %s lost its lease %d times; it is performed alone", facts.jid, facts.losses)
        signal.pthread_sigmask(signal.SIG_BLOCK, signals.ALL)
        pid = os.fork()
        if pid == 0:
            self._perform(facts)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.ALL)
        return pid

    def perform(self, facts: JobFacts) -> Ending:
        """Perform a job in a child and wait for it."""
        pid = self.fork(facts)
        try:
            return ending_of(facts, os.waitpid(pid, 0)[1])
        except BaseException:
            stop(pid)
            os.waitpid(pid, 0)
            raise

    def _perform(self, facts: JobFacts) -> NoReturn:
        code = 1
        try:
            signals.reset()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.ALL)
            client = self._store.client(facts.worker)
            performer = make_performer(
                self._store, self._settings, facts.worker, client, around=self._around.alone()
            )
            turns = Turns(client.shard, facts.worker, Route(client.shard, self._settings.queues))
            turns.end(performer.perform(facts, _run))
            if turns.has_news:
                client.runner.run(turns.turn(0))
            code = 0
        except BaseException:
            log.exception("job %s could not be performed", facts.jid)
        finally:
            # Nothing of the parent's may run here, not even its exit handlers.
            try:
                logging.shutdown()
            finally:
                os._exit(code)


def _run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    with asyncio.Runner() as runner:
        return runner.run(coroutine, context=copy_context())


def ending_of(facts: JobFacts, status: int) -> Ending:
    """What is left to say when the child has ended with that wait status: nothing, or that the lease goes back."""
    code = os.waitstatus_to_exitcode(status)
    if code == 0:
        return None
    log.warning(
        "job %s goes back: the process that performed it alone %s", facts.jid, signals.how_ended(code)
    )
    return Expire([Lease(facts.jid, facts.token, facts.worker)])


def stop(pid: int) -> None:
    """End the child of a job that must not go on. It is not waited for."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it ended by itself
