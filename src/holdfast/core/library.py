"""The native library as the store gets it: name, version, digest, text."""

import hashlib
from dataclasses import dataclass
from functools import cache

from holdfast.core.builder import assemble
from holdfast.core.rows import rows_of
from holdfast.release import CORE_VERSION

NAME = "holdfast1"
"""The library's name; the number is the protocol between client and core."""
PREFIX = "hf1_"


AT_ONCE = frozenset(
    f"{folder}.{name}"
    for folder, names in {
        "base": "bounds refuse bits keys order record root text batch",
        "nouns": "queue state stats grant touched_jobs replay admission ending loss retention completed event throttle lease job days series minutes tally"
        " worker due timer settings index",
        "verbs": "put pop complete heartbeat",
        "doors": "checks requests native_work native",
    }.items()
    for name in names.split()
)
"""The modules that a put, a pop and a completion need. Any other is made at the first use of one of its members."""


def shown_core(version: str, digest: str) -> str:
    """Return version and digest of a core for display: `0.3.0 (development build, digest 1a2b3c4d5e6f)`."""
    release_, dot, _ = version.partition(".dev")
    return f"{release_} ({'development build, ' if dot else ''}digest {digest[:12]})"


@dataclass(frozen=True, slots=True)
class Library:
    """The argument of `FUNCTION LOAD`, and what `hf1_info` returns after it was loaded."""

    name: str
    version: str
    digest: str
    text: str
    functions: tuple[str, ...]


@cache
def library() -> Library:
    """Assemble the native library. The digest covers the Lua text, not the version."""
    body = assemble("doors.native", AT_ONCE)
    digest = hashlib.sha256(body.encode()).hexdigest()[:16]
    head = f'#!lua name={NAME}\nlocal HOLDFAST_CORE = {{ version = "{CORE_VERSION}", digest = "{digest}" }}\n'
    functions = tuple(PREFIX + row.verb for row in rows_of("doors.native"))
    return Library(NAME, CORE_VERSION, digest, head + body, functions)
