"""job.complete."""

import pytest
from stories import history, peeked, popped, put, refusal
from two_doors import Door


@pytest.mark.full
def test_a_completed_job_has_no_queue_and_no_holder(running: Door) -> None:
    assert running.call("job.complete", 30, "j", "w", "q", '{"b":2}') == "complete"
    assert running.messages() == [("ql:log", '{"jid":"j","event":"completed","queue":"q"}')]
    job = running.call("job.get", 31, "j")
    assert (job["state"], job["queue"], job["worker"], job["expires"]) == ("complete", "", "", 0)
    assert (job["data"], job["remaining"], history(job)[-1]) == ('{"b":2}', 5, ("done", 30))
    assert running.call("jobs.completed", 31) == ["j"]
    stats = running.call("queue.stats", 31, "q", 31)
    assert (stats["wait"]["count"], stats["wait"]["mean"], stats["run"]["mean"]) == (1, 9, 20)


@pytest.mark.full
def test_a_tracked_job_is_told_first_on_its_own_channel(running: Door) -> None:
    running.call("job.track", 11, "j")
    running.messages()
    running.call("job.complete", 12, "j", "w", "q", "{}")
    assert [channel for channel, _ in running.messages()] == ["ql:completed", "ql:log"]


@pytest.mark.full
@pytest.mark.parametrize("data", ["[]", "{}", '{"a": [ ]}', "12345678901234567", "null", '"x"', " 1"])
def test_data_are_kept_byte_for_byte(running: Door, data: str) -> None:
    running.call("job.complete", 12, "j", "w", "q", data, "more", "words")
    assert running.call("job.get", 12, "j")["data"] == data


@pytest.mark.full
def test_retries_are_given_back_and_a_noted_failure_is_forgotten(running: Door) -> None:
    running.call("job.retry", 11, "j", "q", "w", 0, "g", "m")
    assert popped(running, 12) == [("j", 4, 72)]
    running.call("job.complete", 13, "j", "w", "q", "{}")
    job = running.call("job.get", 13, "j")
    assert (job["remaining"], job["failure"]) == (5, {})


@pytest.mark.full
def test_the_holder_may_still_complete_in_the_grace_period(running: Door) -> None:
    assert popped(running, 70, worker="v") == []
    assert running.call("job.complete", 75, "j", "w", "q", "{}") == "complete"
    assert popped(running, 90, worker="v") == []


@pytest.mark.full
def test_dependents_go_even_if_the_job_is_dropped_at_once(running: Door) -> None:
    running.call("config.set", 11, "jobs-history", -1)
    put(running, 11, "child", "q", 0, "depends", '["j"]')
    running.call("job.complete", 12, "j", "w", "q", "{}")
    assert (running.call("job.get", 12, "j"), peeked(running, 12)) == (None, ["child"])


@pytest.mark.full
def test_a_job_whose_name_looks_like_an_entry_of_another_is_not_taken_for_it(door: Door) -> None:
    for jid in ("x", "\1x"):
        put(door, 1, jid, "q", 0, "tags", '["t"]')
    put(door, 1, "\1y")
    popped(door, 2)
    for jid in ("x", "\1x", "\1y"):
        door.call("job.complete", 3, jid, "w", "q", "{}")
    assert set(door.call("jobs.completed", 4)) == {"\1y", "\1x", "x"}
    put(door, 5, "\1x")
    assert set(door.call("jobs.completed", 5)) == {"\1y", "x"}


@pytest.mark.parametrize(("words", "sentence"), [
    ((), "no jid provided"),
    (("j",), 'Complete(): Arg "worker" missing'),
    (("j", "w"), 'Complete(): Arg "queue_name" missing'),
    (("j", "w", "q"), "not JSON"),
    (("j", "w", "q", "false"), "not JSON"),
    (("j", "w", "q", "{"), "not JSON"),
    (("x", "w", "q", "{}"), "Complete(): Job does not exist"),
    (("idle", "w", "q", "{}"), "Complete(): Job is not currently running: waiting"),
    (("j", "v", "q", "{}"), "Complete(): Job has been handed out to another worker: w"),
    (("j", "w", "p", "{}"), "Complete(): Job running in another queue: q"),
])  # fmt: skip
def test_what_cannot_be_completed_stays_as_it_is(
    running: Door, words: tuple[str, ...], sentence: str
) -> None:
    put(running, 11, "idle")
    before = running.call("job.getMulti", 11, "j", "idle")
    running.messages()
    assert sentence in refusal(running.call("job.complete", 12, *words))
    assert (running.call("job.getMulti", 12, "j", "idle"), running.messages()) == (before, [])


def test_a_job_that_is_due_is_called_scheduled_until_somebody_moves_it(door: Door) -> None:
    put(door, 1, "j", "q", 5)
    sentence = "Complete(): Job is not currently running: "
    for now in (5.5, 6, 60):
        assert refusal(door.call("job.complete", now, "j", "w", "q", "{}")) == sentence + "scheduled"
