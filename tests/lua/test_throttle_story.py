"""Named throttles: checked at put, taken at pop all or none, handed on when a job is done with them."""

import pytest

from holdfast.commands.admin import ConfigSet, Sweep
from holdfast.commands.leases import WILL_WAIT, WOKEN, Complete, CompleteMany, Done, Pop
from holdfast.commands.outcomes import Advance, Expire, Fail, Retry, Timeout
from holdfast.commands.queues import (
    CountQueues,
    ThrottleDelete,
    ThrottleGet,
    ThrottleNames,
    ThrottleRelease,
    ThrottleSet,
)
from holdfast.models import JobFacts
from native_door import Door

pytestmark = pytest.mark.each


def put(
    door: Door,
    jid: str,
    *throttles: str,
    queue: str = "q",
    priority: int = 0,
    mode: str = "new",
    delay: int = 0,
):
    wish = [word for name in throttles for word in ("throttle", name)]
    return door(
        "put_x", "", 0, mode, queue, priority, 5, delay, jid, "k", "{}", len(throttles), *wish
    )  # fmt: skip


def put_many(door: Door, jids: list[str], name: str) -> None:
    for first in range(0, len(jids), 200):
        words = [word for jid in jids[first : first + 200] for word in (jid, "k", "{}", 1, "throttle", name)]
        door("put_x", "", 0, "new", "q", 0, 5, 0, *words)


def jids(jobs: list[JobFacts]) -> list[str]:
    return [job.jid for job in jobs]


def members(door: Door, kind: str, name: str) -> list[str]:
    return [jid.decode() for jid in door.look("list", kind, name, "", "", 512, "")[::2]]


def who(door: Door, name: str) -> tuple[list[str], list[str]]:
    """Who holds a slot and who waits for one."""
    return members(door, "holders", name), members(door, "pending", name)


def whats(door: Door, jid: str) -> list[str]:
    return [line.what for line in door.job(jid).history]


def test_the_worked_trace_of_the_protocol(core, clock, door: Door):
    core(ThrottleSet("db", 1))
    put(door, "i1", "db")
    put(door, "i2", "db")
    assert door.state("i2") == "waiting"  # no slot is in use
    door.put("q", "i3")
    [i1, _] = core(Pop("w", ["q"], limit=2))  # the native pop fetches a replacement
    assert who(door, "db") == (["i1"], ["i2"])
    assert members(door, "throttled", "q") == ["i2"]
    put(door, "i4", "db")
    assert (door.state("i4"), whats(door, "i4")) == ("throttled", ["put", "throttled"])
    core(Retry("w", i1))  # promotes i2, then puts i1 behind it
    assert who(door, "db") == ([], ["i4"])
    assert door.state("i2") == "throttled"  # but ready
    assert jids(core(Pop("w", ["q"], limit=2))) == ["i2"]
    assert who(door, "db") == (["i2"], ["i4", "i1"])
    assert whats(door, "i1") == ["put", "popped", "retried", "throttled"]


def test_slots_are_taken_all_or_none_and_a_job_pends_on_its_first_full_throttle(core, door: Door):
    core(ThrottleSet("one", 1))
    core(ThrottleSet("two", 1))
    put(door, "holds", "two")
    [holds] = core(Pop("w", ["q"]))
    put(door, "both", "one", "two")
    assert who(door, "one") == ([], [])
    assert who(door, "two") == (["holds"], ["both"])
    core(Complete("w", holds))
    assert jids(core(Pop("w", ["q"]))) == ["both"]
    assert (who(door, "one"), who(door, "two")) == ((["both"], []), (["both"], []))


def test_a_promoted_job_that_finds_another_throttle_full_lets_the_next_one_go(core, door: Door):
    for name in ("one", "two"):
        core(ThrottleSet(name, 1))
    put(door, "holds-one", "one")
    put(door, "holds-two", "two")
    first, _ = core(Pop("w", ["q"], limit=2))
    put(door, "both", "one", "two")
    put(door, "plain", "one")
    assert who(door, "one") == (["holds-one"], ["both", "plain"])
    core(Complete("w", first))
    assert jids(core(Pop("w", ["q"], limit=2))) == ["plain"]
    assert who(door, "two") == (["holds-two"], ["both"])
    assert whats(door, "both") == ["put", "throttled"]


