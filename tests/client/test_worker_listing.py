"""python-api 7: `client.workers`."""

import pytest
from sync_async import Async

from holdfast import UsageError
from holdfast.commands.workers import WorkerSeen


def pop_as(do, worker: str) -> str:
    queue = do.client.queues["q"]
    jid = do(lambda: queue.put("K"))
    queue.worker_name = worker
    assert do(queue.pop).jid == jid
    return jid


def test_nobody_works_before_any_pop(do):
    do(lambda: do.client.queues["q"].put("K"))
    assert do(lambda: do.client.workers.counts) == []


def test_the_worker_that_did_something_last_comes_first(stopped, do):
    for worker in ("b", "c", "a"):
        pop_as(do, worker)
        stopped.advance(seconds=1)
    do(lambda: do.client.run(WorkerSeen("c")))
    stopped.advance(seconds=1)
    pop_as(do, "b")
    assert do(lambda: do.client.workers.counts) == [
        {"name": "b", "jobs": 2, "stalled": 0},
        {"name": "c", "jobs": 1, "stalled": 0},
        {"name": "a", "jobs": 1, "stalled": 0},
    ]


def test_who_pops_by_hand_stays_listed_when_the_job_is_complete(do):
    do(lambda: do.client.queues["q"].put("K"))
    job = do(do.client.queues["q"].pop)
    do(job.complete)
    assert do(lambda: do.client.workers.counts) == [{"name": do.client.worker_name, "jobs": 0, "stalled": 0}]


def test_a_sign_of_life_is_said_once_a_minute_not_with_every_pop(do):
    do(do.client.queues["q"].pop)
    do(lambda: do.client.workers.forget(do.client.worker_name))
    do(do.client.queues["q"].pop)
    assert do(lambda: do.client.workers.counts) == []


def test_a_lease_that_ran_out_counts_as_stalled(stopped, do):
    first = pop_as(do, "w")
    stopped.advance(seconds=15)
    second = pop_as(do, "w")
    stopped.advance(seconds=15)
    assert do(lambda: do.client.workers.counts) == [{"name": "w", "jobs": 1, "stalled": 1}]
    assert do(lambda: do.client.workers["w"]) == {"jobs": [second], "stalled": [first]}


def test_the_jobs_of_an_unknown_worker_are_two_empty_lists(do):
    assert do(lambda: do.client.workers["unknown"]) == {"jobs": [], "stalled": []}


def test_what_is_no_name_of_a_worker_is_told_before_anything_is_asked(do):
    for wrong in (7, "", None):
        with pytest.raises(UsageError, match="worker"):
            do.client.workers[wrong]
    if isinstance(do, Async):
        # Python asks such a thing for its items 0, 1, 2, …
        with pytest.raises(UsageError, match="worker"):
            assert "w" not in do.client.workers


def test_a_silent_worker_is_forgotten_together_with_its_jobs(stopped, client, do):
    client.config["max-worker-age"] = 3600
    client.config["heartbeat"] = 7200
    pop_as(do, "silent")
    stopped.advance(seconds=1)
    jid = pop_as(do, "late")
    stopped.advance(seconds=3599)
    assert do(lambda: do.client.workers.counts) == [{"name": "late", "jobs": 1, "stalled": 0}]
    assert do(lambda: do.client.workers["silent"]) == {"jobs": [], "stalled": []}
    assert do(lambda: do.client.workers["late"]) == {"jobs": [jid], "stalled": []}
