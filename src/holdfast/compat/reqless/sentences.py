"""Refusals with the messages that programs of the released package look for."""

from typing import Any, Final

from holdfast.commands import Command
from holdfast.errors import JobNotFound, LeaseLost, Refused, WrongState

_SPEAKERS: Final = {
    "complete": "Complete(): Job ",
    "complete_x": "Complete(): Job ",
    "advance": "Complete(): Job ",
    "fail": "Fail(): Job ",
    "retry": "Retry(): Job ",
}


def spoken(command: Command[Any], error: Refused) -> Refused:
    """Return a refusal with the message of the released package; others stay unchanged."""
    told = _told(command.verb, error)
    return error if told is None else type(error)(told, error.code)


def _told(verb: str, error: Refused) -> str | None:
    if verb == "heartbeat" and isinstance(error, LeaseLost):
        return error.detail.partition(": ")[0]
    if verb == "timeout" and isinstance(error, WrongState):
        return f"Timeout(): Job {error.detail.removesuffix(' is not running')} not running"
    speaker = _SPEAKERS.get(verb)
    if speaker is None:
        return None
    if isinstance(error, JobNotFound):
        return speaker + "does not exist"
    if isinstance(error, LeaseLost):
        # "<jid> is <state>, token <n>": `running` means that another worker runs it.
        state = error.detail.rpartition(" is ")[2].partition(",")[0]
        other = "has been handed out to another worker"
        return speaker + (other if state == "running" else f"is not currently running: {state}")
    return None
