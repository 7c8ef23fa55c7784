"""Keys of a namespace that belong to queues which are not on its list of queues."""

import re
from collections import Counter
from collections.abc import Container, Sequence
from shlex import quote
from typing import Final, cast

from holdfast.console.health.findings import Calls, Finding, refusal_text
from holdfast.models import text
from holdfast.printable import one_line
from holdfast.wire.plans import ErrorReply, Plan

KEYS_A_CALL: Final = 1_000
_OF_QUEUES: Final = frozenset(("w", "l", "s", "q", "n", "t", "y", "D", "P", "fq", "o", "k", "m"))
_OF_DAYS: Final = frozenset(("z", "aw", "ar"))
"""The letters of the keys of a queue, as `core/lua/base/keys.lua` writes them; some end in a day."""
_GLOB: Final = re.compile(r"([*?\[\]\\])")


def leftovers(calls: Calls, known: Container[str], is_whole: bool, most: int) -> Plan[Finding]:
    """Look for keys of unknown queues among the first `most` keys of the store. `is_whole`: all queues are in `known`."""
    root = calls.shard.root
    if not most or not is_whole:
        why = "there are too many queues" if most else "--keys is 0"
        return Finding("leftovers", "note", f"Not checked: {why}.")
    found, looked_at, cursor = Counter[str](), 0, "0"
    pattern = _GLOB.sub(r"\\\1", root) + "*"
    while True:
        [reply] = yield from calls.send(("SCAN", cursor, "MATCH", pattern, "COUNT", KEYS_A_CALL))
        if isinstance(reply, ErrorReply):
            text_ = f"SCAN is barred: {refusal_text(reply)}."
            return Finding("leftovers", "note", text_, "run the doctor as an administrator of the store")
        cursor, keys = text(reply[0]), cast("Sequence[bytes]", reply[1])
        looked_at += KEYS_A_CALL
        found.update(queue for key in keys if (queue := queue_of(text(key), root)) and queue not in known)
        if cursor == "0" or looked_at >= most:
            return _finding(found, looked_at if cursor != "0" else 0, root)


def queue_of(key: str, root: str) -> str:
    """Return the queue to which a key belongs, "" if to none."""
    letters, _, name = key.removeprefix(root).partition(":")
    if letters in _OF_DAYS:
        return name.rpartition(":")[0]
    return name if letters in _OF_QUEUES else ""


def _finding(found: Counter[str], looked_at: int, root: str) -> Finding:
    among = f"among the first {looked_at} keys of the store" if looked_at else "in the store"
    if not found:
        return Finding("leftovers", "ok", f"No keys of unknown queues {among}.")
    [(name, count)] = found.most_common(1)
    text_ = f"{found.total()} keys of {len(found)} unknown queues {among}, most of queue {one_line(name)} ({count}); UNLINK those that are not needed."
    remedy = f"redis-cli --scan --pattern {quote(f'{root}*:{name}*')}"
    return Finding("leftovers", "note", text_, remedy)
