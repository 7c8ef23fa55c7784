"""An ending as bytes: how a forked process tells the one that forked it what became of its job."""

from typing import Any, Final

import msgspec

from holdfast.commands.dependencies import CompleteX, FollowUp
from holdfast.commands.leases import Done, Lease
from holdfast.commands.outcomes import Advance, Expire, Fail, Release, Retry
from holdfast.errors import WorkError
from holdfast.models import JobFacts
from holdfast.work.performing.outcome import Ending, given_back

_KINDS: Final[dict[str, type[Any]]] = {
    kind.__name__: kind for kind in (Done, CompleteX, Advance, Fail, Retry)
}
_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(tuple[str, dict[str, Any]])


def write_ending(ending: Ending) -> bytes:
    """The ending of one job; which job that is, both sides know."""
    if ending is None:
        return _encoder.encode(("", {}))
    thing: Any = ending
    fields = {} if isinstance(ending, Expire) else msgspec.structs.asdict(thing)
    fields.pop("job", None)
    fields.pop("leases", None)
    return _encoder.encode((type(ending).__name__, fields))


def read_ending(told: bytes, facts: JobFacts) -> Ending:
    """What `write_ending` wrote of the job of these facts. Raises WorkError for anything else."""
    try:
        kind, fields = _decoder.decode(told)
        if kind == "Expire":
            return given_back(facts)
        if not kind:
            return None
        if kind == "Release":
            return Release([Lease(facts.jid, facts.token, facts.worker)], **fields)
        if kind != "Done":
            fields["job"] = facts
        if "follow" in fields:
            fields["follow"] = msgspec.convert(fields["follow"], tuple[FollowUp, ...])
        ending: Ending = _KINDS[kind](**fields)
    except (msgspec.MsgspecError, KeyError, TypeError) as error:
        raise WorkError(f"the process of job {facts.jid} told nonsense: {error}") from error
    return ending
