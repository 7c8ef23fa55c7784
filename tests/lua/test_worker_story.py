"""Workers: what they say of themselves, what they hold, quieting, questions, forgetting."""

import json

from holdfast.commands.admin import ConfigSet, Sweep
from holdfast.commands.leases import Complete, Heartbeat, HeartbeatMany, Lease, Pop
from holdfast.commands.outcomes import Timeout
from holdfast.commands.views import ListSet
from holdfast.commands.workers import (
    WorkerAnswer,
    WorkerAsk,
    WorkerForget,
    WorkerJobs,
    WorkerQuiet,
    Workers,
    WorkerSeen,
)
from native_door import Door

DAY = 86_400


def names(core, **page) -> list[str]:
    return [worker.name for worker in core(Workers(**page))]


def test_a_worker_is_listed_with_what_it_says_of_itself(core, clock):
    assert core(WorkerSeen("w1", {"host": "h", "pid": "7", "queues": '["q"]'})) is False
    clock.advance(seconds=1)
    core(WorkerSeen("w2", {"host": "g"}))
    second, first = core(Workers())
    assert (first.name, first.seen_ms, first.quiet) == ("w1", clock.now_ms - 1000, False)
    assert first.facts == {"host": "h", "pid": "7", "queues": '["q"]'}
    assert (second.name, second.seen_ms, second.facts) == ("w2", clock.now_ms, {"host": "g"})


def test_what_a_worker_says_takes_the_place_of_what_it_said_and_nothing_changes_nothing(core, clock):
    core(WorkerSeen("w", {"host": "h", "busy": "1"}))
    core(WorkerSeen("w", {"busy": "2"}))
    assert core(Workers())[0].facts == {"busy": "2"}
    clock.advance(seconds=1)
    core(WorkerSeen("w"))
    [worker] = core(Workers())
    assert (worker.facts, worker.seen_ms) == ({"busy": "2"}, clock.now_ms)


def test_when_the_first_worker_of_a_version_reported_is_kept(core, clock, door: Door):
    core(WorkerSeen("w1", {"version": "1.0"}))
    clock.advance(seconds=60)
    core(WorkerSeen("w1", {"version": "1.1"}))
    clock.advance(seconds=60)
    for version in ("1.0", "1.1", ""):
        core(WorkerSeen("w2", {"version": version}))
    core(WorkerSeen("w3", {"host": "h"}))
    found = core(ListSet("versions")).entries
    assert [(one.member, clock.now_ms - int(one.score)) for one in found] == [
        ("1.1", 60_000),
        ("1.0", 120_000),
    ]
    for number in range(60):
        clock.advance(seconds=1)
        core(WorkerSeen("w1", {"version": f"2.{number}"}))
    found = core(ListSet("versions")).entries
    assert (len(found), found[0].member, found[-1].member) == (50, "2.59", "2.10")


def test_a_heartbeat_is_a_sign_of_life_and_a_pop_is_none(core, clock, door: Door):
    door.put("q", "a", "b", "c")
    [a] = core(Pop("w1", ["q"]))
    [b] = core(Pop("w2", ["q"]))
    core(Pop("w3", ["q"]))
    assert names(core) == []
    core(HeartbeatMany([Lease("a", a.token, "w1"), Lease("b", b.token, "w2"), Lease("c", 1, "stranger")]))
    assert sorted(names(core)) == ["w1", "w2"]
    clock.advance(seconds=5)
    core(Heartbeat("w1", a))
    [newest, _] = core(Workers())
    assert (newest.name, newest.seen_ms) == ("w1", clock.now_ms)


def test_a_busy_worker_that_heartbeats_is_never_too_old(core, clock, door: Door):
    door.put("q", "a")
    [job] = core(Pop("busy", ["q"], ttl=DAY))
    for name in ("busy", "silent"):
        core(WorkerSeen(name, {"host": "h"}))
    clock.advance(seconds=DAY / 2)
    core(Heartbeat("busy", job, ttl=DAY))
    clock.advance(seconds=DAY / 2 - 0.001)
    assert names(core) == ["busy", "silent"]
    clock.advance(seconds=0.001)
    assert names(core) == ["busy"]
    assert "v:silent" in door.names()
    core(Sweep())
    assert "v:silent" not in door.names()
    assert core(Workers())[0].facts == {"host": "h"}


