"""Workers, and those who watch, as the released clients know them."""

import json
from queue import Queue

from visitor import World


def story_workers(world: World) -> None:
    client, other = world.client, world.other()
    jids = [client.queues["mail"].put("K", "{}") for _ in range(3)]
    client.queues["mail"].pop(2)
    world.pass_time(1)
    other.queues["mail"].pop()
    assert [(row["name"], row["jobs"], row["stalled"]) for row in client.workers.counts] == [
        ("elsewhere", 1, 0), ("box", 2, 0)]  # fmt: skip
    box = client.workers["box"]
    assert set(box["jobs"]) < set(jids)
    assert box["stalled"] == []
    world.pass_time(61)
    assert len(client.workers["box"]["stalled"]) == 2
    assert client.workers["nobody"] == {"jobs": [], "stalled": []}


def story_a_worker_goes_on_with_its_jobs(world: World) -> None:
    client = world.client
    jid = client.queues["mail"].put("K", "{}")
    client.queues["mail"].pop()
    jids = client.workers["box"]["jobs"]
    assert jids == [jid]
    [job] = client.jobs.get(*jids)
    assert job.heartbeat()
    assert job.complete()
    assert client.workers["box"]["jobs"] == []


def story_tracking(world: World) -> None:
    client = world.client
    jid = client.queues["mail"].put("K", "{}")
    assert client.track(jid)
    assert client.jobs[jid].tracked
    assert [job.jid for job in client.jobs.tracked()["jobs"]] == [jid]
    client.jobs[jid].cancel()
    assert client.jobs.tracked()["expired"] == [jid]
    other = client.queues["mail"].put("K", "{}")
    assert client.jobs[other].track()
    assert client.jobs[other].untrack()
    assert not client.jobs[other].tracked
    world.refused(lambda: client.track("nobody"))


def story_events(world: World) -> None:
    heard: Queue[tuple[str, str]] = Queue()
    client, listener = world.client, world.other("listener")
    events = listener.events
    for event in ("put", "popped", "completed", "failed", "canceled", "track", "untrack"):
        events.on(event, lambda jid, event=event: heard.put((event, jid)))
    with events.thread():
        wait_until_heard(world, 7)
        client.queues["mail"].put("K", "{}", jid="j")
        client.track("j")
        client.queues["mail"].pop().fail("broken", "why")
        client.jobs["j"].move("mail")
        client.queues["mail"].pop().complete()
        client.untrack("j")
        client.queues["mail"].put("K", "{}", jid="k")
        client.track("k")
        client.jobs["k"].cancel()
        assert [heard.get(timeout=30) for _ in range(9)] == [
            ("track", "j"), ("popped", "j"), ("failed", "j"), ("put", "j"), ("popped", "j"), ("completed", "j"),
            ("untrack", "j"), ("track", "k"), ("canceled", "k")]  # fmt: skip
    assert heard.empty()


def wait_until_heard(world: World, channels: int) -> None:
    """Until the store knows all that a listener has asked for."""
    names = ("put", "popped", "completed", "failed", "canceled", "track", "untrack")
    asked = [world.channel(name) for name in names]
    while sum(count > 0 for _, count in world.store.pubsub_numsub(*asked)) < channels:
        pass


def story_a_worker_is_told_that_it_lost_a_job(world: World) -> None:
    client = world.client
    ear = world.other("ear")
    listener = (getattr(ear, "database", None) or ear.redis).pubsub()
    listener.subscribe(world.channel("w:box"))
    assert listener.get_message(timeout=30)["type"] == "subscribe"
    client.queues["mail"].put("K", "{}", jid="j")
    job = client.queues["mail"].pop()
    client.jobs["j"].timeout()
    told = json.loads(listener.get_message(timeout=30)["data"])
    assert told == {"jid": "j", "event": "lock_lost", "worker": "box"}
    client.queues["mail"].pop()
    client.jobs["j"].cancel()
    told = json.loads(listener.get_message(timeout=30)["data"])
    assert (told["jid"], told["event"]) == ("j", "canceled")
    world.refused(job.complete)
    listener.close()
