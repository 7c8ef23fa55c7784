"""What an operator does with many jobs: each of them is changed, stays the same, or is refused by itself."""

from collections.abc import Sequence
from hashlib import sha1

import pytest

from holdfast.commands.attributes import Tag
from holdfast.commands.failures import Failed, FailureGroups
from holdfast.commands.jobs import Await
from holdfast.commands.leases import WILL_WAIT, Complete, Pop
from holdfast.commands.operations import MAX_CHANGED, Act, Action
from holdfast.commands.outcomes import Fail, Retry, Timeout
from holdfast.commands.queues import CountQueues, GetStats, QueueNames, QueueSet, ThrottleSet
from holdfast.errors import JobNotFound, LeaseLost, Refused, WrongState
from native_door import Door, StoreMessage

DAY = 86_400
SHA = sha1(b"{}").hexdigest()
STATES = ("waiting", "running", "complete", "failed", "scheduled", "depends", "throttled", "stalled")
SAME = dict(zip(STATES, STATES, strict=True))


def act(core, action: Action, *jids: str, common: str = "", who: str = "") -> list[bool | Refused]:
    """All results, however many calls that takes."""
    left, found = [(jid, "") for jid in jids], []
    while left:
        results = core(Act(action, left, common, who))
        found += results
        left = left[len(results) :]
    return found


def held(door: Door) -> dict[str, bytes]:
    """The whole of a root without the replies that are kept for repeats."""
    return {key: value for key, value in door.dump().items() if not key.startswith("i:")}


def brief(results: Sequence[bool | Refused]) -> str:
    return "".join("!" if isinstance(one, Refused) else "+" if one else "=" for one in results)


@pytest.fixture
def eight(core, door: Door) -> Door:
    """A job in each state, named after it, in queue `q`."""
    core(ThrottleSet("db", 1))
    words = [word for jid in ("holder", "throttled") for word in (jid, "k", "{}", 1, "throttle", "db")]
    door("put_x", "", 0, "new", "q", 9, 5, 0, *words)
    door.pop("w", "q", n=2)
    door.put("q", "running", "complete", "failed", "stalled")
    for job in door.pop("w", "q", n=4)[1:]:
        if job.jid == "complete":
            core(Complete("w", job))
        elif job.jid == "failed":
            core(Fail("w", job, "G", "why"))
        else:
            core(Timeout((job.jid,)))
    door.put("q", "waiting")
    door.put("q", "scheduled", delay=60_000)
    door.put_waiting("depends", "waiting")
    assert {state: door.state(state) for state in STATES} == SAME
    return door


# For the states in their order: changed (+), the same (=), refused (!); and what the changed ones are then.
TABLE: dict[Action, tuple[str, str, str]] = {
    "retry": ("", "!!!+!!!!", "waiting"),
    "fail": ("", "!!!!!!!!", ""),
    "move": ("r", "++++++++", ""),
    "cancel": ("", "!+!+++++", "absent"),
    "delete": ("", "!!!+++++", "absent"),
    "expire": ("", "!+!!!!!!", "stalled"),
    "run": ("", "!!!!+!!!", "waiting"),
    "delay": ("1000", "+!!!+!!+", "scheduled"),
    "priority": ("3", "++!+++++", ""),
    "retries": ("7", "++!+++++", ""),
    "data": (SHA + "[1]", "+!!+++++", ""),
    "tag": ("vip", "++++++++", ""),
    "untag": ("vip", "========", ""),
    "track": ("", "++++++++", ""),
    "untrack": ("", "========", ""),
    "move-back": ("1 0 r", "!!!!!!!!", ""),
}
MOVED = dict.fromkeys(STATES, "waiting") | {"depends": "depends", "throttled": "throttled"}


@pytest.mark.parametrize("action", TABLE)
def test_an_action_does_what_the_state_of_each_job_allows(action: Action, core, eight: Door):
    common, expected, then = TABLE[action]
    before = held(eight)
    results = act(core, action, *STATES, common=common)
    assert brief(results) == expected
    for state, one in zip(STATES, results, strict=True):
        if isinstance(one, Refused):
            assert isinstance(one, WrongState) or one.code == "HF_DEPENDENCY_REFUSED"
            assert state in str(one)
        after = then if one is True and then else MOVED[state] if action == "move" else state
        assert eight.state(state) == after
    changed = {key.partition(":")[2] for key, held in held(eight).items() if before.get(key) != held}
    refused = {state for state, one in zip(STATES, results, strict=True) if one is not True}
    assert refused & changed == set()


