"""The words and phrases in which it is said why a job runs or does not."""

from shlex import quote
from typing import Any, Final

from holdfast.printable import one_line

DOING: Final = {
    "depends": "waits for other jobs",
    "failed": "has failed",
    "throttled": "waits for a throttle",
}


def span(ms: float) -> str:
    """Milliseconds in words, as exact as people want it: `4 s`, `12 min`, `3 h`, `2 d`."""
    seconds = max(ms, 0) / 1000
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 1 else f"{max(ms, 0):.0f} ms"


def whole(said: Any) -> int:
    """A number that a worker said of itself, 0 if it is none."""
    return int(said) if str(said).isdecimal() else 0


def argument(jid: str) -> str:
    """A jid as a shell takes it for one, whatever it begins with."""
    return quote(jid) if not jid.startswith("-") else f"-- {quote(jid)}"


def times(count: int) -> str:
    """How often: `once`, `3 times`."""
    return "once" if count == 1 else f"{count} times"


def last_line(message: str) -> str:
    """The last line of a message, of 200 characters at most, of which none moves a cursor."""
    last = (message.strip().splitlines() or [""])[-1]
    return one_line(last)[:200]