def test_pending_jobs_go_in_the_order_they_came_also_within_a_millisecond(core, clock, door: Door):
    core(ThrottleSet("db", 1))
    put(door, "holds", "db")
    [holds] = core(Pop("w", ["q"]))
    for jid in ("z", "m", "a", "y"):
        put(door, jid, "db")
    clock.advance(seconds=1)
    put(door, "b", "db")
    assert who(door, "db")[1] == ["z", "m", "a", "y", "b"]
    order = []
    while True:
        core(Complete("w", holds))
        got = core(Pop("w", ["q"]))
        if not got:
            break
        [holds] = got
        order.append(holds.jid)
    assert order == ["z", "m", "a", "y", "b"]


def test_a_slot_survives_a_lost_lease_and_goes_with_the_job(core, clock, door: Door):
    core(ConfigSet("grace-period", "0"))
    core(ThrottleSet("db", 1))
    put(door, "a", "db")
    put(door, "b", "db")
    core(Pop("w", ["q"]))
    clock.advance(seconds=61)
    [again] = core(Pop("v", ["q"], limit=2))
    assert again.jid == "a"
    assert who(door, "db") == (["a"], ["b"])
    core(Complete("v", again))
    assert who(door, "db") == ([], [])


def end(core, door: Door, clock, how: str, job: JobFacts) -> None:
    if how == "complete":
        core(Complete("w", job))
    elif how == "a batch":
        core(CompleteMany("w", [Done(job.jid, job.token)]))
    elif how == "fail":
        core(Fail("w", job, "G", "why"))
    elif how == "retry":
        core(Retry("w", job, 5000))
    elif how == "cancel":
        door("cancel", "", 0, job.jid)
    elif how == "timeout":
        core(Timeout((job.jid,)))
    elif how == "advance":
        core(Advance("w", "next", job))
    elif how == "put elsewhere":
        put(door, job.jid, "other", queue="next", mode="move")
    elif how == "move":
        door("move", "", 0, "next", 0, job.jid, "", "")
    else:
        core(ConfigSet("grace-period", "0"))
        clock.advance(seconds=61)
        core(Pop("v", ["q"]))


@pytest.mark.parametrize(
    "how",
    [
        "complete",
        "a batch",
        "fail",
        "retry",
        "cancel",
        "timeout",
        "advance",
        "put elsewhere",
        "move",
        "exhaustion",
    ],
)
def test_every_end_of_a_run_gives_its_slots_back(how: str, core, clock, door: Door):
    core(ThrottleSet("db", 1))
    door(
        "put_x", "", 0, "new", "q", 0, 0 if how == "exhaustion" else 5, 0, "a", "k", "{}", 1, "throttle", "db"
    )
    put(door, "b", "db")
    [a] = core(Pop("w", ["q"]))
    put(door, "c", "db")
    assert who(door, "db") == (["a"], ["c"])  # b was looked at by nobody yet
    end(core, door, clock, how, a)
    holders, pending = who(door, "db")
    assert "a" not in holders
    assert "c" not in pending
    assert set(jids(core(Pop("w", ["q"], limit=1)))) <= {"a", "b", "c"}
    assert len(who(door, "db")[0]) <= 1


def test_giving_a_lease_back_keeps_the_slot(core, door: Door):
    core(ThrottleSet("db", 1))
    put(door, "a", "db")
    [a] = core(Pop("w", ["q"]))
    core(Expire([a]))
    assert who(door, "db") == (["a"], [])
    assert jids(core(Pop("w", ["q"]))) == ["a"]


@pytest.mark.parametrize("state", ["pending", "let go"])
@pytest.mark.parametrize("how", ["cancel", "put elsewhere", "move"])
def test_a_job_that_waits_no_more_leaves_its_place_to_the_next(how: str, state: str, core, clock, door: Door):
    core(ThrottleSet("db", 1))
    put(door, "holds", "db")
    [holds] = core(Pop("w", ["q"]))
    put(door, "first", "db")
    put(door, "second", "db")
    if state == "let go":
        core(Complete("w", holds))
        assert who(door, "db") == ([], ["second"])
    end(core, door, clock, how, door.job("first"))
    if how == "move" and state == "pending":
        assert who(door, "db")[1] == ["second", "first"]  # its throttles go with it
    else:
        assert "first" not in who(door, "db")[1]
    if state == "pending":
        core(Complete("w", holds))
    assert "second" in jids(core(Pop("w", ["q"], limit=2)))