def test_a_job_whose_lease_has_ended_is_failed_by_hand_and_one_that_runs_is_not(core, clock, door: Door):
    core(ThrottleSet("ql:q:q", 2))
    door.put("q", "lost", "runs")
    [first] = door.pop("w", "q")
    clock.advance(seconds=20)
    door.pop("w", "q")
    clock.advance(seconds=11)
    assert brief(act(core, "fail", "lost", "runs", who="ada")) == "+!"
    assert (door.state("lost"), door.state("runs")) == ("failed", "running")
    failed = door.job("lost")
    assert (failed.failure.group, failed.failure.worker) == ("q-Lost", "")
    assert failed.failure.message == "lease expired (worker w, attempt 1); failed by ada"
    assert (failed.history[-1].what, failed.history[-1].name) == ("failed", "q-Lost")
    assert core(CountQueues(["q"]))[0].running == 1
    with pytest.raises(LeaseLost):
        core(Complete("w", first))
    assert brief(act(core, "retry", "lost")) == "+"
    assert door.pop("v", "q")[0].jid == "lost"  # its slot is free


def test_the_sum_of_all_sets_stays(core, eight: Door):
    """Whatever is done, each job lies in one set: that of its state."""
    for action in ("retry", "run", "delay", "expire", "priority", "retries", "move"):
        act(core, action, *STATES, common=TABLE[action][0])
        rows = core(CountQueues())
        names = ("waiting", "running", "stalled", "throttled", "scheduled", "depends", "failed")
        complete = eight.state("complete") == "complete"
        assert sum(getattr(row, name) for row in rows for name in names) == len(STATES) + 1 - complete


def test_each_job_has_a_value_of_its_own_or_the_common_one(core, door: Door):
    door.put("q", "a", "b", "c")
    assert core(Act("priority", [("a", ""), ("b", "9"), ("c", "0")], "5")) == [True, True, False]
    assert [door.job(jid).priority for jid in "abc"] == [5, 9, 0]
    assert core(Act("move", [("a", ""), ("b", "s")], "r")) == [True, True]
    assert [door.job(jid).queue for jid in "abc"] == ["r", "s", "q"]
    assert core(Act("tag", [("a", ""), ("b", "x\ny"), ("c", "x\nx")], "z")) == [True, True, True]
    assert [door.job(jid).tags for jid in "abc"] == [("z",), ("x", "y"), ("x",)]


def test_unknown_jobs_are_refused_and_the_others_changed(core, door: Door):
    door.put("q", "a")
    first, second = core(Act("tag", [("nobody", ""), ("a", "")], "t"))
    assert isinstance(first, JobNotFound)
    assert str(first) == "job nobody does not exist"
    assert second is True


def test_a_jid_that_comes_twice_is_changed_once(core, door: Door):
    door.put("q", "a", "b")
    for job in door.pop("w", "q", n=2):
        core(Fail("w", job, "G", "why"))
    assert brief(act(core, "retry", "a", "b", "a")) == "++!"
    assert brief(act(core, "priority", "a", "a", common="3")) == "+="
    assert brief(act(core, "tag", "a", "a", common="t")) == "+="
    assert brief(act(core, "cancel", "a", "a")) == "+!"
    assert core(CountQueues(["q"]))[0].waiting == 1


def test_a_jid_that_comes_again_far_behind_is_refused(core, door: Door):
    jids = [f"j{n:03}" for n in range(200)]
    door.put("q", *jids)
    for job in door.pop("w", "q", n=200):
        core(Fail("w", job, "G", "why"))
    assert brief(act(core, "retry", *jids, jids[0], "nobody")) == 200 * "+" + "!!"
    assert core(CountQueues(["q"]))[0].waiting == 200


def test_no_jobs_are_no_change(core, eight: Door):
    before = held(eight)
    assert core(Act("retry", [])) == []
    assert held(eight) == before


def test_a_tag_that_is_there_and_a_tag_that_is_not_are_no_change(core, clock, eight: Door):
    core(Tag("add", "waiting", ["t", "u"]))
    clock.advance(seconds=5)
    before = held(eight)
    assert core(Act("tag", [("waiting", "u\nt")])) == [False]
    assert core(Act("untag", [("waiting", "x")])) == [False]
    assert core(Act("data", [("waiting", "0" * 40 + "{}")])) == [False]
    assert held(eight) == before
    assert core(Act("tag", [("waiting", "u\nnew")])) == [True]
    assert core(Act("untag", [("waiting", "t\nx")])) == [True]
    assert eight.job("waiting").tags == ("u", "new")


