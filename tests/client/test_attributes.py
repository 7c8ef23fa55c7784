"""Tags, marks, lines of history and reports, for both clients."""

import pytest

from holdfast import JobNotFound, LeaseLost, UsageError


def test_a_job_is_tagged_found_by_its_tag_and_untagged(do):
    queue = do.client.queues["mail"]
    first, second = do(lambda: queue.put("K")), do(lambda: queue.put("K"))
    for jid in (first, second):
        job = do(lambda jid=jid: do.client.jobs[jid])
        assert do(lambda job=job: job.tag("red", "blue", "red")) == ["red", "blue"]
    assert do(do.client.tags) == ["red", "blue"]
    assert do(lambda: job.untag("blue")) == ["red"]
    assert do(do.client.tags) == ["red"]
    assert do(do.client.jobs.tag_counts) == {"red": 2, "blue": 1}
    found = do(lambda: do.client.jobs.tagged("red", 0, 1))
    assert (found["total"], len(found["jobs"])) == (2, 1)
    assert do(lambda: do.client.jobs[second]).tags == ["red"]


def test_a_job_is_tracked_until_somebody_stops_it(do):
    jid = do(lambda: do.client.queues["mail"].put("K"))
    assert do(lambda: do.client.track(jid))
    job = do(lambda: do.client.jobs[jid])
    assert job.tracked
    assert not do(job.track)
    tracked = do(do.client.jobs.tracked)
    assert ([found.jid for found in tracked["jobs"]], tracked["expired"]) == ([jid], {})
    do(job.cancel)
    assert do(do.client.jobs.tracked) == {"jobs": [], "expired": [jid]}
    assert do(lambda: do.client.untrack(jid))
    assert not do(job.untrack)
    with pytest.raises(JobNotFound):
        do(lambda: do.client.track("nobody"))


def test_a_line_is_logged_with_a_mapping_and_nothing_else(do):
    jid = do(lambda: do.client.queues["mail"].put("K"))
    job = do(lambda: do.client.jobs[jid])
    do(lambda: job.log("seen", {"by": "ann"}))
    line = do(lambda: do.client.jobs[jid]).history[-1]
    assert (line["what"], line["by"]) == ("seen", "ann")
    for data in (["ann"], {"much": "x" * 20_000}):
        with pytest.raises(UsageError):
            do(lambda data=data: job.log("seen", data))


def test_the_holder_reports_progress_and_nobody_else(do):
    queue = do.client.queues["mail"]
    jid = do(lambda: queue.put("K"))
    job = do(queue.pop)
    assert do(lambda: job.report(0.5, "half way", ["one", "two"]))
    shown = do(lambda: do.client.jobs[jid])
    assert (shown.progress_fraction, shown.progress_note, shown.log_lines) == (
        0.5,
        "half way",
        ["one", "two"],
    )
    assert shown.earlier_data == {}
    for wrong in (1.5, -0.1, float("nan"), True, "half"):
        with pytest.raises(UsageError):
            do(lambda wrong=wrong: job.report(wrong))
    do(job.complete)
    with pytest.raises(LeaseLost):
        do(lambda: job.report(1))
    other = do(lambda: queue.put("K"))
    fresh = do(lambda: do.client.jobs[other])
    assert (fresh.progress_fraction, fresh.progress_note) == (None, "")
