"""Queues, throttles, templates and statistics, as the released clients use them."""

from visitor import World


def story_counts(world: World) -> None:
    client = world.client
    for name in ("mail", "print"):
        client.queues[name].put("K", "{}")
        client.queues[name].put("K", "{}", delay=60)
        world.pass_time(1)
    client.queues["print"].pop()
    assert [row["name"] for row in client.queues.counts] == ["mail", "print"]
    counts = client.queues["print"].counts
    assert (counts["waiting"], counts["running"], counts["scheduled"], counts["paused"]) == (0, 1, 1, False)
    assert client.queues["print"].jobs.running() == [client.queues["print"].jobs.running()[0]]
    assert len(client.queues["print"]) == 2


def story_pause(world: World) -> None:
    queue = world.client.queues["mail"]
    queue.put("K", "{}")
    queue.pause()
    assert queue.counts["paused"] is True
    assert queue.pop() is None
    queue.unpause()
    assert queue.pop() is not None


def story_stats(world: World) -> None:
    queue = world.client.queues["mail"]
    for n in range(3):
        queue.put("K", "{}", jid=f"j{n}")
    world.pass_time(5)
    jobs = queue.pop(3)
    world.pass_time(7)
    jobs[0].complete()
    jobs[1].fail("broken", "why")
    stats = queue.stats()
    assert stats["wait"]["count"] == 3
    assert 5 <= stats["wait"]["mean"] < 6
    assert (stats["run"]["count"], stats["failures"], stats["failed"], stats["retries"]) == (1, 1, 1, 0)
    assert len(stats["run"]["histogram"]) == 148
    assert stats["run"]["histogram"][7] == 1


def story_throttles(world: World) -> None:
    client, queue = world.client, world.client.queues["mail"]
    client.throttles["db"].set_maximum(1)
    assert client.throttles["db"].maximum() == 1
    for jid in ("a", "b"):
        queue.put("K", "{}", jid=jid, throttles=["db"])
        world.pass_time(1)
    assert client.jobs["a"].throttles == ["db", "ql:q:mail"]
    [a, *others] = queue.pop(2)
    assert (a.jid, others) == ("a", [])
    queue.put("K", "{}", jid="c")
    assert client.throttles["db"].locks() == ["a"]
    assert client.throttles["db"].pending() == ["b"]
    assert client.jobs["b"].state == "throttled"
    assert queue.pop().jid == "c"
    a.complete()
    assert queue.pop().jid == "b"
    client.throttles["db"].delete()
    assert client.throttles["db"].maximum() == 0


def story_a_throttle_that_ends(world: World) -> None:
    throttle = world.client.throttles["db"]
    throttle.set_maximum(5, 100)
    assert 90 < throttle.ttl() <= 100
    assert throttle.maximum() == 5


def story_a_queue_that_is_throttled(world: World) -> None:
    queue = world.client.queues["mail"]
    queue.throttle.set_maximum(2)
    assert queue.throttle.name == "ql:q:mail"
    for n in range(4):
        queue.put("K", "{}", jid=f"j{n}")
    jobs = queue.pop(4)
    assert len(jobs) == 2
    assert queue.throttle.locks() == sorted(job.jid for job in jobs)
    assert queue.pop(4) == []
    jobs[0].complete()
    assert len(queue.pop(4)) == 1


def story_recur(world: World) -> None:
    client, queue = world.client, world.client.queues["mail"]
    jid = queue.recur(
        "real_jobs.Sum", '{"n": 1}', interval=60, priority=2, tags=["t"], retries=3, jid="daily"
    )
    template = client.jobs[jid]
    assert type(template).__name__ == "RecurringJob"
    assert (template.queue_name, template.interval, template.retries, template.count) == ("mail", 60, 3, 0)
    assert queue.jobs.recurring() == [jid]
    world.pass_time(61)
    jobs = queue.pop(5)
    assert [job.jid for job in jobs] == ["daily-1", "daily-2"]
    assert (jobs[0].klass_name, jobs[0].data, jobs[0].priority, jobs[0].tags) == (
        "real_jobs.Sum", '{"n": 1}', 2, ["t"])  # fmt: skip
    assert client.jobs[jid].count == 2
    assert queue.counts["recurring"] == 1


def story_a_template_is_changed(world: World) -> None:
    import real_jobs

    client, queue = world.client, world.client.queues["mail"]
    queue.recur("K", "{}", interval=60, jid="daily")
    template = client.jobs["daily"]
    first = template.next
    queue.pop()
    assert template.next == first + 60 or abs(template.next - int(first) - 60) < 1
    template.interval, template.priority, template.retries = 10, 5, 7
    template.data, template.klass = '{"new": 1}', real_jobs.Sum
    again = client.jobs["daily"]
    assert (again.interval, again.priority, again.retries, again.data, again.klass_name) == (
        10, 5, 7, '{"new": 1}', "real_jobs.Sum")  # fmt: skip
    template.tag("red", "blue")
    template.untag("red")
    assert client.jobs["daily"].tags == ["blue"]
    assert template.move("other")
    assert client.jobs["daily"].queue_name == "other"
    assert client.jobs["daily"].throttles == ["ql:q:other"]
    world.pass_time(11)
    assert client.queues["other"].pop().tags == ["blue"]
    template.cancel()
    assert client.jobs["daily"] is None
    assert client.queues["other"].jobs.recurring() == []


def story_config(world: World) -> None:
    config = world.client.config
    assert int(config["heartbeat"]) in (60, 30)  # of the released client, and ours
    config["heartbeat"] = 20
    config["mine"] = 7
    assert (int(config["heartbeat"]), config["mine"], "mine" in config) == (20, 7, True)
    assert int(config.all["grace-period"]) in (10, 5)
    del config["heartbeat"]
    assert int(config["heartbeat"]) in (60, 30)
    assert config.pop("mine") == 7
    assert "mine" not in config


def story_patterns(world: World) -> None:
    """The newer package keeps them by commands, the older one in raw keys; workers of both resolve queues by them."""
    if world.is_older:
        return
    from reqless.models import QueuePriorityPattern
    from reqless.queue_resolvers import (
        DynamicMappingQueueIdentifiersTransformer,
        DynamicPriorityQueueIdentifiersTransformer,
    )

    client, patterns = world.client, world.client.queue_patterns
    assert patterns.get_queue_identifier_patterns() == {"default": ["*"]}
    patterns.set_queue_identifier_patterns({"fast": ["mail", "print"]})
    assert patterns.get_queue_identifier_patterns() == {"fast": ["mail", "print"], "default": ["*"]}
    for name in ("print", "mail", "slow"):
        client.queues[name].put("K", "{}")
    resolved = DynamicMappingQueueIdentifiersTransformer(client).transform(["@fast"])
    assert set(resolved) == {"mail", "print"}
    patterns.set_queue_priority_patterns([QueuePriorityPattern(["slow"], False)])
    kept = patterns.get_queue_priority_patterns()
    assert [found.patterns for found in kept] == [["slow"], ["default"]]
    ordered = DynamicPriorityQueueIdentifiersTransformer(client).transform(["print", "mail", "slow"])
    assert ordered == ["slow", "print", "mail"]
