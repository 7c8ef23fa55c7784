"""The client with the constructor of the released package."""

from typing import Any, Final, TypeVar

from holdfast.client.handles import Job
from holdfast.client.handles import Jobs as ClientJobs
from holdfast.client.recurring import RecurringJob as ClientRecurringJob
from holdfast.client.sync import Client as HoldfastClient
from holdfast.commands import Command
from holdfast.compat.reqless.connections import owners
from holdfast.compat.reqless.events import Events
from holdfast.compat.reqless.job import RecurringJob
from holdfast.compat.reqless.sentences import spoken
from holdfast.errors import Refused

R = TypeVar("R")

USUAL: Final = "redis://localhost:6379"


class Jobs(ClientJobs):
    """The jobs of a client: `jobs[jid]` is a job, a recurring job, or None."""

    def __getitem__(self, jid: str) -> Job | ClientRecurringJob | None:
        found = super().__getitem__(jid)
        return RecurringJob(found.facts, self._client) if isinstance(found, ClientRecurringJob) else found


class Client(HoldfastClient):
    """A holdfast client whose default `url` is redis://localhost:6379, whatever the environment has.

    Options are those of holdfast's client, such as `namespace`; creating one sends nothing. Refusals have the messages of
    the released package. Raises UsageError.
    """

    def __init__(self, url: Any = USUAL, hostname: str | None = None, **options: Any) -> None:
        options.pop("decode_responses", None)  # its replies are always text
        super().__init__(url, hostname, **options)
        self.jobs = Jobs(self)
        # In place of the cached property.
        vars(self)["events"] = Events(self)

    def run(self, command: Command[R], /) -> R:
        """Run one command. Raises ReqlessError."""
        try:
            return super().run(command)
        except Refused as error:
            raise spoken(command, error) from error

    @property
    def database(self) -> Any:
        """A client of the driver for the same store."""
        made = super().database
        owners[made] = self
        return made
