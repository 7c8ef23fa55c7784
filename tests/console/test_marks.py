"""Charts are marked where workers got a new version, and where a queue was paused."""

from holdfast import Client
from holdfast.commands.workers import WorkerSeen
from holdfast.console.handles import Console
from holdfast.testing.clock import START_MS, StoppedClock


def test_new_versions_of_workers_and_pauses_of_the_queue_are_marked(client: Client) -> None:
    clock = StoppedClock(client, START_MS)
    clock.start()
    console = Console(client, "ada")
    client.queues["mail"].put("jobs.Send", {})
    begun = clock.now_ms
    for version in ("0.1.9", "0.2.0"):
        client.run(WorkerSeen("w", {"version": version}))
        clock.advance(minutes=10)
    console.pause("mail", "other")
    clock.advance(minutes=10)
    console.resume("mail")
    clock.advance(minutes=10)
    steps = console.throughput(["mail"], "90m")
    found = [((one.when_ms - begun) // 60_000, one.text) for one in console.marks(steps, "mail")]
    assert found == [(10, "version 0.2.0"), (20, "paused"), (30, "resumed")]
    assert [one.text for one in console.marks(steps)] == ["version 0.2.0"]
    assert [one.text for one in console.marks(steps, "mai")] == ["version 0.2.0"]
    clock.advance(minutes=75)
    assert [one.text for one in console.marks(console.throughput(["mail"], "90m"), "mail")] == ["resumed"]
    assert console.overview().versions == {}  # the worker is silent by now
