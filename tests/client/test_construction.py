"""Section 2.1 of the Python API: what a client is made of, and what it is as a whole."""

import asyncio
import os
import socket
import ssl
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
import redis.asyncio
from sync_async import Sync, made_of

import holdfast
from certificates import make_self_signed
from holdfast import AsyncClient, Client, StoreUnsupported, UnsupportedRedisVersionError, UsageError
from holdfast.client.store_options import place_of, url_of_parts, url_with
from holdfast.commands.queues import CountQueues, QueueNames
from holdfast.core.sources import CoreBroken, source
from holdfast.testing import ScratchStore
from holdfast.wire.meeting import check_store
from holdfast.wire.plans import Step


@pytest.fixture(scope="module")
def guarded() -> Iterator[ScratchStore]:
    """A store on a port that wants a password, and a user `ann` with another."""
    with ScratchStore(tcp=True) as store:
        store.ask("ACL", "SETUSER", "ann", "on", ">p@ss/wörd:1", "~*", "&*", "+@all")
        store.ask("CONFIG", "SET", "requirepass", "secret")
        yield store


@pytest.fixture(params=[Client, AsyncClient], ids=["sync", "async"])
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


# --- the URL and its parts ---------------------------------------------------------------------------------------


def test_a_client_is_made_of_parts(kind: Any, guarded: ScratchStore, namespace: str) -> None:
    parts = {"host": "127.0.0.1", "port": guarded.port, "db": 3, "password": "secret"}
    with made_of(kind, namespace=namespace, **parts) as do:
        jid = do(lambda: do.client.queues["mail"].put("app.Job"))
        assert do(lambda: do.client.jobs[jid]).jid == jid
        assert do.client.settings.url == f"redis://:secret@127.0.0.1:{guarded.port}/3"
    with made_of(kind, f"redis://:secret@127.0.0.1:{guarded.port}/3", namespace=namespace) as do:
        assert do(lambda: do.client.jobs[jid]).jid == jid


def test_a_user_and_a_password_with_odd_letters_reach_the_store(
    kind: Any, guarded: ScratchStore, namespace
) -> None:
    who = {"username": "ann", "password": "p@ss/wörd:1"}
    for where in ({"host": "127.0.0.1", "port": guarded.port}, {"url": guarded.tcp_url}):
        with made_of(kind, namespace=namespace, **where, **who) as do:
            assert do(lambda: do.client.queues["mail"].put("app.Job"))
    with made_of(kind, namespace=namespace, unix_socket_path=str(guarded.socket_path), **who) as do:
        assert do(lambda: do.client.queues["mail"].length()) == 2


def test_wrong_credentials_are_said_once_and_not_repeated(kind: Any, guarded: ScratchStore) -> None:
    with made_of(kind, host="127.0.0.1", port=guarded.port, password="wrong") as do:
        with pytest.raises(StoreUnsupported, match="credentials") as refused:
            do(lambda: do.client.queues["mail"].put("app.Job"))
        assert "wrong" not in str(refused.value)


@pytest.mark.parametrize(
    ("parts", "url"),
    [
        ({"host": "box"}, "redis://box:6379"),
        ({"port": 7000}, "redis://localhost:7000"),
        ({"db": 2}, "redis://localhost:6379/2"),
        ({"db": 0}, "redis://localhost:6379/0"),
        ({"host": "::1", "port": 7}, "redis://[::1]:7"),
        ({"host": "box", "ssl": True}, "rediss://box:6379"),
        ({"host": "box", "ssl": False}, "redis://box:6379"),
        ({"password": "a/b@c"}, "redis://:a%2Fb%40c@localhost:6379"),
        ({"username": "ann", "password": "x", "host": "box"}, "redis://ann:x@box:6379"),
        ({"unix_socket_path": "/run/a b"}, "unix:///run/a%20b"),
        ({"unix_socket_path": "/run/s", "db": 4, "password": "x"}, "unix://:x@/run/s?db=4"),
    ],
    ids=str,
)
def test_parts_say_what_a_url_says(parts: dict[str, Any], url: str) -> None:
    assert url_of_parts(parts) == url
    assert Client(**parts).settings.url == url


def test_what_is_none_or_an_empty_credential_was_not_given(kind: Any) -> None:
    made = kind(None, None, host="box", username="", password="", port=None, db=None)
    assert made.settings.url == "redis://box:6379"
    assert kind("redis://:x@box", password="").settings.url == "redis://:x@box"


