"""What happened in a queue: tallies that never forget, minutes for charts, days that begin and are dropped."""

from collections.abc import Iterator

import pytest

from holdfast import Client
from holdfast.commands.admin import SettingSet
from holdfast.commands.jobs import Cancel
from holdfast.commands.leases import Complete, Pop
from holdfast.commands.options import ExtraOptions, JobWithOptions, PutX
from holdfast.commands.outcomes import Advance, Fail, Retry, Timeout
from holdfast.commands.queues import GetStats
from holdfast.commands.recurring import Recur
from holdfast.commands.views import Minutes, Tallies, Tick
from holdfast.testing.clock import START_MS, StoppedClock
from holdfast.testing.store import ScratchStore
from native_door import Door

DAY = 86_400


def tallies(core, queue: str = "q") -> Tallies:
    return core(Minutes(queue, 2**53 - 1))[-1]


def counts(core, queue: str = "q") -> dict[str, int]:
    return {name: count for name, count in tallies(core, queue).as_dict().items() if count}


def popped(core, count: int = 1):
    return core(Pop("w", ["q"], count))


def test_a_queue_nobody_used_has_no_tallies_and_leaves_no_key(core, door: Door):
    assert counts(core) == {}
    assert core(Tick(["q"])) == 1
    assert popped(core) == []
    assert door.names() == {""}


def test_each_way_of_putting_counts_once(core, clock, door: Door):
    door.put("q", "a")
    door.put("q", *"bcd")
    door.put("q", "late", delay=1000)
    core(PutX("q", [JobWithOptions("K", b"{}", "child", ExtraOptions(depends=["a"]))]))
    core(PutX("q", [JobWithOptions("K", b"{}", "plain", ExtraOptions(tags=["t"]))]))
    door("put", "", 0, "new", "q", 0, 5, 0, "long", "k", b"x" * 2000)
    door("put", "", 0, "only", "q", 0, 5, 0, "mine", "k", "{}")
    assert counts(core) == {"put": 9}
    clock.advance(seconds=2)
    for job in popped(core, 10):
        core(Complete("w", job))
    assert counts(core)["put"] == 9
    for job in popped(core, 10):
        core(Complete("w", job))
    assert counts(core) == {"put": 9, "popped": 9, "completed": 9}


def test_what_is_put_again_counts_only_if_it_is_a_new_life(core, door: Door):
    door.put("q", "a")
    door.put("q", "a")
    door.put("q", "a", "b", "b")
    door("put", "", 0, "only", "q", 0, 5, 0, "a", "k", "{}")
    assert counts(core) == {"put": 2}
    door.put("q", "a", mode="move")
    door.put("q", "a", mode="move", delay=500)
    door("move", "", 0, "q", 0, "a", "", "")
    assert counts(core) == {"put": 5}


def test_ends_of_attempts_are_told_apart(core, clock, door: Door):
    door.put("q", *"abcdef")
    a, b, c, d, _, _ = popped(core, 6)
    core(Complete("w", a))
    core(Fail("w", b, "G"))
    core(Retry("w", c))
    core(Timeout(["d"]))
    core(Cancel(["e", "nobody"]))
    assert d.jid == "d"
    expected = {
        "put": 6,
        "popped": 6,
        "completed": 1,
        "failed": 1,
        "retried": 1,
        "timed_out": 1,
        "cancelled": 1,
    }
    assert counts(core) == expected
    clock.advance(seconds=60)
    popped(core, 10)
    clock.advance(seconds=10)
    assert [job.jid for job in popped(core, 10)] == ["f"]
    assert counts(core) == {**expected, "popped": 9, "lost": 1}


def test_jobs_set_aside_by_a_limit_count_once(core, door: Door):
    door("throttle_set", "", 0, "ql:q:q", 1, 0)
    door.put("q", "a")
    [a] = popped(core, 5)
    door.put("q", "b", "c")
    assert counts(core)["put"] == 3
    core(Complete("w", a))
    [b] = popped(core, 5)
    core(Complete("w", b))
    assert counts(core) == {"put": 3, "popped": 2, "completed": 2}


def test_a_job_that_goes_on_counts_in_both_queues(core, door: Door):
    door.put("q", "a")
    [job] = popped(core)
    core(Advance("w", "next", job))
    assert counts(core) == {"put": 1, "popped": 1, "completed": 1}
    assert counts(core, "next") == {"put": 1}


def test_a_recurring_job_counts_what_it_put(core, clock):
    core(Recur("q", "K", 10_000, jid="r"))
    clock.advance(seconds=25)
    popped(core, 2)
    assert counts(core) == {"put": 3, "popped": 2}