def test_how_old_is_too_old_is_a_setting_and_counts_as_not_set_when_it_is_no_number(core, clock):
    core(WorkerSeen("w"))
    clock.advance(seconds=100)
    core(ConfigSet("max-worker-age", "100"))
    assert names(core) == []
    for text in ("soon", "nan", "inf"):
        core(ConfigSet("max-worker-age", text))
        assert names(core) == ["w"]


def test_workers_are_read_page_by_page_although_new_ones_come(core, clock):
    for n in range(5):
        core(WorkerSeen(f"w{n}"))
        clock.advance(seconds=1)
    first = core(Workers(count=2))
    assert [worker.name for worker in first] == ["w4", "w3"]
    core(WorkerSeen("w9"))
    assert names(core, after=(str(first[-1].seen_ms), "w3"), count=9) == ["w2", "w1", "w0"]


def test_the_jobs_of_a_worker_are_read_off_the_leases_of_all_queues(core, clock, door: Door):
    door.put("q", "a", "b")
    door.put("r", "c", "d")
    core(Pop("w", ["q"], ttl=30))
    core(Pop("v", ["q", "r"], limit=2))
    core(Pop("w", ["r"], ttl=60))
    clock.advance(seconds=30)
    page = core(WorkerJobs("w"))
    assert page.cursor == ""
    assert [(job.jid, job.queue, job.stalled) for job in page.jobs] == [("a", "q", True), ("d", "r", False)]
    assert page.jobs[1].expires_ms == clock.now_ms + 30_000
    assert {job.since_ms for job in page.jobs} == {clock.now_ms - 30_000}
    assert {(job.jid, job.worker) for job in core(WorkerJobs()).jobs} == {
        ("a", "w"), ("b", "v"), ("c", "v"), ("d", "w"),
    }  # fmt: skip
    assert core(WorkerJobs("nobody")).jobs == ()


def test_a_job_leaves_its_worker_when_its_loss_is_noticed(core, clock, door: Door):
    door.put("q", "a")
    core(Pop("w", ["q"]))
    clock.advance(seconds=60)
    assert [job.stalled for job in core(WorkerJobs("w")).jobs] == [True]
    core(Pop("v", ["q"]))
    assert core(WorkerJobs("w")).jobs == ()


def test_the_jobs_of_a_worker_that_counts_as_gone_are_forgotten_with_it(core, clock, door: Door):
    core(ConfigSet("max-worker-age", "3600"))
    door.put("q", "a", "b", "c")
    for worker in ("silent", "alive"):
        core(Pop(worker, ["q"], ttl=30_000))
    clock.advance(seconds=1800)
    core(WorkerSeen("alive"))
    core(Pop("late", ["q"], ttl=30_000))
    clock.advance(seconds=1799)
    assert {job.worker for job in core(WorkerJobs()).jobs} == {"silent", "alive", "late"}
    clock.advance(seconds=1)
    assert {job.worker for job in core(WorkerJobs()).jobs} == {"alive", "late"}
    assert core(WorkerJobs("silent")).jobs == ()
    clock.advance(seconds=1800)
    assert core(WorkerJobs()).jobs == ()


def test_a_walk_over_leases_goes_on_from_its_cursor_whatever_its_steps(core, door: Door):
    """Leases of one moment have one score, and some of the queues have none."""
    for queue, count in (("a", 7), ("b", 0), ("c", 1), ("d", 3), ("e", 0)):
        door.put(queue, *[f"{queue}{n}" for n in range(count + 1)])
        for job in core(Pop("w", [queue], limit=count + 1)):
            if job.jid == f"{queue}{count}":
                core(Complete("w", job))
    expected = sorted([f"a{n}" for n in range(7)] + ["c0"] + [f"d{n}" for n in range(3)])
    for step in range(1, 14):
        found, cursor, calls = [], "", 0
        while calls == 0 or cursor:
            page = core(WorkerJobs("w", cursor, step))
            found += [job.jid for job in page.jobs]
            cursor, calls = page.cursor, calls + 1
            assert len(page.jobs) <= step
        assert sorted(found) == expected
        assert calls <= 17


