"""Part of `wakeup`: processes that wait in a bare blocking pop and note when they got something.

`python -m benchmarks.wakeup_peers URL COUNT LOG`
"""

import os
import sys
import time

import redis

from benchmarks.jobs import note
from benchmarks.wakeup import Peers


def wait(url: str, log: str) -> None:
    client = redis.Redis.from_url(url, socket_timeout=None)
    while True:
        handed = client.brpop([Peers.KEY], timeout=0)
        note(log, time.time_ns() - int(handed[1]))  # type: ignore[index]


def main(url: str, count: str, log: str) -> None:
    for _ in range(int(count) - 1):
        if os.fork() == 0:
            break
    wait(url, log)


if __name__ == "__main__":
    main(*sys.argv[1:])
