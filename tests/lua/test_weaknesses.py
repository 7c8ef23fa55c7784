"""Weaknesses of the protocol that have a compatible cure, by the numbers of its list, as the native door has it cured."""

import pytest

from holdfast.commands.admin import ConfigGet, ConfigSet
from holdfast.commands.attributes import Log, Tag, Tagged, Tags, Track, Tracked
from holdfast.commands.failures import Failures, Unfail
from holdfast.commands.jobs import Cancel, JobGet, JobsComplete, Move, Put, PutMany
from holdfast.commands.leases import Complete, CompleteMany, Done, Heartbeat
from holdfast.commands.options import ExtraOptions, JobWithOptions, PutX
from holdfast.commands.outcomes import Advance, Fail, Retry, Timeout
from holdfast.commands.queues import CountQueues, GetStats, Peek, QueueNames, ThrottleRelease, ThrottleSet
from holdfast.commands.recurring import Recur
from holdfast.commands.workers import Workers
from holdfast.errors import LeaseLost, WrongState
from native_door import Door, StoreMessage

VERBATIM = b'{"b":[],"n":12345678901234567890,"a":0.1000000000000000055}'


def facts(door: Door, jid: str = "a"):
    job = door.job(jid)
    assert job
    return job


def counts(core, queue: str = "q"):
    return core(CountQueues([queue]))[0]


def limit(door: Door, queue: str, most: int) -> None:
    door("throttle_set", "", 0, f"ql:q:{queue}", most, 0)


def test_w2_a_put_can_refuse_to_take_over_a_job_that_is_there(core, door: Door):
    core(Put("q", "k", b"1", "a"))
    assert door("put", "", 0, "only", "other", 0, 5, 0, "a", "k", "2")[0] == 0
    assert (facts(door).queue, facts(door).data) == ("q", b"1")


def test_w4_a_higher_priority_goes_first_however_much_later_it_comes(core, clock, door: Door):
    door.put("q", "low", priority=1)
    clock.advance(seconds=86_400 * 3_000)
    door.put("q", "high", priority=2)
    assert [job.jid for job in door.pop("w", "q", n=2)] == ["high", "low"]


def test_w5_what_comes_at_one_moment_goes_out_in_the_order_it_came(core, clock, door: Door):
    jids = ["c", "a", "b"]
    door.put("q", *jids)
    assert [job.jid for job in door.pop("w", "q", n=3)] == jids
    for jid, token in ((jid, facts(door, jid).token) for jid in jids):
        door("fail", "w", "G", "m", jid, token, "")
        clock.advance(seconds=1)
    core(Unfail("q", "G", 9))
    assert [job.jid for job in door.pop("w", "q", n=3)] == jids


def test_w6_a_wait_that_would_be_negative_counts_as_none(core, clock, door: Door):
    door.put("q", "a")
    clock.advance(seconds=-5)
    door.pop("w", "q")
    wait = core(GetStats("q")).wait
    assert (wait.count, wait.mean, wait.histogram[0]) == (1, 0, 1)


def test_w7_a_tag_counts_its_distinct_jobs(core, door: Door):
    door.put("q", "a", "b")
    for _ in range(2):
        core(Tag("add", "a", ["red"]))
    core(Tag("remove", "b", ["red"]))
    assert core(Tags(1)) == {"red": 1}


def test_w8_the_mark_of_a_job_that_is_gone_is_listed_and_can_be_taken_away(core, door: Door):
    door.put("q", "a")
    core(Track(True, "a"))
    core(Cancel(["a"]))
    assert [(mark.jid, mark.exists) for mark in core(Tracked())] == [("a", False)]
    assert core(Track(False, "a"))
    assert core(Tracked()) == []


