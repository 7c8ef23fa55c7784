"""Subscriptions to topics (spec/schedules.md 5 and 8.3), for both clients: handlers, and the bridge into a queue."""

import asyncio
import inspect
import logging
import os
import subprocess
import sys
import threading
from time import monotonic

import pytest
from sync_async import Async, Sync

from holdfast import AsyncScheduler, Client, Scheduler, UsageError
from holdfast.testing.store import ScratchStore
from waiting import pause, pause_async, until, until_async

LONG = 600.0
"""Seconds: as an interval, long enough that nothing is found by looking now and then."""


class Welcome:
    """A job class with options of its own."""

    @staticmethod
    def default_job_options(data):
        return {"priority": data["user"]}

    @staticmethod
    def perform(job):
        pass


def scheduler(do, **times):
    """A scheduler that looks seldom unless it is told otherwise, so that only waking finds anything."""
    kind = Scheduler if isinstance(do, Sync) else AsyncScheduler
    return kind(do.client, **{"reserve_interval": LONG, "requeue_interval": LONG, **times})


@pytest.fixture
def sched(do):
    made = scheduler(do)
    yield made
    do(made.close)


def eventually(do, condition, what):
    """Wait for something while the loop of an async client goes on."""

    def look():
        if isinstance(do, Async):
            do(lambda: pause_async(0.005))
        return condition()

    return until(look, what)


async def is_queued(topic):
    return (await topic.get("a")).state == "queued"


def is_empty(do, topic):
    return lambda: do(topic.length) == 0


def idle(do, sched, topic):
    """Wait until a subscription waits for its bell."""
    client = do.client
    flag = ("HGET", client.root + "ti", topic)

    def look():
        from holdfast.wire.plans import Step

        async def ask():
            return await client.link.send(Step([flag]))

        return do(ask if isinstance(do, Async) else lambda: client.link.send(Step([flag]))) == [b"1"]

    eventually(do, look, "a subscription is idle")


def test_each_message_goes_to_the_handler_and_is_done_when_that_returns(do, sched):
    got = []
    do(lambda: sched["t"].put_many({"a": "x", "b": {"n": 1}}))
    do(lambda: sched.subscribe("t", lambda item: got.append((item.topic, item.id, item.body))))
    eventually(do, lambda: len(got) == 2, "both are handled")
    assert got == [("t", "a", "x"), ("t", "b", '{"n":1}')]
    eventually(do, is_empty(do, sched["t"]), "both are done")


def test_an_async_handler_is_awaited_and_a_blocking_subscription_refuses_one(do, sched):
    got = []

    async def handler(item):
        await asyncio.sleep(0)
        got.append(item.id)

    if isinstance(do, Sync):
        with pytest.raises(UsageError, match="AsyncClient"):
            sched.subscribe("t", handler)
        assert not sched.is_subscribed("t")
        return
    do(lambda: sched.subscribe("t", handler))
    do(lambda: sched["t"].put("a", "x"))
    eventually(do, lambda: got == ["a"], "it is handled")
    eventually(do, is_empty(do, sched["t"]), "it is done")


def test_an_idle_subscription_is_woken_by_the_store(do, sched):
    got = []
    do(lambda: sched.subscribe("t", lambda item: got.append(item.id)))
    idle(do, sched, "t")
    do(lambda: sched["t"].put("now", "x"))
    eventually(do, lambda: got == ["now"], "it was woken by a put")
    do(lambda: sched["t"].put("later", "x", delay=0.2))
    eventually(do, lambda: got == ["now", "later"], "it looked when the message was ready")
    do(lambda: sched["t"].put("much later", "x", delay=300))
    do(lambda: sched["t"].put("soon", "x", delay=0.2))
    eventually(do, lambda: got == ["now", "later", "soon"], "an earlier one is not slept through")


def test_a_message_that_is_given_back_wakes_too(do, sched):
    do(lambda: sched["t"].put("a", "x"))
    item = do(sched["t"].reserve)
    got = []
    do(lambda: sched.subscribe("t", lambda item: got.append(item.id)))
    idle(do, sched, "t")
    do(item.give_back)
    eventually(do, lambda: got == ["a"], "it was woken")


def test_without_a_bell_it_looks_when_its_interval_is_over(do, url, namespace):
    sched = scheduler(do, reserve_interval=0.05)
    got = []
    do(lambda: sched.subscribe("t", lambda item: got.append(item.id)))
    idle(do, sched, "t")
    with Client(url, namespace=namespace) as other:
        # Another client's program that rings no wake_up.
        from holdfast.wire.plans import Step

        root = other.root
        other.link.send(Step([("HSET", root + "tb:t", "a", "x"), ("ZADD", root + "tq:t", 0, "a")]))
    eventually(do, lambda: got == ["a"], "it was found by looking")
    do(sched.close)


