"""The two links against real stores that end, freeze, fork and forget."""

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
import time

import pytest

import programs
from holdfast import AsyncClient, Client
from holdfast.commands.admin import Info
from holdfast.commands.jobs import Put
from holdfast.core.library import library, shown_core
from holdfast.errors import ConnectionLost, CoreMismatch, Refused, StoreTimeout, StoreUnsupported, UsageError
from holdfast.testing.store import ScratchStore
from holdfast.wire import sync
from holdfast.wire.plans import ErrorReply, Step, is_demoted

PING = Step([("PING",)])


def drop_connections(store):
    """End every client's connection, as a restarted balancer does."""
    store.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


def test_refusals_are_replies_and_keep_their_words(engine_store):
    link = Client(engine_store.url).link
    pong, refused, again = link.send(Step([("PING",), ("NOSUCH", "command"), ("PING",)]))
    assert (pong, again) == (b"PONG", b"PONG")
    assert isinstance(refused, ErrorReply)
    assert "unknown command" in refused.text
    link.close()


def test_code_words_that_the_driver_cuts_off_are_put_back():
    with ScratchStore(settings={"maxmemory": "1mb"}) as store:
        client = Client(store.url)
        [refused] = client.link.send(Step([("SET", "a", "b")]))
        assert refused.code == "OOM"
        client.close()


def test_a_lost_idle_connection_goes_unnoticed(client, store):
    client.queues["q"].put("K")
    drop_connections(store)
    client.queues["q"].put("K")
    assert len(client.queues["q"]) == 2


def test_a_lost_idle_connection_of_a_loop_goes_unnoticed(aclient, store):
    async def story():
        async with aclient:
            await aclient.queues["q"].put("K")
            drop_connections(store)
            await aclient.queues["q"].put("K")
            assert await aclient.queues["q"].length() == 2

    asyncio.run(story())


@pytest.mark.full
def test_a_frozen_store_is_a_timeout_and_then_works_again():
    with ScratchStore() as store:
        client = Client(store.url, timeout=1, deadline=1.5)
        queue = client.queues["q"]
        queue.put("K")
        os.kill(store.pid, signal.SIGSTOP)
        try:
            begun = time.monotonic()
            with pytest.raises(StoreTimeout, match="it may have happened"):
                queue.put("K")
            assert time.monotonic() - begun < 30
        finally:
            os.kill(store.pid, signal.SIGCONT)
        queue.put("K")
        assert len(queue) in (2, 3)
        client.close()


@pytest.mark.full
def test_a_frozen_store_is_a_timeout_on_a_loop_too():
    async def story(store):
        async with AsyncClient(store.url, timeout=1, deadline=1.5) as client:
            queue = client.queues["q"]
            await queue.put("K")
            os.kill(store.pid, signal.SIGSTOP)
            try:
                with pytest.raises(StoreTimeout, match="it may have happened"):
                    await queue.put("K")
            finally:
                os.kill(store.pid, signal.SIGCONT)
            await queue.put("K")

    with ScratchStore() as store:
        asyncio.run(story(store))


WRITE_AND_NAME = Step([("SET", "a", "1"), ("CLIENT", "ID")])


def test_a_connection_to_a_demoted_node_is_not_used_again_whichever_call_it_refused():
    async def names(url):
        async with AsyncClient(url) as client:
            return [(await client.link.send(WRITE_AND_NAME))[1] for _ in range(2)]

    with ScratchStore() as store, Client(store.url) as client:
        store.ask("REPLICAOF", "127.0.0.1", "1")
        first, second = (client.link.send(WRITE_AND_NAME) for _ in range(2))
        assert first[0].code == "READONLY"
        assert first[1] != second[1]
        first, second = asyncio.run(names(store.url))
        assert first != second


def test_a_store_that_comes_back_empty_gets_the_core_again():
    with ScratchStore() as store:
        client = Client(store.url)
        client.queues["q"].put("K")
        store.restart()
        jid = client.queues["q"].put("K")
        assert [job.jid for job in client.queues["q"].peek(count=5)] == [jid]
        client.close()


def test_a_call_waits_for_a_store_that_is_away():
    with ScratchStore() as store:
        client = Client(store.url)
        client.queues["q"].put("K")
        store.kill()
        jids = []
        waiting = threading.Thread(target=lambda: jids.append(client.queues["q"].put("K")))
        waiting.start()
        store.restart()
        waiting.join(30)
        assert len(jids) == 1
        client.close()