def test_a_job_put_again_while_it_is_aside_has_both_lines_again(core, door: Door):
    core(ThrottleSet("db", 1))
    put(door, "holds", "db")
    core(Pop("w", ["q"]))
    put(door, "j", "db")
    put(door, "j", "db", mode="move")
    assert whats(door, "j") == ["put", "throttled", "put", "throttled"]


def test_throttles_are_kept_once_without_the_queue_s_own_which_comes_last(core, door: Door):
    put(door, "j", "db", "ql:q:q", "api", "db")
    assert door.job("j").throttles == ("db", "api", "ql:q:q")
    put(door, "j", "ql:q:q", "api", queue="r", mode="move")
    assert door.job("j").throttles == ("api", "ql:q:r")
    door("put", "", 0, "move", "r", 0, 5, 0, "j", "k", "{}")
    assert door.job("j").throttles == ("ql:q:r",)  # not inherited by a put


def test_going_on_in_another_queue_takes_that_queue_s_own_throttle(core, door: Door):
    core(ThrottleSet("ql:q:next", 1))
    put(door, "a", "db", "ql:q:next")
    [a] = core(Pop("w", ["q"]))
    core(Advance("w", "next", a))
    assert door.job("a").throttles == ("db", "ql:q:next")
    assert jids(core(Pop("w", ["next"]))) == ["a"]
    door.put("next", "b")
    assert door.state("b") == "throttled"
    assert core(ThrottleGet("ql:q:next")).used == 1


def test_releasing_a_pending_job_strands_it_until_it_is_put_again_or_cancelled(core, door: Door):
    core(ThrottleSet("db", 1))
    put(door, "holds", "db")
    core(Pop("w", ["q"]))
    put(door, "waits", "db")
    put(door, "other", "db")
    assert core(ThrottleRelease("db", ["waits", "other", "holds"])) == 1
    assert who(door, "db") == ([], [])
    assert sorted(members(door, "throttled", "q")) == ["other", "waits"]
    assert core(Pop("w", ["q"])) == []
    put(door, "waits", "db", mode="move")
    door("cancel", "", 0, "other")
    assert jids(core(Pop("w", ["q"]))) == ["waits"]
    assert members(door, "throttled", "q") == []


def test_releasing_the_holder_lets_the_next_go_while_it_runs_on(core, door: Door):
    core(ThrottleSet("db", 1))
    put(door, "holds", "db")
    [holds] = core(Pop("w", ["q"]))
    put(door, "waits", "db")
    assert core(ThrottleRelease("db", ["holds"])) == 1
    assert core(ThrottleRelease("db", ["holds"])) == 0
    assert jids(core(Pop("w", ["q"]))) == ["waits"]
    put(door, "more", "db")
    core(Complete("w", holds))  # gives back nothing: it held no slot
    assert who(door, "db") == (["waits"], ["more"])


def test_a_slot_of_a_queue_s_own_throttle_can_be_freed_by_hand(core, door: Door):
    core(ThrottleSet("ql:q:q", 1))
    door.put("q", "runs", "next")
    [runs] = core(Pop("w", ["q"]))
    assert core(ThrottleRelease("ql:q:q", ["runs", "nobody"])) == 1
    assert core(ThrottleRelease("ql:q:q", ["runs"])) == 0
    assert core(ThrottleGet("ql:q:q")).used == 0
    assert jids(core(Pop("w", ["q"], limit=5))) == ["next"]
    door.put("q", "third")
    core(Complete("w", runs))
    assert (core(ThrottleGet("ql:q:q")).used, door.state("third")) == (1, "throttled")
    assert "hx:ql:q:q" not in door.names()


def test_a_job_may_name_the_throttle_of_another_queue(core, door: Door):
    core(ThrottleSet("ql:q:other", 1))
    put(door, "guest", "ql:q:other")
    [guest] = core(Pop("w", ["q"]))
    door.put("other", "own")
    assert (core(ThrottleGet("ql:q:other")).used, door.state("own")) == (1, "throttled")
    core(Complete("w", guest))
    [own] = core(Pop("w", ["other"]))
    put(door, "guest2", "ql:q:other")
    assert door.state("guest2") == "throttled"
    core(Complete("w", own))
    assert jids(core(Pop("w", ["q"]))) == ["guest2"]