def test_w9_what_is_left_of_a_vanished_job_stops_nothing(core, clock, door: Door):
    door.put("q", "lost", "failed", "waits", "well")
    limit(door, "aside", 1)
    door.put("aside", "first", "second", "third")
    door.pop("w", "aside")
    lost, bad = door.pop("w", "q", n=2)
    core(Fail("w", bad, "G", "m"))
    for jid in ("lost", "failed", "waits", "second"):
        door.ask("DEL", door.key(f"j:{jid}"))
    clock.advance(seconds=100)
    assert [job.jid for job in door.pop("v", "q", n=5)] == ["well"]
    assert counts(core).stalled == 0
    assert core(Unfail("q", "G", 5)) == 0
    assert core(Failures())[1] == {}
    with pytest.raises(LeaseLost):
        core(Heartbeat("w", lost))


def test_w10_as_many_as_a_call_may_take_are_taken_whole_and_more_is_refused(core, door: Door):
    for first in range(0, 1_024, 512):
        core(PutMany("q", [word for n in range(first, first + 512) for word in (f"j{n}", "k", b"{}")]))
    with pytest.raises(StoreMessage):
        door("pop", "w", "", 0, 513, 0, "q", 0)
    assert (counts(core).waiting, counts(core).running) == (1_024, 0)
    assert len(door.pop("w", "q", n=512)) == 512
    assert (counts(core).waiting, counts(core).running) == (512, 512)


@pytest.mark.parametrize("data", ["7", '"text"', "null", "true", "[1]"])
def test_w11_a_line_takes_an_object_or_nothing_and_the_job_stays_readable(core, door: Door, data: str):
    door.put("q", "a")
    with pytest.raises(StoreMessage, match="JSON object"):
        door("log", "", 0, "a", "seen", data)
    core(Log("a", "seen", b'{"x":1}'))
    assert facts(door).history[-1].data == {"x": 1}


def test_w12_a_retry_knows_no_other_queue_than_the_job_s_own(core, door: Door):
    door.put("q", "a", retries=1)
    core(Retry("w", door.pop("w", "q")[0]))
    assert (facts(door).queue, counts(core).waiting) == ("q", 1)
    [again] = door.pop("w", "q")
    core(Retry("w", again, 0, "G", "m"))
    assert core(Cancel(["a"])) == [True]
    assert core(GetStats("q")).failed == 0
    assert {name[:2] for name in door.names()} & {"j:", "x:", "l:", "w:", "f:"} == set()


def test_w13_a_job_that_was_given_back_belongs_to_nobody(core, door: Door):
    door.put("q", "a")
    core(Retry("w", door.pop("w", "q")[0]))
    assert (facts(door).worker, facts(door).expires_ms, facts(door).token) == ("", 0, 0)


def test_w14_a_timeout_takes_all_leases_or_none(core, door: Door):
    door.put("q", "a", "b")
    door.pop("w", "q")
    with pytest.raises(WrongState):
        core(Timeout(["a", "b"]))
    assert (facts(door).state, facts(door).worker) == ("running", "w")
    core(Timeout(["a"]))
    assert (facts(door).state, facts(door).worker) == ("stalled", "")
    assert counts(core).running == 0


@pytest.mark.parametrize("end", ["heartbeat", "timeout", "retry", "move", "advance", "fail"])
def test_w15_every_loss_has_its_own_grace_however_the_last_one_ended(core, clock, door: Door, end: str):
    door.put("q", "a")
    [job] = door.pop("w", "q")
    clock.advance(seconds=61)
    assert door.pop("v", "q") == []
    ends = {
        "heartbeat": Heartbeat("w", job), "timeout": Timeout(["a"]), "retry": Retry("w", job), "move": Move("q", "a"),
        "advance": Advance("w", "q", job), "fail": Fail("w", job, "G", "m"),
    }  # fmt: skip
    core(ends[end])
    if end == "fail":
        core(Unfail("q", "G", 1))
    if end != "heartbeat":
        assert [job.jid for job in door.pop("w", "q")] == ["a"]
    clock.advance(seconds=61)
    assert door.pop("v", "q") == []
    assert facts(door).history[-1].what == "timed-out"
    clock.advance(seconds=10)
    assert [job.jid for job in door.pop("v", "q")] == ["a"]


