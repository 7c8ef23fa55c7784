"""Results outlive the records of their jobs: however late they are read, all are there while they are kept."""

import msgspec
import pytest

from holdfast import Client, JobNotFound
from holdfast.commands.jobs import Await, JobGet, PutMany
from holdfast.commands.leases import CompleteMany, Done, Pop
from holdfast.ids import mint_jid
from waiting import until

STEP = 512


def run_all(client: Client, count: int) -> list[str]:
    """Put, take and complete so many jobs; each leaves its number as its result. Answers their jids."""
    jids: list[str] = []
    for first in range(0, count, STEP):
        step = [mint_jid() for _ in range(first, min(first + STEP, count))]
        words = [word for n, jid in enumerate(step, first) for word in (jid, "K", b"%d" % n)]
        client.run(PutMany("q", words))
        jobs = client.run(Pop("w", ("q",), len(step)))
        done = [Done(job.jid, job.token, b"", 3_600_000, job.data) for job in jobs]
        assert client.run(CompleteMany("w", done)) == {}
        jids += step
    return jids


@pytest.mark.full
@pytest.mark.parametrize("count", [3_000, pytest.param(100_000, marks=pytest.mark.full)])
def test_results_read_late_are_all_there_though_the_jobs_are_forgotten(client: Client, count: int):
    client.config["jobs-history-count"] = count // 10
    jids = run_all(client, count)
    assert client.run(JobGet(jids[:STEP])) == [None] * STEP
    found = []
    for first in range(0, count, STEP):
        outcomes = client.run(Await(jids[first : first + STEP]))
        assert {outcome.status for outcome in outcomes} == {"done"}
        found += [msgspec.json.decode(outcome.result) for outcome in outcomes]
    assert found == list(range(count))
    assert client.result_of(jids[0], timeout=30) == b"0"


def test_a_result_is_gone_when_its_time_is_over(client: Client):
    client.config["jobs-history-count"] = 1
    [first] = run_all(client, 1)
    jid = client.queues["q"].put("K")
    job = client.queues["q"].pop()
    client.run(CompleteMany(job.worker_name, [Done(jid, job.token, b"", 1, b"7")]))

    def seen():
        [outcome] = client.run(Await((jid,)))
        return outcome.status == "done" and outcome.result is None

    until(seen, "the result is gone, the job is not")
    run_all(client, 200)
    with pytest.raises(JobNotFound):
        client.result_of(jid, timeout=1)
    assert client.result_of(first, timeout=30) == b"0"
