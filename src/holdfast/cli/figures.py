"""The figures of a namespace: what is in each queue, what happened there today, who works."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from holdfast.client.sync import Client

STATES: Final = ("waiting", "running", "stalled", "throttled", "scheduled", "depends", "recurring")
SAMPLES: Final = ("run", "wait")


class Figures(msgspec.Struct, frozen=True):
    """Of one moment; days are days of UTC.

    `queues` has for each queue its jobs by state, `paused` (0 or 1), and of today `popped`, `completed`, `failures`,
    `retries`, `failed` (those that still are), and `wait` and `run` with `avg` and `std-dev` in seconds. `failures` has
    the failed jobs by group, `failed` all of them, `workers` those at work.
    """

    queues: dict[str, dict[str, Any]]
    failures: dict[str, int]
    workers: int

    @property
    def failed(self) -> int:
        """All failed jobs."""
        return sum(self.failures.values())

    def as_dict(self) -> dict[str, Any]:
        """The figures by name."""
        return {
            "queues": self.queues,
            "failures": self.failures,
            "failed": self.failed,
            "workers": self.workers,
        }

    def gauges(self) -> dict[tuple[str, ...], float]:
        """Each number under the words of its name: `("queues", "mail", "run", "avg")`."""
        found: dict[tuple[str, ...], float] = {}
        for queue, facts in self.queues.items():
            for words, number in _flat(facts):
                found["queues", queue, *words] = number
        found |= {("failures", group): count for group, count in self.failures.items()}
        return found | {("failed",): self.failed, ("workers",): self.workers}


def _flat(facts: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], float]]:
    for name, value in facts.items():
        if name in SAMPLES:
            yield from (((name, part), number) for part, number in value.items())
        else:
            yield (name,), value


def figures_of(client: Client) -> Figures:
    """Ask the store: one call for the counts, one for each queue, two for the rest."""
    queues = {facts["name"]: _queue(client, facts) for facts in client.queues.counts}
    return Figures(queues, dict(client.jobs.failed()), len(client.workers.all()))


def _queue(client: Client, counts: dict[str, Any]) -> dict[str, Any]:
    today = client.queues[counts["name"]].stats()
    return {
        **{state: counts[state] for state in STATES},
        "paused": int(counts["paused"]),
        "popped": today["wait"]["count"],
        "completed": today["run"]["count"],
        **{name: today[name] for name in ("failed", "failures", "retries")},
        **{what: {"avg": today[what]["mean"], "std-dev": today[what]["std"]} for what in SAMPLES},
    }
