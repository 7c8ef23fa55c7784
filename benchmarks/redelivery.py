"""How soon is the job of a killed process begun by another one? Children are killed by their own jobs, a whole worker with
all its processes at one moment, which leaves nobody to give its lease back."""

import os
import signal
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.jobs import LOG
from benchmarks.pace import children_of
from benchmarks.report import Row, Say, at_most
from benchmarks.worker import QUEUE, is_done, start_worker, until, working
from holdfast import Client
from holdfast.testing.store import ScratchStore
from holdfast.worker.settings import POOLS

LEASE, GRACE = 2, 1
YOUNG = 1.1


def run(quick: bool, say: Say) -> list[Row]:
    with ScratchStore() as store:
        pools = [pool for pool in POOLS if pool != "serial"]
        rows = [child_killed(store, pool, 3 if quick else 15, say) for pool in pools]
        return [*rows, worker_killed(store, say)]


def child_killed(store: ScratchStore, pool: str, rounds: int, say: Say) -> Row:
    """From the moment in which a job kills its process to the one in which it is begun again."""
    say(f"children killed ({pool})")
    with noted() as moments, working(store, "--pool", pool, "--workers", "1") as client:
        for number in range(rounds):
            # One that dies young is replaced less and less soon, which is not what is measured here.
            time.sleep(YOUNG)
            client.queues[QUEUE].put("bench.crash", {"args": []})
            until(lambda at=number: len(moments()) == 2 * at + 2, "it was begun again")
            until(lambda: is_done(client), "it has ended")
        waits = [b - a for a, b in zip(moments()[::2], moments()[1::2], strict=True)]
    beside = f"worst of {rounds}; median {statistics.median(waits):.3f} s"
    return at_most(f"begun again after kill -9 of its process ({pool})", max(waits), 1, "s", beside)


def worker_killed(store: ScratchStore, say: Say) -> Row:
    """From the moment in which parent and child are killed to the one in which another worker has begun their job."""
    say("a whole worker killed")
    with noted() as moments, Client(store.url, namespace="bench") as client:
        client.config["heartbeat"], client.config["grace-period"] = LEASE, GRACE
        doomed = start_worker(store.url, "--workers", "1")
        client.queues[QUEUE].put("bench.hang", {"args": []})
        until(lambda: len(moments()) == 1, "it was begun")
        with working(store, "--workers", "1"):
            killed = time.time()
            for pid in (doomed.pid, *children_of(doomed.pid)):
                os.kill(pid, signal.SIGKILL)
            doomed.wait(10)
            until(lambda: len(moments()) == 2, "it was begun again")
        wait = moments()[1] - killed
    what = f"begun again after kill -9 of a whole worker, lease {LEASE} s, grace {GRACE} s"
    return at_most(what, wait, LEASE + GRACE + 5, "s")


@contextmanager
def noted() -> Iterator[Callable[[], list[float]]]:
    """Where jobs write their moments: in seconds, those of all processes."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "moments"
        file.touch()
        os.environ[LOG] = str(file)
        yield lambda: [int(line) / 1e9 for line in file.read_text().split()]