@pytest.mark.parametrize(
    ("url", "parts", "whole"),
    [
        ("redis://box", {"db": 3}, "redis://box/3"),
        ("redis://box/3", {"db": 3}, "redis://box/3"),
        ("redis://box?socket_timeout=2", {"password": "x"}, "redis://:x@box?socket_timeout=2"),
        ("redis://ann@box", {"password": "x"}, "redis://ann:x@box"),
        ("unix:///run/s", {"db": 3, "password": "x"}, "unix://:x@/run/s?db=3"),
    ],
    ids=str,
)
def test_parts_complete_a_url(url: str, parts: dict[str, Any], whole: str) -> None:
    assert url_with(url, parts) == whole


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"url": "redis://box", "host": "other"}, "url and host"),
        ({"url": "redis://box", "port": 7}, "url and port"),
        ({"url": "redis://box/3", "db": 4}, "url and db"),
        ({"url": "redis://:x@box", "password": "y"}, "url and password"),
        ({"host": "box", "unix_socket_path": "/run/s"}, "unix_socket_path and host"),
        ({"host": 7}, "host must be text"),
        ({"host": ""}, "host must be text"),
        ({"host": "box/3"}, "host must be the name"),
        ({"port": 0}, "port must be from 1 to 65535"),
        ({"port": "6379"}, "port must be a whole number"),
        ({"db": -1}, "db must be from 0"),
        ({"ssl": "yes"}, "ssl must be True or False"),
        ({"password": 7}, "password must be text"),
        ({"prot": 7}, "did you mean 'port'"),
        ({"socket_timout": 7}, "did you mean 'socket_timeout'"),
        ({"namespac": "a"}, "did you mean 'namespace'"),
        (
            {"xyzzy": 1},
            "it knows namespace, durability, .*, hostname, host, .*, ssl, .* and those of redis.Redis$",
        ),
        ({"host": "box", "ssl_ca_certs": "/x"}, "ssl_ca_certs is for TLS"),
        ({"url": 7}, "url must be text or a client of redis-py, not int"),
        ({"redis": "redis://x"}, "redis must be a client of redis-py, not str"),
        ({"url": "redis://x", "redis": 7}, "url and redis"),
        ({"hostname": "a\nb"}, "hostname"),
        ({"ensure_minimum_version": 1}, "ensure_minimum_version must be True or False"),
        ({"on_lua_script_reload_callback": 7}, "on_lua_script_reload_callback must be callable"),
    ],
    ids=str,
)
def test_what_cannot_be_meant_is_a_usage_error_that_names_it(
    kind: Any, given: dict[str, Any], why: str
) -> None:
    with pytest.raises(UsageError, match=why) as refused:
        kind(**given)
    assert "password=" not in str(refused.value)


def test_making_a_client_sends_nothing(kind: Any) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        made = kind(host="127.0.0.1", port=listener.getsockname()[1])
        for thing in (made.database, made.queues["mail"], made.new_redis_connection()):
            assert thing is not None
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_the_environment_is_read_only_when_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://second")
    assert kind().settings.url == "redis://second"
    monkeypatch.setenv("HOLDFAST_URL", "redis://first")
    assert kind().settings.url == "redis://first"
    assert kind("redis://given").settings.url == "redis://given"
    assert kind(db=1).settings.url == "redis://localhost:6379/1"


# --- options of the driver ---------------------------------------------------------------------------------------


def connections_of(store: ScratchStore) -> list[dict[str, str]]:
    lines = store.ask("CLIENT", "LIST").splitlines()
    return [dict(word.split("=", 1) for word in line.split()) for line in lines]


def test_options_of_the_driver_are_passed_on(kind: Any, namespace: str) -> None:
    with (
        ScratchStore() as store,
        made_of(kind, store.url, namespace=namespace, client_name="mine", socket_timeout=3.5) as do,
    ):
        do(lambda: do.client.queues["mail"].put("app.Job"))
        assert "mine" in [one["name"] for one in connections_of(store)]
        assert do.client.link.address._made().socket_timeout == 3.5


