"""python-api 11: events of tracked jobs, for both clients."""

import asyncio
import functools
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
import redis
import redis.asyncio
from sync_async import Async, Sync

from holdfast import AsyncClient, Client, ConnectionLost, Events, UnknownEvent, UsageError
from holdfast.client.events import AsyncEvents
from holdfast.testing.store import ScratchStore
from waiting import until, until_async

NAMES = ("canceled", "completed", "failed", "popped", "put", "stalled", "track", "untrack")


def while_listening(do: Sync | Async, *steps: Callable[[], Any], condition: Callable[[], Any]) -> None:
    """Listen beside one's own work: do the steps, then wait until the condition holds."""
    if isinstance(do, Sync):
        with do.client.events.thread():
            for step in steps:
                step()
            until(condition, "the events have come")
        return

    async def story() -> None:
        async with do.client.events:
            for step in steps:
                found = step()
                if found is not None:
                    await found
            await until_async(condition, "the events have come")

    do.loop.run(story())


def apart(do: Sync | Async, step: Callable[[], Any]) -> Any:
    """A step of a blocking client, which on a loop goes to a thread."""
    return step() if isinstance(do, Sync) else asyncio.to_thread(step)


def heard_by(events: Any) -> list[tuple[str, str]]:
    """All that is told from now on, as (event, jid)."""
    seen: list[tuple[str, str]] = []
    for name in NAMES:
        events.on(name, lambda jid, name=name: seen.append((name, jid)))
    return seen


def listeners(store: ScratchStore) -> int:
    return len(store.ask("CLIENT", "LIST", "TYPE", "pubsub").strip().splitlines())


def test_there_are_eight_events():
    assert Events.events == AsyncEvents.events == NAMES
    assert Events.namespace == AsyncEvents.namespace == "ql:"


def test_both_clients_have_the_same_members():
    blocking, awaited = (
        {name for name in dir(kind) if not name.startswith("_")} for kind in (Events, AsyncEvents)
    )
    assert blocking - awaited == {"thread"}, "`async with client.events` is its twin"
    assert awaited - blocking == set()


def test_all_that_happens_to_a_tracked_job_is_told_with_its_jid(stopped, client, do):
    other = client
    client, queue = do.client, do.client.queues["q"]
    seen = heard_by(client.events)
    do(lambda: queue.put("K", jid="j"))
    queue.worker_name = "first"

    def settle(how: Callable[[Any], Any]) -> Any:
        return apart(do, lambda: how(other.queues["q"].pop()))

    while_listening(
        do,
        lambda: client.track("j"),
        lambda: queue.pop(),
        lambda: apart(do, lambda: stopped.advance(seconds=60)),
        lambda: queue.pop(),
        lambda: apart(do, lambda: stopped.advance(seconds=11)),
        lambda: settle(lambda job: job.fail("group", "message")),
        lambda: client.unfail("group", "q"),
        lambda: settle(lambda job: job.complete("next")),
        lambda: client.jobs.cancel("j"),
        lambda: client.untrack("j"),
        condition=lambda: ("untrack", "j") in seen,
    )
    assert [name for name, _ in seen] == [
        "track", "popped", "stalled", "popped", "failed", "popped", "completed", "canceled", "untrack",
    ]  # fmt: skip
    assert {jid for _, jid in seen} == {"j"}


def test_a_tracked_job_that_is_put_elsewhere_is_still_told_of(do):
    client = do.client
    seen = heard_by(client.events)
    do(lambda: client.queues["q"].put("K", jid="j"))
    do(lambda: client.track("j"))
    while_listening(
        do,
        lambda: client.queues["r"].put("K", jid="j"),
        lambda: client.queues["r"].pop(),
        condition=lambda: ("popped", "j") in seen,
    )
    assert seen == [("put", "j"), ("popped", "j")]


def test_nothing_is_told_of_other_jobs(do):
    client = do.client
    seen = heard_by(client.events)
    do(lambda: client.queues["q"].put("K", jid="tracked"))
    while_listening(
        do,
        lambda: client.queues["q"].put("K", jid="other", priority=1),
        lambda: client.queues["q"].pop(),
        lambda: client.track("tracked"),
        condition=lambda: seen,
    )
    assert seen == [("track", "tracked")]