def test_w16_a_moved_job_gives_back_its_slot_and_waits_for_none(core, door: Door):
    limit(door, "q", 1)
    door.put("q", "a", "b", "c")
    door.pop("w", "q")
    assert door.pop("w", "q") == []
    core(Move("other", "a"))
    assert [job.jid for job in door.pop("w", "q")] == ["b"]
    core(Move("other", "c"))
    assert counts(core).throttled == counts(core).waiting == 0
    core(Complete("w", Done("b", facts(door, "b").token)))
    assert door.pop("w", "q") == []
    assert [job.jid for job in door.pop("w", "other", n=5)] == ["a", "c"]


def test_w17_a_job_that_went_on_is_under_the_limit_of_its_new_queue(core, door: Door):
    limit(door, "next", 1)
    door.put("q", "a", "b", retries=0)
    a, b = door.pop("w", "q", n=2)
    core(Advance("w", "next", a))
    core(Fail("w", b, "G", "m"))
    core(Unfail("next", "G", 1))
    assert [job.jid for job in door.pop("w", "next", n=2)] == ["a"]
    core(Complete("w", Done("a", facts(door).token)))
    assert [job.jid for job in door.pop("w", "next", n=2)] == ["b"]
    assert facts(door, "b").throttles == ("ql:q:next",)


def test_w18_a_job_that_goes_on_later_is_scheduled(core, clock, door: Door):
    door.put("q", "a")
    core(Advance("w", "next", door.pop("w", "q")[0], 5_000))
    assert (facts(door).state, facts(door).due_ms) == ("scheduled", clock.now_ms + 5_000)
    assert door.pop("w", "next") == []


def test_w20_failed_is_counted_where_the_job_failed_and_unfail_makes_its_queue_known(core, door: Door):
    door.put("q", "a", "b")
    for job in door.pop("w", "q", n=2):
        core(Fail("w", job, "G", "m"))
    assert core(Unfail("fresh", "G", 1)) == 1
    core(Put("other", "k", b"{}", "b", mode="move"))
    assert set(core(QueueNames())) == {"q", "fresh", "other"}
    assert [core(GetStats(queue)).failed for queue in ("q", "fresh", "other")] == [0, 0, 0]


def test_w21_cancelling_what_is_not_there_changes_nothing_and_a_lost_counter_stops_nothing(core, door: Door):
    assert core(Cancel(["nobody"])) == [False]
    door.put("q", "a")
    core(Fail("w", door.pop("w", "q")[0], "G", "m"))
    for name in door.names():
        if name.startswith("z:"):
            door.ask("DEL", door.key(name))
    assert core(Cancel(["a"])) == [True]
    assert core(GetStats("q")).failed == 0


def test_w22_data_are_kept_to_the_letter(core, door: Door):
    door.put("q", "a")
    [job] = door.pop("w", "q")
    core(Heartbeat("w", job, None, VERBATIM))
    assert facts(door).data == VERBATIM
    core(Fail("w", job, "G", "m", VERBATIM + b" "))
    assert facts(door).data == VERBATIM + b" "


def test_w26_one_bad_wish_among_many_leaves_everything_as_it_was(core, door: Door):
    core(PutX("q", [JobWithOptions("k", b"{}", "a", ExtraOptions(tags=["red"]))]))
    before = door.dump()
    bad = ("a", "k", "{}", 2, "tag", "blue", "expires", "soon")
    with pytest.raises(StoreMessage, match="expires"):
        door("put_x", "", 0, "move", "q", 0, 5, 0, "b", "k", "{}", 0, *bad)
    assert door.dump() == before


def test_w27_a_delay_is_forgotten_with_the_dependency_it_came_with(core, clock, door: Door):
    door.put("q", "p1", "p2")
    core(PutX("r", [JobWithOptions("k", b"{}", "a", ExtraOptions(depends=["p1"]))], delay_ms=60_000))
    door("depend", "", 0, "remove", "a", "p1")
    core(PutX("r", [JobWithOptions("k", b"{}", "a", ExtraOptions(depends=["p2"]))], mode="move"))
    core(CompleteMany("w", [Done(job.jid, job.token) for job in door.pop("w", "q", n=2)]))
    assert facts(door).state == "waiting"