def test_a_forgotten_library_is_loaded_again():
    with ScratchStore() as store:
        client = Client(store.url)
        client.queues["q"].put("K")
        store.ask("FUNCTION", "FLUSH")
        client.queues["q"].put("K")
        assert len(client.queues["q"]) == 2
        client.close()


def test_another_core_of_the_same_release_is_replaced_by_a_checkout_and_kept_when_newer(engine_store):
    with ScratchStore(engine_store.engine) as store:
        client = Client(store.url)
        ours = library()
        other = ours.text.replace(f'digest = "{ours.digest}"', 'digest = "other"')
        store.ask("FUNCTION", "LOAD", "REPLACE", other)
        client.queues["q"].put("K")
        assert client.shard.info.digest == ours.digest
        newer = other.replace(f'version = "{ours.version}"', 'version = "99.0.0"')
        store.ask("FUNCTION", "LOAD", "REPLACE", newer)
        late = Client(store.url)
        late.queues["q"].put("K")
        assert late.shard.info.version == "99.0.0"
        client.close()
        late.close()


def test_programs_of_two_builds_on_one_store_are_warned_once_with_both_versions(monkeypatch, caplog):
    ours = library()
    edited_text = ours.text.replace(f'digest = "{ours.digest}"', 'digest = "edited-here"')
    edited = type(ours)(ours.name, ours.version, "edited-here", edited_text, ours.functions)
    with ScratchStore() as store, caplog.at_level(logging.WARNING, "holdfast"):
        for _ in range(3):
            for build in (ours, edited):
                # Each turn stands for a program of its own that was started anew.
                monkeypatch.setattr("holdfast.wire.meeting._library", lambda build=build: build)
                with Client(store.url) as client:
                    client.queues["q"].put("K")
        assert len(store.ask("FUNCTION", "LIST").splitlines()) > 0
    lines = [record.message for record in caplog.records if "different builds" in record.message]
    assert len(lines) == 2
    for line, held, own in ((lines[0], ours, edited), (lines[1], edited, ours)):
        assert (
            f"another build of the core (holdfast's functions in the store): {shown_core(held.version, held.digest)}"
            in line
        )
        assert f"it was replaced by {shown_core(own.version, own.digest)}" in line


def test_a_core_of_an_earlier_release_that_was_loaded_over_ours_is_replaced():
    """A program of release 0.1.0 looked for a core just before ours was loaded, and then loaded its own."""
    ours = library()
    text = ours.text.replace(f'"{ours.version}", digest = "{ours.digest}"', '"0.1.0", digest = "earlier"')
    earlier = text.replace('not find(given, "/", 1, true)', "true")  # it knows one budget only
    assert earlier not in (text, ours.text)
    with ScratchStore() as store, Client(store.url) as client:
        queue = client.queues["q"]
        queue.put("K", max_losses=3)
        store.ask("FUNCTION", "LOAD", "REPLACE", earlier)
        queue.put("K", max_losses=3)
        assert len(queue) == 2
        assert client.shard.info.version == ours.version
        with pytest.raises(Refused, match="priority"):
            client.run(Put("q", "K", priority=5000))


@pytest.mark.full
def test_functions_that_are_flushed_ten_times_a_second_do_not_reach_producers():
    with ScratchStore() as store:
        done = threading.Event()

        def flush():
            while not done.wait(0.1):
                store.ask("FUNCTION", "FLUSH")

        storm = threading.Thread(target=flush)
        with Client(store.url) as client:
            client.queues["q"].put("K")
            storm.start()
            try:
                jids = [client.queues["q"].put("K") for _ in range(300)]
            finally:
                done.set()
                storm.join(30)
            assert len(client.queues["q"]) == 1 + len(jids)


def test_a_client_that_may_not_load_its_core_says_so():
    with ScratchStore() as store:
        client = Client(store.url, load_core=False)
        with pytest.raises(CoreMismatch, match="load_core"):
            client.queues["q"].put("K")
        client.close()


def test_nobody_listening_is_an_error_that_says_that_nothing_was_sent(tmp_path):
    client = Client(f"unix://{tmp_path}/none", deadline=0.2)
    with pytest.raises(ConnectionLost, match="nothing was sent"):
        client.queues["q"].put("K")


