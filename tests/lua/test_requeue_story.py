"""Jobs that are known begin a new life: a move that changes what it is told, a put for a job that must exist."""

import pytest

from holdfast.commands.jobs import JobGet, Move, Put, PutMany
from holdfast.commands.leases import Complete
from holdfast.commands.options import ExtraOptions, JobWithOptions, PutX
from holdfast.errors import DependencyRefused, JobNotFound, QueueFull, Refused
from native_door import Door

FULL = ExtraOptions(tags=["red"], throttles=["gpu"], backoff="fixed:1000:1000:0", keep_ms=7_000)


@pytest.fixture
def job(core):
    """A job that has something of everything."""
    core(PutX("q", [JobWithOptions("K", b"[1]", "j", FULL)], 3, 2))
    return "j"


def test_a_move_keeps_what_it_is_not_told_to_change(core, job):
    [before] = core(JobGet([job]))
    core(Move("r", job))
    [moved] = core(JobGet([job]))
    assert (moved.queue, moved.klass, moved.data, moved.priority) == ("r", "K", b"[1]", 3)
    assert (moved.retries, moved.remaining, moved.tags) == (2, 2, ("red",))
    assert (moved.throttles, moved.options) == (("gpu", "ql:q:r"), before.options)


def test_a_move_changes_what_it_is_told(core, job, door: Door):
    core(Move("r", job, 0, b"[2]", 0, "L", 0, ["blue", "green"], ["tpu"], []))
    [moved] = core(JobGet([job]))
    assert (moved.klass, moved.data, moved.priority, moved.retries, moved.remaining) == ("L", b"[2]", 0, 0, 0)
    assert (moved.tags, moved.throttles) == (("blue", "green"), ("tpu", "ql:q:r"))
    assert [door("tagged", tag, 0, 9)[0] for tag in ("red", "blue", "green")] == [0, 1, 1]
    core(Move("r", job, tags=[], throttles=[]))
    [bare] = core(JobGet([job]))
    assert (bare.tags, bare.throttles) == ((), ("ql:q:r",))


def test_a_move_with_parents_waits_for_them_instead_of_earlier_ones(core, job, door: Door):
    core(PutMany("p", ["a", "K", b"{}", "b", "K", b"{}"]))
    core(Move("r", job, depends=["a"]))
    assert door.state(job) == "depends"
    core(Move("r", job, depends=["b"]))
    [moved, a, b] = core(JobGet([job, "a", "b"]))
    assert (moved.dependencies, a.dependents, b.dependents) == (("b",), (), (job,))
    [first, second] = door.pop("w", "p", n=2)
    core(Complete("w", first))
    assert door.state(job) == "depends"
    core(Complete("w", second))
    assert door.state(job) == "waiting"


def test_a_move_into_a_circle_is_refused_and_changes_nothing(core, job, door: Door):
    core(PutX("q", [JobWithOptions("K", jid="child", options=ExtraOptions(depends=[job]))]))
    before = door.dump()
    for parents in ([job], ["child"]):
        with pytest.raises(DependencyRefused):
            core(Move("r", job, depends=parents))
    assert door.dump() == before


def test_a_move_gives_back_the_slots_of_throttles_that_it_takes_away(core, door: Door):
    door("throttle_set", "", 0, "gpu", 1, 0)
    core(
        PutX(
            "q", [JobWithOptions("K", jid=jid, options=ExtraOptions(throttles=["gpu"])) for jid in ("a", "b")]
        )
    )
    assert [job.jid for job in door.pop("w", "q", n=2)] == ["a"]
    assert door.state("b") == "throttled"
    core(Move("r", "a", throttles=[]))
    assert [job.jid for job in door.pop("w", "q", n=2)] == ["b"]


def test_a_client_of_an_earlier_release_ends_its_words_at_the_priority(core, job, door: Door):
    assert door("move", "", 0, "r", 0, job, "", "") == b"j"
    assert core(JobGet([job]))[0].queue == "r"


def jobs_and_queues(door: Door):
    """What the store holds, but for the answers that it keeps for repeats."""
    return {name for name in door.names() if not name.startswith("i:")}


@pytest.mark.parametrize("wish", [None, ExtraOptions(tags=["blue"])], ids=["put", "put_x"])
def test_a_put_for_a_job_that_must_exist_moves_it_and_makes_none(core, door: Door, wish):
    def put(jid):
        if wish is None:
            return core(Put("r", "L", b"[2]", jid, 1, 4, mode="old"))
        return core(PutX("r", [JobWithOptions("L", b"[2]", jid, wish)], 1, 4, mode="old"))

    before = jobs_and_queues(door)
    if wish:
        assert isinstance(put("nobody")[0], JobNotFound)
    else:
        with pytest.raises(JobNotFound, match="nobody does not exist"):
            put("nobody")
    assert jobs_and_queues(door) == before
    core(Put("q", "K", b"[1]", "j"))
    put("j")
    [job] = core(JobGet(["j"]))
    assert (job.queue, job.klass, job.data, job.priority, job.retries) == ("r", "L", b"[2]", 1, 4)
    assert [entry.what for entry in job.history] == ["put", "put"]
    assert [found.jid for found in door.pop("w", "r", n=2)] == ["j"]


def test_a_put_for_jobs_that_must_exist_names_those_that_do_not(core, door: Door):
    core(Put("q", "K", jid="a"))
    answers = core(PutMany("r", ["a", "K", b"{}", "b", "K", b"{}"], mode="old"))
    assert answers[0] == "a"
    assert isinstance(answers[1], JobNotFound)
    assert core(JobGet(["b"])) == [None]


def test_a_delayed_put_and_one_into_a_limited_queue_make_no_job_either(core, door: Door):
    door("throttle_set", "", 0, "ql:q:r", 1, 0)
    with pytest.raises(JobNotFound):
        core(Put("r", "K", jid="nobody", mode="old"))
    with pytest.raises(JobNotFound):
        core(Put("s", "K", jid="nobody", delay_ms=500, mode="old"))
    core(Put("q", "K", jid="j"))
    core(Put("s", "K", jid="j", delay_ms=500, mode="old"))
    assert door.state("j") == "scheduled"


def test_a_full_queue_takes_no_job_that_must_exist(core, door: Door):
    door("queue_set", "", 0, "r", "max-waiting", 1)
    core(Put("r", "K", jid="a"))
    core(Put("q", "K", jid="b"))
    with pytest.raises(QueueFull):
        core(Put("r", "K", jid="b", mode="old"))
    assert core(JobGet(["b"]))[0].queue == "q"
    assert isinstance(QueueFull(), Refused)
