"""`client.workers`, for both clients."""

from collections.abc import Iterator

import pytest
from sync_async import Async, Sync

from holdfast import UsageError
from holdfast.commands.workers import Workers, WorkerSeen


@pytest.fixture(params=[Sync, Async], ids=["sync", "async"])
def do(request, url: str, namespace: str) -> Iterator[Sync | Async]:
    made = request.param(url, namespace)
    yield made
    made.close()


def test_at_first_nobody_works(do):
    assert do(lambda: do.client.workers.counts) == []
    assert do(lambda: do.client.workers["nobody"]) == {"jobs": [], "stalled": []}


def test_workers_are_counted_by_what_they_hold(do):
    workers, queue = do.client.workers, do.client.queues["q"]
    do(lambda: queue.put_many([("K", n) for n in range(3)]))
    do(lambda: do.client.run(WorkerSeen("idle", {"host": "h"})))
    queue.worker_name = "busy"
    jids = [job.jid for job in do(lambda: queue.pop(2))]
    assert sorted(do(lambda: workers.counts), key=lambda row: row["name"]) == [
        {"name": "busy", "jobs": 2, "stalled": 0},
        {"name": "idle", "jobs": 0, "stalled": 0},
    ]
    assert sorted(do(lambda: workers["busy"])["jobs"]) == sorted(jids)
    assert {job.queue for job in do(lambda: workers.jobs("busy"))} == {"q"}
    assert {worker.name: worker.facts for worker in do(workers.all)} == {"busy": {}, "idle": {"host": "h"}}


def test_more_workers_than_a_page_holds_are_all_listed(do):
    for n in range(131):
        do(lambda n=n: do.client.run(WorkerSeen(f"w{n}")))
    assert len(do(do.client.workers.all)) == 131
    assert len(do(lambda: do.client.run(Workers()))) == 64


def test_a_worker_can_be_quieted_resumed_and_forgotten(do):
    workers = do.client.workers
    do(lambda: do.client.run(WorkerSeen("w")))
    assert do(lambda: workers.quiet("w")) is True
    assert [worker.quiet for worker in do(workers.all)] == [True]
    assert do(lambda: workers.resume("w")) is True
    assert do(lambda: workers.forget("w", "unknown")) == 1
    assert do(lambda: workers.quiet("w")) is False
    with pytest.raises(UsageError):
        workers.forget()


def test_the_name_that_a_command_was_given_stands_for_all_its_processes(do):
    workers = do.client.workers
    for name in ("w-0", "w-11", "w-0-0", "v-0"):
        do(lambda name=name: do.client.run(WorkerSeen(name, {"pool": "process"})))
    do(lambda: do.client.run(WorkerSeen("w-7", {"host": "somebody who pops by hand"})))
    assert do(lambda: workers.quiet("w")) is True
    assert {worker.name for worker in do(workers.all) if worker.quiet} == {"w-0", "w-11"}
    assert do(lambda: workers.resume("w")) is True
    assert not any(worker.quiet for worker in do(workers.all))
    assert do(lambda: workers.quiet("u")) is False


def test_a_blocking_client_s_workers_are_like_a_mapping(client):
    client.run(WorkerSeen("w"))
    assert list(client.workers) == ["w"]
    assert "w" in client.workers
    assert "v" not in client.workers
    assert len(client.workers) == 1
