"""Whom a worker of a program asks: the queues of a reserver, the jobs that a subclass yields, the client of it all."""

from collections.abc import Callable, Iterator
from typing import Any

from holdfast.client.sync import Client
from holdfast.errors import UsageError
from holdfast.work.queues.reserving import names_of


class NamesOf:
    """A resolver: the queues of a reserver, as they are just now."""

    def __init__(self, reserver: Any) -> None:
        self._reserver = reserver

    def resolve(self) -> list[str]:
        """The names of the queues, first to last."""
        return list(names_of(self._reserver))


class Going:
    """Goes through what `jobs` yields, and begins anew after it has raised: a generator that raised has ended."""

    def __init__(self, jobs: Callable[[], Iterator[Any]]) -> None:
        self._jobs = jobs
        self._at = jobs()

    def next(self) -> Any:
        """The next of them. Raises StopIteration when there are no more, and what the code of `jobs` raises."""
        try:
            return next(self._at)
        except StopIteration:
            raise
        except Exception:
            self._at = self._jobs()
            raise


def client_of(reserver: Any) -> Client:
    """The client of a reserver's queues. Raises UsageError where there is none."""
    for queue in () if reserver is None else reserver.queues:
        client = getattr(queue, "_client", None)
        if isinstance(client, Client):
            return client
    raise UsageError("a worker needs a client: give it as the second argument")
