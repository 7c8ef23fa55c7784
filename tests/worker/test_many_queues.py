"""Workers of many queues: by patterns, or by more names than they could look into one by one."""

from contextlib import suppress

import pytest
from worker_kit import until

from holdfast import Client
from holdfast.commands.leases import Done, Pop
from holdfast.commands.outcomes import Retry
from holdfast.wire.plans import LinkError, Step
from holdfast.worker.queues.route import MOST_QUEUES_IN_A_POP, Route
from holdfast.worker.queues.routing import PatternResolver
from holdfast.worker.session import ANY_QUEUE, StoreSession

LONG = "60"
"""Seconds until an idle worker looks by itself: longer than a test waits."""


def put_count(shop, queue: str, number: int, **options) -> str:
    return shop.client.queues[queue].put("chores.count", {"args": [number]}, **options)


def counted(shop) -> list[int]:
    return sorted(int(note.split()[1]) for note in shop.notes("count"))


def idle(shop) -> None:
    """Wait until the worker waits for work."""
    put_count(shop, "q-first", -1)
    until(lambda: -1 in counted(shop), "it works")
    until(lambda: shop.client.queues["q-first"].counts["running"] == 0, "it is done")


@pytest.mark.full
def test_every_queue_that_a_pattern_matches_is_served(shop, pool):
    for number in range(60):
        put_count(shop, f"q{number}", number)
        put_count(shop, f"other{number}", 1000 + number)
    worker = shop.start(pool, "-q", "q*", "-q", "!*7", "--drain")
    assert worker.wait(120) == 0
    assert counted(shop) == [number for number in range(60) if number % 10 != 7]


@pytest.mark.full
@pytest.mark.parametrize("how", ["slots", "parents"])
def test_a_draining_worker_goes_on_with_what_its_own_jobs_made_ready(shop, pool, how):
    parents: list[str] = []
    for number in range(5):
        jid = put_count(shop, "q-slots" if how == "slots" else f"q{number}", number, depends=parents)
        parents = [jid] if how == "parents" else []
    shop.client.queues["q-slots"].throttle.maximum = 1
    flags = ["--concurrency", "3"] if pool in ("asyncio", "thread", "gevent") else []
    worker = shop.start(pool, "-q", "q*", "--drain", *flags)
    assert worker.wait(120) == 0
    assert counted(shop) == list(range(5))


@pytest.mark.full
def test_thousands_of_queues_by_name_are_served_and_no_others(shop):
    names = [f"q{number}" for number in range(2000)]
    for number in range(0, 4000, 40):
        put_count(shop, f"q{number}", number)
    worker = shop.start("asyncio", *[word for name in names for word in ("-q", name)], "--drain")
    assert worker.wait(120) == 0
    assert counted(shop) == list(range(0, 2000, 40))


@pytest.mark.full
def test_names_go_in_the_order_in_which_they_were_given(shop):
    names = [f"q{number}" for number in range(MOST_QUEUES_IN_A_POP + 1)]
    for number in range(MOST_QUEUES_IN_A_POP + 1):
        put_count(shop, f"q{number}", number)
    worker = shop.start("serial", *[word for name in reversed(names) for word in ("-q", name)], "--drain")
    assert worker.wait(120) == 0
    assert [int(note.split()[1]) for note in shop.notes("count")] == list(range(MOST_QUEUES_IN_A_POP, -1, -1))


ENDS = "pause over"
ARRIVALS = ("put", "delayed", "retried", "recurring", "lost", "resumed", ENDS, "a free slot")


def come(shop, how: str) -> None:
    """A job comes into a queue that was not used before, now or in a second."""
    rare, client = shop.client.queues["q-rare"], shop.client
    if how == "recurring":
        rare.recur("chores.count", {"args": [1]}, interval=1000, offset=1)
        return
    if how in ("resumed", ENDS):
        rare.pause(seconds=1.5 if how == ENDS else 0)
    if how == "a free slot":
        rare.throttle.maximum = 1
        put_count(shop, "q-rare", 2)
    elif how == "lost":
        client.config["grace-period"] = 0
    with shop.workers[0].halted():
        put_count(shop, "q-rare", 1, delay=1 if how == "delayed" else 0)
        if how in ("lost", "retried"):
            [lease] = client.run(Pop("somebody", ["q-rare"], 1, 1))
            if how == "retried":
                client.run(Retry("somebody", lease, 1000, "again", "on purpose"))
    if how == "resumed":
        until(lambda: rare.counts["waiting"] == 1, "it waits")
        rare.unpause()


@pytest.mark.full
@pytest.mark.parametrize("how", ARRIVALS)
def test_what_comes_into_a_rare_queue_is_done_on_time_by_an_idle_worker(shop, pool, how):
    shop.start(pool, "-q", "q*", "--interval", LONG)
    idle(shop)
    come(shop, how)
    until(lambda: 1 in counted(shop), "it was done in time")


@pytest.mark.full
@pytest.mark.parametrize("pool", ["process", "asyncio", "thread"])
def test_workers_that_are_full_have_others_of_their_fleet_told(shop, pool):
    for _ in range(3):
        shop.start(pool, "-q", "q*", "--interval", LONG, "--concurrency", "1")
    idle(shop)
    for number in range(3):
        shop.client.queues["q-long"].put(
            "chores.hog" if pool != "asyncio" else "chores.block", {"args": [f"n{number}"]}
        )
    for number in range(3):
        until(lambda number=number: shop.notes(f"begin n{number}"), "each worker has one")


