"""Part of `wakeup`: at random moments, a job to the workers and a value to the bare peers, in turn.

`python -m benchmarks.wakeup_producer URL KLASS ARRIVALS PER_SECOND`
"""

import random
import sys
import time

import redis

from benchmarks.wakeup import Peers
from benchmarks.worker import QUEUE
from holdfast import Client


def main(url: str, klass: str, arrivals: str, per_second: str) -> None:
    bare = redis.Redis.from_url(url)
    rate = float(per_second)
    with Client(url, namespace="bench") as client:
        queue = client.queues[QUEUE]
        len(queue)  # connected and met, before the clock counts
        bare.ping()
        for _ in range(int(arrivals)):
            time.sleep(random.expovariate(rate))
            queue.put(klass, {"args": [time.time_ns()], "kwargs": {}})
            time.sleep(random.expovariate(rate))
            bare.lpush(Peers.KEY, time.time_ns())


if __name__ == "__main__":
    main(*sys.argv[1:])
