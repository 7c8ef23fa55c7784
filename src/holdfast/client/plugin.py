"""Run a Lua script of your own on top of the core's library: `LuaPlugin`.

A script may do anything, so a call is sent again only if it certainly did not run.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Any, Final, cast

from holdfast.client.base import argument
from holdfast.commands import Reply, Word
from holdfast.errors import ConnectionLost, HoldfastError, StoreTimeout, TransportError, UsageError
from holdfast.settings import check_name
from holdfast.wire.exchange import final_error
from holdfast.wire.meeting import meet
from holdfast.wire.plans import Call, ErrorReply, LinkError, Plan, Step
from holdfast.wire.repeat import RetryTimer, call_error, send_until_done, wait
from holdfast.wire.shards import Shard

_DID_NOT_RUN: Final = frozenset({"BUSY", "LOADING", "MASTERDOWN", "MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN"})
_LOADS: Final = 3
"""How often one call loads the script; more would not help."""


class Script:
    """The text of a script and its SHA1."""

    __slots__ = ("sha1", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.sha1 = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def run_script(shard: Shard, script: Script, args: Sequence[Word]) -> Plan[Reply]:
    """Run a script with the root as its only key; return the reply as it is.

    Raises TransportError, whose `may_have_happened` is True if it may have run, and errors of the script as HoldfastError.
    """
    call: Call = ("EVALSHA", script.sha1, 1, shard.root, *args)
    try:
        return (yield from _run(shard, script, call))
    except TransportError as error:
        again = "check before you run it again"
        raise call_error(error, "script", again, sent=error.may_have_happened) from error.__cause__


def _run(shard: Shard, script: Script, call: Call) -> Plan[Reply]:
    patience = RetryTimer(shard.settings.deadline, shard.clock, store=shard.settings.store)
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


def _try(shard: Shard, step: Step, patience: RetryTimer) -> Plan[Reply]:
    try:
        [reply] = yield step
    except LinkError as error:
        shard.met = False
        if error.sent:
            patience.tries += 1
            lost = StoreTimeout if error.timed_out else ConnectionLost
            raise lost(f"no reply from the store {patience} ({error})") from error
        return error
    return reply


def _load(script: Script, patience: RetryTimer) -> Plan[None]:
    [reply] = yield from send_until_done([("SCRIPT", "LOAD", script.text)], patience)
    if isinstance(reply, ErrorReply):
        raise final_error(reply)


_COMMENT: Final = re.compile(r"^[ \t]*--(?!\[=*\[).*", re.MULTILINE)
"""A comment line; its end is kept, so that the store's line numbers are those of the source."""

_PLACE: Final = re.compile(r"\buser_script:(\d+)(?:: )?")


class LuaPlugin:
    """A Lua script that runs in the store behind the core's library, in one atomic step.

    It may use `Holdfast.config.get(key)` and `Holdfast.job.get(jid)`; the rest of the library may change.
    `KEYS[1]` is the namespace's root, `ARGV` the arguments of `call`. Errors begin with `name`; `client` is a Client or
    an AsyncClient. Making one sends nothing. Raises UsageError. See `docs/reference/scripts.md`.
    """

    def __init__(self, name: str, client: Any, source: str) -> None:
        self.name = check_name("name", name)
        if not hasattr(client, "runner"):
            raise UsageError(f"client must be a Client or an AsyncClient, not {type(client).__name__}")
        if not isinstance(source, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"source must be text, not {type(source).__name__}")
        self._client = client
        self._source = source
        self._script: Script | None = None

    def call(self, *args: str | bytes | float) -> Any:
        """Run the script with `args` as its `ARGV` and return its reply; with an AsyncClient this is awaited.

        Strings are returned as text, numbers as whole numbers (the store rounds them down), lists as lists, `nil` and
        `false` as None. The script is loaded once and then called by its SHA1. A call whose reply was lost is not sent
        again: this raises ConnectionLost or StoreTimeout. An error of the script is a HoldfastError that begins with
        the plugin's name, and ends with the line of `source` where it is known.
        """
        most = self._client.settings.max_data
        words = [argument(arg, most) for arg in args]
        self._client._before_call()
        return self._client.runner.run(self._plan(words))

    def _plan(self, words: list[str | bytes]) -> Plan[Reply]:
        try:
            return _plain((yield from run_script(self._client.shard, self._made(), words)))
        except HoldfastError as error:
            if type(error) is HoldfastError:
                raise HoldfastError(f"{self.name}: {self._sentence(error)}") from error.__cause__
            error.add_note(f"in the plugin {self.name}")
            raise

    def _sentence(self, error: HoldfastError) -> str:
        from holdfast.core.texts import lib  # loaded at first use

        # The first place is where the error was raised.
        place = _PLACE.search(str(error.__cause__ or error))
        line = int(place[1]) - lib().count("\n") if place else 0
        sentence = _PLACE.sub("", str(error))
        return f"{sentence} (line {line} of its source)" if line > 0 else sentence

    def _made(self) -> Script:
        if self._script is None:
            from holdfast.core.texts import lib  # loaded at first use

            self._script = Script(_COMMENT.sub("", lib() + self._source))
        return self._script

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} of {self._client!r}>"


def _plain(reply: Reply) -> Reply:
    if isinstance(reply, bytes):
        return reply.decode("utf-8", "replace")
    if type(reply) is list:
        return [_plain(value) for value in cast("Sequence[Reply]", reply)]
    return reply
