"""A pipeline: gnomes collect underpants, something happens, and there is profit.

    holdfast worker -q profit -q unknown -q underpants --import holdfast.gnomes
    holdfast put holdfast.gnomes.GnomesJob --klass --queue underpants --data '{"pairs": 3}'

Or all of it at once, with a worker in this process, on the embedded store: `python -m holdfast.gnomes`.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any, Final

QUEUES: Final = ("underpants", "unknown", "profit")
PRICE: Final = 5
_PATIENCE: Final = 1.5
"""Seconds that a call tries to reach the store."""


class GnomesJob:
    """A job that goes through three queues; in each queue the method of that name runs.

    Its data is `{"pairs": 3}` (default: one pair); each step adds what it found out.
    """

    @staticmethod
    def underpants(job: Any) -> None:
        """Collect underpants, and move to the next step."""
        job["collected"] = json.loads(job.data).get("pairs", 1)
        job.complete("unknown")

    @staticmethod
    def unknown(job: Any) -> None:
        """Do the unknown step, which must not be left out."""
        job["idea"] = f"something with {job['collected']} pairs"
        job.complete("profit")

    @staticmethod
    def profit(job: Any) -> None:
        """Make a profit, which completes the job."""
        job["profit"] = job["collected"] * PRICE
        job.complete()


def run(url: str, count: int, namespace: str = "gnomes") -> list[dict[str, Any]]:
    """Put `count` jobs into the store at `url`, run them in this process, and return their data."""
    from holdfast.client.sync import Client
    from holdfast.worker.run import run_worker
    from holdfast.worker.settings import WorkerSettings
    from holdfast.worker.store_choice import StoreChoice

    with Client(url, namespace=namespace, deadline=_PATIENCE, url_origin="--url") as client:
        jids = [
            client.queues["underpants"].put("holdfast.gnomes.GnomesJob", {"pairs": number + 1})
            for number in range(count)
        ]
        # The last step first; a worker that drains its queues ends when they are empty.
        settings = WorkerSettings(QUEUES[::-1], pool="serial", drain=True, imports=("holdfast.gnomes",))
        run_worker(settings, StoreChoice(url, {"namespace": namespace}))
        return [
            {"jid": job.jid, "state": job.state, **json.loads(job.data)} for job in client.jobs.get(*jids)
        ]


def main(words: Sequence[str] | None = None) -> int:
    """Run the example from the command line, and return the exit status."""
    from holdfast import store
    from holdfast.errors import HoldfastError

    parser = argparse.ArgumentParser("holdfast.gnomes", description="Collect underpants. Profit.")
    parser.add_argument("--url", help="the store [default: the embedded one]")
    parser.add_argument("--jobs", type=int, default=3, help="how many jobs to put [default: 3]")
    flags = parser.parse_args(words)
    try:
        jobs = run(flags.url or store.ensure().url, flags.jobs)
    except HoldfastError as error:
        sys.stderr.write(f"holdfast.gnomes: {error}\n")
        return 3
    for job in jobs:
        sys.stdout.write(", ".join(f"{name}: {value}" for name, value in job.items()) + "\n")
    return 0 if all(job["state"] == "complete" for job in jobs) else 1


if __name__ == "__main__":
    sys.exit(main())