def test_a_handler_that_raises_leaves_the_message_to_its_ttr_and_is_reported(do):
    sched = scheduler(do, requeue_interval=0.05)
    tries, told = [], []

    def handler(item):
        tries.append(item.id)
        if len(tries) == 1:
            raise RuntimeError("boom")

    do(
        lambda: sched.subscribe(
            "t", handler, ttr=0.3, on_error=lambda item, error: told.append((item.id, str(error)))
        )
    )
    do(lambda: sched["t"].put("a", "x"))
    eventually(do, lambda: told == [("a", "boom")], "it was reported")
    assert do(lambda: sched["t"].get("a")).state == "reserved"
    eventually(do, lambda: tries == ["a", "a"], "it came back after its ttr")
    eventually(do, is_empty(do, sched["t"]), "it is done")
    do(sched.close)


def test_the_errors_of_a_scheduler_go_where_it_says(do):
    told = []
    sched = scheduler(do, on_error=lambda item, error: told.append((item.id, type(error))))

    def handler(item):
        raise SystemExit(1) if isinstance(do, Sync) else KeyError(1)

    do(lambda: sched.subscribe("t", handler))
    do(lambda: sched["t"].put("a", "x"))
    eventually(do, lambda: len(told) == 1, "it was reported")
    assert told[0][0] == "a"
    assert sched.is_subscribed("t")
    do(sched.close)


def test_without_on_error_a_failed_handler_is_logged(do, sched, caplog):
    caplog.set_level(logging.ERROR, "holdfast")
    do(lambda: sched.subscribe("t", lambda item: 1 / 0))
    do(lambda: sched["t"].put("a", "x"))
    eventually(do, lambda: "ZeroDivisionError" in caplog.text, "it was logged")
    assert "a was not handled" in caplog.text


def test_an_on_error_that_raises_ends_nothing(do, sched, caplog):
    got = []

    def handler(item):
        got.append(item.id)
        raise RuntimeError("boom")

    def on_error(item, error):
        raise RuntimeError("worse")

    do(lambda: sched.subscribe("t", handler, on_error=on_error))
    do(lambda: sched["t"].put_many({"a": "x", "b": "y"}))
    eventually(do, lambda: got == ["a", "b"], "both were handled")
    eventually(do, lambda: "on_error raised" in caplog.text, "it was logged")


def test_a_handler_may_settle_the_message_itself(do, sched, caplog):
    def blocking(item):
        item.give_back(300)

    async def awaited(item):
        await item.give_back(300)

    do(lambda: sched.subscribe("t", blocking if isinstance(do, Sync) else awaited))
    do(lambda: sched["t"].put("a", "x"))
    eventually(
        do,
        lambda: do(sched["t"].ready_count) == 0 and do(lambda: sched["t"].get("a")).state == "queued",
        "given back",
    )
    do(sched.close)
    assert caplog.text == ""


def test_a_handler_that_takes_too_long_is_told_of_and_gets_the_message_again(do, caplog):
    sched = scheduler(do, requeue_interval=0.02)
    got = []

    def handle(item):
        got.append(item.id)
        return len(got) == 1

    def blocking(item):
        if handle(item):
            until(lambda: sched["t"].get("a").state == "queued", "it came back meanwhile")

    async def awaited(item):
        if handle(item):
            await until_async(lambda: is_queued(sched["t"]), "it came back meanwhile")

    do(lambda: sched.subscribe("t", blocking if isinstance(do, Sync) else awaited, ttr=0.05))
    do(lambda: sched["t"].put("a", "x"))
    eventually(do, lambda: got == ["a", "a"], "it came again")
    eventually(do, is_empty(do, sched["t"]), "it is done")
    assert "longer than its ttr" in caplog.text
    do(sched.close)


def test_there_is_one_subscription_to_a_topic(do, sched):
    do(lambda: sched.subscribe("t", print))
    with pytest.raises(UsageError, match="already"):
        do(lambda: sched.subscribe("t", print))
    do(lambda: sched.subscribe("u", print))
    assert (sched.is_subscribed("t"), sched.is_subscribed("u"), sched.is_subscribed("v")) == (
        True,
        True,
        False,
    )
    do(lambda: sched.unsubscribe("t"))
    assert (sched.is_subscribed("t"), sched.is_subscribed("u")) == (False, True)
    do(lambda: sched.subscribe("t", print))
    do(lambda: sched.unsubscribe("nobody"))


