"""queue.pop and queue.peek."""

import pytest
from stories import history, peeked, popped, put, refusal
from two_doors import Door


def test_nothing_ready_is_an_empty_list(door: Door) -> None:
    assert door.raw("queue.pop", 1, "q", "w", 1) == "[]"
    assert door.raw("queue.peek", 1, "q", 0, 5) == "[]"


def test_a_paused_queue_hands_out_nothing_but_can_be_looked_at(door: Door) -> None:
    put(door, 1, "j")
    assert door.call("queue.pause", 2, "q") is None
    assert (popped(door, 3), peeked(door, 3)) == ([], ["j"])
    assert door.call("queue.counts", 3, "q")["paused"] is True
    door.call("queue.unpause", 4, "q")
    assert popped(door, 5) == [("j", 5, 65)]


@pytest.mark.full
def test_a_look_at_the_head_moves_what_is_due(door: Door) -> None:
    put(door, 0, "soon", "q", 10)
    put(door, 0, "later", "q", 20)
    assert peeked(door, 9) == []
    assert peeked(door, 10) == ["soon"]
    assert door.call("queue.jobsByState", 10, "scheduled", "q") == ["later"]
    assert door.call("queue.counts", 20, "q")["waiting"] == 2
    assert door.call("job.get", 20, "later")["state"] == "waiting"


def test_a_pop_moves_no_more_than_it_hands_out(door: Door) -> None:
    put(door, 0, "early", "q", 5)
    put(door, 0, "urgent", "q", 6, "priority", 9)
    assert [jid for jid, *_ in popped(door, 10, limit=1)] == ["early"]


@pytest.mark.full
@pytest.mark.parametrize("heartbeat", ["0", "-5"])
def test_a_lease_may_be_over_at_once(door: Door, heartbeat: str) -> None:
    door.call("config.set", 0, "q-heartbeat", heartbeat)
    put(door, 1, "j")
    assert popped(door, 2) == [("j", 5, 2 + int(heartbeat))]
    assert door.call("queue.counts", 2, "q")["stalled"] == 1


@pytest.mark.full
def test_without_grace_a_lost_job_is_handed_out_at_once(door: Door) -> None:
    door.call("config.set", 0, "grace-period", 0)
    put(door, 1, "j")
    popped(door, 2)
    assert popped(door, 62, worker="v") == [("j", 4, 122)]
    job = door.call("job.get", 62, "j")
    assert history(job) == [("put", 1), ("popped", 2), ("timed-out", 62), ("popped", 62)]


@pytest.mark.full
def test_a_full_queue_hands_out_lost_jobs_and_looks_at_nothing_else(door: Door) -> None:
    door.call("queue.throttle.set", 0, "q", 1)
    for jid in ("one", "two"):
        put(door, 1, jid)
    assert popped(door, 2) == [("one", 5, 62)]
    assert door.call("job.get", 2, "two")["state"] == "throttled"
    put(door, 3, "due", "q", 1)
    assert popped(door, 62, worker="v") == []
    assert popped(door, 72, worker="v") == [("one", 4, 132)]
    assert door.call("throttle.locks", 73, "ql:q:q") == ["one"]


@pytest.mark.full
def test_pops_look_at_as_many_jobs_as_they_may_hand_out(door: Door) -> None:
    door.call("throttle.set", 0, "db", 1)
    for number in range(4):
        put(door, number, f"t{number}", "q", 0, "throttles", '["db"]')
    put(door, 9, "free")
    assert [jid for jid, *_ in popped(door, 10, limit=2)] == ["t0"]
    assert [jid for jid, *_ in popped(door, 11, limit=1)] == []
    door.call("config.set", 11, "max-pop-retry", 3)
    assert [jid for jid, *_ in popped(door, 12, limit=1)] == ["free"]


@pytest.mark.full
def test_many_thousand_jobs_are_handed_out_in_one_call(door: Door) -> None:
    for number in range(1200):
        put(door, 1, f"j{number:04}")
    jobs = door.call("queue.pop", 2, "q", "w", 10000)
    assert [job["jid"] for job in jobs] == [f"j{number:04}" for number in range(1200)]


@pytest.mark.full
@pytest.mark.parametrize(("words", "sentence"), [
    ((), "no queue name provided"),
    (("q",), 'Pop(): Arg "worker" missing'),
    (("q", "w"), 'Pop(): Arg "limit" missing or not a number'),
    (("q", "w", "1.5"), "not a number"),
])  # fmt: skip
def test_a_pop_that_is_not_whole_is_refused(door: Door, words: tuple[object, ...], sentence: str) -> None:
    assert sentence in refusal(door.call("queue.pop", 1, *words))


@pytest.mark.full
def test_a_loss_is_told_again_when_the_grace_period_was_taken_away_meanwhile(door: Door) -> None:
    put(door, 1, "j")
    popped(door, 2)
    assert popped(door, 62, worker="v") == []
    door.call("config.set", 63, "grace-period", 0)
    assert popped(door, 72, worker="v") == [("j", 4, 132)]
    lines = [what for what, _ in history(door.call("job.get", 72, "j"))]
    assert lines == ["put", "popped", "timed-out", "timed-out", "popped"]