def test_tallies_survive_the_folding_of_logs_and_the_end_of_days(core, clock, door: Door):
    done = 0
    for _ in range(3):
        for first in range(0, 600, 200):
            door.put("q", *[f"{done}-{n}" for n in range(first, first + 200)])
            for job in popped(core, 200):
                core(Complete("w", job))
        done += 600
        assert counts(core) == {"put": done, "popped": done, "completed": done}
        clock.advance(seconds=DAY)
    assert counts(core) == {"put": done, "popped": done, "completed": done}
    door.put("q", "x")
    [x] = popped(core)
    core(Fail("w", x, "G"))
    assert counts(core) == {"put": done + 1, "popped": done + 1, "completed": done, "failed": 1}
    assert (
        len([name for name in door.names() if name.startswith(("aw:", "ar:"))]) == 1
    )  # of today; the others are folded


def test_a_clock_that_goes_back_over_midnight_loses_no_count(core, clock, door: Door):
    clock.advance(seconds=DAY - (clock.now_ms // 1000) % DAY)
    door.put("q", "a", "b")
    assert len(popped(core)) == 1
    clock.advance(seconds=-5)
    assert len(popped(core)) == 1
    clock.advance(seconds=DAY)
    door.put("q", "c")
    assert len(popped(core)) == 1
    assert counts(core) == {"put": 3, "popped": 3, "lost": 2}


def test_w6_days_older_than_wanted_are_dropped_when_a_day_begins(core, clock, door: Door):
    core(SettingSet("stats-days", 3))
    days = []
    for n in range(6):
        door.put("q", f"j{n}")
        [job] = popped(core)
        core(Complete("w", job))
        days.append(clock.now_ms // 1000 // DAY)
        clock.advance(seconds=DAY)
    kept = sorted(int(name.rpartition(":")[2]) for name in door.names() if name.startswith("z:"))
    assert kept == days[2:5]  # today's is a log as yet
    assert counts(core) == {"put": 6, "popped": 6, "completed": 6}


def test_the_first_pop_of_a_minute_notes_what_happened_so_far(core, clock, door: Door):
    clock.advance(seconds=60 - (clock.now_ms // 1000) % 60)
    start = clock.now_ms
    for n in range(3):
        door.put("q", *[f"{n}-{m}" for m in range(n + 1)])
        for job in popped(core, 10):
            core(Complete("w", job))
        assert popped(core, 10) == []
        clock.advance(seconds=60)
    lines = core(Minutes("q"))
    assert [(line.when_ms - start) // 1000 for line in lines] == [-60, 0, 60, 120, 180]
    assert [(line.put, line.popped) for line in lines] == [(0, 0), (1, 0), (3, 1), (6, 3), (6, 6)]
    assert [line.waiting for line in lines] == [0, 1, 2, 3, 0]
    assert [line.when_ms for line in core(Minutes("q", start + 61_000))] == [start + 120_000, start + 180_000]
    assert lines[3].since(lines[2]).as_dict()["put"] == 3


def test_a_tick_notes_the_minute_of_a_queue_that_nobody_pops(core, clock, door: Door):
    door.put("q", "a")
    for _ in range(2):
        assert core(Tick(["q", "unknown"])) == 2
    assert len(core(Minutes("q"))) == 3
    clock.advance(seconds=60)
    assert core(Tick(["q"])) == 1
    assert len(core(Minutes("q"))) == 4


def test_older_lines_are_ten_minutes_apart_and_the_oldest_go(core, clock, door: Door):
    clock.advance(seconds=3600 - (clock.now_ms // 1000) % 3600)
    door.put("q", "a")
    for _ in range(400):
        core(Tick(["q"]))
        clock.advance(seconds=60)
    minutes = [line.when_ms // 60_000 for line in core(Minutes("q"))][:-1]
    fine = minutes[-180:]
    assert fine == list(range(fine[0], fine[0] + 180))
    assert [minute % 10 for minute in minutes[:-180]] == [
        9,
        *[0] * 22,
    ]  # the first one is of before the first put
    door.ask("RPUSH", door.key("m:q"), *[door.ask("LINDEX", door.key("m:q"), 0)] * 985)
    assert door.ask("LLEN", door.key("m:q")) == 1188
    for _ in range(12):
        core(Tick(["q"]))
        clock.advance(seconds=600)
    assert door.ask("LLEN", door.key("m:q")) <= 1188


def test_a_queue_that_was_forgotten_begins_anew(core, door: Door):
    door.put("q", "a")
    [job] = popped(core)
    core(Complete("w", job))
    assert door("queue_forget", "", 0, "q") == 1
    assert counts(core) == {}
    door.put("q", "b")
    popped(core)
    assert counts(core) == {"put": 1, "popped": 1}


def forget_all(door: Door, clock) -> None:
    """What FLUSHALL leaves of a namespace: nothing but what the core has in memory. The next client makes the root again."""
    door.ask("UNLINK", *[door.key(name) for name in door.names()])
    door("info", "test", clock.now_ms)


def restore(door: Door, clock, copy: dict[str, bytes]) -> None:
    door.ask("UNLINK", *[door.key(name) for name in door.names()])
    for name, value in copy.items():
        door.ask("RESTORE", door.key(name), 0, value)
    clock.advance(seconds=0)


def work(core, door: Door, name: str, count: int) -> None:
    door.put("q", *[f"{name}-{n}" for n in range(count)])
    for job in popped(core, count):
        core(Complete("w", job))


def test_the_midnight_after_the_store_was_flushed_counts_right(core, clock, door: Door):
    work(core, door, "old", 5)
    forget_all(door, clock)
    work(core, door, "new", 7)
    clock.advance(seconds=DAY)
    work(core, door, "next", 3)
    assert counts(core) == {"put": 10, "popped": 10, "completed": 10}


def test_the_midnight_after_an_earlier_copy_was_restored_counts_right(core, clock, door: Door):
    """A copy has the epoch of the root that it was made of, so the core cannot see from the root that its data are others."""
    work(core, door, "a", 5)
    copy = door.dump()
    clock.advance(seconds=DAY)
    work(core, door, "b", 4)
    restore(door, clock, copy)
    work(core, door, "c", 3)
    assert counts(core) == {"put": 8, "popped": 8, "completed": 8}
    clock.advance(seconds=DAY)
    work(core, door, "d", 2)
    assert counts(core) == {"put": 10, "popped": 10, "completed": 10}


def test_failures_are_counted_on_the_right_day_after_a_copy_was_restored(core, clock, door: Door):
    door.put("q", "a", "b", retries=0)
    first, _ = popped(core, 2)
    copy = door.dump()
    clock.advance(seconds=DAY)
    core(Fail("w", first, "G"))
    restore(door, clock, copy)
    core(Fail("w", first, "G"))
    clock.advance(seconds=DAY)
    work(core, door, "c", 1)
    assert counts(core)["failed"] == 1


def test_the_minutes_of_a_namespace_that_was_flushed_begin_at_once(core, clock, door: Door):
    door.put("q", "a")
    popped(core)
    forget_all(door, clock)
    door.put("q", "a")
    popped(core)
    assert len(core(Minutes("q"))) == 3


@pytest.fixture
def databases(engine_store: ScratchStore, namespace: str) -> Iterator[list[StoppedClock]]:
    """Two databases of one server with a namespace of the same name: the core has one memory for both."""
    with (
        Client(f"{engine_store.url}?db=9", namespace=namespace) as one,
        Client(f"{engine_store.url}?db=10", namespace=namespace) as other,
    ):
        clocks = [StoppedClock(one, START_MS), StoppedClock(other, START_MS)]
        yield clocks
        for client in (one, other):
            Door(client).ask("FLUSHDB")


@pytest.mark.parametrize("change", ["none", "SWAPDB", "FLUSHDB"])
def test_databases_with_a_namespace_of_the_same_name_are_counted_apart(
    databases: list[StoppedClock], change: str
) -> None:
    doors = [Door(clock._client) for clock in databases]
    for clock in databases:
        clock.advance(seconds=0)
    done = [0, 0]

    def day(*counts_of: int) -> None:
        for at, (clock, door, count) in enumerate(zip(databases, doors, counts_of, strict=True)):
            if count:
                work(clock.core, door, f"{clock.now_ms}-{at}", count)
                done[at] += count
        for clock, count in zip(databases, done, strict=True):
            assert counts(clock.core) == (
                {"put": count, "popped": count, "completed": count} if count else {}
            )
        for clock in databases:
            clock.advance(seconds=DAY)

    day(2, 3)
    day(2, 0)
    if change == "SWAPDB":
        doors[0].ask("SWAPDB", 9, 10)
        done.reverse()
    if change == "FLUSHDB":
        doors[0].ask("FLUSHDB")
        doors[0]("info", "test", databases[0].now_ms)
        done[0] = 0
    day(1, 5)
    day(4, 1)
    day(0, 2)
    assert all(len(clock.core(Minutes("q"))) >= 3 for clock in databases)


def test_the_wait_of_a_retried_job_counts_from_when_it_was_ready(core, clock, door: Door):
    """A bad deploy: jobs fail for a while, and are put back to work in the afternoon."""
    door.put("q", "failed", "retried", "gone")
    failed, retried, _ = popped(core, 3)
    clock.advance(seconds=1)
    core(Fail("w", failed, "G"))
    core(Retry("w", retried, 100_000))
    clock.advance(seconds=400)
    assert [job.jid for job in popped(core, 9)] == [
        "retried"
    ]  # it was due for 300 s; the third one has its grace
    clock.advance(seconds=20)
    assert [job.jid for job in popped(core, 9)] == ["gone"]  # 15 s after its grace ended
    clock.advance(seconds=600)
    door("unfail", "", 0, "q", "G", 9)
    clock.advance(seconds=2)
    assert [job.jid for job in popped(core)] == ["failed"]
    wait = core(GetStats("q")).wait
    assert (wait.count, round(wait.mean * wait.count)) == (6, 300 + 15 + 2)
