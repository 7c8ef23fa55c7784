"""Clients whose changes leave a line in the audit log: `client.acting_as("ada@laptop")`."""

from collections.abc import Sequence
from typing import Any, TypeVar, cast

from holdfast.client.aio import AsyncClient
from holdfast.client.descriptors import Part
from holdfast.client.handles import AsyncQueues, Queues
from holdfast.client.job_lookup import AsyncJobs, Jobs
from holdfast.client.sync import Client
from holdfast.commands import Command
from holdfast.commands.operations import audited
from holdfast.errors import HoldfastError
from holdfast.settings import check_name
from holdfast.wire.plans import Plan

R = TypeVar("R")


class ActingClient(Client):
    """A client that shares store, connections and batches with another; what it changes is audited as done by `actor`."""

    def __init__(self, client: Client, actor: str) -> None:
        self.actor = check_name("actor", actor)
        _share(self, client)
        self.queues, self.jobs = Queues(self), Jobs(self)

    def run(self, command: Command[R], /) -> R:
        """Run one command, with its line of the audit log."""
        return super().run(audited(self.actor, command))

    def run_all(self, commands: Sequence[Command[R]]) -> list[R | HoldfastError]:
        """Run commands in one pipeline, each with its line of the audit log."""
        return super().run_all([audited(self.actor, command) for command in commands])

    def _plan_of(self, command: Command[R], /) -> Plan[R]:
        return super()._plan_of(audited(self.actor, command))


class AsyncActingClient(AsyncClient):
    """`ActingClient` of an async client."""

    def __init__(self, client: AsyncClient, actor: str) -> None:
        self.actor = check_name("actor", actor)
        _share(self, client)
        self.queues, self.jobs = AsyncQueues(self), AsyncJobs(self)
        run: Any = client.run
        self.run = lambda command, *name: run(audited(actor, command), *name)  # type: ignore[method-assign]

    async def run_all(self, commands: Sequence[Command[R]]) -> list[R | HoldfastError]:
        """Run commands in one pipeline, each with its line of the audit log."""
        return await super().run_all([audited(self.actor, command) for command in commands])

    def _plan_of(self, command: Command[R], /) -> Plan[R]:
        return super()._plan_of(audited(self.actor, command))


def _share(made: Any, client: Any) -> None:
    """Give a client what another has, but for the handles that belong to that; both wait for results on one connection."""
    waits = client._results
    own: dict[str, Any] = client.__dict__
    kind = cast("type[object]", client.__class__)
    shared = {name: own[name] for name in own if not isinstance(getattr(kind, name, None), Part)}
    made.__dict__.update({**shared, **made.__dict__, "_results": waits, "_client": made})