def test_what_a_link_settles_itself_may_be_given_all_the_same(kind: Any, url: str, namespace: str) -> None:
    """As older programs do: it holds for the connection that people use."""
    given = {
        "decode_responses": False,
        "retry_on_timeout": True,
        "max_connections": 7,
        "protocol": 3,
        "encoding": "utf-8",
    }
    with made_of(kind, url, namespace=namespace, **given) as do:
        jid = do(lambda: do.client.queues["mail"].put("app.Job", {"a": "ä"}))
        assert do(lambda: do.client.jobs[jid])["a"] == "ä"
        assert do.client.database.connection_pool.max_connections == 7
        assert do(lambda: do.client.database.ping()) is True


# --- names and identity ------------------------------------------------------------------------------------------


def test_the_worker_name_is_the_second_argument_and_the_machines_name_unless_given(kind: Any) -> None:
    assert kind("redis://box", "box-7").worker_name == "box-7"
    assert kind("redis://box", hostname="box-7").worker_name == "box-7"
    assert kind("redis://box").worker_name == socket.gethostname()
    assert kind("redis://box", None).worker_name == socket.gethostname()


def test_the_worker_name_can_be_changed_at_any_time(do: Any) -> None:
    do.client.worker_name = "box-7"
    do(lambda: do.client.queues["mail"].put("app.Job"))
    assert do(lambda: do.client.queues["mail"].pop()).worker_name == "box-7"
    with pytest.raises(UsageError, match="worker_name"):
        do.client.worker_name = ""


def test_clients_are_equal_when_class_server_database_and_namespace_are(kind: Any) -> None:
    one = kind("redis://box:6379/0", namespace="a")
    for same in (
        kind("redis://BOX", namespace="a", hostname="other"),
        kind("rediss://ann:secret@box/0?socket_timeout=2", namespace="a"),
        kind(host="box", db=0, namespace="a"),
    ):
        assert (same, hash(same)) == (one, hash(one))
    for other in (
        kind("redis://box:6379/1", namespace="a"),
        kind("redis://box:6380/0", namespace="a"),
        kind("redis://cox:6379/0", namespace="a"),
        kind("unix:///box", namespace="a"),
        kind("redis://box:6379/0", namespace="b"),
        (AsyncClient if kind is Client else Client)("redis://box:6379/0", namespace="a"),
        type("Mine", (kind,), {})("redis://box:6379/0", namespace="a"),
        "redis://box:6379/0",
    ):
        assert other != one
    assert len({one, kind("redis://box", namespace="a")}) == 1


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("redis://box", ("box", 6379, 0)),
        ("redis://:x@[::1]:7/3", ("::1", 7, 3)),
        ("redis://box?db=3", ("box", 6379, 3)),
        ("unix:///run/a%20b?db=2", ("/run/a b", 0, 2)),
    ],
)
def test_a_place_is_server_and_database(url: str, place: tuple[str, int, int]) -> None:
    assert place_of(url) == place


def test_a_repr_says_class_place_and_options_and_no_secret(kind: Any) -> None:
    shown = repr(kind("redis://ann:secret@box/3", namespace="a", deadline=5.0, ssl=None))
    assert shown == f"<{kind.__name__} redis://ann:…@box/3 namespace='a' deadline=5.0>"
    made = kind(host="box", password="secret", credential_provider=None, client_name="mine")
    assert repr(made) == f"<{kind.__name__} redis://:…@box:6379 namespace='default' client_name='mine'>"


