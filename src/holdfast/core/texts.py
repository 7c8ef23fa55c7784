"""The texts that the core is made into, for clients in any language to load into a store."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from holdfast.core.builder import assemble
from holdfast.core.library import library
from holdfast.core.script import script


class Text(NamedTuple):
    """One of them: how a file of it is usually called, what it is for, and what makes it."""

    file: str
    purpose: str
    make: Callable[[], str]


def native() -> str:
    """The function library of our own clients."""
    return library().text


def lib() -> str:
    """The front half of a user's own script, which goes behind it and finds `Holdfast` there."""
    return f'local Holdfast = (function()\n{assemble("doors.lib")}return loaded["doors.lib"]\nend)()\n'


TEXTS: Final[Mapping[str, Text]] = {
    "reqless": Text(
        "reqless.lua",
        "the reqless protocol, as one script: EVALSHA <sha> 0 <command> <now> …",
        lambda: script("doors.reqless"),
    ),
    "qless": Text(
        "qless.lua",
        "the protocol before it, under its own names: EVALSHA <sha> 0 <command> <now> …",
        lambda: script("doors.qless"),
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
"""By the name that `holdfast lua` knows them by."""