def test_wrong_credentials_are_said_at_once():
    with ScratchStore(tcp=True) as store:
        store.ask("CONFIG", "SET", "requirepass", "secret")
        for url in (store.tcp_url, store.tcp_url.replace("://", "://:wrong@")):
            client = Client(url, deadline=5.0)
            with pytest.raises(StoreUnsupported, match="credentials"):
                client.queues["q"].put("K")
            client.close()
        client = Client(f"{store.tcp_url.replace('://', '://:secret@')}/99", deadline=5.0)
        with pytest.raises(StoreUnsupported, match="does not have that database"):
            client.queues["q"].put("K")
        client.close()
        client = Client(store.tcp_url.replace("://", "://:secret@"))
        assert client.queues["q"].put("K")
        client.close()


@pytest.mark.parametrize(
    "url",
    [
        "redis://localhost:99999999",
        "redis://x/?nonsense=1",
        "unix://",
        "redis://x?socket_timeout=abc",
        "rediss://x?ssl_cert_reqs=some",
    ],
)
def test_a_url_that_cannot_be_used_is_a_usage_error(url):
    for kind in (Client, AsyncClient):
        with pytest.raises(UsageError, match=r"URL|socket"):
            kind(url)


def test_a_forked_child_uses_a_connection_and_lines_of_its_own(client):
    queue = client.queues["q"]
    queue.put_many([("K", n) for n in range(10)])
    assert queue.pop() is not None
    mine = client.link.send(Step([("CLIENT", "ID")]))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            theirs = client.link.send(Step([("CLIENT", "ID")]))
            jobs = [queue.pop().jid for _ in range(3)]
            os.write(writing, f"{theirs[0]} {' '.join(jobs)}".encode())
            code = 0
        finally:
            os._exit(code)
    jobs = [queue.pop().jid for _ in range(3)]
    _, status = os.waitpid(child, 0)
    assert status == 0
    theirs, *their_jobs = os.read(reading, 1000).decode().split()
    os.close(reading)
    os.close(writing)
    assert mine == client.link.send(Step([("CLIENT", "ID")]))
    assert int(theirs) != mine[0]
    assert len({*jobs, *their_jobs}) == 6


def test_many_threads_share_a_client(client):
    queue = client.queues["q"]

    def work():
        for _ in range(50):
            queue.put("K")
            taken.append(queue.pop().jid)

    taken: list[str] = []
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(taken)) == 400


def test_a_client_may_be_used_on_one_loop_after_another(url, namespace):
    client = AsyncClient(url, namespace=namespace)

    async def story():
        jid = await client.queues["q"].put("K")
        await client.close()
        return jid

    assert asyncio.run(story()) != asyncio.run(story())


