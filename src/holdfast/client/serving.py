"""Which workers take the jobs of a queue: by the names and patterns that they report, and by whether they are alive."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from holdfast.client.queue_names import Fallbacks, resolve_queue_names

SILENT_MS: Final = 30_000
"""A worker sends a heartbeat every ten seconds; one silent for longer than this counts as gone."""


def takes(patterns: Sequence[str], queue: str, identifiers: Mapping[str, Sequence[str]], host: str) -> bool:
    """Return whether a worker on a machine takes jobs of a queue, by the names and patterns that it reports."""
    return queue in resolve_queue_names(Fallbacks(identifiers, host), [queue], patterns)


def names_in(raw: str) -> tuple[str, ...]:
    """Return a JSON list of names, () for anything else."""
    try:
        return tuple(msgspec.json.decode(raw.encode(), type=list[str]))
    except (msgspec.MsgspecError, UnicodeError):
        return ()


class QueueServer(msgspec.Struct, frozen=True, gc=False):
    """A worker of a queue, as the core reports it when a job is explained."""

    name: str
    seen: int
    quiet: bool
    slots: int
    busy: int

    def is_silent(self, now_ms: int) -> bool:
        """Return whether it has sent no heartbeat for longer than it should."""
        return now_ms - self.seen > SILENT_MS

    def takes_jobs(self, now_ms: int) -> bool:
        """Return whether it is alive and not quiet."""
        return not self.quiet and not self.is_silent(now_ms)


def servers_of(facts: Mapping[str, Any]) -> list[QueueServer]:
    """Return the workers that take jobs of the queue of a job, from the facts that explain this job."""
    pairs: Sequence[Any] = facts.get("identifiers") or ()
    identifiers: dict[str, tuple[str, ...]] = {
        name: names_in(raw) for name, raw in zip(pairs[::2], pairs[1::2], strict=True)
    }
    found = [_server(row) for row in facts["workers"]]
    queue, others = facts["queue"], facts.get("patterned", ())
    return found + [_server(row) for row in others if takes(names_in(row[5]), queue, identifiers, row[6])]


def _server(row: Sequence[Any]) -> QueueServer:
    name, seen, quiet, slots, busy = row[:5]
    return QueueServer(str(name), whole(seen), bool(whole(quiet)), whole(slots), whole(busy))


def whole(value: object) -> int:
    """Return a number that a worker reported, 0 if it is not a number."""
    text = str(value)
    return int(text) if text.isdecimal() and len(text) < 20 else 0
