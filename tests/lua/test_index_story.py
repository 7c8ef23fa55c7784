"""The index: which queues of a root may have work, for workers of so many that they cannot look into all."""

import pytest

from holdfast.commands.admin import SettingSet
from holdfast.commands.jobs import Cancel, Move
from holdfast.commands.leases import FOUND, WILL_NOT_WAIT, WILL_WAIT, WOKEN, Complete, FindWork, Lease, Pop
from holdfast.commands.outcomes import Release
from holdfast.commands.queues import Pause, ThrottleSet
from native_door import Door, StoreMessage

DAY = 86_400


def find(core, fleet: str = "f", mode: int = WILL_NOT_WAIT, count: int = 100):
    return core(FindWork(fleet, mode, 0, count))


def work(core) -> list[str]:
    return list(find(core).queues)


def take(core, *queues: str, n: int = 1):
    return core(Pop("w", queues, limit=n, mode=FOUND))


def wake_up(door: Door, fleet: str = "f") -> int:
    return door.ask("LLEN", door.key(f"N:{fleet}"))


def take_token(door: Door, fleet: str = "f") -> None:
    assert door.ask("LPOP", door.key(f"N:{fleet}")) == b""


def test_queues_with_ready_jobs_are_found_in_the_order_of_their_first_use(core, door: Door):
    for name in ("z", "a", "m"):
        door.put(name, f"first-{name}")
    assert take(core, "z", "a", "m", n=9) != []
    assert work(core) == []
    for name in ("m", "z", "a"):
        door.put(name, f"second-{name}")
    assert work(core) == ["z", "a", "m"]


def test_a_queue_is_left_out_by_the_pop_that_takes_its_last_job_and_comes_back_with_the_next(
    core, door: Door
):
    door.put("q", "a", "b")
    take(core, "q")
    assert work(core) == ["q"]
    take(core, "q")
    assert work(core) == []
    door.put("q", "c")
    assert work(core) == ["q"]
    take(core, "q", n=5)
    assert work(core) == []


LEAVE = [lambda jid: Cancel([jid]), lambda jid: Move("elsewhere", jid)]


@pytest.mark.parametrize("leave", LEAVE)
def test_a_queue_is_left_out_when_its_last_job_leaves_without_a_pop(core, door: Door, leave):
    door.put("q", "a", "b")
    core(leave("a"))
    assert "q" in work(core)
    core(leave("b"))
    assert "q" not in work(core)
    door.put("q", "c")
    assert "q" in work(core)


@pytest.mark.parametrize("leave", LEAVE)
def test_what_is_due_in_a_queue_that_was_paused_is_found_when_its_last_job_has_left(
    core, clock, door: Door, leave
):
    find(core)  # all queues are looked through, and not again for a minute
    door.put("q", "a", "b")
    take(core, "q")
    core(Pause(["q"]))
    assert take(core, "q") == []
    core(Pause(["q"], on=False))
    core(leave("b"))
    assert "q" not in work(core)
    clock.advance(seconds=30)  # the lease of the other one has ended
    assert "q" in work(core)


@pytest.mark.parametrize("leave", LEAVE)
def test_what_is_due_in_a_queue_that_was_full_is_found_when_its_last_job_has_left(
    core, clock, door: Door, leave
):
    find(core)
    door("recur", "", 0, "set", "q", "t", "k", "{}", 10_000, 10_000, 0, 0, 0, 0)
    core(ThrottleSet("ql:q:q", 1))
    door.put("q", "a", "b")
    [job] = take(core, "q")
    clock.advance(seconds=12)
    assert take(core, "q") == []  # there is no room, also for the recurring one
    core(Complete("w", job))
    core(leave("b"))
    assert "q" in work(core)


def test_a_queue_stays_when_one_of_its_jobs_that_does_not_wait_leaves(core, door: Door):
    door.put("q", "a", "b")
    take(core, "q")
    core(Cancel(["a"]))
    assert work(core) == ["q"]
    core(Move("q", "b"))
    assert work(core) == ["q"]


