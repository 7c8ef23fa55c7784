"""Fresh connections to other stores for each job."""

from inspect import isawaitable
from typing import Any

from holdfast.code.middleware import Either, Perform, Wearable, behind
from holdfast.errors import UsageError


class RedisReconnect(Wearable):
    """Closes the idle connections of the given clients before each job, so that each job begins with fresh ones.

    The clients are those that the job's code uses: of redis-py, or `holdfast.Client`; blocking ones, for a loop with many
    jobs has no moment at which none uses them. Raises UsageError for what has no connections.
    """

    _clients: tuple[Any, ...] = ()

    def __init__(self, *clients: Any) -> None:
        for client in clients:
            if not callable(_closing(client)):
                raise UsageError(f"RedisReconnect: {client!r:.80} has no connections to close")
        self._clients = clients

    @Either
    def around_perform(self: Any, job: Any, call_next: Perform | None = None) -> Any:
        """Perform the job, by what comes next. Raises UsageError for the clients of an event loop."""
        for client in self._clients:
            closed = _closing(client)()
            if isawaitable(closed):
                getattr(closed, "close", lambda: None)()
                raise UsageError(f"RedisReconnect takes blocking clients, not {client!r:.80}")
        return behind(RedisReconnect, self, call_next)(job)


def _closing(client: Any) -> Any:
    pool = getattr(client, "connection_pool", None)
    return getattr(client, "close", None) if pool is None else getattr(pool, "disconnect", None)