def test_a_job_gets_no_more_tags_than_it_may_have(core, door: Door):
    door.put("q", "a")
    assert core(Act("tag", [("a", "\n".join(f"t{n}" for n in range(64)))])) == [True]
    [refused] = core(Act("tag", [("a", "t0\none more")]))
    assert refused.code == "HF_TOO_MANY"
    assert len(door.job("a").tags) == 64


def test_a_failed_job_goes_back_to_the_queue_it_was_in_or_to_another(core, clock, door: Door):
    door.put("q", "a", "b", priority=7, retries=1)
    for _ in range(2):
        for job in door.pop("w", "q", n=2):
            core(Retry("w", job, 0, "G", "why", b"[2]"))
    core(Pop("v", ["r"], mode=WILL_WAIT))
    clock.advance(seconds=5)
    assert core(Act("retry", [("a", ""), ("b", "r")])) == [True, True]
    for jid, queue in (("a", "q"), ("b", "r")):
        job = door.job(jid)
        assert (job.queue, job.state, job.priority, job.remaining, job.data) == (
            queue,
            "waiting",
            7,
            1,
            b"[2]",
        )
        assert (job.history[-1].what, job.history[-1].name, job.history[-1].when_ms) == (
            "put",
            queue,
            clock.now_ms,
        )
        assert job.failure.message == "why"
    assert core(QueueNames()) == ["q", "r"]
    assert door.ask("LLEN", door.key("n:r")) == 1  # whoever waits there is woken
    assert core(Failed("G")) == (0, [])


def failed(core, door: Door, *jids: str, queue: str = "q") -> None:
    door.put(queue, *jids)
    for job in core(Pop("w", [queue], limit=len(jids))):
        core(Fail("w", job, "G", f"why {job.jid}"))


def facts(core, door: Door) -> object:
    """What an undone retry leaves as it was."""
    # The trend of a group begins anew when the last job left it.
    groups = [(one.name, one.count, one.first_ms, one.last_ms) for one in core(FailureGroups())[1]]
    [counts] = core(CountQueues(["q"]))
    day = core(GetStats("q"))
    jobs = [door.job(jid) for jid in "ab"]
    shown = [(job.state, job.queue, job.ended_ms, job.worker, job.failure) for job in jobs]
    return groups, counts, day, shown


def test_a_retry_is_undone_as_if_it_had_not_been(core, clock, door: Door):
    failed(core, door, "a", "b")
    clock.advance(seconds=100)
    before = facts(core, door)
    assert brief(act(core, "retry", "a", "b", common="r")) == "++"
    assert core(GetStats("q")).failed == 0
    assert brief(act(core, "fail", "a", "b", common="q")) == "++"
    assert facts(core, door) == before
    assert [line.what for line in door.job("a").history] == ["put", "popped", "failed", "put", "failed"]
    assert core(CountQueues(["r"]))[0].waiting == 0
    assert core(Pop("w", ["q", "r"], limit=9)) == []
    assert brief(act(core, "retry", "a", "b")) == "++"
    assert [job.jid for job in core(Pop("w", ["q"], limit=9))] == ["a", "b"]


def test_an_undone_retry_of_a_day_before_counts_for_that_day(core, clock, door: Door):
    failed(core, door, "a", "b")
    then = clock.now_ms
    clock.advance(seconds=1.5 * DAY)
    act(core, "retry", "a", "b")
    assert (core(GetStats("q", then)).failed, core(GetStats("q")).failed) == (0, 0)
    assert brief(act(core, "fail", "a", "b")) == "++"
    assert (core(GetStats("q", then)).failed, core(GetStats("q")).failed) == (2, 0)


def test_a_retry_is_not_undone_once_the_job_ran(core, clock, door: Door):
    failed(core, door, "a", "b", "c", "d", "e")
    act(core, "retry", "a", "b", "c", "d", "e")
    popped = {job.jid: job for job in core(Pop("w", ["q"], limit=4))}
    core(Retry("w", popped["b"], 0, "H", "again"))
    core(Timeout(("c",)))
    core(Complete("w", popped["d"]))
    before = held(door)
    assert brief(act(core, "fail", "a", "b", "c", "d")) == "!!!!"
    assert held(door) == before
    assert brief(act(core, "fail", "e")) == "+"


