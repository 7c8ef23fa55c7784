"""The error for a name that nothing has, with the known name that resembles it."""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Final

from holdfast.errors import UnknownName

_COMPARED: Final = 5000
"""How many known names are compared: each takes some microseconds."""


def unknown(what: str, name: str, known: Iterable[str] = ()) -> UnknownName:
    """Return the error for the `what` (a queue, a worker) that is not known; it names a known one that is similar."""
    close = get_close_matches(name, islice(known, _COMPARED), 1)
    return UnknownName(
        f'there is no {what} "{name:.200}"' + (f'; did you mean "{close[0]}"?' if close else "")
    )
