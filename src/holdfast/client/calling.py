"""Calling a client: commands of the reqless protocol, raw."""

from math import isfinite
from typing import Any

from holdfast.commands.call import Call
from holdfast.errors import UsageError
from holdfast.settings import Settings, check_name


class Calling:
    """What both clients do when they are called themselves."""

    settings: Settings
    run: Any

    def __call__(self, command: str, *args: str | bytes | float) -> Any:
        """Run one command of the reqless protocol, `client("queue.counts", "mail")`, and return its raw reply.

        That is text (JSON text where the protocol says JSON), a whole number, a list of texts or None. The time is the
        store's. A full store takes none of them, whatever they do. Raises UsageError, Refused with the protocol's
        sentence, StoreFull. Core: doors/native_call.lua.
        """
        most = self.settings.max_data
        return self.run(Call(check_name("command", command), tuple(argument(arg, most) for arg in args)))


def argument(arg: object, most: int) -> str | bytes:
    """An argument of a command or script as it travels: text, bytes or a finite number. Raises UsageError."""
    if isinstance(arg, bool) or not isinstance(arg, (str, bytes, int, float)):
        raise UsageError(f"an argument of a command is text, bytes or a number, not {type(arg).__name__}")
    if isinstance(arg, (int, float)):
        if not isfinite(arg):
            raise UsageError(f"an argument of a command is a finite number, not {arg!r}")
        return repr(arg)
    try:
        size = len(arg.encode() if isinstance(arg, str) else arg)
    except UnicodeError:
        raise UsageError(f"the argument {arg!r:.80} cannot be written as UTF-8") from None
    if size > most:
        raise UsageError(f"an argument of {size:,} bytes is more than the {most:,} of max_data")
    return arg