def test_a_job_that_never_failed_is_not_put_to_the_failed_ones(core, door: Door):
    door.put("q", "a", "b")
    [job, other] = door.pop("w", "q", n=2)
    core(Retry("w", job, 0, "G", "noted, but it did not fail"))
    door("release", "", 0, "preempted", "", "", "w", other.jid, other.token)
    act(core, "move", "a", common="q")
    before = held(door)
    assert brief(act(core, "fail", "a", "b")) == "!!"
    assert held(door) == before


def test_a_retry_is_undone_where_a_throttle_or_a_note_came_between(core, door: Door):
    core(ThrottleSet("db", 1))
    words = [word for jid in ("a", "b") for word in (jid, "k", "{}", 1, "throttle", "db")]
    door("put_x", "", 0, "new", "q", 0, 5, 0, *words)
    for _ in range(2):
        core(Fail("w", door.pop("w", "q")[0], "G", "why"))
    act(core, "retry", "a", "b")
    door.pop("w", "q", n=2)
    assert (door.state("a"), door.state("b")) == ("running", "throttled")
    door("log", "", 0, "b", "seen", "")
    assert brief(act(core, "fail", "a", "b")) == "!+"
    assert core(CountQueues(["q"]))[0].throttled == 0
    assert core(Failed("G")) == (1, ["b"])


def test_who_waits_for_a_retried_job_has_its_outcome_when_that_is_undone(core, door: Door):
    failed(core, door, "a")
    act(core, "retry", "a")
    [open_] = core(Await(("a",)))
    assert open_.status == "open"
    act(core, "fail", "a")
    [over] = core(Await(("a",)))
    assert over.status == "failed"


def test_an_undone_retry_makes_its_queue_known(core, door: Door):
    failed(core, door, "a", queue="once")
    act(core, "retry", "a", common="q")
    door("queue_forget", "", 0, "once")
    assert core(QueueNames()) == ["q"]
    assert brief(act(core, "fail", "a", common="once")) == "+"
    assert set(core(QueueNames())) == {"q", "once"}
    assert core(CountQueues(["once"]))[0].failed == 1


def test_a_queue_too_many_refuses_each_job_and_changes_nothing(core, door: Door):
    failed(core, door, "a", "b")
    door.put("q", "c")
    door("setting", "", 0, "max-queues", 1)
    before = held(door)
    for action in ("retry", "move"):
        refused = act(core, action, "a", "b", common="new")
        assert {one.code for one in refused if isinstance(one, Refused)} == {"HF_TOO_MANY_QUEUES"}
        assert len(refused) == 2
    assert held(door) == before


def test_data_are_replaced_behind_the_digest_of_those_there_were(core, door: Door):
    door.put("q", "a", "b")
    long = b'"' + b"x" * 5000 + b'"'
    assert core(Act("data", [("a", SHA.encode() + long), ("b", b"0" * 40 + long)]))[0] is True
    [_, refused] = core(Act("data", [("a", SHA.encode() + b"[1]"), ("b", b"0" * 40 + long)]))
    assert str(refused) == "the data of b was changed meanwhile"
    assert (door.job("a").data, door.job("b").data) == (long, b"{}")
    assert core(Act("data", [("a", sha1(long).hexdigest().encode() + b"[1]")])) == [True]
    assert [job.data for job in door.pop("w", "q", n=2)] == [b"[1]", b"{}"]


def test_a_parent_is_not_cancelled_while_a_child_waits_for_it(core, door: Door):
    door.put("q", "parent")
    door.put_waiting("child", "parent")
    [refused] = act(core, "cancel", "parent")
    assert "child" in str(refused)
    assert (door.state("parent"), door.state("child")) == ("waiting", "depends")
    assert brief(act(core, "cancel", "child", "parent", who="ann")) == "++"
    assert door.names() & {"j:parent", "j:child", "x:child", "d:parent"} == set()


def test_who_cancelled_is_kept_with_the_job(core, door: Door):
    door.put("q", "a")
    door.pop("w", "q")
    act(core, "cancel", "a", who="ann")
    [over] = core(Await(("a",)))
    assert (over.status, "ann" in str(over.error)) == ("cancelled", True) or over.status == "gone"


