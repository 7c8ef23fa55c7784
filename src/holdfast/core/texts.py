"""The texts of the core, which clients in any language can load into a store."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from holdfast.core.bundle import bundle
from holdfast.core.library import library


class Text(NamedTuple):
    """One text: the name of its file, its purpose, and the function that makes it."""

    file: str
    purpose: str
    make: Callable[[], str]


def native() -> str:
    """Return the function library of our own clients."""
    return library().text


def lib() -> str:
    """Return the beginning of a user's own script, which follows it and can use `Holdfast`."""
    return f"local Holdfast = (function()\n{bundle('doors.lib')}end)()\n"


TEXTS: Final[Mapping[str, Text]] = {
    "reqless": Text(
        "reqless.lua",
        "the reqless protocol, as one script: EVALSHA <sha> 0 <command> <now> …",
        lambda: bundle("doors.reqless"),
    ),
    "qless": Text(
        "qless.lua",
        "the protocol before it, under its own names: EVALSHA <sha> 0 <command> <now> …",
        lambda: bundle("doors.qless"),
    ),
    "native": Text(
        "holdfast.lua",
        "the native protocol, as a function library: FUNCTION LOAD, then FCALL hf1_<verb> 1 <root> …",
        native,
    ),
    "lib": Text(
        "holdfast-lib.lua",
        "the front half of a script of your own: Holdfast.config.get(key), Holdfast.job.get(jid)",
        lib,
    ),
}
"""The texts by their names in `holdfast lua`."""