def test_a_pop_that_is_full_looks_into_no_more_queues(core, door: Door):
    for name in ("a", "b", "c"):
        door.put(name, f"in-{name}")
    assert [job.queue for job in take(core, "a", "b", "c", n=2)] == ["a", "b"]
    assert work(core) == ["c"]


def test_pages_of_names_follow_each_other(core, door: Door):
    for i in range(5):
        door.put(f"q{i}", f"j{i}")
    first, second = core(FindWork("f", WILL_NOT_WAIT, 0, 3)), core(FindWork("f", WILL_NOT_WAIT, 3, 3))
    assert (list(first.queues), first.has_more) == (["q0", "q1", "q2"], True)
    assert (list(second.queues), second.has_more) == (["q3", "q4"], False)


def test_a_put_into_a_queue_that_has_work_changes_nothing_in_the_index(core, door: Door):
    door.put("q", "a")
    find(core, mode=WILL_WAIT)
    door.put("q", "b")
    assert wake_up(door) == 0


@pytest.mark.parametrize(
    "how", ["a put", "a delayed job", "a job that went back", "a resumed queue", "a free slot"]
)
def test_one_waiting_worker_of_each_fleet_is_told(core, clock, door: Door, how: str):
    find(core)
    core(ThrottleSet("ql:q:q", 1))
    door.put("q", "a", "b")
    [job] = take(core, "q")
    if how == "a resumed queue":
        core(Complete("w", job))
        core(Pause(["q"]))
    elif how in ("a put", "a delayed job"):
        core(Complete("w", job))
        core(Complete("w", take(core, "q")[0]))
    assert take(core, "q") == []
    for fleet in ("f", "g"):
        assert find(core, fleet, WILL_WAIT).queues == ()
    assert (wake_up(door, "f"), wake_up(door, "g")) == (0, 0)
    if how == "a put":
        door.put("q", "c")
    elif how == "a delayed job":
        door.put("q", "c", delay=2000)
    elif how == "a job that went back":
        core(Release([Lease(job.jid, job.token, "w")], "preempted", "TERM"))
    elif how == "a resumed queue":
        core(Pause(["q"], on=False))
    else:
        core(Complete("w", job))
    assert (wake_up(door, "f"), wake_up(door, "g")) == (1, 1)
    if how == "a delayed job":
        assert find(core).due == 2.0
        clock.advance(seconds=2)
    assert work(core) == ["q"]
    assert len(take(core, "q")) == 1


def test_a_fleet_that_nobody_waits_in_is_rung_once(core, door: Door):
    find(core, mode=WILL_WAIT)
    door.put("q", "a")
    door.put("r", "b")  # a token that lies there means that nobody is blocked
    door.put("s", "c")
    assert wake_up(door) == 1
    assert door.ask("TTL", door.key("N:f")) > 0
    take_token(door)
    door.put("t", "d")
    assert wake_up(door) == 0


def test_a_worker_that_was_told_and_is_busy_hands_on_only_what_there_is(core, door: Door):
    find(core, mode=WILL_WAIT)
    door.put("q", "a")
    take_token(door)
    find(core, mode=WILL_WAIT)
    take(core, "q")
    core(FindWork("f", WOKEN, 0, 1))
    assert wake_up(door) == 0
    door.put("q", "b", "c")
    take_token(door)
    take(core, "q")
    core(FindWork("f", WOKEN, 0, 1))
    assert wake_up(door) == 1


def test_what_comes_due_is_found_in_time_also_in_a_queue_that_is_full_or_paused(core, clock, door: Door):
    door.put("q", "late", delay=10_000)
    door.put("r", "now")
    [job] = take(core, "r")
    assert find(core).due == 10.0
    clock.advance(seconds=10)
    assert work(core) == ["q"]
    assert [job.jid for job in take(core, "q")] == ["late"]
    clock.advance(seconds=20)
    assert work(core) == ["r"]  # the lease ended
    take(core, "r")
    clock.advance(seconds=5)  # and its grace period
    assert work(core) == ["r"]
    assert [again.jid for again in take(core, "r")] == [job.jid]


