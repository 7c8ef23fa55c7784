"""The row of a job: everything the store knows of it, whatever it was put with."""

from holdfast.commands.jobs import JobGet
from holdfast.commands.options import ExtraOptions, JobWithOptions, PutX
from holdfast.commands.outcomes import Fail
from native_door import Door


def test_a_row_shows_tags_options_and_relatives(core, clock, door: Door):
    door.put("q", "left", "right")
    wish = ExtraOptions(
        tags=["red", "blue"],
        depends=["left", "right", "nobody"],
        backoff="exponential:1000:600000:25",
        expires_ms=60_000,
        limit_ms=5_000,
        keep_ms=7_000,
    )
    core(PutX("q", [JobWithOptions("K", b"{}", "child", wish)]))
    child = door.job("child")
    assert child
    assert (child.state, child.tags, set(child.dependencies)) == (
        "depends",
        ("red", "blue"),
        {"left", "right"},
    )
    assert child.options == {
        "backoff": "exponential:1000:600000:25",
        "expires": clock.now_ms + 60_000,
        "limit": 5_000,
        "keep": 7_000,
    }
    left = door.job("left")
    assert left
    assert (left.dependents, left.dependencies, left.options) == (("child",), (), {})


def test_a_plain_job_has_nothing_but_its_queue_s_throttle(door: Door):
    door.put("q", "a")
    job = door.job("a")
    assert job
    assert job.throttles == ("ql:q:q",)
    assert (job.progress, job.log, job.spawned_from, job.tracked, job.earlier) == (None, (), "", False, ())


def test_a_row_shows_at_most_a_thousand_dependents(core, door: Door):
    door.put("q", "parent")
    for first in range(0, 3_000, 200):
        jobs = [
            JobWithOptions("K", b"{}", f"c{n}", ExtraOptions(depends=["parent"]))
            for n in range(first, first + 200)
        ]
        core(PutX("q", jobs))
    parent = door.job("parent")
    assert parent
    assert len(set(parent.dependents)) == len(parent.dependents) == 1_000


def test_a_failed_job_that_has_tags_shows_both(core, door: Door):
    core(PutX("q", [JobWithOptions("K", b"{}", "a", ExtraOptions(tags=["red"]))]))
    [job] = door.pop("w", "q")
    core(Fail("w", job, "G", "why"))
    [row] = core(JobGet(["a"]))
    assert (row.failure.group, row.tags, row.history[-1].what) == ("G", ("red",), "failed")