def test_a_walk_over_more_queues_than_are_read_at_once_sees_all(core, door: Door):
    for n in range(205):
        door.put(f"q{n:03}", f"j{n}")
    for n in (0, 99, 100, 101, 204):
        core(Pop("w", [f"q{n:03}"]))
    found, cursor = [], "-"
    while cursor:
        page = core(WorkerJobs("w", cursor.strip("-")))
        found += [job.jid for job in page.jobs]
        cursor = page.cursor
    assert found == ["j0", "j99", "j100", "j101", "j204"]


def test_a_worker_that_is_told_to_be_quiet_learns_it_with_its_next_sign_of_life(core):
    assert core(WorkerQuiet("w")) is False
    core(WorkerSeen("w", {"host": "h"}))
    assert core(WorkerQuiet("w")) is True
    assert core(WorkerSeen("w", {"host": "g"})) is True
    assert core(WorkerSeen("w")) is True
    [worker] = core(Workers())
    assert (worker.quiet, worker.facts) == (True, {"host": "g"})
    assert core(WorkerQuiet("w", False)) is True
    assert core(WorkerSeen("w")) is False
    assert core(Workers())[0].quiet is False


def test_a_worker_is_told_at_once_on_its_own_channel(core, door: Door):
    listener = door._client.link.listener()
    listener.subscribe(door.key("e:w:w"))
    core(WorkerSeen("w"))
    core(WorkerQuiet("w"))
    assert b'"event":"quiet"' in str(listener.receive(5)).encode()
    listener.close()


def test_a_question_reaches_the_worker_and_its_answer_whoever_asked_and_both_leave_nothing(core, door: Door):
    ours, theirs = door._client.link.listener(), door._client.link.listener()
    ours.subscribe(door.key("e:s:q1"))
    theirs.subscribe(door.key("e:w:w"))
    before = door.dump()
    assert core(WorkerAsk("w", "j", "q1")) == 1
    heard = theirs.receive(5)
    assert json.loads(heard[1]) == {"event": "stack", "jid": "j", "question": "q1", "worker": "w"}
    assert core(WorkerAnswer("q1", b"any \xff bytes")) == 1
    assert ours.receive(5) == (door.key("e:s:q1"), b"any \xff bytes")
    assert door.dump() == before
    for listener in (ours, theirs):
        listener.close()
    assert core(WorkerAsk("nobody", "j", "q1")) == 0
    assert core(WorkerAnswer("q2", b"")) == 0


def test_a_forgotten_worker_leaves_nothing_and_its_jobs_run_on(core, door: Door):
    door.put("q", "a")
    [job] = core(Pop("w", ["q"]))
    core(WorkerSeen("w", {"host": "h"}))
    core(WorkerQuiet("w"))
    assert core(WorkerForget(["w", "unknown"])) == 1
    assert names(core) == []
    assert not {name for name in door.names() if name[:2] in ("W", "v:")}
    assert [held.jid for held in core(WorkerJobs("w")).jobs] == ["a"]
    core(Heartbeat("w", job))
    assert names(core) == ["w"]
    core(Timeout(["a"]))


def test_a_sweep_forgets_a_bounded_number_of_workers(core, clock, door: Door):
    for n in range(130):
        door("worker_seen", f"w{n}", "host", "h")
    clock.advance(seconds=DAY)
    core(Sweep())
    assert len([name for name in door.names() if name[:2] == "v:"]) == 2
    core(Sweep())
    assert not {name for name in door.names() if name[:2] in ("W", "v:")}
