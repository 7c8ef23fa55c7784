"""The worked traces of the protocol's appendix, call by call, with their messages."""

import pytest
from stories import history, popped, put, refusal
from two_doors import Door


def lock_lost(worker: str) -> list[tuple[str, str]]:
    text = f'{{"jid":"m1","event":"lock_lost","worker":"{worker}"}}'
    return [("ql:stalled", "m1"), (f"ql:w:{worker}", text), ("ql:log", text)]


@pytest.mark.full
def test_locks_are_lost_noticed_and_handed_on(door: Door) -> None:
    door.messages()
    assert (
        door.call("queue.put", 100, "web-1", "mail", "m1", "SendMail", '{"to": "a"}', 0, "retries", 1) == "m1"
    )
    assert door.messages() == [("ql:log", '{"jid":"m1","event":"put","queue":"mail"}')]
    assert door.call("job.track", 100, "m1") == 1
    assert door.messages() == [("ql:track", "m1")]
    assert popped(door, 105, "mail", "box-7", 5) == [("m1", 1, 165)]
    assert door.messages() == [("ql:popped", "m1")]
    assert popped(door, 165, "mail", "box-8", 5) == []
    assert door.messages() == lock_lost("box-7")
    counts = door.call("queue.counts", 166, "mail")
    assert (counts["running"], counts["stalled"]) == (1, 0)
    job = door.call("job.get", 166, "m1")
    assert (job["state"], job["worker"], job["expires"]) == ("running", "box-7", 165)
    assert popped(door, 175, "mail", "box-8", 5) == [("m1", 0, 235)]
    assert door.messages() == [("ql:popped", "m1")]
    assert "handed out to another worker: box-8" in refusal(
        door.call("job.complete", 176, "m1", "box-7", "mail", "{}")
    )
    assert door.messages() == []


def test_a_job_whose_retries_are_used_up_fails_in_the_group_of_its_queue(door: Door) -> None:
    door.call("queue.put", 100, "web-1", "mail", "m1", "SendMail", "{}", 0, "retries", 0)
    door.call("job.track", 100, "m1")
    popped(door, 105, "mail", "box-8")
    popped(door, 300, "mail", "box-9")
    door.messages()
    assert popped(door, 310, "mail", "box-9") == []
    assert door.messages() == [
        ("ql:failed", "m1"),
        ("ql:log", '{"message":"Job exhausted retries in queue \\"mail\\"","jid":"m1",'
                   '"group":"failed-retries-mail","event":"failed","worker":"box-8"}'),
    ]  # fmt: skip
    job = door.call("job.get", 311, "m1")
    assert job["failure"] == {"group": "failed-retries-mail", "when": 310, "worker": "",
                              "message": 'Job exhausted retries in queue "mail"'}  # fmt: skip
    assert history(job) == [("put", 100), ("popped", 105), ("timed-out", 300), ("failed", 310)]
    assert job["history"][-1] == {"what": "failed", "when": 310, "group": "failed-retries-mail"}
    assert (job["remaining"], job["expires"], job["worker"]) == (-1, 0, "")
    assert door.call("failureGroups.counts", 311) == {"failed-retries-mail": 1}


@pytest.mark.full
def test_throttles_set_aside_and_let_go(door: Door) -> None:
    named = ("throttles", '["db"]')
    assert door.call("throttle.set", 0, "db", 1) is None
    put(door, 1, "i1", "imp", 0, *named)
    put(door, 2, "i2", "imp", 0, *named)
    put(door, 3, "i3", "imp")
    assert popped(door, 4, "imp", "w", 2) == [("i1", 5, 64)]
    assert door.call("throttle.locks", 5, "db") == ["i1"]
    assert door.call("throttle.pending", 5, "db") == ["i2"]
    assert door.call("queue.jobsByState", 5, "throttled", "imp") == ["i2"]
    assert popped(door, 6, "imp", "w", 2) == [("i3", 5, 66)]
    put(door, 7, "i4", "imp", 0, *named)
    job = door.call("job.get", 7, "i4")
    assert (job["state"], history(job)) == ("throttled", [("put", 7), ("throttled", 7)])
    assert door.call("job.retry", 8, "i1", "imp", "w") == 4
    assert door.call("throttle.locks", 9, "db") == []
    assert door.call("throttle.pending", 9, "db") == ["i4"]
    assert door.call("job.get", 9, "i2")["state"] == "throttled"
    assert popped(door, 10, "imp", "w", 2) == [("i2", 5, 70)]
    assert door.call("throttle.pending", 11, "db") == ["i4", "i1"]
    assert history(door.call("job.get", 11, "i1")) == [("put", 1), ("popped", 4), ("throttled", 10)]


@pytest.mark.full
def test_jobs_wait_for_others_and_go_on_elsewhere(door: Door) -> None:
    put(door, 10, "x", "a")
    put(door, 11, "y", "a", 30, "depends", '["x"]')
    assert "x is a dependency of y but" in refusal(door.call("job.cancel", 12, "x"))
    assert popped(door, 13, "a", "w", 1) == [("x", 5, 73)]
    door.messages()
    assert door.call("job.completeAndRequeue", 14, "x", "w", "a", "{}", "b") == "waiting"
    assert door.messages() == [("ql:log", '{"jid":"x","to":"b","event":"advanced","queue":"a"}')]
    assert door.call("job.get", 14, "y")["state"] == "depends"
    assert popped(door, 15, "b", "w", 1) == [("x", 5, 75)]
    assert door.call("job.complete", 16, "x", "w", "b", "{}") == "complete"
    assert door.messages() == [("ql:log", '{"jid":"x","event":"completed","queue":"b"}')]
    assert door.call("job.get", 17, "y")["state"] == "scheduled"
    assert door.call("queue.jobsByState", 17, "scheduled", "a") == ["y"]
    [y] = door.call("queue.peek", 41, "a", 0, 1)
    assert (y["state"], y["remaining"], y["expires"]) == ("waiting", 5, 0)
    put(door, 50, "y", "b", worker="other")
    assert door.call("queues.names", 51) == ["a", "b"]
    door.messages()
    assert door.call("job.cancel", 52, "y", "unknown") == ["y", "unknown"]
    assert door.messages() == [("ql:log", '{"jid":"y","queue":"b","event":"canceled","worker":""}')]