def test_a_pause_that_ends_by_itself_is_a_timer(core, clock, door: Door):
    find(core)
    door.put("q", "a")
    core(Pause(["q"], length_ms=30_000))
    assert take(core, "q") == []
    assert (work(core), find(core).due) == ([], 30.0)
    door.put("q", "b")
    assert work(core) == []
    clock.advance(seconds=30)
    assert work(core) == ["q"]
    assert len(take(core, "q", n=5)) == 2


def test_a_queue_whose_jobs_do_not_fit_into_one_reply_is_found_again_at_once(core, door: Door):
    core(SettingSet("max-data", 4_000_000))
    for number in range(4):
        door("put", "", 0, "new", "q", 0, 5, 0, f"j{number}", "k", '"' + "x" * 3_900_000 + '"')
    assert len(take(core, "q", n=9)) == 3
    assert work(core) == ["q"]
    assert len(take(core, "q", n=9)) == 1
    assert work(core) == []


def test_a_pause_that_is_made_shorter_is_an_earlier_timer(core, clock, door: Door):
    door.put("q", "a")
    core(Pause(["q"], length_ms=3_600_000))
    assert take(core, "q") == []
    assert find(core, mode=WILL_WAIT).due == 3600.0
    core(Pause(["q"], length_ms=5000))
    assert wake_up(door) == 1
    assert find(core).due == 5.0
    clock.advance(seconds=5)
    assert work(core) == ["q"]


def test_what_comes_into_a_paused_queue_for_later_leaves_the_end_of_the_pause_noted(core, clock, door: Door):
    door.put("q", "a")
    core(Pause(["q"], length_ms=5000))
    assert take(core, "q") == []
    door.put("q", "b", delay=3_600_000)
    assert find(core).due == 5.0
    clock.advance(seconds=5)
    assert work(core) == ["q"]


def test_all_known_queues_are_looked_through_and_what_the_index_misses_is_entered(core, clock, door: Door):
    door.put("q", "a")
    door.put("r", "late", delay=5000)
    assert work(core) == ["q"]
    door.ask("DEL", door.key("R"), door.key("T"))
    for name in ("q", "r"):
        door.ask("DECRBY", door.key(f"s:{name}"), 2**48 if name == "q" else 0)
    assert work(core) == []
    clock.advance(seconds=60)
    assert "q" in find(core).queues
    assert work(core) == ["q", "r"]