def test_each_event_has_one_callback_which_can_be_taken_away_and_given_again(do):
    events, seen = do.client.events, []
    events.on("failed", print)
    events.on("failed", len)
    assert (events.off("failed"), events.off("failed")) == (len, None)
    events.on("track", seen.append)
    do(lambda: do.client.queues["q"].put("K", jid="j"))
    while_listening(do, lambda: do.client.track("j"), condition=lambda: seen)


def test_an_unknown_event_is_named_with_the_nearest_and_is_not_implemented(do):
    events = do.client.events
    for ask in (lambda: events.on("fialed", print), lambda: events.off("fialed")):
        with pytest.raises(NotImplementedError, match="'fialed'; did you mean 'failed'") as told:
            ask()
        assert isinstance(told.value, (UnknownEvent, UsageError))
    with pytest.raises(UsageError, match="'on_fail'; did you mean 'on_failed'"):
        do(lambda: events.listen(on_fail=print))
    with pytest.raises(UsageError, match="fn"):
        events.on("failed", "print")
    with pytest.raises(UsageError, match="fn"):
        events.failed(None)
    for wrong in (7, None, ["failed"]):
        with pytest.raises(UnknownEvent):
            events.on(wrong, print)


@pytest.mark.parametrize("form", ["listen", "call", "call by name", "block"])
def test_callbacks_are_registered_by_every_form_and_listening_lasts_until_it_is_ended(client, store, form):
    client.queues["q"].put("K", jid="j")
    events, seen = client.events, []

    def told(jid: str) -> None:
        seen.append(jid)
        client.events.unlisten()

    def listen() -> None:
        if form == "listen":
            events.on("track", told)
            events.listen()
        elif form == "call by name":
            events.listen(on_track=told)
        elif form == "call":
            events(lambda on: on.track(told))
        else:
            with events as on:
                on.track(told)

    listening = threading.Thread(target=listen)
    listening.start()
    events.wait_until_listening(timeout=30)
    assert events.is_listening
    client.track("j")
    listening.join(30)
    assert (listening.is_alive(), seen, events.is_listening) == (False, ["j"], False)
    until(lambda: listeners(store) == 0, "no connection is left")


@pytest.mark.parametrize("form", ["call", "call by name"])
def test_an_async_client_registers_in_the_same_ways(aclient, form):
    seen: list[str] = []

    async def story() -> None:
        events = aclient.events

        def told(jid: str) -> None:
            seen.append(jid)
            events.unlisten()

        listen = events(lambda on: on.track(told)) if form == "call" else events.listen(on_track=told)
        listening = asyncio.create_task(listen)
        await events.wait_until_listening(timeout=30)
        await aclient.queues["q"].put("K", jid="j")
        await aclient.track("j")
        await asyncio.wait_for(listening, 30)
        assert not events.is_listening
        await aclient.close()

    asyncio.run(story())
    assert seen == ["j"]


def test_a_block_that_fails_is_not_followed_by_listening(client):
    with pytest.raises(ZeroDivisionError), client.events as on:
        on.failed(1 / 0)


def test_a_blocking_client_takes_no_async_callback(client):
    async def told(jid: str) -> None: ...

    with pytest.raises(UsageError, match="AsyncClient"):
        client.events.on("failed", told)


def test_a_registering_method_can_decorate(client):
    @client.events.failed
    def told(jid: str) -> None: ...

    assert client.events.off("failed") is told


def test_the_thread_ends_with_its_block_and_may_begin_again(client, store):
    threads, seen = threading.active_count(), []
    client.queues["q"].put("K", jid="j")
    for _ in range(2):
        with client.events.thread() as events:
            assert events is client.events
            assert (events.is_listening, listeners(store)) == (True, 1)
            events.on("track", seen.append)
            client.track("j")
            until(lambda: seen == ["j"], "it was told")
        assert threading.active_count() == threads
        assert not client.events.is_listening
        client.untrack("j")
        seen.clear()
    until(lambda: listeners(store) == 0, "no connection is left")