def test_unsubscribing_waits_for_the_running_handler(do, sched):
    events = []
    begun = threading.Event()
    go_on = threading.Event()

    def blocking(item):
        begun.set()
        go_on.wait(30)
        events.append("handled")

    async def awaited(item):
        begun.set()
        await until_async(go_on.is_set, "it may go on")
        events.append("handled")

    do(lambda: sched.subscribe("t", blocking if isinstance(do, Sync) else awaited))
    do(lambda: sched["t"].put_many({"a": "x", "b": "y"}))
    eventually(do, begun.is_set, "the handler runs")
    threading.Timer(0.2, go_on.set).start()
    do(lambda: sched.unsubscribe("t"))
    assert events == ["handled"]
    assert do(sched["t"].length) == 1
    pause(0.05)
    assert events == ["handled"]


def test_an_idle_subscription_ends_at_once(do, sched):
    do(lambda: sched.subscribe("t", print))
    idle(do, sched, "t")
    start = monotonic()
    do(lambda: sched.unsubscribe("t"))
    assert monotonic() - start < 30
    assert not [thread for thread in threading.enumerate() if "holdfast-topic" in thread.name]


def test_a_handler_may_end_its_own_subscription(do, sched):
    got = []

    def blocking(item):
        got.append(item.id)
        sched.unsubscribe("t")

    async def awaited(item):
        got.append(item.id)
        await sched.unsubscribe("t")

    do(lambda: sched["t"].put_many({"a": "x", "b": "y"}))
    do(lambda: sched.subscribe("t", blocking if isinstance(do, Sync) else awaited))
    eventually(do, lambda: not sched.is_subscribed("t"), "it ended")
    eventually(do, lambda: do(sched["t"].length) == 1, "its message is done")
    assert got == ["a"]


def test_several_subscriptions_share_a_topic_and_each_message_goes_to_one(do, url, namespace):
    others = [type(do)(url, namespace) for _ in range(2)] if isinstance(do, Sync) else [do, do]
    scheds = [scheduler(other) for other in others]
    got = []

    def blocking(item):
        got.append(item.id)
        pause(0.002)

    async def awaited(item):
        got.append(item.id)
        await pause_async(0.002)

    for sched in scheds:
        do(lambda sched=sched: sched.subscribe("t", blocking if isinstance(do, Sync) else awaited))
        idle(do, sched, "t")
    do(lambda: do.client.topics["t"].put_many({f"m{number}": "x" for number in range(50)}))
    eventually(do, is_empty(do, do.client.topics["t"]), "all are done")
    assert sorted(got) == sorted(f"m{number}" for number in range(50))
    for sched in scheds:
        do(sched.close)
    for other in others:
        if other is not do:
            other.close()


def test_one_that_is_busy_passes_the_bell_on_to_another(do, url, namespace):
    """Two wait; two messages come at one moment; one of the handlers never ends meanwhile."""
    release = threading.Event()
    got = []

    def blocking(item):
        got.append(item.id)
        release.wait(30)

    async def awaited(item):
        got.append(item.id)
        await until_async(release.is_set, "it may go on")

    scheds = [scheduler(do), scheduler(do)]
    for sched in scheds:
        do(lambda sched=sched: sched.subscribe("t", blocking if isinstance(do, Sync) else awaited))
        idle(do, sched, "t")
    do(lambda: do.client.topics["t"].put_many({"a": "x", "b": "y"}))
    eventually(do, lambda: sorted(got) == ["a", "b"], "both were woken")
    release.set()
    for sched in scheds:
        do(sched.close)


def test_one_that_ends_passes_on_a_token_that_was_on_its_way(client):
    """The loop by hand: it waits, is ended, and another one that waits is woken."""
    from holdfast.client.topics.scheduler import Subscription

    sched = Scheduler(client)
    ending = Subscription(sched, "t", print, None, None, None, None, {})
    ending._listen = lambda seconds: "waits"
    loop = ending.deliver()
    assert loop.send(next(loop)) == "waits"
    client.topics["t"].put("a", "x")
    wake_up = client.link.wake_up()
    assert wake_up.wait([ending.wake_key], 30) == ending.wake_key  # the token goes to the one that ends
    ending.stopping = True
    loop.send(None)
    assert wake_up.wait([ending.wake_key], 30) == ending.wake_key
    assert next(loop, "over") == "over"
    wake_up.close()
    ending._end_one()
    ending._end_one()


