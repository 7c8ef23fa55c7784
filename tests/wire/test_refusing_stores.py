"""Real stores that are full, barred, evicting or not durable enough."""

import asyncio
import re
import socket
import subprocess
import threading
import time
from contextlib import contextmanager

import pytest

from certificates import make_self_signed
from holdfast import AsyncClient, Client, StoreFull, StoreUnavailable, StoreUnsupported
from holdfast.testing.store import ScratchStore, find_engine

BODY = {"text": "x" * 50_000}


@pytest.mark.full
def test_a_full_store_refuses_puts_at_once_and_can_be_worked_off(engine_store):
    with ScratchStore(engine_store.engine, settings={"maxmemory": "12mb"}) as store:
        client = Client(store.url)
        queue = client.queues["q"]

        def fill():
            for _ in range(500):
                queue.put("K", BODY)

        with pytest.raises(StoreFull, match="maxmemory"):
            fill()
        waiting = len(queue)
        assert waiting > 20
        for _ in range(waiting):
            job = queue.pop()
            job.heartbeat()
            job.complete()
        assert len(queue) == 0
        client.close()


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-random"])
def test_a_store_that_evicts_jobs_is_refused_before_anything_is_written(policy):
    with ScratchStore(settings={"maxmemory-policy": policy}) as store:
        client = Client(store.url)
        with pytest.raises(StoreUnsupported, match="noeviction"):
            client.queues["q"].put("K")
        assert store.ask("DBSIZE") == "0"
        client.close()


@pytest.mark.parametrize(
    ("has", "asked", "why"),
    [
        ("memory", "process", "appendonly yes"),
        ("memory", "fsync", "appendonly yes"),
        ("process", "fsync", "appendfsync always"),
    ],
)
def test_a_level_the_store_does_not_have_is_refused(has, asked, why):
    with ScratchStore("valkey", has) as store:
        client = Client(store.url, durability=asked)
        with pytest.raises(StoreUnsupported, match=why):
            client.queues["q"].put("K")
        client.close()


@pytest.mark.parametrize("level", ["memory", "process", "fsync"])
def test_a_level_the_store_has_is_fine(level):
    with ScratchStore("valkey", "fsync") as store:
        client = Client(store.url, durability=level)
        assert client.queues["q"].put("K")
        client.close()


def limited(store, *rules):
    """A client of a user with `rules` on top of all rights."""
    store.ask("ACL", "SETUSER", "limited", "on", ">secret", "~*", "&*", "+@all", *rules)
    return Client(store.tcp_url.replace("://", "://limited:secret@"), durability="memory", deadline=5.0)


@pytest.mark.parametrize(
    ("rule", "why"),
    [("-fcall", "may not|lacks rights"), ("-zadd", "zadd"), ("-info", "INFO"), ("-function|load", "may not")],
)
def test_a_user_without_the_rights_learns_which(rule, why):
    with ScratchStore(tcp=True) as store:
        client = limited(store, rule)
        with pytest.raises(StoreUnsupported, match=f"(?i){why}"):
            client.queues["q"].put("K")
        client.close()


def test_a_barred_config_is_fine_for_memory_and_not_for_fsync():
    with ScratchStore("valkey", "fsync", tcp=True) as store:
        client = limited(store, "-config")
        assert client.queues["q"].put("K")
        client.close()
        url = client.settings.url
        strict = Client(url, durability="fsync")
        with pytest.raises(StoreUnsupported, match="trust_store=True"):
            strict.queues["q"].put("K")
        strict.close()
        trusting = Client(url, durability="fsync", trust_store=True)
        assert trusting.queues["q"].put("K")
        trusting.close()


def test_a_user_who_may_not_listen_still_learns_of_ends():
    async def story(url):
        async with AsyncClient(url) as client:
            jid = await client.queues["q"].put("K")
            waiting = asyncio.ensure_future(client.wait_for(jid, 30))
            job = await client.queues["q"].pop()
            await job.complete()
            assert (await waiting).status == "done"

    with ScratchStore(tcp=True) as store:
        client = limited(store, "-subscribe")
        jid = client.queues["q"].put("K")
        assert client.wait_for(jid, 0.3).status == "open"
        client.queues["q"].pop().complete()
        assert client.wait_for(jid, 30).status == "done"
        asyncio.run(story(client.settings.url))
        client.close()


def test_a_call_waits_while_the_store_is_a_replica(caplog):
    with ScratchStore() as store:
        client = Client(store.url)
        client.queues["q"].put("K")
        store.ask("REPLICAOF", "127.0.0.1", "1")
        jids = []
        waiting = threading.Thread(target=lambda: jids.append(client.queues["q"].put("K")))
        with caplog.at_level("WARNING", "holdfast"):
            waiting.start()
            while "READONLY" not in caplog.text:
                waiting.join(0.01)
                assert waiting.is_alive()
        store.ask("REPLICAOF", "NO", "ONE")
        waiting.join(30)
        assert len(jids) == 1
        assert len(client.queues["q"]) == 2
        client.close()


@contextmanager
def server(directory, *words):
    """A Redis on a free port that `{port}` in its words stands for; yields the port."""
    if find_engine("redis") is None:
        pytest.skip("redis-server is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = [word.replace("{port}", str(port)) for word in words]
    command = [str(find_engine("redis")), *given, "--dir", str(directory)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert time.monotonic() < deadline, "the server does not listen"
        yield port
    finally:
        process.kill()
        process.wait(30)


def refused(url, kind):
    """The error of a put by either kind of client, which must not wait for its deadline of an hour."""
    with Client(url, deadline=3600, namespace="new") as client, pytest.raises(kind) as caught:
        client.queues["q"].put("K")

    async def put():
        async with AsyncClient(url, deadline=3600, namespace="new") as client:
            await client.queues["q"].put("K")

    with pytest.raises(kind, match=re.escape(str(caught.value)[:30])):
        asyncio.run(asyncio.wait_for(put(), 60))
    return str(caught.value)


def test_a_replica_is_refused_at_once(tmp_path):
    with (
        ScratchStore("redis", tcp=True) as primary,
        server(tmp_path, "--port", "{port}", "--replicaof", "127.0.0.1", str(primary.port)) as port,
    ):
        assert "leads to a replica" in refused(f"redis://127.0.0.1:{port}", StoreUnavailable)


def test_a_sentinel_is_refused_at_once(tmp_path):
    (tmp_path / "sentinel.conf").write_text("")
    with server(tmp_path, str(tmp_path / "sentinel.conf"), "--sentinel", "--port", "{port}") as port:
        said = refused(f"redis://127.0.0.1:{port}", StoreUnsupported)
        assert "leads to a sentinel" in said
        assert "get-master-addr-by-name" in said
        assert "if it is a sentinel" in refused(f"redis://127.0.0.1:{port}/2", StoreUnsupported)


@pytest.mark.full
def test_a_certificate_that_cannot_be_verified_is_refused_at_once(tmp_path):
    certificate, key = map(str, make_self_signed(tmp_path))
    files = ("--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file", certificate)
    with server(
        tmp_path, "--port", "0", "--tls-port", "{port}", *files, "--tls-auth-clients", "no", "--save", ""
    ) as port:
        said = refused(f"rediss://localhost:{port}", StoreUnsupported)
        assert "cannot be verified: self-signed certificate; name the file" in said
        url = f"rediss://127.0.0.1:{port}?ssl_ca_certs={certificate}"
        assert "IP address mismatch" in refused(url, StoreUnsupported)
        with Client(f"rediss://localhost:{port}?ssl_ca_certs={certificate}") as client:
            assert client.queues["q"].put("K")