def test_a_queue_of_the_longest_name_can_be_limited(core, door: Door):
    queue = "n" * 200
    core(ThrottleSet(f"ql:q:{queue}", 1))
    door.put(queue, "a", "b")
    assert jids(core(Pop("w", [queue], limit=2))) == ["a"]
    put(door, "guest", f"ql:q:{queue}")
    assert door.state("guest") == "throttled"


def test_a_raised_limit_lets_jobs_go_and_a_lowered_one_takes_nothing_back(core, door: Door):
    core(ThrottleSet("db", 3))
    for jid in "abc":
        put(door, jid, "db")
    running = core(Pop("w", ["q"], limit=3))
    put(door, "d", "db")
    put(door, "e", "db")
    core(ThrottleSet("db", 1))
    assert who(door, "db") == (["a", "b", "c"], ["d", "e"])
    for job in running[:2]:
        core(Complete("w", job))
    assert who(door, "db") == (["c"], ["d", "e"])
    core(Complete("w", running[2]))
    assert who(door, "db") == ([], ["e"])
    core(ThrottleSet("db", 2))
    assert sorted(jids(core(Pop("w", ["q"], limit=5)))) == ["d", "e"]


def test_a_limit_that_is_taken_away_lets_all_go(core, door: Door):
    core(ThrottleSet("db", 1))
    put(door, "a", "db")
    core(Pop("w", ["q"]))
    for jid in "bcd":
        put(door, jid, "db")
    assert core(ThrottleDelete("db")) is True
    assert core(ThrottleDelete("db")) is False
    assert jids(core(Pop("w", ["q"], limit=5))) == ["b", "c", "d"]
    assert (core(ThrottleGet("db")).maximum, core(ThrottleGet("db")).ttl_ms) == (0, -2)


@pytest.mark.parametrize("name", ["db", "ql:q:q"])
def test_a_limit_ends_at_its_time_and_lets_jobs_go_with_the_next_call(name: str, core, clock, door: Door):
    core(ThrottleSet(name, 1, 60_000))
    put(door, "a", name)
    core(Pop("w", ["q"], ttl=3600))
    put(door, "b", name)
    assert core(ThrottleGet(name)).ttl_ms == 60_000
    core(ThrottleSet(name, 1))  # leaves its end as it is
    clock.advance(seconds=59)
    assert (core(ThrottleGet(name)).ttl_ms, core(Pop("w", ["q"]))) == (1_000, [])
    clock.advance(seconds=1)
    assert (core(ThrottleGet(name)).maximum, core(ThrottleGet(name)).ttl_ms) == (0, -2)
    core(Sweep())
    assert jids(core(Pop("w", ["q"]))) == ["b"]
    assert core(ThrottleNames()) == ("0", [])
    assert "U" not in door.names()


def test_a_worker_that_sleeps_is_woken_when_a_limit_ends(core, clock, door: Door):
    core(ThrottleSet("db", 1, 60_000))
    put(door, "a", "db")
    core(Pop("w", ["q"], ttl=3600))
    put(door, "b", "db")
    assert core(Pop("sleeper", ["q"], mode=WILL_WAIT)) == []
    clock.advance(seconds=60)
    assert core(Pop("other", ["elsewhere"])) == []
    assert door.ask("LLEN", door.key("n:q")) == 1
    assert jids(core(Pop("sleeper", ["q"], mode=WOKEN))) == ["b"]


def test_a_worker_that_sleeps_is_woken_when_a_slot_comes_back(core, door: Door):
    core(ThrottleSet("db", 1))
    put(door, "a", "db", queue="first")
    [a] = core(Pop("w", ["first"]))
    put(door, "b", "db", queue="second")
    assert core(Pop("sleeper", ["second"], mode=WILL_WAIT)) == []
    core(Complete("w", a))
    assert door.ask("LLEN", door.key("n:second")) == 1


def test_a_pop_looks_at_sixteen_more_and_asks_to_be_called_again_if_there_is_something_behind(
    core, door: Door
):
    core(ThrottleSet("db", 1))
    put(door, "holds", "db", queue="other")
    [holds] = core(Pop("w", ["other"]))
    core(ThrottleSet("db", 0))
    for n in range(20):
        put(door, f"j{n:02}", "db")
    door.put("q", "free")
    core(ThrottleSet("db", 1))
    assert door("pop", "w", "", 0, 1, 0, "q", 1) == [0]  # due at once
    assert len(who(door, "db")[1]) == 17
    assert jids(core(Pop("w", ["q"], mode=WILL_WAIT))) == ["free"]
    core(Complete("w", holds))
    assert jids(core(Pop("w", ["q"]))) == ["j00"]