def test_jobs_that_wait_for_a_throttle_or_a_parent_move_with_what_they_wait_for(core, eight: Door):
    assert brief(act(core, "move", "throttled", "depends", common="r")) == "++"
    [counts] = core(CountQueues(["r"]))
    assert (counts.throttled, counts.depends) == (1, 1)
    assert brief(act(core, "cancel", "holder")) == "+"
    assert eight.pop("w", "r")[0].jid == "throttled"


def test_a_job_that_moves_away_from_its_full_queue_is_ready(core, door: Door):
    core(ThrottleSet("ql:q:q", 1))
    door.put("q", "a")
    door.pop("w", "q")
    door.put("q", "b", "c")
    assert (door.state("b"), door.state("c")) == ("throttled", "throttled")
    assert brief(act(core, "move", "b", common="r")) == "+"
    assert [job.jid for job in door.pop("w", "r")] == ["b"]
    assert brief(act(core, "expire", "a")) == "+"
    assert core(CountQueues(["q"]))[0].length == 2


def test_a_delayed_job_and_one_that_starts_now_are_found_by_a_pop(core, clock, door: Door):
    door.put("q", "a", "b")
    door.put("q", "later", delay=60_000)
    core(Pop("v", ["r"], mode=WILL_WAIT))
    assert brief(act(core, "delay", "a", common="5000")) == "+"
    assert brief(act(core, "run", "later")) == "+"
    assert [job.jid for job in door.pop("w", "q", n=9)] == ["b", "later"]
    clock.advance(seconds=5)
    assert [job.jid for job in door.pop("w", "q", n=9)] == ["a"]
    act(core, "move", "a", common="q")
    assert brief(act(core, "delay", "a", common="0")) == "+"
    assert [job.jid for job in door.pop("w", "q", n=9)] == ["a"]


def test_retries_grow_and_shrink_by_what_is_left(core, door: Door):
    door.put("q", "a", retries=5)
    for _ in range(2):
        core(Retry("w", door.pop("w", "q")[0], 0))
    for given, left in (("9", 7), ("3", 1), ("1", 0), ("0", 0), ("2", 2)):
        assert core(Act("retries", [("a", given)])) == [True]
        assert (door.job("a").retries, door.job("a").remaining) == (int(given), left)


def test_a_repeat_of_the_same_request_returns_what_it_did(core, door: Door):
    failed(core, door, "a", "b")
    words = ("act", "line", 7, "retry", "", "", "", "", 0, "", 0, 0, "a", "", "nobody", "", "b", "")
    first = door(*words)
    assert first == [1, b"HF_JOB_NOT_FOUND nobody", 1]
    door.pop("w", "q", n=2)
    assert door(*words) == first
    with pytest.raises(StoreMessage, match="HF_STALE_NUMBER"):
        door(*[6 if word == 7 else word for word in words])


def test_a_repeat_returns_the_longest_reply_there_can_be(core, door: Door):
    """Refusals with names of 200 bytes, which are cut."""
    parents, children = [[f"{kind}{n:03}".ljust(200, "x") for n in range(40)] for kind in "pc"]
    door.put("q", *parents)
    for parent, child in zip(parents, children, strict=True):
        door.put_waiting(child, parent)
    words = [word for parent in parents for word in (parent, "")]
    begin = ("act", "line", 7, "cancel", "", "", "", "", 0, "", 0, 0)
    first = door(*begin, *words)
    assert len(first) == 40
    assert all(len(one) <= 400 and one.startswith(b"HF_DEPENDENCY_REFUSED") for one in first)
    assert door(*begin, *words) == first
    assert MAX_CHANGED * (400 + 5) < 131_072  # bytes of a reply that are kept


def test_256_jobs_go_in_one_call_or_a_few(core, door: Door):
    jids = [f"j{n:03}" for n in range(MAX_CHANGED)]
    door.put("q", *jids)
    assert core(Act("priority", [(jid, "") for jid in jids], "5")) == [True] * 256
    with pytest.raises(Refused, match="at most 256"):
        core(Act("priority", [(jid, "") for jid in [*jids, "more"]], "6"))
    for job in door.pop("w", "q", n=256):
        core(Fail("w", job, "G", "why"))
    assert act(core, "retry", *jids) == [True] * 256
    assert act(core, "move", *jids, common="r") == [True] * 256
    popped = [job.jid for _ in range(2) for job in door.pop("w", "r", n=128)]
    assert popped == jids
    assert act(core, "cancel", *jids) == [True] * 256
    assert core(CountQueues(["r"]))[0].length == 0


