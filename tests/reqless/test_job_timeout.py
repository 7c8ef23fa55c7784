"""job.timeout."""

import pytest
from stories import peeked, popped, put, refusal
from two_doors import Door


@pytest.mark.full
def test_a_timed_out_job_goes_ahead_of_everything(running: Door) -> None:
    put(running, 11, "first", "q", 0, "priority", 1000)
    running.call("job.track", 11, "j")
    running.messages()
    assert running.call("job.timeout", 12, "j") is None
    lost = '{"jid":"j","event":"lock_lost","worker":"w"}'
    assert running.messages() == [("ql:w:w", lost), ("ql:log", lost)]
    assert peeked(running, 12) == ["j", "first"]
    job = running.call("job.get", 12, "j")
    assert (job["state"], job["worker"], job["expires"], job["remaining"]) == ("stalled", "", 0, 5)
    assert job["history"][-1] == {"what": "timed-out", "when": 12}
    assert running.call("queue.counts", 12, "q")["waiting"] == 2


@pytest.mark.full
def test_nothing_of_it_stays_with_its_worker_or_its_throttles(running: Door) -> None:
    running.call("job.timeout", 12, "j")
    assert running.call("worker.jobs", 12, "w") == {"jobs": {}, "stalled": {}}
    assert running.call("throttle.locks", 12, "ql:q:q") == []
    assert running.call("queue.stats", 12, "q", 12)["retries"] == 0


@pytest.mark.full
def test_the_next_loss_has_a_grace_of_its_own(running: Door) -> None:
    assert popped(running, 70, worker="v") == []
    running.call("job.timeout", 71, "j")
    assert popped(running, 72, worker="v") == [("j", 5, 132)]
    assert popped(running, 132, worker="u") == []
    assert popped(running, 142, worker="u") == [("j", 4, 202)]


@pytest.mark.full
def test_many_go_in_one_call(running: Door) -> None:
    put(running, 11, "k")
    popped(running, 12)
    assert running.call("job.timeout", 13, "k", "j", "k") is None
    assert sorted(peeked(running, 13)) == ["j", "k"]
    assert running.call("job.timeout", 13) is None


@pytest.mark.parametrize("other", ["idle", "none"])
def test_one_job_that_does_not_run_spares_all(running: Door, other: str) -> None:
    put(running, 11, "idle")
    running.messages()
    assert refusal(running.call("job.timeout", 12, "j", other)) == f"Timeout(): Job {other} not running"
    assert (running.call("job.get", 12, "j")["state"], running.messages()) == ("running", [])
