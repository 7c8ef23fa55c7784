"""Running a script of the user's own: loaded when the store lacks it, then called by its SHA1.

Nobody knows what it does, so it is sent again only if it certainly did not run.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, Final

from holdfast.commands import Word
from holdfast.errors import ConnectionLost, StoreTimeout, TransportError
from holdfast.wire.exchange import final_error
from holdfast.wire.meeting import meet
from holdfast.wire.plans import Call, ErrorReply, LinkError, Plan, Step
from holdfast.wire.repeat import Patience, patient, told, wait
from holdfast.wire.shards import Shard

_DID_NOT_RUN: Final = frozenset({"BUSY", "LOADING", "MASTERDOWN", "MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN"})
_LOADS: Final = 3
"""How often one call loads the script; a store that forgets it at once is beyond help."""


class Script:
    """A text and the name by which a store knows it."""

    __slots__ = ("sha1", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.sha1 = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def run_script(shard: Shard, script: Script, args: Sequence[Word]) -> Plan[Any]:
    """Run a script with the root as its only key; answers the bare reply.

    Raises TransportError, which says whether it may have run, and what the script threw as HoldfastError.
    """
    call: Call = ("EVALSHA", script.sha1, 1, shard.root, *args)
    try:
        return (yield from _run(shard, script, call))
    except TransportError as error:
        again = "look before you run it again"
        raise told(error, "script", again, sent=error.may_have_happened) from error.__cause__


def _run(shard: Shard, script: Script, call: Call) -> Plan[Any]:
    patience = Patience(shard.settings.deadline, shard.clock)
    pause, loads = 0.0, 0
    while True:
        if not shard.met:
            yield from meet(shard, patience, pause)
            pause = 0.0
        reply = yield from _try(shard, Step([call], pause), patience)
        if isinstance(reply, LinkError):
            pause = wait(reply, patience)
        elif not isinstance(reply, ErrorReply):
            return reply
        elif reply.code == "NOSCRIPT" and loads < _LOADS:
            loads += 1
            pause = 0.0
            yield from _load(script, patience)
        elif reply.code in _DID_NOT_RUN:
            pause = wait(reply, patience)
        else:
            raise final_error(reply)


def _try(shard: Shard, step: Step, patience: Patience) -> Plan[Any]:
    try:
        [reply] = yield step
    except LinkError as error:
        shard.met = False
        if error.sent:
            patience.tries += 1
            lost = StoreTimeout if error.timed_out else ConnectionLost
            raise lost(f"no answer from the store {patience} ({error})") from error
        return error
    return reply


def _load(script: Script, patience: Patience) -> Plan[None]:
    [reply] = yield from patient([("SCRIPT", "LOAD", script.text)], patience)
    if isinstance(reply, ErrorReply):
        raise final_error(reply)
