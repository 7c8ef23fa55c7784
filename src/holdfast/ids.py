"""Generate jids (UUIDv7) and names of request sequences.

A jid is generated before the first try of its put, so that the put may be repeated. It is a UUIDv7 as 32 lower-case hex
digits; its 12 `rand_a` bits are the shard. The last 62 bits start at a random number in each process and count up, so
the jids of one process are ordered and unique without a lock.
"""

import itertools
import os
import secrets
from collections.abc import Iterator
from time import time_ns
from typing import Final

_VARIANT: Final = 2 << 62


class _Mint:
    """The state of `mint_jid` and `new_sequence`; replaced in a forked child."""

    __slots__ = ("heads", "millisecond", "sequence", "sequences", "tail")

    def __init__(self) -> None:
        self.tail: Iterator[int] = itertools.count(_VARIANT | secrets.randbits(61))
        self.millisecond = 0
        self.heads: dict[int, str] = {}
        self.sequence = secrets.token_hex(6)
        self.sequences: Iterator[int] = itertools.count(1)


_mint = _Mint()


def _renew() -> None:
    global _mint
    _mint = _Mint()


os.register_at_fork(after_in_child=_renew)


def mint_jid(shard: int = 0) -> str:
    """Return a new jid of `shard` (0..4095): 32 hex digits, increasing within this process."""
    mint = _mint
    now = time_ns() // 1_000_000
    if now > mint.millisecond:
        mint.millisecond = now
        mint.heads = {}
    heads = mint.heads
    head = heads.get(shard)
    if head is None:
        # If the clock steps back, the last millisecond is used: order within the process matters more.
        head = heads[shard] = f"{mint.millisecond:012x}7{shard:03x}"
    return f"{head}{next(mint.tail):016x}"


def new_sequence() -> str:
    """Return the name of a new request sequence, which has one numbered call under way at a time."""
    return f"{_mint.sequence}-{next(_mint.sequences)}"