def test_an_async_client_may_listen_on_one_loop_after_another(aclient):
    async def story() -> None:
        seen: list[str] = []
        async with aclient.events as on:
            on.track(seen.append)
            await aclient.queues["q"].put("K", jid="j")
            await aclient.track("j")
            await until_async(lambda: seen, "it was told")
        await aclient.untrack("j")
        await aclient.close()

    asyncio.run(story())
    asyncio.run(story())


def test_nobody_listens_twice_at_once(do):
    events = do.client.events

    def again() -> Any:
        if isinstance(do, Sync):
            with pytest.raises(UsageError, match="already"):
                events.listen()
            with pytest.raises(UsageError, match="already"), events.thread():
                pass
            return None

        async def twice() -> None:
            with pytest.raises(UsageError, match="already"):
                await events.listen()
            with pytest.raises(UsageError, match="already"):
                await events.__aenter__()

        return twice()

    while_listening(do, again, condition=lambda: True)


def test_the_error_of_a_callback_is_logged_and_listening_goes_on(do, caplog):
    client, seen = do.client, []
    client.events.on("track", lambda jid: 1 / 0)
    client.events.on("untrack", seen.append)
    do(lambda: client.queues["q"].put("K", jid="j"))
    with caplog.at_level(logging.ERROR, "holdfast"):
        while_listening(
            do, lambda: client.track("j"), lambda: client.untrack("j"), condition=lambda: seen == ["j"]
        )
    [record] = caplog.records
    assert "track of job j" in record.getMessage()
    assert record.exc_info[0] is ZeroDivisionError


def test_callbacks_of_an_async_client_may_be_awaited_and_ask_the_store(aclient, caplog):
    async def story() -> None:
        seen: list[Any] = []

        async def told(jid: str) -> None:
            seen.append(await aclient.jobs[jid])

        async def fails(jid: str) -> None:
            raise OSError(jid)

        async with aclient.events as on:
            on.track(told)
            on.untrack(fails)
            await aclient.queues["q"].put("K", jid="j")
            await aclient.track("j")
            await aclient.untrack("j")
            await aclient.track("j")
            await until_async(lambda: len(seen) == 2, "both were told")
        assert {job.jid for job in seen} == {"j"}
        await aclient.close()

    with caplog.at_level(logging.ERROR, "holdfast"):
        asyncio.run(story())
    assert ["untrack of job j" in record.getMessage() for record in caplog.records] == [True]


def test_a_callback_may_use_the_client(client):
    seen = []
    client.events.on("track", lambda jid: seen.append(client.jobs[jid].klass_name))
    client.queues["q"].put("app.K", jid="j")
    with client.events.thread():
        client.track("j")
        until(lambda: seen == ["app.K"], "the callback asked the store")


def test_a_lost_connection_comes_back_by_itself(do, store, caplog):
    client, seen = do.client, []
    client.events.on("track", seen.append)
    do(lambda: client.queues["q"].put("K", jid="j"))

    def lose() -> Any:
        store.ask("CLIENT", "KILL", "TYPE", "pubsub")
        back = lambda: [one for one in caplog.records if "is active again" in one.getMessage()]  # noqa: E731
        return (
            until(back, "it listens again") and None if isinstance(do, Sync) else until_async(back, "it does")
        )

    with caplog.at_level(logging.INFO, "holdfast"):
        while_listening(do, lose, lambda: client.track("j"), condition=lambda: seen == ["j"])
    said = [record.getMessage().partition(",")[0].partition(";")[0] for record in caplog.records]
    assert said == [
        "the store is unavailable",
        "the store is available again",
        "the subscription is active again",
    ]


def test_a_store_that_cannot_be_listened_to_is_an_error_at_once(tmp_path):
    url = f"unix://{tmp_path}/nobody"
    client, threads = Client(url, deadline=0.1), threading.active_count()
    with pytest.raises(ConnectionLost):
        client.events.listen()
    with pytest.raises(ConnectionLost), client.events.thread():
        pass
    until(lambda: threading.active_count() == threads, "no thread is left")

    async def story() -> None:
        events = AsyncClient(url, deadline=0.1).events
        with pytest.raises(ConnectionLost):
            await events.listen()
        with pytest.raises(ConnectionLost):
            async with events:
                pass

    asyncio.run(story())


