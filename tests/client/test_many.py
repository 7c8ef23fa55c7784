"""More than one call can carry: the clients page and split by themselves."""

import pytest

from holdfast.commands.options import ExtraOptions, JobWithOptions, PutX


def test_more_jobs_than_a_call_shows_are_looked_at_in_several(do):
    do(lambda: do.client.queues["q"].put_many([("K", n) for n in range(1200)]))
    jobs = do(lambda: do.client.queues["q"].peek(100, 1050))
    assert [job.data for job in jobs] == [str(n) for n in range(100, 1150)]
    assert len(do(lambda: do.client.queues["q"].peek(0, 2000))) == 1200
    assert do(lambda: do.client.queues["nobody"].peek(0, 600)) == []


def test_jobs_of_many_relatives_are_read_in_as_many_calls_as_it_takes(do):
    parents = [f"p{n}" for n in range(400)]
    do(lambda: do.client.run(PutX("q", [JobWithOptions("K", b"{}", jid) for jid in parents])))
    children = [f"c{n}" for n in range(40)]
    for jid in children:
        do(
            lambda jid=jid: do.client.run(
                PutX("q", [JobWithOptions("K", b"{}", jid, ExtraOptions(depends=parents))])
            )
        )
    jobs = do(lambda: do.client.jobs.get("unknown", *children))
    assert [job.jid for job in jobs] == children
    assert {len(job.dependencies) for job in jobs} == {400}


@pytest.mark.full
def test_a_page_of_failed_jobs_may_be_longer_than_a_call(do):
    do(lambda: do.client.queues["q"].put_many([("K", n) for n in range(600)]))
    for job in do(lambda: do.client.queues["q"].pop(count=512)) + do(
        lambda: do.client.queues["q"].pop(count=512)
    ):
        do(lambda job=job: job.fail("group", "because"))
    assert len(do(lambda: do.client.jobs.failed("group", 0, 1000))["jobs"]) == 600


def test_no_commands_are_no_call(do) -> None:
    assert do(lambda: do.client.run_all([])) == []