def test_a_delayed_job_is_looked_at_when_it_is_popped(core, clock, door: Door):
    core(ThrottleSet("db", 1))
    put(door, "a", "db")
    core(Pop("w", ["q"], ttl=3600))
    put(door, "later", "db", delay=5000)
    assert door.state("later") == "scheduled"
    clock.advance(seconds=5)
    assert core(Pop("w", ["q"])) == []
    assert (door.state("later"), whats(door, "later")) == ("throttled", ["put", "throttled"])


def test_throttles_with_a_limit_are_listed(core, door: Door):
    for n in range(30):
        core(ThrottleSet(f"t{n}", n))
    core(ThrottleSet("ql:q:q", 2))
    found, cursor = [], "0"
    while True:
        cursor, names = core(ThrottleNames(cursor, 10))
        found += names
        if cursor == "0":
            break
    assert sorted(set(found)) == sorted([*(f"t{n}" for n in range(30)), "ql:q:q"])


def test_jobs_that_ran_before_a_limit_are_all_noticed_however_many(core, door: Door):
    names = [f"j{n}" for n in range(1500)]
    for at in range(0, 1500, 500):
        door.put("q", *names[at : at + 500])
    running = [job for _ in range(3) for job in core(Pop("w", ["q"], limit=500))]
    core(ThrottleSet("ql:q:q", 1500))
    door.put("q", "aside")
    assert door.state("aside") == "throttled"
    core(Complete("w", running[0]))
    [counts] = core(CountQueues(["q"]))
    assert (counts.waiting, counts.throttled) == (1, 0)
    for _ in range(20):
        door.put("elsewhere", "x")
    assert "U" not in door.names()  # all are marked
    core(Pop("w", ["q"], mode=WILL_WAIT))
    assert core(Pop("sleeper", ["q"], mode=WILL_WAIT)) == []
    door.ask("DEL", door.key("n:q"))
    core(Complete("w", running[-1]))
    assert door.ask("LLEN", door.key("n:q")) == 1


@pytest.mark.parametrize("name", ["db", "ql:q:q"])
def test_thousands_that_wait_all_go_when_a_limit_is_taken_away_a_hundred_a_call(name: str, core, door: Door):
    core(ThrottleSet(name, 1))
    put(door, "holds", name)
    core(Pop("w", ["q"]))
    put_many(door, [f"j{n:05}" for n in range(2000)], name)
    core(ThrottleSet(name, 0))
    assert len(door.job("j00099").history) == 2
    order = []
    while jobs := core(Pop("w", ["q"], limit=90)):
        order += jids(jobs)
    assert order == [f"j{n:05}" for n in range(2000)]
    assert "U" not in door.names()


def test_one_call_that_ends_many_lets_a_hundred_go_and_the_rest_later(core, door: Door):
    core(ThrottleSet("db", 300))
    names = [f"j{n:03}" for n in range(600)]
    put_many(door, names[:300], "db")
    running = []
    while jobs := core(Pop("w", ["q"], limit=300)):
        running += jobs
    put_many(door, names[300:], "db")
    core(CompleteMany("w", [Done(job.jid, job.token) for job in running[:102]]))
    assert core(ThrottleGet("db")).pending == 200
    for first in (102, 202):
        core(CompleteMany("w", [Done(job.jid, job.token) for job in running[first : first + 100]]))
    done = 0
    while jobs := core(Pop("w", ["q"], limit=100)):
        done += len(jobs)
        core(CompleteMany("w", [Done(job.jid, job.token) for job in jobs]))
    assert (done, core(ThrottleGet("db")).pending) == (300, 0)


def test_jobs_without_throttles_cost_no_inner_command_more(core, door: Door):
    door.put("q", "plain")
    put(door, "named", "db")
    plain, named = core(Pop("w", ["q"], limit=2))
    assert (plain.jid, named.jid) == ("plain", "named")
    assert "x:plain" not in door.names()
    assert {"h:db", "x:named"} <= door.names()
    core(Complete("w", named))
    assert "h:db" not in door.names()
