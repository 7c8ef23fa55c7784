"""Meeting a store: whether it is fit, and which core wins."""

import logging

import pytest
from scripted import INFO, core_info, scripted

from holdfast.commands.jobs import Put
from holdfast.commands.queues import QueueNames
from holdfast.core.library import library, shown_core
from holdfast.errors import CoreMismatch, StoreUnsupported
from holdfast.wire.exchange import exchange, exchange_all
from holdfast.wire.meeting import WRITES, must_load
from holdfast.wire.plans import ErrorReply
from holdfast.wire.shards import FlushWatch

OURS = library()
GOOD = core_info(OURS.version, OURS.digest)


def test_a_core_is_shown_by_its_release_and_whether_it_is_a_development_build():
    assert shown_core("0.3.0.dev", "1a2b3c4d5e6f7a8b") == "0.3.0 (development build, digest 1a2b3c4d5e6f)"
    assert shown_core("0.3.0", "1a2b3c4d5e6f7a8b") == "0.3.0 (digest 1a2b3c4d5e6f)"


def meeting(facts, *rest, **settings):
    """Run one command on a shard that has not met its store, whose INFO says `facts`."""
    info = [INFO[0], INFO[1], INFO[2], GOOD]
    for place, text in facts.items():
        info[place] = text
    shard, link, runner = scripted([*info, *rest], [[b"mail"]], met=False, **settings)
    return shard, link, lambda: runner.run(exchange(shard, QueueNames()))


def test_a_good_store_is_met_once_and_with_one_question():
    shard, link, run = meeting({})
    assert run() == ["mail"]
    assert run() == ["mail"]
    assert len(link.sent) == 3
    assert shard.info.version == OURS.version


@pytest.mark.parametrize(
    "said", [b"redis_version:6.2.14", b"redis_version:7.2.4\r\nvalkey_version:7.1.0", b""]
)
def test_a_store_that_is_too_old_is_refused_with_advice(said):
    _, _, run = meeting({0: said})
    with pytest.raises(StoreUnsupported, match=r"too old.*upgrade"):
        run()


@pytest.mark.parametrize("said", [b"redis_version:7.0.0-rc1", b"redis_version:7.2.4\r\nvalkey_version:7.2.0"])
def test_the_oldest_supported_stores_are_fine(said):
    _, _, run = meeting({0: said})
    assert run() == ["mail"]


def test_a_store_that_throws_jobs_away_is_refused_with_advice():
    _, _, run = meeting({1: b"maxmemory_policy:allkeys-lru"})
    with pytest.raises(StoreUnsupported, match="maxmemory-policy noeviction"):
        run()


def test_a_store_that_throws_expiring_keys_away_is_warned_about(caplog):
    _, _, run = meeting({1: b"maxmemory_policy:volatile-lru"})
    with caplog.at_level(logging.WARNING, "holdfast"):
        run()
    assert "volatile-lru" in caplog.text


@pytest.mark.parametrize("level", ["process", "fsync"])
def test_a_level_above_memory_needs_the_log(level):
    _, _, run = meeting({2: b"aof_enabled:0"}, [b"appendfsync", b"always"], durability=level)
    with pytest.raises(StoreUnsupported, match="appendonly yes"):
        run()


@pytest.mark.parametrize("policy", [b"everysec", b"no"])
def test_fsync_needs_a_flush_before_each_answer(policy):
    _, _, run = meeting({}, [b"appendfsync", policy], durability="fsync")
    with pytest.raises(StoreUnsupported, match="appendfsync always"):
        run()
    _, _, run = meeting({}, [b"appendfsync", b"always"], durability="fsync")
    assert run() == ["mail"]


def test_fsync_that_cannot_be_verified_is_refused_unless_trusted():
    barred = ErrorReply("NOPERM this user has no permissions to run the 'config|get' command")
    _, _, run = meeting({}, barred, durability="fsync")
    with pytest.raises(StoreUnsupported, match="trust_store=True"):
        run()
    _, _, run = meeting({}, barred, durability="fsync", trust_store=True)
    assert run() == ["mail"]


def test_a_store_that_bars_inner_commands_is_refused_by_their_names():
    _, _, run = meeting({3: core_info(OURS.version, OURS.digest, b"ZADD,SET")})
    with pytest.raises(StoreUnsupported, match="ZADD, SET"):
        run()


def test_a_user_without_any_writing_command_may_read():
    _, _, run = meeting({3: core_info(OURS.version, OURS.digest, ",".join(WRITES).encode())})
    assert run() == ["mail"]


@pytest.mark.parametrize(
    ("denied", "named"), [([*WRITES, "zrange"], "not run zrange,"), (WRITES - {"set"}, "append,.*zrem")]
)
def test_a_user_who_could_do_half_of_something_is_refused(denied, named):
    _, _, run = meeting({3: core_info(OURS.version, OURS.digest, ",".join(sorted(denied)).encode())})
    with pytest.raises(StoreUnsupported, match=named):
        run()


def test_wrong_credentials_are_said_so():
    noauth = ErrorReply("NOAUTH Authentication required.")
    _, _, run = meeting({0: noauth, 1: noauth, 2: noauth, 3: noauth})
    with pytest.raises(StoreUnsupported, match="credentials"):
        run()


def test_an_older_core_is_replaced_and_a_newer_one_kept(monkeypatch):
    monkeypatch.setattr(
        "holdfast.wire.meeting._library", lambda: type(OURS)("holdfast1", "1.2.0", "ours", "", ())
    )
    assert must_load("1.1.9", "other")
    assert must_load("1.2.0.dev", "other")
    assert not must_load("1.10.0", "other")
    assert not must_load("1.2.0", "ours")
    with pytest.raises(CoreMismatch, match="another core of version"):
        must_load("1.2.0", "other")


def test_a_core_from_a_checkout_may_replace_any_of_its_release(monkeypatch):
    mine = type(OURS)("holdfast1", "1.2.0.dev", "ours", "", ())
    monkeypatch.setattr("holdfast.wire.meeting._library", lambda: mine)
    assert must_load("1.2.0.dev", "other")
    assert must_load("1.2.0", "other")
    assert not must_load("1.3.0", "other")


def test_a_client_that_may_not_load_says_what_to_do():
    _, _, run = meeting({3: ErrorReply("ERR Function not found")}, load_core=False)
    with pytest.raises(CoreMismatch, match="load_core"):
        run()


@pytest.mark.parametrize(("flush", "lines"), [(0.001, 0), (0.010, 1)])
def test_a_slow_disk_is_said_once_after_fifty_flushes(flush, lines, caplog):
    def slow(calls):
        link.clock.now += flush
        return [[1] for _ in calls]

    shard, link, runner = scripted(slow)
    shard.flushes = FlushWatch(link.clock)
    with caplog.at_level(logging.WARNING, "holdfast"):
        for _ in range(60):
            runner.run(exchange(shard, Put("q", "K")))
            runner.run(exchange_all(shard, [Put("q", "K")]))
    assert caplog.text.count("durability='process'") == lines
    assert shard.flushes is None


def test_questions_are_not_taken_for_flushes():
    shard, link, runner = scripted([[]])
    watch = shard.flushes = FlushWatch(link.clock)
    for _ in range(100):
        runner.run(exchange(shard, QueueNames()))
    assert shard.flushes is watch
