"""The client, made as programs make it, and what is made from its connection."""

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
    """The jobs of a client: `jobs[jid]`."""

    def __getitem__(self, jid: str) -> Job | ClientRecurringJob | None:
        found = super().__getitem__(jid)
        return RecurringJob(found.facts, self._client) if isinstance(found, ClientRecurringJob) else found


class Client(HoldfastClient):
    """A holdfast client whose `url` is the usual local one unless given, whatever the environment says.

    Options are those of holdfast's, `namespace` among them; making one sends nothing. What the store refuses is told in
    the sentences that programs know. Raises UsageError.
    """

    def __init__(self, url: Any = USUAL, hostname: str | None = None, **options: Any) -> None:
        options.pop("decode_responses", None)  # what it answers is text at any rate
        super().__init__(url, hostname, **options)
        self.jobs = Jobs(self)
        # In place of what would be made when it is first asked for.
        vars(self)["events"] = Events(self)

    def run(self, command: Command[R], /) -> R:
        """Run one command. Raises ReqlessError."""
        try:
            return super().run(command)
        except Refused as error:
            raise spoken(command, error) from error

    @property
    def database(self) -> Any:
        """A connection of the driver to the same store."""
        made = super().database
        owners[made] = self
        return made