def test_w27_a_job_waits_neither_for_itself_nor_in_a_circle(core, door: Door):
    door.put("q", "p")
    assert door("put_x", "", 0, "new", "q", 0, 5, 0, "a", "k", "{}", 1, "depends", "a")[0] == 0
    core(PutX("q", [JobWithOptions("k", b"{}", "a", ExtraOptions(depends=["p"]))]))
    reply = door("put_x", "", 0, "move", "q", 0, 5, 0, "p", "k", "{}", 1, "depends", "a")
    assert reply[0] == 0
    assert b"HF_DEPENDENCY_REFUSED" in reply[2]


@pytest.mark.parametrize(("most", "left"), [(1, ["put"]), (2, ["put", "z"]), (3, ["put", "y", "z"])])
def test_w28_a_history_of_n_lines_has_n(core, door: Door, most: int, left: list[str]):
    core(ConfigSet("max-job-history", str(most)))
    door.put("q", "a")
    for what in "xyz":
        core(Log("a", what))
    assert [line.what for line in facts(door).history] == left


def test_w29_a_purge_goes_on_where_the_last_one_stopped(core, door: Door):
    for first in range(0, 1_536, 512):
        door.put("q", *[f"j{n}" for n in range(first, first + 512)])
        core(CompleteMany("w", [Done(job.jid, job.token) for job in door.pop("w", "q", n=512)]))
    core(ConfigSet("jobs-history-count", "0"))
    left = [door("sweep", "", 0) for _ in range(4)]
    assert left[0] <= 1_280
    assert sum(left) == 1_536
    door.put("q", "last")
    core(Complete("w", door.pop("w", "q")[0]))
    assert (core(JobsComplete()), door.job("last")) == ([], None)


def test_w31_a_history_has_a_limit_in_bytes(core, door: Door):
    door("setting", "", 0, "max-history-bytes", 4_096)
    door.put("q", "a")
    for n in range(20):
        core(Log("a", f"n{n}", b'{"d":"%s"}' % (b"x" * 1_000)))
    assert door.ask("HSTRLEN", door.key("x:a"), "h") <= 4_096
    assert facts(door).history[-1].what == "n19"


def test_w32_nothing_of_a_job_outlives_it(core, door: Door):
    limit(door, "q", 1)
    core(PutX("q", [JobWithOptions("k", b"x" * 600, "a", ExtraOptions(tags=["red"], keep_ms=5))], retries=0))
    core(Fail("w", door.pop("w", "q")[0], "G", "m"))
    core(Log("a", "seen"))
    core(Cancel(["a"]))
    assert {name for name in door.names() if "a" in name.split(":")[1:] or name in ("F", "G")} == {"E:a"}
    assert counts(core).failed == 0


def test_w33_a_heartbeat_is_a_sign_of_life(core, clock, door: Door):
    door.put("q", "a")
    [job] = door.pop("w", "q")
    clock.advance(seconds=30)
    core(Heartbeat("w", job))
    assert [(worker.name, worker.seen_ms) for worker in core(Workers())] == [("w", clock.now_ms)]


def test_w35_and_w39_looking_moves_nothing(core, clock, door: Door):
    door.put("q", "a", delay=1_000)
    clock.advance(seconds=2)
    before = door.dump()
    assert (counts(core).waiting, counts(core).scheduled) == (1, 0)
    assert [job.state for job in core(Peek("q"))] == [job.state for job in core(JobGet(["a"]))] == ["waiting"]
    assert door.dump() == before


def test_w36_every_key_of_a_root_lies_in_its_slot(core, door: Door):
    core(PutX("q}", [JobWithOptions("k", b"{}", "{a}", ExtraOptions(tags=["}{"]))]))
    door.pop("w{", "q}")
    keys = [door.key(name) for name in door.names()]
    assert len(keys) > 8
    assert len({key[key.index("{") : key.index("}") + 1] for key in keys}) == 1