@pytest.mark.full
@pytest.mark.parametrize("together", [1, 3, 1200])
def test_a_root_of_an_earlier_release_is_looked_through_at_once(core, door: Door, together: int):
    """There queues have the millisecond of their first use as their score, which many may share."""
    for i in range(2500):
        door.put(f"q{i}", f"j{i}")
        door.ask("DECRBY", door.key(f"s:q{i}"), 2**48)
        door.ask("ZADD", door.key("Q"), i // together, f"q{i}")
    door.ask("DEL", door.key("R"))
    assert [find(core).due, find(core).due] == [
        0.0,
        0.0,
    ]  # not all were looked at: who asked comes again at once
    assert find(core, count=1000).due is None
    assert door.ask("ZCARD", door.key("R")) == 2500
    assert len(core(FindWork("f", WILL_NOT_WAIT, 2000, 1000)).queues) == 500


def test_a_queue_that_was_not_used_for_a_month_leaves_the_list_and_keeps_its_statistics(
    core, clock, door: Door
):
    core(SettingSet("stats-days", 100))
    for name in ("empty", "failed", "configured"):
        door.put(name, f"in-{name}")
    for job in take(core, "empty", "failed", "configured", n=3):
        if job.queue == "failed":
            door("fail", "w", "g", "m", job.jid, job.token, "")
        else:
            core(Complete("w", job))
    core(ThrottleSet("ql:q:configured", 3))
    clock.advance(seconds=60)
    assert take(core, *work(core)) == []  # the leases that ended were no timers any more
    clock.advance(seconds=29 * DAY)
    find(core)
    assert door.look("queues") == [b"empty", b"failed", b"configured"]
    clock.advance(seconds=2 * DAY)
    find(core)
    assert door.look("queues") == [b"failed", b"configured"]
    left = {name: door.ask("TTL", door.key(name)) for name in door.names() if ":empty" in name}
    assert left
    assert all(0 < ttl <= 69 * DAY for ttl in left.values())
    door.put("empty", "again")
    assert b"empty" in door.look("queues")
    assert door.ask("TTL", door.key("s:empty")) == door.ask("TTL", door.key("k:empty")) == -1
    assert work(core) == ["empty"]


def test_one_queue_too_many_is_refused_and_leaves_no_trace(core, door: Door):
    core(SettingSet("max-queues", 2))
    door.put("a", "1")
    door.put("b", "2")
    [job] = take(core, "a")
    before = door.dump()
    recurring = ("recur", "", 0, "set", "c", "t", "k", "{}", 1000, 0, 0, 0, 0, 0)
    for call in (
        ("put", "", 0, "new", "c", 0, 5, 0, "3", "k", "{}"),
        ("put", "", 0, "new", "c", 0, 5, 0, "3", "k", "{}", "4", "k", "{}"),
        ("put", "", 0, "new", "c", 0, 5, 1000, "3", "k", "{}"),
        ("put", "", 0, "new", "c", 0, "0/3", 0, "3", "k", "{}"),
        ("put", "", 0, "only", "c", 0, 5, 0, "3", "k", "x" * 900),
        ("put", "", 0, "move", "c", 0, 5, 0, "2", "k", "{}"),
        ("put_x", "", 0, "new", "c", 0, 5, 0, "3", "k", "{}", 2, "tag", "t", "depends", "1"),
        ("move", "", 0, "c", 0, "2", "", ""),
        ("advance", "w", "c", 0, job.jid, job.token, ""),
        ("complete_x", "w", job.jid, job.token, "", 0, "", "", 0, 0, "c", 0, 5, 0, "3", "k", "{}", 0),
        ("complete_x", "w", job.jid, job.token, "", 0, "", "c", 0, 0),
        ("queue_set", "", 0, "c", "max-waiting", 5),
        recurring,
    ):
        with pytest.raises(
            StoreMessage, match=r"HF_TOO_MANY_QUEUES there are 2 queues, and max-queues allows no more: c"
        ):
            door(*call)
        assert door.dump() == before, call
    core(SettingSet("max-queues", 3))
    door.put("c", "3")


@pytest.mark.parametrize("key", ["R", "T", "N", "N:f"])
def test_a_key_of_the_index_that_holds_something_else_is_made_anew(core, clock, door: Door, key: str):
    door.put("q", "a")
    door.put("r", "b", delay=5000)
    find(core, mode=WILL_WAIT)
    door.ask("SET", door.key(key), "mine")
    door.put("s", "c")
    door.put("r", "d", delay=1000)
    find(core, mode=WILL_WAIT)
    assert work(core) == ["q", "s"]
    assert find(core).due == 1.0
    clock.advance(seconds=1)
    assert {job.jid for job in take(core, *work(core), n=9)} == {"a", "c", "d"}


def test_timers_of_jobs_that_are_done_are_put_right_without_a_pop(core, clock, door: Door):
    for i in range(400):
        door.put(f"q{i}", f"j{i}")
    while names := work(core):
        for job in take(core, *names, n=400):
            if job.queue != "q7":
                core(Complete("w", job))
    assert door.ask("ZCARD", door.key("T")) == 400
    clock.advance(seconds=31)
    looks = [find(core) for _ in range(3)]
    assert [look.due for look in looks[:2]] == [0.0, 0.0]  # it is to look again at once
    assert looks[2].queues == ("q7",)
    assert door.ask("ZCARD", door.key("T")) == 1
