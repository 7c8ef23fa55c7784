"""The client with the constructor of the released package."""

from typing import Any, Final, TypeVar

from holdfast.client.handles import Job
from holdfast.client.job_lookup import Jobs as ClientJobs
from holdfast.client.recurring import RecurringJob as ClientRecurringJob
from holdfast.client.sync import Client as HoldfastClient
from holdfast.commands import Command
from holdfast.compat.reqless.events import Events, owners
from holdfast.compat.reqless.job import RecurringJob
from holdfast.errors import JobNotFound, LeaseLost, Refused, WrongState

R = TypeVar("R")

DEFAULT_URL: Final = "redis://localhost:6379"


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

    def __init__(self, url: Any = DEFAULT_URL, hostname: str | None = None, **options: Any) -> None:
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
            raise with_known_message(command, error) from error

    @property
    def database(self) -> Any:
        """A client of the driver for the same store."""
        made = super().database
        owners[made] = self
        return made


_PREFIXES: Final = {
    "complete": "Complete(): Job ",
    "complete_x": "Complete(): Job ",
    "advance": "Complete(): Job ",
    "fail": "Fail(): Job ",
    "retry": "Retry(): Job ",
}


def with_known_message(command: Command[object], error: Refused) -> Refused:
    """Return a refusal with the message of the released package; others stay unchanged."""
    message = _message(command.verb, error)
    return error if message is None else type(error)(message, error.code)


def _message(verb: str, error: Refused) -> str | None:
    if verb == "heartbeat" and isinstance(error, LeaseLost):
        return error.detail.partition(": ")[0]
    if verb == "timeout" and isinstance(error, WrongState):
        return f"Timeout(): Job {error.detail.removesuffix(' is not running')} not running"
    prefix = _PREFIXES.get(verb)
    if prefix is None:
        return None
    if isinstance(error, JobNotFound):
        return prefix + "does not exist"
    if isinstance(error, LeaseLost):
        # "<jid> is <state>, token <n>": `running` means that another worker runs it.
        state = error.detail.rpartition(" is ")[2].partition(",")[0]
        other = "has been handed out to another worker"
        return prefix + (other if state == "running" else f"is not currently running: {state}")
    return None