@pytest.mark.full
def test_each_of_two_fleets_is_told_of_its_own_queues(shop):
    for pattern in ("a*", "b*"):
        for _ in range(2):
            shop.start("serial", "-q", pattern, "--interval", LONG)
    for number in range(60):
        put_count(shop, f"{'ab'[number % 2]}{number}", number)
        until(lambda number=number: number in counted(shop), "it was done in time")


@pytest.mark.full
def test_a_worker_that_is_woken_while_it_is_full_hands_on_what_it_was_told(shop):
    """The wait of a worker that takes a job by its timer stays outstanding: it is woken for a job that it cannot take."""
    shop.client.queues["q"].put("chores.count", {"args": [0]})
    route = Route(shop.client.shard, ["q*"], slots=1, chooser=PatternResolver(shop.client, ("q*",)))
    route.refresh()
    turns = StoreSession(shop.client.shard, "w", route)
    [key] = route.keys()
    run = shop.client.runner.run
    assert len(run(turns.round_trip(1))) == 1
    run(route.find(1, None, will_wait=True))
    put_count(shop, "q-other", 1)
    assert shop.client.link.send(Step([("LPOP", key)])) == [b""]
    assert run(turns.round_trip(0, ANY_QUEUE)) == []
    assert shop.client.link.send(Step([("LPOP", key)])) == [b""]
    put_count(shop, "q-other", 2)
    assert shop.client.link.send(Step([("LPOP", key)])) == [None]


@pytest.mark.full
def test_jobs_are_kept_when_the_store_is_lost_while_another_worker_is_told(shop):
    put_count(shop, "q-other", 1)
    with Client(shop.url, namespace=shop.namespace, deadline=1) as impatient:
        route = Route(impatient.shard, ["q*"], slots=1, chooser=PatternResolver(impatient, ("q*",)))
        route.refresh()
        plan = StoreSession(impatient.shard, "w", route).round_trip(1, ANY_QUEUE)
        step, verbs, jobs = next(plan), [], []
        while not jobs:
            verbs.append(step.calls[0][1])
            is_last = verbs[-1] == "hf1_find_work" and "hf1_pop" in verbs
            try:
                step = (
                    plan.throw(LinkError("the store is away"))
                    if is_last
                    else plan.send(impatient.link.send(step))
                )
            except StopIteration as done:
                jobs = done.value
    assert [job.queue for job in jobs] == ["q-other"]
    assert verbs.count("hf1_pop") == 1


def test_what_ends_while_the_store_is_asked_for_queues_is_said_too(shop):
    put_count(shop, "q-one", 1)
    put_count(shop, "q-two", 2)
    route = Route(shop.client.shard, ["q*"], slots=3, chooser=PatternResolver(shop.client, ("q*",)))
    route.refresh()
    turns = StoreSession(shop.client.shard, "w", route)
    run, send = shop.client.runner.run, shop.client.link.send
    jobs = run(turns.round_trip(3))
    assert len(jobs) == 2
    turns.end(Done(jobs[0].jid, jobs[0].token))
    plan = turns.round_trip(2)
    step = next(plan)
    assert step.calls[0][1] == "hf1_find_work"
    turns.end(Done(jobs[1].jid, jobs[1].token))
    with suppress(StopIteration):
        while True:
            step = plan.send(send(step))
    while turns.has_outcomes:
        run(turns.round_trip(2))
    assert [shop.state(job.jid) for job in jobs] == ["complete", "complete"]


@pytest.mark.full
def test_rules_that_cannot_be_read_again_leave_those_that_were_read(shop, monkeypatch):
    put_count(shop, "q-one", 1)
    chooser = PatternResolver(shop.client, ("q*",))
    route = Route(shop.client.shard, ["q*"], slots=2, chooser=chooser)
    turns, run, send = (
        StoreSession(shop.client.shard, "w", route),
        shop.client.runner.run,
        shop.client.link.send,
    )
    route.refresh()
    [job] = run(turns.round_trip(2))
    send(Step([("RPUSH", f"{shop.client.root}qp", "[1]")]))
    monkeypatch.setattr("holdfast.worker.queues.routing._Kept.is_old", True)
    turns.end(Done(job.jid, job.token))
    put_count(shop, "q-two", 2)
    route.refresh()
    assert [other.queue for other in run(turns.round_trip(2))] == ["q-two"]
    assert shop.state(job.jid) == "complete"


class Fixed:
    def __init__(self, names: list[str]) -> None:
        self.resolve = lambda: names


@pytest.mark.full
def test_a_worker_is_not_woken_in_the_place_of_one_whose_own_resolver_means_other_queues(shop):
    routes = [Route(shop.client.shard, ["q"], Fixed([f"{kind}{i}" for i in range(100)])) for kind in "ab"]
    run, send = shop.client.runner.run, shop.client.link.send
    for route in routes:
        route.refresh()
        assert run(StoreSession(shop.client.shard, "w", route).round_trip(1)) == []
    put_count(shop, "a5", 1)
    bells = [wake_up for route in routes for wake_up, _ in route.keys().items()]
    assert send(Step([("LPOP", wake_up) for wake_up in bells])) == [b"", b""]


@pytest.mark.full
def test_a_queue_that_goes_first_is_found_behind_a_thousand_others(shop):
    names = [f"q{number}" for number in range(1100)]
    for name in names:
        put_count(shop, name, 1)
    route = Route(shop.client.shard, names[::-1])
    [job] = shop.client.runner.run(StoreSession(shop.client.shard, "w", route).round_trip(1))
    assert job.queue == names[-1]