def test_a_subscription_that_breaks_ends_as_a_whole_and_says_so(do, sched, monkeypatch, caplog):
    do(lambda: sched.subscribe("t", print))
    idle(do, sched, "t")
    monkeypatch.setattr("holdfast.client.topics.delivery.SubscriptionBase._deliver", lambda *_: 1 / 0)
    do(lambda: sched["t"].put("a", "x"))
    eventually(do, lambda: not sched.is_subscribed("t"), "it ended")
    assert "the subscription to topic t has ended" in caplog.text
    assert "ZeroDivisionError" in caplog.text


PROGRAM = """
import sys, time
from holdfast import Client

def handler(item):
    print("got", item.id, flush=True)
    time.sleep(60)

Client(sys.argv[1], namespace=sys.argv[2]).topics.subscribe("t", handler, ttr=0.5)
time.sleep(60)
"""


def test_a_message_of_a_program_that_was_killed_comes_back_to_another(do, url, namespace):
    do(lambda: do.client.topics["t"].put("a", "x"))
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, url, namespace], stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "got a\n"
        program.kill()
    got = []
    sched = scheduler(do, requeue_interval=0.1)
    do(lambda: sched.subscribe("t", lambda item: got.append(item.id)))
    eventually(do, lambda: got == ["a"], "it came back")
    do(sched.close)


@pytest.mark.parametrize("kind", [Sync, Async], ids=["sync", "async"])
def test_subscriptions_live_through_a_restart_of_the_store(kind, namespace, caplog):
    with ScratchStore(durability="fsync") as own:
        do = kind(own.url, namespace, deadline=0.2)
        sched = scheduler(do, reserve_interval=0.5, requeue_interval=0.5)
        got = []
        do(lambda: sched.subscribe("t", lambda item: got.append(item.id)))
        do(lambda: sched["t"].put("before", "x"))
        eventually(do, lambda: got == ["before"], "it works")
        eventually(do, is_empty(do, sched["t"]), "it is done")
        own.kill()
        eventually(do, lambda: "trying again" in caplog.text, "it noticed that the store is away")
        own.restart()
        with Client(own.url, namespace=namespace) as other:
            other.topics["t"].put("after", "x")
        eventually(do, lambda: got == ["before", "after"], "it works again")
        do(sched.close)
        do.close()


def test_a_scheduler_ends_its_subscriptions_with_its_block(do):
    sched = scheduler(do)

    async def in_block():
        async with sched as same:
            assert same is sched
            await sched.subscribe("t", print)
            assert sched.is_subscribed("t")

    if isinstance(do, Sync):
        with sched as same:
            assert same is sched
            sched.subscribe("t", print)
            assert sched.is_subscribed("t")
    else:
        do(in_block)
    assert not sched.is_subscribed("t")


def test_a_fork_has_none_of_its_parents_subscriptions(client):
    sched = Scheduler(client)
    sched.subscribe("t", print)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, b"yes" if sched.is_subscribed("t") else b"no")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 3) == b"no"
    assert sched.is_subscribed("t")
    sched.close()
    os.close(read)
    os.close(write)


def test_subscriptions_of_a_loop_that_is_over_are_none(aclient):
    sched = AsyncScheduler(aclient)

    async def begin():
        await sched.subscribe("t", print)
        assert sched.is_subscribed("t")

    asyncio.run(begin())
    assert not sched.is_subscribed("t")

    async def again():
        await sched.subscribe("t", print)
        await sched.close()
        await aclient.close()

    asyncio.run(again())


def test_messages_go_into_a_queue_as_jobs(do, sched):
    bodies = {"user-1": {"user": 1}, "list": [1, 2], "text": "hello", "number": "42", "odd": "{not json"}
    do(lambda: sched["t"].put_many(bodies))
    do(lambda: sched.subscribe("t", to_queue="mail", klass="pkg.Welcome", retries=2, tags=["due"]))
    eventually(do, is_empty(do, sched["t"]), "all are put")
    jobs = {job.jid: job for job in do(lambda: do.client.queues["mail"].peek(count=9))}
    assert {jid: job.data for jid, job in jobs.items()} == {
        "user-1": '{"user":1}',
        "list": "[1,2]",
        "text": '"hello"',
        "number": '"42"',
        "odd": '"{not json"',
    }
    assert {(job.klass_name, job.retries_left, tuple(job.tags)) for job in jobs.values()} == {
        ("pkg.Welcome", 2, ("due",))
    }


def test_a_message_becomes_a_job_when_it_is_ready_and_a_class_adds_its_options(do, sched):
    do(lambda: sched.subscribe("t", to_queue="mail", klass=Welcome))
    idle(do, sched, "t")
    do(lambda: sched["t"].put("a", {"user": 7}, delay=0.2))
    job = eventually(do, lambda: do(lambda: do.client.jobs["a"]), "the job is put")
    assert (job.klass_name, job.priority) == (f"{__name__}.Welcome", 7)


