"""The rows of `client` and `worker` once more where every acknowledged call is on the disk, beside SET there."""

from benchmarks import client, worker
from benchmarks.report import Row, Say


def run(quick: bool, say: Say) -> list[Row]:
    return client.putting(quick, say, "fsync", "fsync: ") + worker.performing(quick, say, "fsync", "fsync: ")