def test_w37_no_name_meets_a_key_of_another(core, door: Door):
    jids = ["a", "a-history", "a-dependencies", "a:h", "x:a", "j:a", "c", "Q"]
    core(PutX("a", [JobWithOptions("k", b"{}", jid, ExtraOptions(tags=["a", jid])) for jid in jids]))
    for jid in jids:
        core(Log(jid, "seen"))
    assert [job.jid for job in door.pop("a", "a", n=9)] == jids
    core(Cancel(jids[1:]))
    assert facts(door).tags == ("a",)
    assert core(Tagged("a")) == (1, ["a"])


def test_w38_a_maximum_is_a_number_and_a_higher_one_lets_jobs_go(core, door: Door):
    limit(door, "q", 1)
    with pytest.raises(StoreMessage):
        door("throttle_set", "", 0, "ql:q:q", "many", 0)
    door.put("q", "a")
    door.pop("w", "q")
    door.put("q", "b", "c")
    assert counts(core).throttled == 2
    limit(door, "q", 2)
    assert (counts(core).throttled, counts(core).waiting) == (1, 1)


def test_w43_used_up_retries_are_a_failure_of_the_group_that_is_named(core, door: Door):
    door.put("q", "a", retries=0)
    assert core(Retry("w", door.pop("w", "q")[0], 0, "mine", "why")) == -1
    assert core(Failures())[1] == {"mine": 1}


def test_w45_a_setting_that_is_no_number_counts_as_not_set(core, clock, door: Door):
    core(ConfigSet("heartbeat", "often"))
    core(ConfigSet("grace-period", "some"))
    core(ConfigSet("max-job-history", "long"))
    assert core(ConfigGet(["heartbeat"])) == {"heartbeat": "often"}
    door.put("q", "a")
    [job] = door.pop("w", "q")
    assert job.expires_ms == clock.now_ms + 30_000
    core(Log("a", "seen"))
    clock.advance(seconds=31)
    assert door.pop("v", "q") == []
    clock.advance(seconds=5)
    assert [job.jid for job in door.pop("v", "q")] == ["a"]


def test_w46_retries_are_whole(core, door: Door):
    with pytest.raises(StoreMessage, match="retries"):
        door("put", "", 0, "new", "q", 0, "2.5", 0, "a", "k", "{}")
    assert door.names() == {""} or "j:a" not in door.names()


def named(*throttles: str) -> ExtraOptions:
    return ExtraOptions(throttles=throttles)


def test_w2_a_recurring_job_takes_over_no_job_that_is_there(core, clock, door: Door):
    door.put("other", "r-1")
    core(Recur("q", "k", jid="r", interval_ms=1_000))
    assert [job.jid for job in door.pop("w", "q")] == ["r-2"]
    assert facts(door, "r-1").queue == "other"


def test_w6_the_statistics_of_a_day_go_after_the_days_that_are_set(core, clock, door: Door):
    door("setting", "", 0, "stats-days", 2)
    for n in range(6):
        door.put("q", f"a{n}")
        core(Complete("w", door.pop("w", "q")[0]))
        clock.advance(seconds=86_400)
    days = {name.rpartition(":")[2] for name in door.names() if name.startswith(("z:", "aw:", "ar:"))}
    assert len(days) == 3


@pytest.mark.parametrize("out", ["put", "move", "cancel"])
def test_w19_a_job_that_was_released_while_it_was_pending_can_be_had_back(core, door: Door, out: str):
    core(ThrottleSet("db", 1))
    core(PutX("q", [JobWithOptions("k", b"{}", jid, named("db")) for jid in ("a", "b")]))
    door.pop("w", "q", n=2)
    core(ThrottleRelease("db", ["b"]))
    core(Complete("w", Done("a", facts(door, "a").token)))
    assert (facts(door, "b").state, door.pop("w", "q")) == ("throttled", [])
    if out == "cancel":
        assert core(Cancel(["b"])) == [True]
        assert (counts(core).throttled, door.job("b")) == (0, None)
        return
    core(Put("q", "k", b"{}", "b", mode="move") if out == "put" else Move("q", "b"))
    assert [job.jid for job in door.pop("w", "q")] == ["b"]


