"""Refusals in the words that programs of the released package look for."""

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
    """The same refusal as the released package tells it; others stay as they are."""
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
        # "<jid> is <state>, token <n>": running means that somebody else runs it.
        state = error.detail.rpartition(" is ")[2].partition(",")[0]
        other = "has been handed out to another worker"
        return speaker + (other if state == "running" else f"is not currently running: {state}")
    return None
