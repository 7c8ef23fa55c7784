"""A worker that sends no heartbeats any more counts nowhere as one that takes jobs, and is named where that matters."""

import json

import pytest

from command_line import holdfast
from holdfast import Client
from holdfast.commands.workers import WorkerSeen
from holdfast.console.handles import Console
from holdfast.testing.clock import START_MS, StoppedClock


@pytest.fixture
def clock(client: Client) -> StoppedClock:
    clock = StoppedClock(client, START_MS)
    clock.start()
    return clock


def seen(client: Client, name: str, *queues: str) -> None:
    client.run(WorkerSeen(name, {"queues": json.dumps(queues), "slots": "4", "busy": "4"}))


@pytest.mark.full
@pytest.mark.parametrize("queue", ["mail", "ma*", "*"])
def test_a_queue_whose_only_worker_is_silent_has_none(
    client: Client, clock: StoppedClock, url: str, namespace: str, queue: str
) -> None:
    console, place = Console(client), ("--url", url, "--namespace", namespace)
    client.queues["mail"].put("k.K")
    seen(client, "crew", queue)
    clock.advance(seconds=70)
    detail = console.queue("mail")
    assert (detail.workers, [one.name for one in detail.silent_workers]) == ((), ["crew"])
    [figures] = console.queue_figures([detail.counts])
    assert figures.workers == 0
    found = console.overview()
    assert (found.workers, found.slots, found.busy, found.silent) == (0, 0, 0, 1)
    [finding] = [one for one in found.attention if one.kind == "no-worker"]
    assert finding.severity == "urgent"
    assert (
        "no worker takes jobs from this queue; worker crew has been silent for 70 s, since " in finding.text
    )
    shown = {words: holdfast(*words, *place).stdout for words in (
        ("stats",), ("queues", "show", "mail"), ("workers", "list"), ("doctor",), ("workers", "show", "crew"),
    )}  # fmt: skip
    assert "0 workers, 1 silent" in shown["stats",]
    assert "worker crew has been silent for 70 s, since " in shown["queues", "show", "mail"]
    assert "silent for 70 s" in shown["workers", "list"]
    assert "0 workers and 1 silent" in shown["doctor",]
    assert "1 min 10 s ago: silent since " in shown["workers", "show", "crew"]


@pytest.mark.parametrize("queue", ["!mail", "other*", "@nobody"])
def test_a_worker_whose_patterns_do_not_match_does_not_count(
    client: Client, clock: StoppedClock, queue: str
) -> None:
    client.queue_patterns.set_queue_identifier_patterns({"nobody": ["nothing"], "default": ["nothing"]})
    client.queues["mail"].put("k.K")
    seen(client, "crew", *(["*"] if queue.startswith("!") else []), queue)
    clock.advance(seconds=10)
    detail = Console(client).queue("mail")
    assert (detail.workers, detail.silent_workers) == ((), ())


def test_busy_slots_are_those_of_the_running_jobs_of_this_moment(client: Client, clock: StoppedClock) -> None:
    client.queues["mail"].put("k.K")
    seen(client, "crew", "mail")
    assert Console(client).overview().busy == 0
    assert client.queues["mail"].pop() is not None
    assert Console(client).overview().busy == 1
