"""Jobs with budgets of their own: failures paid from retries, losses from their own number, preemptions from neither."""

import pytest

from holdfast.commands.admin import ConfigSet
from holdfast.commands.failures import Unfail
from holdfast.commands.jobs import JobGet
from holdfast.commands.leases import Complete, Lease, Pop
from holdfast.commands.outcomes import Expire, Fail, Release, Retry
from holdfast.commands.queues import QueueSet
from holdfast.models import JobFacts
from native_door import Door, StoreMessage

BUDGETED = 8192


def put(door: Door, retries: str = "0/3", jid: str = "j", mode: str = "new", *options: str, delay: int = 0):
    if options:
        words = (jid, "k", "{}", len(options) // 2, *options)
        return door("put_x", "", 0, mode, "q", 0, retries, delay, *words)
    return door("put", "", 0, mode, "q", 0, retries, delay, jid, "k", "{}")


def facts(core, jid="j") -> JobFacts:
    return core(JobGet([jid]))[0]


def popped(core) -> JobFacts:
    [job] = core(Pop("w", ["q"]))
    return job


def lose(core, how="crashed", cause="SIGSEGV") -> JobFacts:
    job = popped(core)
    core(Release([Lease(job.jid, job.token, "w")], how, cause))
    return facts(core)


@pytest.mark.parametrize(("most", "cause", "sentence"), [
    (3, "SIGSEGV", "process died by SIGSEGV (worker w, attempt 4); 4 losses, max_losses 3"),
    (1, "exit status 3", "process died with exit status 3 (worker w, attempt 2); 2 losses, max_losses 1"),
    (0, "SIGKILL", "process died by SIGKILL (worker w, attempt 1); 1 losses, max_losses 0"),
    (0, "", "process died (worker w, attempt 1); 1 losses, max_losses 0"),
])  # fmt: skip
def test_one_crash_too_many_fails_a_job_whatever_its_retries(core, door: Door, most, cause, sentence):
    put(door, f"7/{most}")
    for count in range(most):
        job = lose(core, cause=cause)
        assert (job.state, job.losses, job.remaining) == ("waiting", count + 1, 7)
    failed = lose(core, cause=cause)
    assert (failed.state, failed.losses, failed.remaining) == ("failed", most + 1, 7)
    assert (failed.failure.group, failed.failure.message) == ("q-Crashed", sentence)
    lines = [
        (line.what, line.name, line.reason) for line in failed.history if line.what in ("crashed", "failed")
    ]
    assert lines == [("crashed", "losses", cause)] * (most + 1) + [("failed", "q-Crashed", "")]


@pytest.mark.parametrize("how", ["lease", "release", "expire"])
def test_leases_that_end_without_a_word_are_losses(core, clock, door: Door, how: str):
    core(ConfigSet("grace-period", "0"))
    put(door, "2/1")
    for _ in range(2):
        job = popped(core)
        if how == "lease":
            clock.advance(seconds=60)
        elif how == "expire":
            core(Expire([Lease("j", job.token, "w")]))
        else:
            core(Release([Lease("j", job.token, "w")], "lost"))
    assert core(Pop("v", ["q"])) == []
    failed = facts(core)
    assert (failed.state, failed.losses, failed.remaining) == ("failed", 2, 2)
    assert failed.failure.group == "q-Lost"
    sentence = "lease expired (worker w, attempt 2); 2 losses, max_losses 1"
    assert failed.failure.message == sentence


def test_many_lost_jobs_that_have_no_loss_left_fail_in_one_pop(core, clock, door: Door):
    core(ConfigSet("grace-period", "0"))
    for n in range(20):
        put(door, "5/0", f"j{n}")
    assert len(core(Pop("w", ["q"], limit=20))) == 20
    clock.advance(seconds=60)
    assert core(Pop("v", ["q"])) == []
    assert {facts(core, f"j{n}").state for n in range(20)} == {"failed"}


def test_losses_do_not_pay_for_failures_nor_failures_for_losses(core, door: Door):
    put(door, "2/3")
    lose(core)
    core(Retry("w", popped(core)))
    lose(core)
    job = popped(core)
    assert (job.remaining, job.losses, job.attempts) == (1, 2, 4)
    core(Retry("w", job))
    core(Retry("w", popped(core), group="q-E", message="m"))
    assert facts(core).failure.group == "q-E"


@pytest.mark.parametrize(("own", "queue", "fails"), [("0/3", "1", 2), ("0/0", "9", 1), ("0/200", "2", 3)])
def test_the_lower_of_the_job_s_and_the_queue_s_bound_holds(core, door: Door, own, queue, fails):
    core(QueueSet("q", "max-losses", queue))
    put(door, own)
    count = 0
    while facts(core).state != "failed":
        lose(core)
        count += 1
    assert count == fails
    assert facts(core).failure.message.endswith(f"{fails} losses, max_losses {fails - 1}")


@pytest.mark.parametrize("how", ["move", "unfail", "put"])
def test_a_new_life_has_fresh_budgets_and_the_same_bounds(core, door: Door, how: str):
    put(door, "1/2")
    lose(core)
    core(Fail("w", popped(core), "G"))
    if how == "move":
        door("move", "", 0, "q", 0, "j", "", "")
    elif how == "unfail":
        core(Unfail("q", "G", 1))
    else:
        put(door, "1/2", mode="move")
    for _ in range(2):
        assert lose(core).state == "waiting"
    assert lose(core).failure.group == "q-Crashed"


def test_a_put_says_anew_who_pays(core, door: Door):
    put(door, "1/0")
    put(door, "5", mode="move")
    assert lose(core).remaining == 4
    put(door, "0/3", mode="move")
    for _ in range(3):
        assert (lose(core).state, facts(core).remaining) == ("waiting", 0)
    assert lose(core).failure.group == "q-Crashed"
    put(door, "0/1", mode="only", jid="fresh")
    assert facts(core, "fresh").options == {"losses": 1}


@pytest.mark.parametrize("way", ["one", "many", "x", "delayed", "limited", "follow"])
def test_budgets_come_with_every_kind_of_put(core, clock, door: Door, way: str):
    many = [word for n in range(3) for word in (f"m{n}", "k", "{}")]
    if way == "one":
        put(door, "0/3")
    elif way == "many":
        door("put", "", 0, "new", "q", 0, "0/3", 0, "j", "k", "{}", *many)
    elif way == "x":
        put(door, "0/3", "j", "new", "tag", "red")
    elif way == "delayed":
        put(door, "0/3", delay=1_000)
        clock.advance(seconds=1)
    elif way == "limited":
        door("throttle_set", "", 0, "ql:q:q", 5, 0)
        put(door, "0/3")
    else:
        door("put", "", 0, "new", "first", 0, 5, 0, "p", "k", "{}")
        [first] = core(Pop("w", ["first"]))
        words = ("w", "p", first.token, "", 0, "", "", 0, 0, "q", 0, "0/3", 0, "j", "k", "{}", 0)
        assert door("complete_x", *words) == [b"complete"]
    job = facts(core)
    assert (job.flags // BUDGETED, job.retries, job.remaining) == (1, 0, 0)
    for _ in range(3):
        assert lose(core).state == "waiting"


def test_jobs_of_a_template_have_its_budgets(core, clock, door: Door):
    words = ("t", "k", "{}", 60_000, 0, 0, "2/1", 0, 0)
    door("recur", "", 0, "set", "q", *words)
    job = popped(core)
    assert job.jid == "t-1"
    core(Release([Lease(job.jid, job.token, "w")], "lost"))
    job = facts(core, "t-1")
    assert (job.losses, job.remaining) == (1, 2)
    assert (job.flags // BUDGETED, job.retries, job.options["losses"]) == (1, 2, 1)
    [template] = door.look("recur_get", "t")
    assert (template[7], template[12]) == (2, [b"losses", 1])


def test_a_plain_job_with_budgets_is_as_small_as_one_without(core, door: Door):
    put(door, "0/3", "own")
    put(door, "0", "class")
    sizes = {jid: door.ask("STRLEN", door.key(f"j:{jid}")) for jid in ("own", "class")}
    assert sizes["own"] == sizes["class"]
    for job in core(Pop("w", ["q"], limit=2)):
        core(Complete("w", job))
    assert {name for name in door.names() if name[:2] in ("x:", "b:")} == set()
    assert door.ask("LRANGE", door.key("c"), 0, -1) == [b"own", b"class"]


@pytest.mark.parametrize(
    "bad", ["1/", "/1", "1/255", "1001/3", "1/-1", "1/3/3", "a/b", "1/x", "-1/3", "1/03"]
)
def test_budgets_that_cannot_be_are_refused(door: Door, bad: str):
    with pytest.raises(StoreMessage, match=r"(retries|losses): expected a whole number"):
        put(door, bad)
    assert door.job("j") is None


def test_a_record_of_an_earlier_core_pays_with_retries(core, door: Door):
    """A job put by 0.1.0 has no mark, and its lost leases are paid as they were."""
    put(door, "5")
    job = facts(core)
    assert job.flags == 0
    for left in (4, 3, 2, 1, 0):
        assert lose(core).remaining == left
    assert lose(core).failure.group == "failed-retries-q"
