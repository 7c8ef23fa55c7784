"""recurringJob.update: what a template puts from now on."""

import pytest
from stories import peeked, popped, recur, refusal
from two_doors import Door


@pytest.mark.full
def test_a_new_interval_counts_from_the_last_occurrence(door: Door) -> None:
    recur(door, 0, "r", 60)
    assert popped(door, 0) == [("r-1", 0, 60)]
    assert door.call("recurringJob.update", 0, "r", "interval", 10) == 1
    assert len(popped(door, 60, limit=20)) == 6


@pytest.mark.full
def test_a_shorter_interval_may_move_the_next_occurrence_before_the_beginning_of_time(door: Door) -> None:
    recur(door, 0, "r", 60, 5)
    door.call("recurringJob.update", 0, "r", "interval", 10)
    assert door.call("queue.jobsByState", 0, "recurring", "q") == ["r"]
    assert peeked(door, 0) == ["r-1", "r-2", "r-3", "r-4", "r-5"]  # -45, -35 … -5


@pytest.mark.full
def test_a_template_moves_to_another_queue_with_its_next_occurrence(door: Door) -> None:
    recur(door, 0, "r", 60, 30, "throttles", '["t"]')
    door.call("recurringJob.update", 1, "r", "queue", "other")
    assert door.call("recurringJob.get", 1, "r")["throttles"] == ["t", "ql:q:other"]
    assert door.call("queues.names", 1) == ["q", "other"]
    assert (popped(door, 30), popped(door, 30, "other")) == ([], [("r-1", 0, 90)])


def test_a_new_list_of_throttles_leaves_out_that_of_the_queue(door: Door) -> None:
    recur(door, 0, "r", 60)
    door.call("queue.throttle.set", 0, "q", 1)
    assert door.call("recurringJob.update", 0, "r", "throttles", '["t"]') == 1
    assert door.call("recurringJob.get", 0, "r")["throttles"] == ["t"]
    jobs = door.call("queue.pop", 60, "q", "w", 5)
    assert [(job["jid"], job["throttles"]) for job in jobs] == [("r-1", ["t"]), ("r-2", ["t"])]
    assert (door.call("throttle.locks", 60, "t"), door.call("throttle.locks", 60, "ql:q:q")) == (
        ["r-1", "r-2"],
        [],
    )
    assert door.call("job.complete", 61, "r-1", "w", "q", "{}") == "complete"
    assert door.call("throttle.locks", 61, "t") == ["r-2"]


@pytest.mark.full
def test_a_template_without_any_throttle_gets_that_of_a_queue_it_is_given_to(door: Door) -> None:
    recur(door, 0, "r", 60)
    door.call("recurringJob.update", 0, "r", "throttles", "[]")
    assert door.call("recurringJob.get", 0, "r")["throttles"] == {}
    assert door.call("queue.peek", 0, "q", 0, 1)[0]["throttles"] == {}
    door.call("recurringJob.update", 0, "r", "queue", "q")
    assert door.call("recurringJob.get", 0, "r")["throttles"] == ["ql:q:q"]
    door.call("recurringJob.update", 0, "r", "throttles", '["ql:q:q"]')
    assert door.call("recurringJob.get", 0, "r")["throttles"] == ["ql:q:q"]


@pytest.mark.full
def test_what_was_put_stays_as_it_is(door: Door) -> None:
    recur(door, 0, "r", 60)
    assert peeked(door, 0) == ["r-1"]
    door.call(
        "recurringJob.update",
        1,
        "r",
        "klass",
        "new",
        "data",
        "[]",
        "retries",
        3,
        "priority",
        -1,
        "backlog",
        2,
    )
    jobs = door.call("queue.peek", 60, "q", 0, 5)
    assert [(job["klass"], job["data"], job["retries"], job["priority"]) for job in jobs] == [
        ("klass", "{}", 0, 0), ("new", "[]", 3, -1),
    ]  # fmt: skip


@pytest.mark.full
def test_nothing_to_change_is_fine(door: Door) -> None:
    recur(door, 0, "r", 60)
    assert door.call("recurringJob.update", 0, "r") == 1


@pytest.mark.full
@pytest.mark.parametrize(("pairs", "sentence"), [
    (("priority",), "No value provided for priority"),
    (("priority", "x"), 'Recur(): Arg "priority" must be a number'),
    (("interval", "x"), 'Recur(): Arg "interval" must be a number'),
    (("retries", "x"), 'Recur(): Arg "retries" must be a number'),
    (("backlog", "x"), 'Recur(): Arg "backlog" not a number'),
    (("interval", "0"), "must be greater than 0"),
    (("interval", "-5"), "must be greater than 0"),
    (("data", "x"), ""), (("data", "false"), ""), (("throttles", "x"), ""), (("throttles", "5"), ""),
    (("tags", "[]"), 'Recur(): Unrecognized option "tags"'),
    (("count", "5"), 'Recur(): Unrecognized option "count"'),
])  # fmt: skip
def test_a_change_that_cannot_be_made_changes_nothing(
    door: Door, pairs: tuple[object, ...], sentence: str
) -> None:
    recur(door, 0, "r", 60)
    before = door.call("recurringJob.get", 0, "r")
    assert sentence in refusal(
        door.call("recurringJob.update", 0, "r", "klass", "new", "queue", "other", *pairs)
    )
    assert door.call("recurringJob.get", 0, "r") == before
    assert door.call("queues.names", 0) == ["q"]


def test_an_unknown_template_cannot_be_changed(door: Door) -> None:
    assert "no jid provided" in refusal(door.call("recurringJob.update", 0))
    assert "Recur(): No recurring job none" in refusal(door.call("recurringJob.update", 0, "none"))


def test_a_template_that_was_paused_stays_paused(door: Door) -> None:
    """No command of this protocol pauses one: the state is written as the core writes it."""
    recur(door, 0, "r", 60, 30)
    shown = door.call("recurringJob.get", 0, "r")
    door.connection.ask("HSET", "ql:hf:r:r", "paused", "30000")
    door.connection.ask("ZADD", "ql:q:q-recur", "9007199254740991", "r")
    assert door.call("recurringJob.get", 1, "r") == shown
    door.call("recurringJob.update", 1, "r", "interval", 70, "queue", "p")
    assert door.connection.ask("HGET", "ql:hf:r:r", "paused") == "40000"
    recur(door, 2, "r", 60, 10)
    assert door.connection.ask("HGET", "ql:hf:r:r", "paused") == "12000"
    assert (popped(door, 100), popped(door, 100, "p")) == ([], [])
    assert door.call("queue.counts", 100, "q")["recurring"] == 1
    assert door.call("queue.jobsByState", 100, "recurring", "q") == ["r"]
    door.call("recurringJob.cancel", 100, "r")
    assert door.connection.ask("KEYS", "ql:hf:r:*") == []