def test_closing_the_client_ends_its_listening(client):
    listening = threading.Thread(target=client.events.listen)
    listening.start()
    client.events.wait_until_listening(timeout=30)
    client.close()
    listening.join(30)
    assert not listening.is_alive()


@pytest.mark.parametrize("text", [False, True], ids=["bytes", "text"])
def test_events_can_be_had_of_a_connection_alone(client, url, namespace, text):
    seen = []
    database = redis.Redis.from_url(url, decode_responses=text)
    events = Events(database, namespace)
    events.track(seen.append)
    client.queues["q"].put("K", jid="j")
    with events.thread():
        client.track("j")
        until(lambda: seen == ["j"], "it was told")
    assert namespace in repr(events)
    database.close()


def test_async_events_can_be_had_of_a_connection_alone(aclient, url, namespace):
    async def story() -> None:
        seen: list[str] = []
        database = redis.asyncio.Redis.from_url(url)
        async with AsyncEvents(database, namespace) as on:
            on.track(seen.append)
            await aclient.queues["q"].put("K", jid="j")
            await aclient.track("j")
            await until_async(lambda: seen == ["j"], "it was told")
        await database.aclose()
        await aclient.close()

    asyncio.run(story())


def test_what_is_no_client_or_one_of_the_other_kind_is_named(url):
    for wrong in (url, None, AsyncClient(url), redis.asyncio.Redis.from_url(url)):
        with pytest.raises(UsageError, match="database"):
            Events(wrong)
    for wrong in (7, Client(url), redis.Redis.from_url(url)):
        with pytest.raises(UsageError, match="database"):
            AsyncEvents(wrong)


@pytest.mark.full
def test_a_signal_can_end_a_program_that_listens(url, namespace):
    program = (
        "import signal, sys, threading\n"
        "from holdfast import Client\n"
        "events = Client(sys.argv[1], namespace=sys.argv[2]).events\n"
        "signal.signal(signal.SIGTERM, lambda *_: events.unlisten())\n"
        "threading.Thread(target=lambda: (events.wait_until_listening(30), print('listens', flush=True))).start()\n"
        "events.listen()\n"
        "print('ended')\n"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", program, url, namespace], stdout=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "listens\n"
    running.terminate()
    assert running.communicate(timeout=30)[0] == "ended\n"
    assert running.returncode == 0


def test_ending_what_has_not_begun_does_nothing(do):
    do.client.events.unlisten()
    do.client.events.stop()
    assert not do.client.events.is_listening
    with pytest.raises(TimeoutError):
        do(lambda: do.client.events.wait_until_listening(timeout=0.01))


def test_a_forked_child_does_not_listen_by_what_its_parent_does(client):
    with client.events.thread() as events:
        child = os.fork()
        if child == 0:
            with events.thread():
                os._exit(0 if events.is_listening else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert events.is_listening


def test_an_async_client_s_events_can_be_gone_through(aclient, store):
    async def story() -> list[tuple[str, str]]:
        found = []

        async def act() -> None:
            await aclient.events.wait_until_listening(timeout=30)
            await aclient.queues["q"].put("K", jid="j")
            await aclient.track("j")
            await aclient.untrack("j")

        acting = asyncio.create_task(act())
        async for event, jid in aclient.events:
            found.append((event, jid))
            if event == "untrack":
                break
        await acting
        await until_async(lambda: listeners(store) == 0, "no connection is left")
        await aclient.close()
        return found

    assert asyncio.run(story()) == [("track", "j"), ("untrack", "j")]


def test_the_example_of_the_page_works_as_written(url, namespace, capsys):
    client = Client(url, namespace=namespace)

    def run_pipeline() -> None:
        client.queues["q"].put("K", jid="j")
        client.track("j")
        client.queues["q"].pop().complete()
        until(lambda: "j completed" in capsys.readouterr().out, "it was told")

    def shout(event, jid):
        print(jid, event)

    for name in ("completed", "failed"):
        client.events.on(name, functools.partial(shout, name))
    with client.events.thread():
        run_pipeline()
    client.close()
