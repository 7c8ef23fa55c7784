"""job.heartbeat."""

import pytest
from stories import popped, put, refusal
from two_doors import Door


def test_a_heartbeat_moves_the_end_and_keeps_data_as_it_came(running: Door) -> None:
    assert running.call("job.heartbeat", 12.5, "j", "w", "[]") == 72
    job = running.call("job.get", 13, "j")
    assert (job["expires"], job["data"]) == (72.5, "[]")
    assert running.messages() == []


@pytest.mark.full
def test_data_stay_unless_given(running: Door) -> None:
    running.call("job.heartbeat", 12, "j", "w", '{"a": 1.10}')
    running.call("job.heartbeat", 13, "j", "w")
    assert running.call("job.get", 13, "j")["data"] == '{"a": 1.10}'


@pytest.mark.full
def test_a_lock_is_as_long_as_its_queue_says(running: Door) -> None:
    running.call("config.set", 11, "heartbeat", 20)
    assert running.call("job.heartbeat", 12350.5, "j", "w") == 12370
    running.call("config.set", 11, "q-heartbeat", -5)
    assert running.call("job.heartbeat", 100, "j", "w") == 95


@pytest.mark.full
def test_every_loss_has_its_own_grace(running: Door) -> None:
    assert popped(running, 70, worker="v") == []
    assert running.call("worker.jobs", 71, "w")["jobs"] == {}
    assert running.call("job.heartbeat", 71, "j", "w") == 131
    assert running.call("worker.jobs", 71, "w")["jobs"] == ["j"]
    assert popped(running, 131, worker="v") == []
    assert popped(running, 140, worker="v") == []
    assert popped(running, 141, worker="v") == [("j", 4, 201)]


@pytest.mark.full
@pytest.mark.parametrize(("words", "sentence"), [
    ((), "no jid provided"),
    (("j",), 'Arg "worker" missing'),
    (("j", "w", "{"), "not JSON"),
    (("x", "w"), "Heartbeat(): Job does not exist"),
    (("idle", "w"), "Heartbeat(): Job not currently running: waiting"),
    (("j", "v"), "Heartbeat(): Job given out to another worker: w"),
])  # fmt: skip
def test_only_the_holder_of_a_lock_renews_it(running: Door, words: tuple[str, ...], sentence: str) -> None:
    put(running, 11, "idle")
    assert sentence in refusal(running.call("job.heartbeat", 12, *words))
    assert running.call("job.get", 12, "j")["expires"] == 70
