"""Lists as people read them, for both clients."""

import pytest

from holdfast import UsageError


def test_failed_jobs_are_seen_by_group_and_put_to_work_again(do):
    queue, client = do.client.queues["mail"], do.client
    do(lambda: queue.put_many([("K", n) for n in range(3)]))
    for job in do(lambda: queue.pop(3)):
        do(lambda job=job: job.fail("G", "why"))
    [group] = do(client.jobs.failure_groups)
    assert (group.name, group.count, group.trend[-1]) == ("G", 3, 3)
    assert do(client.jobs.failed) == {"G": 3}
    assert do(lambda: client.unfail("G", "other", 2)) == 2
    assert do(lambda: client.jobs.unfail("G", "other")) == 1
    assert do(client.jobs.failure_groups) == []
    assert do(client.jobs.failed) == {}
    assert do(do.client.queues["other"].length) == 3
    with pytest.raises(UsageError):
        do(lambda: client.unfail("G", "other", 0))


def test_a_list_is_read_page_by_page(do):
    queue, jobs = do.client.queues["mail"], do.client.jobs
    jids = do(lambda: queue.put_many([("K", n) for n in range(5)]))
    first = do(lambda: jobs.listing("waiting", "mail", count=2))
    assert first.names == jids[:2]
    second = do(lambda: jobs.listing("waiting", "mail", first.next, 3))
    assert second.names == jids[2:]
    assert do(lambda: jobs.listing("waiting", "mail", second.next, 3)).names == []
    assert do(lambda: jobs.listing("waiting", "mail", count=9, direction="down")).names == jids[::-1]
    assert do(lambda: jobs.listing("queues")).names == ["mail"]


def test_why_a_job_does_not_run_is_told_by_jid_and_by_job(do):
    queue, jobs = do.client.queues["mail"], do.client.jobs
    jid = do(lambda: queue.put("K", delay=100))
    found = do(lambda: jobs.explain(jid))
    assert (found.state, found.blocked_by[0].check) == ("scheduled", "due")
    job = do(lambda: jobs[jid])
    assert do(job.explain).blocked_by[0].check == "due"
    assert not do(lambda: jobs.explain("nobody")).exists
    assert found.as_dict()["checks"][0]["verdict"] == "fine"
