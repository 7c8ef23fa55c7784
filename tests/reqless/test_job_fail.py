"""job.fail."""

import pytest
from stories import popped, put, refusal
from two_doors import Door


@pytest.mark.full
def test_failed_jobs_are_listed_newest_call_first(door: Door) -> None:
    for jid in ("b", "a", "c"):
        put(door, 1, jid)
    popped(door, 2)
    door.messages()
    for jid in ("b", "a", "c"):
        assert door.call("job.fail", 3.5, jid, "w", "grp", "mess") == jid
    assert door.messages()[0] == (
        "ql:log", '{"message":"mess","jid":"b","group":"grp","event":"failed","worker":"w"}')  # fmt: skip
    assert door.call("jobs.failedByGroup", 4, "grp") == {"total": 3, "jobs": ["c", "a", "b"]}
    job = door.call("job.get", 4, "a")
    assert job["failure"] == {"group": "grp", "message": "mess", "when": 3, "worker": "w"}
    assert job["history"][-1] == {"what": "failed", "when": 3, "worker": "w", "group": "grp"}
    assert (job["state"], job["worker"], job["expires"], job["remaining"]) == ("failed", "", 0, 5)


@pytest.mark.full
def test_a_tracked_job_is_told_last_on_its_own_channel(running: Door) -> None:
    running.call("job.track", 11, "j")
    running.messages()
    running.call("job.fail", 12, "j", "w", "g", "m")
    assert [channel for channel, _ in running.messages()] == ["ql:log", "ql:failed"]


@pytest.mark.full
def test_data_are_replaced_if_given_byte_for_byte(running: Door) -> None:
    running.call("job.fail", 11, "j", "w", "g", "m", '{"b": [ ], "a": 12345678901234567}')
    assert running.call("job.get", 11, "j")["data"] == '{"b": [ ], "a": 12345678901234567}'


@pytest.mark.full
def test_failures_are_counted_on_their_day(running: Door) -> None:
    running.call("job.fail", 86410, "j", "w", "g", "m")
    days = [running.call("queue.stats", 86410, "q", day) for day in (0, 86400)]
    assert [(day["failures"], day["failed"]) for day in days] == [(0, 0), (1, 1)]


def test_slots_come_back(running: Door) -> None:
    running.call("job.fail", 11, "j", "w", "g", "m")
    assert running.call("throttle.locks", 11, "ql:q:q") == []
    assert running.call("worker.jobs", 11, "w") == {"jobs": {}, "stalled": {}}


def test_a_message_may_be_of_any_length_and_kind(running: Door) -> None:
    message = 'a "quoted"\n/\x7fé' + "x" * 70000
    running.call("job.fail", 11, "j", "w", "g", message)
    assert running.call("job.get", 11, "j")["failure"]["message"] == message
    assert '"message":"a \\"quoted\\"\\n\\/\\u007fé' in running.messages()[0][1]


@pytest.mark.full
@pytest.mark.parametrize(("words", "sentence"), [
    ((), "no jid provided"),
    (("j",), 'Fail(): Arg "worker" missing'),
    (("j", "w"), 'Fail(): Arg "group" missing'),
    (("j", "w", "g"), 'Fail(): Arg "message" missing'),
    (("j", "w", "g", "m", "{"), "not JSON"),
    (("x", "w", "g", "m"), "Fail(): Job does not exist"),
    (("idle", "w", "g", "m"), "Fail(): Job not currently running: waiting"),
    (("j", "v", "g", "m"), "Fail(): Job running with another worker: w"),
])  # fmt: skip
def test_what_cannot_be_failed_stays_as_it_is(running: Door, words: tuple[str, ...], sentence: str) -> None:
    put(running, 11, "idle")
    before = running.call("job.getMulti", 11, "j", "idle")
    running.messages()
    assert sentence in refusal(running.call("job.fail", 12, *words))
    assert (running.call("job.getMulti", 12, "j", "idle"), running.messages()) == (before, [])
    assert running.call("failureGroups.counts", 12) == {}


@pytest.mark.full
def test_a_job_whose_delay_is_over_and_that_nobody_moved_yet_is_called_scheduled(door: Door) -> None:
    door.call("queue.put", 1, "me", "q", "j", "k", "{}", 5)
    for command, *words in (("job.fail", "j", "w", "g", "m"), ("job.complete", "j", "w", "q", "{}")):
        assert refusal(door.call(command, 10, *words)).endswith(": scheduled")