def test_w23_and_w24_lists_are_lists_and_times_are_whole_milliseconds(core, clock, door: Door):
    clock.advance(seconds=0.123)
    door.put("q", "a")
    job = facts(door)
    assert (job.tags, job.dependencies, job.history[0].when_ms) == ((), (), clock.now_ms)
    assert clock.now_ms % 1_000 == 123


LATE_FAULTS = [
    ("recur_update", "", 0, "r", "priority", 7, "interval", 0),
    ("recur", "", 0, "set", "q", "r", "k", "{}", 0, 0, 0, 5, 0, 0),
    ("throttle_set", "", 0, "db", 7, "soon"),
    ("priorities_set", '{"pattern":["x"]}', '{"pattern":7}'),
    ("identifiers_set", "x", '["x"]', "y", "7"),
    ("complete_x", "w", "a", 1, "", 0, "", "", 0, 0, "q", 0, 5, 0, "n", "k", "{}", 1, "expires", "soon"),
    ("tag", "add", "a", "blue", ""), ("recur_tag", "add", "r", "blue", ""),
    ("config_set", "", "7"), ("setting", "", 0, "keep-data", 7), ("queue_set", "", 0, "q", "max-waiting", "many"),
]  # fmt: skip


@pytest.mark.parametrize("call", LATE_FAULTS, ids=lambda call: str(call[0]))
def test_w26_what_is_wrong_at_the_end_of_a_call_is_found_before_its_beginning_is_done(core, door: Door, call):
    core(PutX("q", [JobWithOptions("k", b"{}", "a", ExtraOptions(tags=["red"]))]))
    core(Recur("q", "k", jid="r", interval_ms=1_000, offset_ms=9_000))
    core(ThrottleSet("db", 3))
    before = door.dump()
    with pytest.raises(StoreMessage):
        door(*call)
    assert door.dump() == before


def test_w30_a_template_that_is_far_behind_leaves_room_for_others(core, clock, door: Door):
    core(Recur("q", "k", jid="far", interval_ms=1_000))
    core(Recur("q", "k", jid="near", interval_ms=3_600_000, offset_ms=1_000))
    clock.advance(seconds=3_600)
    spawned = {job.spawned_from for _ in range(45) for job in door.pop("w", "q", n=100)}
    assert spawned == {"far", "near"}
    with pytest.raises(StoreMessage, match="interval"):
        door("recur_update", "", 0, "far", "interval", 0)


def test_w40_a_pop_looks_behind_jobs_that_are_set_aside(core, door: Door):
    core(ThrottleSet("db", 1))
    core(PutX("q", [JobWithOptions("k", b"{}", f"t{n}", named("db")) for n in range(4)]))
    door.put("q", "free")
    assert [job.jid for job in door.pop("w", "q", n=2)] == ["t0", "free"]


def test_w47_a_job_that_recurs_is_throttled_when_it_is_popped_not_when_it_is_put(core, clock, door: Door):
    core(ThrottleSet("db", 1))
    core(PutX("q", [JobWithOptions("k", b"{}", "first", named("db"))]))
    door.pop("w", "q")
    core(Recur("q", "k", jid="r", interval_ms=60_000, options=named("db")))
    door.put("q", "before", priority=9)
    door.pop("w", "q")
    assert [line.what for line in facts(door, "r-1").history] == ["put"]
    assert door.pop("w", "q") == []
    assert facts(door, "r-1").state == "throttled"


def test_w48_a_throttle_binds_a_job_once_and_the_queue_s_own_comes_last(door: Door):
    names = [word for name in ("db", "ql:q:q", "db", "net") for word in ("throttle", name)]
    door("put_x", "", 0, "new", "q", 0, 5, 0, "a", "k", "{}", 4, *names)
    assert facts(door).throttles == ("db", "net", "ql:q:q")