def test_jobs_that_take_long_are_left_for_another_call(core, door: Door):
    door.put("q", "hub")
    children = [f"c{n:03}" for n in range(300)]
    for at in range(0, 300, 100):
        words = [word for jid in children[at : at + 100] for word in (jid, "k", "{}", 1, "depends", "hub")]
        door("put_x", "", 0, "new", "q", 0, 5, 0, *words)
    door.put("q", "plain")
    jobs = [("hub", ""), ("plain", ""), ("hub", ""), ("hub", "")]
    results = core(Act("cancel", jobs))
    assert brief(results) == "!+!"
    assert brief(core(Act("cancel", jobs[3:]))) == "!"


def test_a_bound_on_what_waits_does_not_keep_failed_jobs_from_work(core, door: Door):
    failed(core, door, "a")
    core(QueueSet("q", "max-waiting", 1))
    door.put("q", "b")
    assert brief(act(core, "retry", "a")) == "+"


RETRY = ("act", "", 0, "retry", "", "", "", "", 0, "", 0, 0)


@pytest.mark.parametrize(
    "words",
    [
        ("act",), RETRY[:11], ("act", "", 0, "vanish", *RETRY[4:], "a", ""), ("act", "", 0, "", *RETRY[4:]), (*RETRY, "a"), (*RETRY, "", ""),
        (*RETRY, "a\nb", ""), (*RETRY, "a", "x\ny"), (*RETRY, "a", "n" * 201), ("act", "", 0, "retry", "x\ny", *RETRY[5:], "a", ""),
        ("act", "", 0, "retry", "", "w\n", *RETRY[6:], "a", ""), ("act", "", 0, "retry", "", "", "o\n", *RETRY[7:], "a", ""),
        (*RETRY[:8], -1, *RETRY[9:], "a", ""), (*RETRY[:8], 3_600_001, *RETRY[9:]), (*RETRY[:9], "c" * 4097, 0, 0), (*RETRY[:10], -1, 0),
        (*RETRY[:11], "x"), (*RETRY[:10], 10**10, 0),
        *[("act", "", 0, action, common, *RETRY[5:], "good", "", "a", value) for action, common, value in (
            ("cancel", "", "x"), ("delete", "x", ""), ("expire", "x", ""), ("run", "", "x"), ("track", "x", ""), ("untrack", "", "1"),
            ("priority", "", ""), ("priority", "1.5", ""), ("priority", "4096", ""), ("priority", "1", "x"), ("priority", "1", "-4096"),
            ("retries", "", ""), ("retries", "-1", ""), ("retries", "1001", ""), ("retries", "1/2", ""), ("retries", "1", "1e2"),
            ("delay", "", ""), ("delay", "-1", ""), ("delay", "1", "inf"), ("delay", "1", "9" * 15),
            ("data", "", ""), ("data", SHA, ""), ("data", SHA + "{}", SHA), ("data", "z" * 40 + "{}", ""), ("data", SHA[:39], ""),
            ("tag", "", ""), ("tag", "\n", ""), ("tag", "a\tb", ""), ("tag", "t", "n" * 201), ("tag", "t", "x\n" * 65),
            ("untag", "", ""), ("untag", "t", "\n\n"), ("tag", "t", b"\xff"), ("tag", "n" * 4097, ""),
        )],
    ],
)  # fmt: skip
def test_an_act_that_makes_no_sense_is_refused_before_anything_changes(words, core, door: Door):
    door.put("q", "good", "a", delay=1000)
    before = held(door)
    with pytest.raises(StoreMessage, match=r"HF_(BAD_ARGUMENT|TOO_MANY)"):
        door(*words)
    assert held(door) == before


def test_data_that_are_too_large_are_refused_with_the_whole_call(core, door: Door):
    door.put("q", "a", "b")
    door("setting", "", 0, "max-data", 2000)
    before = held(door)
    words = ("a", SHA + "[1]", "b", SHA + '"' + "x" * 2000 + '"')
    with pytest.raises(StoreMessage, match="HF_DATA_TOO_LARGE"):
        door("act", "", 0, "data", *RETRY[4:], *words)
    assert held(door) == before