def test_a_repr_of_the_embedded_store_says_so(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_URL", raising=False)
    monkeypatch.delenv("REDIS_URL", raising=False)
    assert repr(kind()) == f"<{kind.__name__} the embedded store namespace='default'>"
    assert kind() == kind()
    assert kind() != kind("redis://localhost")


def test_unknown_attributes_are_attribute_errors(do: Any) -> None:
    client = do.client
    for thing in (
        client,
        client.queues,
        client.workers,
        client.config,
        client.jobs,
        client.queues["q"],
        client.stats,
    ):
        with pytest.raises(AttributeError):
            _ = thing.nonsense


# --- other connections -------------------------------------------------------------------------------------------


def test_the_database_is_a_connection_of_the_driver_that_answers_text(do: Any) -> None:
    database = do.client.database
    assert isinstance(database, redis.Redis if isinstance(do, Sync) else redis.asyncio.Redis)
    assert database is do.client.database is do.client.redis
    do(lambda: database.set(do.client.root + "mine", "ä"))
    assert do(lambda: database.get(do.client.root + "mine")) == "ä"


def test_a_second_connection_is_another_one_to_the_same_place(guarded: ScratchStore, kind: Any) -> None:
    with made_of(kind, host="127.0.0.1", port=guarded.port, db=5, password="secret") as do:
        first, second = do.client.new_redis_connection(), do.client.new_redis_connection()
        assert first is not second
        do(lambda: first.set("mine", "5"))
        assert do(lambda: second.get("mine")) == "5"
        do(lambda: do.client.queues["mail"].put("app.Job"))
        assert do(lambda: second.exists(do.client.root)) == 1
        for made in (first, second):
            do(lambda made=made: made.close() if kind is Client else made.aclose())


def test_the_database_of_the_embedded_store_starts_it(
    tmp_path, monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    monkeypatch.delenv("HOLDFAST_URL", raising=False)
    monkeypatch.delenv("REDIS_URL", raising=False)
    monkeypatch.setenv("HOLDFAST_DIR", str(tmp_path / "store"))
    with made_of(kind, durability="memory") as do:
        database = do.client.database
        assert not (tmp_path / "store").exists()
        assert do(lambda: database.ping()) is True
        jid = do(lambda: do.client.queues["mail"].put("app.Job"))
        assert do(lambda: database.exists(f"{do.client.root}j:{jid}")) == 1
    holdfast_store_stop(tmp_path / "store")


def holdfast_store_stop(directory: Any) -> None:
    from holdfast import store

    store.stop(directory)


# --- a connection that is there ----------------------------------------------------------------------------------


def driver_of(kind: Any) -> Any:
    return redis.Redis if kind is Client else redis.asyncio.Redis


@pytest.mark.parametrize(
    "options", [{}, {"decode_responses": True}, {"protocol": 3}, {"protocol": 2}], ids=str
)
def test_an_existing_connection_is_used_as_it_is(kind: Any, namespace: str, options: dict[str, Any]) -> None:
    with ScratchStore() as store:
        mine = driver_of(kind).from_url(store.url, client_name="mine", **options)
        with made_of(kind, mine, namespace=namespace) as do:
            do(lambda: mine.ping())
            jid = do(lambda: do.client.queues["mail"].put("app.Job", {"a": "ä"}))
            job = do(lambda: do.client.queues["mail"].pop())
            assert (job.jid, job["a"]) == (jid, "ä")
            assert do(lambda: job.complete()) == "complete"
            assert do.client.database is mine
            names = [one["name"] for one in connections_of(store)]
            assert names.count("mine") == 1
            assert len(names) == 2  # the other is the one that asks
            do(lambda: mine.close() if kind is Client else mine.aclose())


@pytest.mark.full
def test_a_client_of_the_driver_with_a_single_connection_shares_it(kind: Any, namespace: str) -> None:
    with ScratchStore(durability="fsync") as store:
        options = {"single_connection_client": True, "client_name": "mine"}
        mine = driver_of(kind)(unix_socket_path=str(store.socket_path), **options)
        with made_of(kind, mine, namespace=namespace) as do:
            put = do.client.queues["mail"].put
            for _ in range(3):
                do(lambda: put("app.Job"))
                assert do(lambda: mine.ping())
            if kind is AsyncClient:
                do(lambda: asyncio.gather(*(put("app.Job") for _ in range(5)), do.client.queues.counts))
            else:
                threads = [threading.Thread(target=put, args=("app.Job",)) for _ in range(5)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            assert do(lambda: do.client.queues["mail"].length()) == 8
            assert [one["name"] for one in connections_of(store)].count("mine") == 1
            store.restart()
            assert do(lambda: do.client.queues["mail"].length()) == 8
            assert [one["name"] for one in connections_of(store)].count("mine") == 1
            do(lambda: mine.close() if kind is Client else mine.aclose())


def test_an_existing_connection_stays_open_when_the_client_is_closed(
    kind: Any, url: str, namespace: str
) -> None:
    mine = driver_of(kind).from_url(url)
    with made_of(kind, redis=mine, namespace=namespace) as do:
        do(lambda: do.client.queues["mail"].put("app.Job"))
        do(lambda: do.client.close())
        assert do(lambda: mine.ping()) is True
        do(lambda: mine.close() if kind is Client else mine.aclose())


def test_results_are_pushed_over_a_connection_beside_the_given_one(url: str, namespace: str) -> None:
    with (
        redis.Redis.from_url(url, decode_responses=True) as mine,
        Client(mine, namespace=namespace) as client,
    ):
        jid = client.queues["mail"].put("app.Job", result_keep=60)
        job = client.queues["mail"].pop()
        assert job is not None
        assert client.wait_for(jid, 0.01).status == "open"
        job.complete()
        assert client.wait_for(jid, 30).status == "done"


def test_the_second_connection_of_an_existing_one_has_its_settings(
    kind: Any, url: str, namespace: str
) -> None:
    mine = driver_of(kind).from_url(url, client_name="mine", decode_responses=True)
    with made_of(kind, mine, namespace=namespace) as do:
        other = do.client.new_redis_connection()
        assert other is not mine
        assert do(lambda: other.client_getname()) == "mine"
        for made in (mine, other):
            do(lambda made=made: made.close() if kind is Client else made.aclose())


def test_a_client_of_the_database_of_another_client_works(kind: Any, url: str, namespace: str) -> None:
    with made_of(kind, url, namespace=namespace) as do:
        jid = do(lambda: do.client.queues["mail"].put("app.Job"))
        other = kind(do.client.database, namespace=namespace)
        assert do(lambda: other.jobs[jid]).jid == jid
        assert other == do.client


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({}, "redis://localhost:6379"),
        ({"host": "box", "port": 7, "db": 3}, "redis://box:7/3"),
        ({"host": "box", "ssl": True, "password": "a/b"}, "rediss://:a%2Fb@box:6379"),
        ({"unix_socket_path": "/run/s", "db": 2}, "unix:///run/s?db=2"),
    ],
    ids=str,
)
def test_a_client_of_an_existing_connection_knows_its_place(
    kind: Any, given: dict[str, Any], url: str
) -> None:
    made = kind(driver_of(kind)(**given))
    assert made.settings.url == url
    assert made == kind(url)


def test_an_existing_connection_of_the_other_kind_is_refused(kind: Any) -> None:
    wrong = driver_of(AsyncClient if kind is Client else Client)()
    with pytest.raises(UsageError, match="use the other kind of client"):
        kind(wrong)
    with pytest.raises(UsageError, match=r"works on a URL or a redis"):
        kind(type("Odd", (), {"connection_pool": redis.ConnectionPool()})())


def test_options_beside_an_existing_connection_are_refused(kind: Any) -> None:
    for name, value in (("host", "box"), ("db", 1), ("socket_timeout", 3)):
        with pytest.raises(UsageError, match=f"{name} cannot be given with a connection"):
            kind(driver_of(kind)(), **{name: value})


def test_an_existing_connection_that_never_answers_is_a_timeout(kind: Any, namespace: str) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        # It is used as it is, and by itself the driver would try again for seconds.
        mine = driver_of(kind)(port=port, socket_timeout=0.2, retry=None, retry_on_error=[])
        with (
            made_of(kind, mine, namespace=namespace, timeout=0.2, deadline=0.3) as do,
            pytest.raises(holdfast.TransportError, match="put: "),
        ):
            do(lambda: do.client.queues["mail"].put("app.Job"))


def test_a_store_that_is_killed_under_an_existing_connection_is_met_again(kind: Any, namespace: str) -> None:
    with ScratchStore(durability="fsync") as store:
        mine = driver_of(kind).from_url(store.url)
        with made_of(kind, mine, namespace=namespace) as do:
            do(lambda: do.client.queues["mail"].put("app.Job"))
            store.restart()
            do(lambda: do.client.queues["mail"].put("app.Job"))
            assert do(lambda: do.client.queues["mail"].length()) == 2
            do(lambda: mine.close() if kind is Client else mine.aclose())


def test_a_fork_does_not_share_an_existing_connection(url: str, namespace: str) -> None:
    with redis.Redis.from_url(url) as mine, Client(mine, namespace=namespace) as client:
        client.queues["mail"].put("app.Job")
        child = os.fork()
        if not child:
            code = 1
            try:
                code = 0 if client.queues["mail"].length() == 1 else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert client.queues["mail"].length() == 1


# --- the store and its core --------------------------------------------------------------------------------------


def test_the_callback_hears_of_each_time_the_core_was_loaded(kind: Any, namespace: str) -> None:
    heard: list[tuple[Any, str]] = []

    def note(connection: Any, digest: str) -> None:
        heard.append((connection, digest))

    with (
        ScratchStore() as store,
        made_of(kind, store.url, namespace=namespace, on_lua_script_reload_callback=note) as do,
    ):
        do(lambda: do.client.queues["mail"].put("app.Job"))
        do(lambda: do.client.queues["mail"].put("app.Job"))
        assert heard == [(do.client.database, do.client.shard.info.digest)]
        store.ask("FUNCTION", "FLUSH")
        do(lambda: do.client.queues["mail"].put("app.Job"))
        assert len(heard) == 2
        assert do(lambda: do.client.queues["mail"].length()) == 3


def test_a_callback_that_fails_does_not_fail_the_call(
    url: str, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(connection: Any, digest: str) -> None:
        raise ValueError("odd")

    with ScratchStore() as store, Client(store.url, on_lua_script_reload_callback=fail) as client:
        assert client.queues["mail"].put("app.Job")
    assert "on_lua_script_reload_callback failed" in caplog.text


def test_a_flushed_core_is_invisible(do: Any) -> None:
    do(lambda: do.client.queues["mail"].put("app.Job"))
    send = do.client.link.send
    do(lambda: send(Step([("FUNCTION", "FLUSH"), ("SCRIPT", "FLUSH")])))
    assert do(lambda: do.client.queues["mail"].pop()) is not None


def test_a_missing_core_file_is_a_runtime_error() -> None:
    with pytest.raises(RuntimeError, match="no Lua module") as broken:
        source("nouns.nothing")
    assert isinstance(broken.value, CoreBroken)


def test_the_snippets_of_the_page_work_as_written(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_URL", url)
    client = holdfast.Client()  # D9: HOLDFAST_URL, REDIS_URL, or the embedded store
    assert client.queues["mail"].length() >= 0
    client = holdfast.Client("redis://10.1.1.5:1234")  # elsewhere
    assert client.settings.url == "redis://10.1.1.5:1234"


def test_the_reserved_namespace_is_refused_with_a_sentence(kind: Any) -> None:
    with pytest.raises(UsageError, match="'ql' belongs to reqless clients"):
        kind("redis://box", namespace="ql")
    assert kind("redis://box").settings.namespace == "default"
    assert kind("redis://box").settings.durability == "memory"


WAYS_IN = {
    "put": lambda client: client.queues["q"].put("app.Job"),
    "put_many": lambda client: client.queues["q"].put_many([("app.Job", 1)]),
    "batch": lambda client: batched(client),
    "pop": lambda client: client.queues["q"].pop(5),
    "peek": lambda client: client.queues["q"].peek(),
    "counts": lambda client: client.queues.counts,
    "plan": lambda client: client.unfail_all(),
    "workers": lambda client: client.workers.counts,
    "call": lambda client: client("queues.names"),
    "plugin": lambda client: holdfast.LuaPlugin("p", client, "return 1").call(),
    "wait": lambda client: client.wait_for("nobody", 0.01),
    "config": lambda client: client.config["heartbeat"],
}


def batched(client: Client) -> None:
    with client.batch():
        client.queues["q"].put("app.Job")


@pytest.mark.parametrize("way", WAYS_IN)
def test_a_blocking_client_in_a_loop_warns_once_and_points_at_the_program(client: Client, way: str) -> None:
    async def story() -> list[warnings.WarningMessage]:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            WAYS_IN[way](client)
            WAYS_IN[way](client)
        return said

    assert "IPython" not in sys.modules
    [warning] = asyncio.run(story())
    assert warning.category is RuntimeWarning
    assert "use holdfast.AsyncClient there" in str(warning.message)
    assert warning.filename == __file__


@pytest.mark.parametrize("way", WAYS_IN)
def test_a_blocking_client_in_a_loop_is_an_error_by_setting(url: str, namespace: str, way: str) -> None:
    async def story(client: Client) -> None:
        with pytest.raises(UsageError, match="AsyncClient"):
            WAYS_IN[way](client)

    with Client(url, namespace=namespace, strict_loop=True) as client:
        asyncio.run(story(client))


def test_what_a_batch_holds_leaves_before_a_script_and_before_other_calls(client: Client) -> None:
    plugin = holdfast.LuaPlugin("p", client, "return Holdfast.job.get(ARGV[1]) ~= nil")
    with client.batch():
        jid = client.queues["q"].put("app.Job")
        assert plugin.call(jid) == 1
        client.queues["q"].put("app.Job")
        assert client.run_all([QueueNames(), CountQueues(("q",))])[1][0].waiting == 2


# --- versions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "fine"),
    [("7.0.0", True), ("7.0-pre2", True), ("7-pre9", True), ("6.2.14", False), ("6.10.0", False), ("10.1", True),
     ("odd", False)],
)  # fmt: skip
def test_versions_compare_by_number_and_suffixes_do_not_count(name: str, fine: bool) -> None:
    facts = {"redis_version": name}
    settings = Client("redis://box").settings
    if fine:
        check_store(facts, settings)
        return
    with pytest.raises(UnsupportedRedisVersionError, match=f"Redis {name} is too old"):
        check_store(facts, settings)
    check_store(facts, Client("redis://box", ensure_minimum_version=False).settings)


def test_valkey_is_asked_for_its_own_version_and_not_for_the_one_it_is_compatible_with() -> None:
    settings = Client("redis://box").settings
    check_store({"redis_version": "7.2.4", "valkey_version": "7.2.0"}, settings)
    with pytest.raises(StoreUnsupported, match=r"Valkey 7\.1\.0 is too old"):
        check_store({"redis_version": "7.2.4", "valkey_version": "7.1.0"}, settings)


# --- TLS ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate of this machine, in one file."""
    directory = tmp_path_factory.mktemp("tls")
    certificate, key = make_self_signed(directory)
    both = directory / "both"
    both.write_text(key.read_text() + certificate.read_text())
    return both


@contextmanager
def tls_relay(store: ScratchStore, certificate: Path) -> Iterator[int]:
    """A port that speaks TLS and passes everything on to the store."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
        finally:
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_unix_connection(str(store.socket_path))
        await asyncio.gather(pump(reader, outer), pump(inner, writer), return_exceptions=True)

    async def start() -> asyncio.Server:
        return await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)

    async def stop() -> None:
        server.close()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    server = asyncio.run_coroutine_threadsafe(start(), loop).result(30)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


@pytest.mark.full
def test_a_store_behind_tls_is_reached_by_parts_and_by_url(
    kind: Any, store: ScratchStore, certificate: Path, namespace: str
) -> None:
    with tls_relay(store, certificate) as port:
        ways = (
            {"host": "localhost", "port": port, "ssl": True},
            {"url": f"rediss://localhost:{port}"},
        )
        for count, way in enumerate(ways, 1):
            with made_of(kind, namespace=namespace, ssl_ca_certs=str(certificate), **way) as do:
                do(lambda: do.client.queues["mail"].put("app.Job"))
                assert do(do.client.queues["mail"].length) == count
        with (
            made_of(kind, host="localhost", port=port, ssl=True, namespace=namespace, deadline=0.1) as do,
            pytest.raises(holdfast.StoreUnsupported, match=r"certificate of the store cannot be verified"),
        ):
            do(lambda: do.client.queues["mail"].put("app.Job"))


def test_the_store_of_the_environment_is_logged_once_for_all_clients(
    url: str, namespace: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.client.opening._logged", set())
    monkeypatch.setenv("HOLDFAST_URL", url)
    with caplog.at_level("INFO", "holdfast"):
        for _ in range(3):
            holdfast.Client(namespace=namespace).close()
            holdfast.AsyncClient(namespace=namespace)
    assert caplog.text.count("using the store of HOLDFAST_URL: ") == 1


def test_an_error_names_what_gave_the_url(monkeypatch: pytest.MonkeyPatch) -> None:
    for options, origin in (
        ({"url": "redis://127.0.0.1:1"}, "the argument url"),
        ({"host": "127.0.0.1", "port": 1}, "the arguments host, port"),
        ({"url": "redis://127.0.0.1:1", "url_origin": "jobs.toml, store"}, "jobs.toml, store"),
    ):
        with pytest.raises(
            holdfast.ConnectionLost, match=rf"the store redis://127.0.0.1:1 \(URL from {origin}\)"
        ):
            holdfast.Client(**options, deadline=0.1).queues["q"].put("K")