def test_a_function_job_gets_the_body_as_its_arguments(do, sched):
    @do.client.job(queue="greetings", retries=7, name="welcome-of-topics")
    def welcome(user: int, lang: str = "en") -> None:
        pass

    told = []
    bodies = {"named": {"user": 1, "lang": "de"}, "ordered": [2], "text": "7", "wrong": {"usr": 3}}
    do(lambda: sched["t"].put_many(bodies))
    do(
        lambda: sched.subscribe(
            "t", klass=welcome, priority=3, on_error=lambda item, error: told.append(str(error))
        )
    )
    eventually(do, lambda: do(sched["t"].length) == 2, "two are put")
    jobs = {job.jid: job for job in do(lambda: do.client.queues["greetings"].peek(count=9))}
    assert {
        jid: (job.klass_name, job.retries_left, job.priority) for jid, job in jobs.items()
    } == dict.fromkeys(("named", "ordered"), ("welcome-of-topics", 7, 3))
    assert jobs["named"].data == bytes(welcome.write((), {"user": 1, "lang": "de"})).decode()
    assert jobs["ordered"].data == bytes(welcome.write((2,), {})).decode()
    assert len(told) == 2


def test_a_message_whose_job_was_put_before_is_put_no_second_time(do, sched):
    """As after a crash between the put of the job and the end of the message."""
    do(lambda: do.client.queues["mail"].put("K", {"n": 1}, jid="a", only_new=True))
    do(lambda: sched["t"].put("a", {"n": 1}))
    do(lambda: sched.subscribe("t", to_queue="mail", klass="K"))
    eventually(do, is_empty(do, sched["t"]), "it is done")
    assert [job.jid for job in do(lambda: do.client.queues["mail"].peek(count=9))] == ["a"]


def test_a_message_that_cannot_become_a_job_is_reported_and_the_others_do(do, sched):
    told = []
    do(lambda: do.client.queues["mail"].put("K", {"of": "somebody else"}, jid="taken"))
    do(lambda: sched["t"].put_many({"taken": {"n": 1}, "deep": "[" * 101 + "]" * 101, "fine": {"n": 2}}))
    do(
        lambda: sched.subscribe(
            "t",
            to_queue="mail",
            klass="K",
            on_error=lambda item, error: told.append((item.id, type(error).__name__)),
        )
    )
    eventually(do, lambda: do(sched["t"].length) == 2, "one is put")
    assert sorted(told) == [("deep", "CodecError"), ("taken", "JobExists")]
    assert do(lambda: do.client.jobs["fine"]) is not None


def test_a_full_queue_makes_the_messages_wait(do, caplog):
    sched = scheduler(do, requeue_interval=0.05)
    told = []
    queue = do.client.queues["mail"]
    do(lambda: queue.set_bound("max-waiting", 1))
    do(lambda: sched["t"].put_many({"a": "1", "b": "2", "c": "3"}))
    do(
        lambda: sched.subscribe(
            "t", to_queue="mail", klass="K", ttr=0.3, on_error=lambda *said: told.append(said)
        )
    )
    eventually(do, lambda: "trying again" in caplog.text, "it found the queue full")
    do(lambda: queue.set_bound("max-waiting", None))
    eventually(do, is_empty(do, sched["t"]), "all are put")
    assert (len(do(lambda: queue.peek(count=9))), told) == (3, [])
    do(sched.close)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "handler"), ({"handler": print, "to_queue": "q"}, "not both"), ({"handler": print, "retries": 1}, "not both"),
        ({"to_queue": "q"}, "klass"), ({"klass": "K"}, "to_queue"), ({"handler": 7}, "handler"),
        ({"to_queue": "", "klass": "K"}, "to_queue"), ({"to_queue": "q", "klass": "K", "retires": 1}, "did you mean 'retries'"),
        ({"to_queue": "q", "klass": "K", "jid": "x"}, "jid cannot be given"), ({"handler": print, "ttr": 0}, "ttr"),
    ],
)  # fmt: skip
def test_a_subscription_that_cannot_be_is_refused(do, sched, options, why):
    with pytest.raises(UsageError, match=why):
        do(lambda: sched.subscribe("t", **options))
    assert not sched.is_subscribed("t")
    assert not do.client.shard.met


def test_subscribing_is_awaited_in_an_async_client(aclient):
    assert inspect.iscoroutinefunction(aclient.topics.subscribe)
    unsubscribing = aclient.topics.unsubscribe("t")
    assert inspect.iscoroutine(unsubscribing)
    unsubscribing.close()
