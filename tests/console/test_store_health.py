"""What the overview finds about the store itself: a full one, and one that does not keep what it should."""

import re
from collections.abc import Iterator
from contextlib import suppress

import pytest
import redis

from holdfast import Client
from holdfast.console.handles import Console
from holdfast.console.read.metrics import Metric
from holdfast.errors import Refused
from holdfast.settings import redis_cli_of
from holdfast.testing.store import ScratchStore

LARGE = {"text": "x" * 20_000}


@pytest.fixture
def store() -> Iterator[ScratchStore]:
    with ScratchStore("redis", settings={"maxmemory": "16mb", "maxmemory-policy": "noeviction"}) as made:
        yield made


@pytest.fixture
def console(store: ScratchStore) -> Iterator[Console]:
    with Client(store.url) as client:
        for _ in range(3):
            client.queues["small"].put("shop.Send")
        yield Console(client)


def admin(store: ScratchStore) -> redis.Redis:
    return redis.Redis(unix_socket_path=str(store.socket_path))


def fill(store: ScratchStore, count: int = 2000) -> None:
    with Client(store.url) as client, suppress(Refused):
        for _ in range(count):
            client.queues["dumps"].put("shop.Dump", LARGE)


def kinds(console: Console) -> dict[str, str]:
    found = console.overview().attention
    return {one.kind: one.severity for one in found if one.kind.startswith("store")}


def test_a_store_with_room_is_no_finding(console: Console) -> None:
    found = console.overview()
    assert kinds(console) == {}
    assert (found.store.is_known, found.store.is_full, found.store.shares) == (True, False, ())


def test_a_full_store_is_the_first_finding_with_what_fills_it_and_two_remedies(
    console: Console, store: ScratchStore
) -> None:
    fill(store)
    found = console.overview()
    first = found.attention[0]
    assert (first.severity, first.kind) == ("urgent", "store-memory")
    assert found.sentence.startswith("Store memory: the store is full and refuses puts: 1")
    assert " refused since it started" in first.text
    assert first.command.endswith("--filter 'queue:dumps state:waiting klass:shop.Dump'")
    assert re.match(r"redis-cli -s \S+ CONFIG SET maxmemory \d+mb$", first.also)
    [share] = found.store.shares
    assert (share.queue, share.state, share.klass) == ("dumps", "waiting", "shop.Dump")
    assert share.share > 0.95
    assert 10_000_000 < share.bytes < 17_000_000
    assert found.store.largest[0].bytes > 20_000
    values = {one.name: one.samples.get((), None) for one in console.metrics() if isinstance(one, Metric)}
    assert values["holdfast_store_full"] == 1
    assert values["holdfast_store_memory_limit_bytes"] == 16 * 1024 * 1024


def test_a_store_at_four_fifths_of_its_memory_is_urgent_before_it_refuses(
    console: Console, store: ScratchStore
) -> None:
    fill(store, 400)
    with admin(store) as direct:
        used = direct.info("memory")["used_memory"]
        direct.config_set("maxmemory", round(used / 0.85))
        found = console.overview()
        assert "the store is almost full" in found.attention[0].text
        assert not found.store.is_full
        direct.config_set("maxmemory", round(used / 0.7))
        assert kinds(console) == {}


def test_the_shares_are_known_without_the_right_to_memory_usage(
    console: Console, store: ScratchStore
) -> None:
    fill(store)
    with admin(store) as direct:
        direct.execute_command("ACL", "SETUSER", "default", "-memory")
        [share] = console.overview().store.shares
        assert (share.queue, share.share > 0.95) == ("dumps", True)


def test_what_is_barred_is_said_to_be_unknown(console: Console, store: ScratchStore) -> None:
    assert kinds(console) == {}
    with admin(store) as direct:
        direct.execute_command("ACL", "SETUSER", "default", "-info")
        found = console.overview()
        [one] = [one for one in found.attention if one.kind == "store-unknown"]
        assert "memory and persistence of the store cannot be checked: the user of this URL lacks" in one.text
        assert not found.store.is_known
        assert [one.samples for one in console.metrics() if one.name == "holdfast_store_full"] == [{}]


def test_a_store_that_deletes_keys_is_urgent(console: Console, store: ScratchStore) -> None:
    assert kinds(console) == {}
    with admin(store) as direct:
        direct.config_set("maxmemory-policy", "allkeys-lru")
        assert kinds(console) == {"store-eviction": "urgent"}


def test_a_promised_append_only_file_that_is_off_is_urgent(store: ScratchStore) -> None:
    with admin(store) as direct:
        direct.config_set("appendonly", "yes")
        with Client(store.url, durability="process") as client:
            client.queues["q"].put("k.K")
            assert kinds(Console(client)) == {}
            direct.config_set("appendonly", "no")
            assert kinds(Console(client)) == {"store-persistence": "urgent"}


@pytest.mark.parametrize(
    ("url", "command"),
    [
        ("redis://db.example:6380/2", "redis-cli -h db.example -p 6380"),
        ("rediss://ops:s3cret@db.example", "redis-cli -h db.example -p 6379 --tls --user ops --askpass"),
        ("unix:///run/a%20b.sock?db=1", "redis-cli -s '/run/a b.sock'"),
    ],
)
def test_advice_for_redis_cli_reaches_the_store_that_it_is_about(url: str, command: str) -> None:
    assert redis_cli_of(url) == command
    assert "s3cret" not in redis_cli_of(url)