@pytest.mark.full
def test_a_client_may_be_used_on_several_loops_at_once(url, namespace):
    client = AsyncClient(url, namespace=namespace)
    done: list[str] = []

    async def work():
        async with asyncio.timeout(20):
            for _ in range(20):
                waiting = [asyncio.ensure_future(client.wait_for(await client.queues["q"].put("K"), 30))]
                job = await client.queues["q"].pop()
                waiting.append(asyncio.ensure_future(client.wait_for(job.jid, 30)))
                await job.complete()
                done.extend(outcome.status for outcome in await asyncio.gather(*waiting))
            await client.close()

    threads = [threading.Thread(target=asyncio.run, args=(work(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == ["done"] * 120


def test_a_cancelled_caller_does_not_disturb_the_others(aclient):
    async def story():
        async with aclient:
            queue = aclient.queues["q"]
            tasks = [asyncio.ensure_future(_put(queue, n)) for n in range(20)]
            await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            answers = await asyncio.gather(*tasks, return_exceptions=True)
            jids = [answer for answer in answers if isinstance(answer, str)]
            assert len(set(jids)) == 10
            assert len(await aclient.jobs.get(*jids)) == 10

    async def _put(queue, n):
        return await queue.put("K", n)

    asyncio.run(story())


@pytest.mark.parametrize("steps", range(12))
def test_a_task_that_is_cancelled_ends_wherever_its_call_is(store, namespace, steps):
    """The driver swallows a cancellation while it connects; each step of the loop is one moment of the call."""

    async def story():
        aclient = AsyncClient(store.url, namespace=namespace)
        for _ in range(2):  # the second one finds an open connection
            task = asyncio.create_task(aclient.runner.run(aclient._plan_of(Info())))
            for _ in range(steps):
                await asyncio.sleep(0)
            was_over = task.done()
            task.cancel()
            await asyncio.wait({task}, timeout=30)
            assert task.cancelled() or was_over
        await aclient.close()

    asyncio.run(story())


def test_a_step_cancelled_under_way_does_not_leave_its_reply_to_the_next(aclient):
    async def story():
        async with aclient:
            await aclient.queues["q"].put("K")
            step = Step([("ECHO", "one")] * 2000)
            task = asyncio.ensure_future(aclient.link.send(step))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            assert await aclient.link.send(PING) == [b"PONG"]

    asyncio.run(story())


def test_a_client_sends_nothing_until_it_is_used(url, namespace):
    listening = socket.socket(socket.AF_UNIX)
    listening.settimeout(0.05)
    path = f"/tmp/hf-{namespace}"
    listening.bind(path)
    listening.listen()
    try:
        Client(f"unix://{path}")
        with pytest.raises(TimeoutError):
            listening.accept()
    finally:
        listening.close()
        os.unlink(path)


PACKING = """
import signal
from holdfast import Client
from holdfast.wire import sync

class Limit(BaseException): pass

def stop(*_): raise Limit

signal.signal(signal.SIGALRM, stop)
client = Client()
numbers = range(1000, 1500)
made, theirs = client.link.address._made(), client.database.connection_pool.make_connection()
pack = {
    "a call": lambda: sync.pack(("FCALL", *numbers)),
    "the driver": lambda: made.pack_command("SELECT", *numbers),
    "a client of the driver": lambda: theirs.pack_command("SELECT", *numbers),
}[what]
caught = 0
while caught < 300:
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005 + caught * 1e-6)
        while True: pack()
    except Limit: caught += 1
"""


@pytest.mark.full
@pytest.mark.parametrize("what", ["a call", "the driver", "a client of the driver"])
def test_an_exception_of_a_signal_handler_while_numbers_are_packed_arrives_as_itself(what):
    ended = programs.run([sys.executable, "-c", f"what = {what!r}\n{PACKING}"])
    assert ended.returncode == 0, ended.stderr


def test_a_recursion_that_ends_while_numbers_are_packed_is_an_error():
    code = """
from holdfast.wire import sync
def dig():
    try: sync.pack(("PING", 12345, 1.5))
    except RecursionError: pass
    dig()
try: dig()
except RecursionError: print("alive")
"""
    ended = programs.run([sys.executable, "-c", code])
    assert ended.stdout == "alive\n", ended.stderr


def test_numbers_are_packed_as_text_and_other_things_refused():
    assert sync.pack(("A", 1, 2.5, b"b")) == b"*4\r\n$1\r\nA\r\n$1\r\n1\r\n$3\r\n2.5\r\n$1\r\nb\r\n"
    for word in (None, True, [1]):
        with pytest.raises(TypeError):
            sync.pack(("A", word))


class TimeLimit(Exception):
    """What a program raises from a signal handler."""


@pytest.mark.parametrize("error", [TimeLimit("over"), RecursionError("deep"), MemoryError()])
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_an_exception_that_comes_while_a_connection_is_made_arrives_as_itself(kind, error, monkeypatch):
    address = kind("redis://127.0.0.1:1").link.address
    made, raised = address._class, []

    def interrupted(**options):
        if not raised:
            raised.append(error)
            raise error
        return made(**options)

    monkeypatch.setattr(address, "_class", interrupted)
    with pytest.raises(type(error)) as caught:
        address._made()
    assert caught.value is error
    assert address._made()


def test_a_demoted_node_is_left_whichever_call_of_a_step_it_refused():
    written = ErrorReply("READONLY You can't write against a read only replica.")
    for replies in ([written], [written, b"read"], [b"read", written, b"read"]):
        assert is_demoted(replies)
    assert not is_demoted([b"READONLY", ErrorReply("ERR READONLY")])


@pytest.mark.parametrize("first", [True, False])
def test_a_connection_to_a_demoted_node_is_closed(url, namespace, first):
    with Client(url, namespace=namespace) as client:
        link, calls = client.link, [("EVAL", "return redis.error_reply('READONLY no')", 0), ("PING",)]
        link.send(Step(calls if first else calls[::-1]))
        assert not link._idle
