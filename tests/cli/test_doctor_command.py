"""`holdfast doctor`: what it finds in stores and namespaces that have something wrong."""

import asyncio
import json
import os
import re
import signal
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from command_line import holdfast, on_a_terminal
from holdfast import AsyncClient, Client
from holdfast.commands.leases import Lease
from holdfast.commands.outcomes import Release
from holdfast.commands.workers import WorkerSeen
from holdfast.console.access import rules_of
from holdfast.console.health import doctor, triage
from holdfast.console.health.doctor import examine
from holdfast.console.health.findings import Report
from holdfast.console.health.store_checks import (
    StoreFacts,
    eviction,
    memory,
    persistence,
    replication,
    version,
)
from holdfast.core.library import library, shown_core
from holdfast.testing import StoppedClock
from holdfast.testing.clock import START_MS
from holdfast.testing.store import Engine, ScratchStore, find_engine

OF_STORE = [
    "store",
    "core",
    "persistence",
    "eviction",
    "memory",
    "replication",
    "clock",
    "latency",
    "slow log",
]
OF_NAMESPACE = [*doctor.CHECKS, "leftovers"]


@pytest.fixture(scope="module")
def store() -> Iterator[ScratchStore]:
    """A store for these tests alone: what is left over is looked for among the first keys of the whole store."""
    with ScratchStore("valkey") as running:
        yield running


@pytest.fixture
def place(url: str, namespace: str) -> tuple[str, ...]:
    return ("--url", url, "--namespace", namespace)


def findings_of(*place: str) -> dict[str, dict[str, Any]]:
    """The findings of a run by their checks."""
    report = json.loads(holdfast("doctor", "--json", *place).stdout)
    return {finding["check"]: finding for finding in report["findings"]}


def raw(store: ScratchStore) -> redis.Redis:
    return redis.Redis(unix_socket_path=str(store.socket_path))


@pytest.mark.full
@pytest.mark.parametrize("engine", ["valkey", "redis"])
def test_a_fresh_store_is_left_as_it_is(engine: Engine) -> None:
    if find_engine(engine) is None:
        pytest.skip(f"{engine}-server is not installed")
    with ScratchStore(engine) as store, raw(store) as admin:
        found = findings_of("--url", store.url)
        assert list(found) == OF_STORE
        assert found["store"]["verdict"] == "ok"
        assert engine in found["store"]["text"].lower()
        assert "has no core of holdfast" in found["core"]["text"]
        assert admin.dbsize() == 0
        assert admin.function_list() == []
        admin.function_load(library().text)
        assert list(found) == OF_STORE
        assert (
            "Namespace 'default' does not exist yet." in findings_of("--url", store.url)["namespace"]["text"]
        )
        assert admin.dbsize() == 0


@pytest.mark.full
def test_a_namespace_without_trouble_has_nothing_to_warn_of(
    store: ScratchStore, client: Client, place: tuple[str, ...]
) -> None:
    client.queues["mail"].put("shop.Order")
    client.run(WorkerSeen("w-0", {"queues": '["ma*"]', "version": "0.2.0"}))
    with raw(store) as admin:
        admin.slowlog_reset()
    found = findings_of(*place)
    assert list(found) == OF_STORE + OF_NAMESPACE
    assert {name: found[name]["verdict"] for name in OF_NAMESPACE} == dict.fromkeys(OF_NAMESPACE, "ok")
    assert found["core"] == {
        "check": "core", "verdict": "ok", "remedy": "",
        "text": f"Core {shown_core(library().version, library().digest)}, the same as this program.",
    }  # fmt: skip
    assert found["queues"]["text"] == "1 queue with 1 waiting job and 0 leased jobs, 1 worker."


@pytest.mark.full
def test_what_is_stuck_is_found_and_named(
    store: ScratchStore, client: Client, place: tuple[str, ...]
) -> None:
    clock = StoppedClock(client, START_MS)
    clock.advance(seconds=0)
    evil = "a\u202eb"
    client.queues[evil].put("K")
    client.queues[evil].pause(why="for now\u202e", who="ada")
    client.queues["reports"].recur("K", {}, interval=60, offset=60)
    clock.advance(hours=25)
    client.throttles["smtp"].set_maximum(1)
    with raw(store) as admin:
        admin.zadd(f"{client.root}h:smtp", {"ghost": 1})
        admin.set(f"{client.root}w:forgotten", "1")
        admin.set(f"{client.root}z:gone:20000", "1")
    client.queues["mail"].put("K", throttles=["smtp"])
    assert client.queues["mail"].pop() is None
    jid = client.queues["batch"].put("K", jid="often")
    for _ in range(6):
        job = client.queues["batch"].pop()
        assert job is not None
        client.run(Release([Lease(jid, job.facts.token, job.facts.worker)], "preempted", "the machine"))
    client.queues["slow"].put("K")
    assert client.queues["slow"].pop()
    clock.advance(hours=1)
    for name, release in (("w-0", "0.1.0"), ("w-1", "0.2.0"), ("w-2", "0.2.0")):
        client.run(WorkerSeen(name, {"queues": '["other"]', "version": release}))

    found = findings_of(*place)
    assert {name: found[name]["verdict"] for name in OF_NAMESPACE} == {
        "queues": "ok", "worker versions": "warn", "leases": "warn", "silent workers": "bad", "idle queues": "bad",
        "backlogs": "ok", "pauses": "warn", "dependencies": "ok", "flows": "ok",
        "throttles": "bad", "recurrences": "warn", "paused recurrences": "ok",
        "failures": "ok",
        "operations": "ok", "preemptions": "warn", "leftovers": "note",
    }  # fmt: skip
    for name, text in (
        ("worker versions", "Workers of 2 versions: 0.1.0 (1), 0.2.0 (2)."),
        ("leases", "Queue slow: 1 lease ended, the first 60 min ago, and no worker has taken the job again."),
        ("silent workers", "Worker "),
        (
            "idle queues",
            "Queue batch: 1 job waits, the first for 60 min, and no worker takes jobs from this queue.",
        ),
        ("pauses", "Queue a?b: paused 26 h ago by ada: for now?; 1 job waits."),
        ("throttles", "Throttle smtp: jobs that do not run hold 1 of its 1 slots, such as ghost."),
        ("recurrences", "Recurring job "),
        ("preemptions", "1 job preempted again and again, the most often, 6 times."),
        ("leftovers", "2 keys of 2 unknown queues"),
    ):
        assert found[name]["text"].startswith(text), found[name]
        assert found[name]["remedy"]
    flags = f" --url {place[1]} --namespace {place[3]}"
    assert found["leases"]["remedy"] == f"holdfast worker -q slow{flags}"
    assert found["worker versions"]["remedy"] == f"holdfast workers quiet{flags} w-0"
    assert found["pauses"]["remedy"] == f"holdfast queues resume{flags} '{evil}'"
    assert found["throttles"]["remedy"] == f"holdfast throttles release{flags} smtp ghost"

    ended = holdfast("doctor", *place)
    assert ended.returncode == 1
    assert "\u202e" not in ended.stdout
    *rows, last = ended.stdout.splitlines()
    assert rows[0] == "check\tverdict\tfinding\twhat to do"
    assert [row.split("\t")[0] for row in rows[1:]] == OF_STORE + OF_NAMESPACE
    assert last.endswith(", 3 bad")
    code, shown = on_a_terminal("doctor", *place)
    assert code == 1
    assert "\u202e" not in shown
    assert all(
        len(line) <= 80
        for line in plain(shown).splitlines()
        if not line.lstrip().startswith(("holdfast ", "redis-cli "))
    )


def plain(shown: str) -> str:
    """A terminal's text without the codes for bold and colour."""
    return re.sub(r"\x1b\[[0-9;]*m", "", shown)


def test_failures_and_queues_beyond_the_bounds_are_noted(
    client: Client, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(3):
        client.queues["mail"].put("K")
        job = client.queues["mail"].pop()
        assert job is not None
        job.fail("group-a" if n else "group-b", "no")
    monkeypatch.setattr(triage, "_MANY_FAILURES", 1)
    found = {one.check: one for one in client.runner.run(examine(client.shard)).findings}
    text = "Failure group group-a: 2 failed jobs, kept until retried or cancelled."
    assert found["failures"].text == text
    assert found["failures"].verdict == "warn"
    monkeypatch.setattr(doctor, "MOST_QUEUES", 0)
    found = {one.check: one for one in client.runner.run(examine(client.shard)).findings}
    assert "only the first 0 queues were checked" in found["queues"].text
    assert found["leftovers"].text == "Not checked: too many queues."


def test_an_async_client_examines_too(aclient: AsyncClient) -> None:
    async def examined() -> Report:
        async with aclient:
            await aclient.queues["mail"].put("K")
            return await aclient.runner.run(examine(aclient.shard, keys=0))

    report = asyncio.run(examined())
    assert [one.check for one in report.findings] == OF_STORE + OF_NAMESPACE
    assert report.findings[-1].text == "Not checked: --keys is 0."


@pytest.mark.full
@pytest.mark.parametrize(
    ("role", "not_checked"),
    [
        ("viewer", {"slow log", "leftovers"}),
        ("producer", {"slow log", "queues"}),
        ("operator", {"slow log", "leftovers"}),
    ],
)
def test_what_a_user_may_not_look_at_is_a_finding(role: str, not_checked: set[str]) -> None:
    with ScratchStore("valkey", tcp=True) as store, Client(store.url, namespace="shop") as client:
        client.queues["mail"].put("K")
        with raw(store) as admin:
            admin.execute_command("ACL", "SETUSER", role, *rules_of(role, "shop", "secret"))
        where = store.tcp_url.replace("://", f"://{role}:secret@")
        found = findings_of("--url", where, "--namespace", "shop")
        barred = {
            name for name, one in found.items() if "barred" in one["text"] or "ot checked" in one["text"]
        }
        assert barred == {*not_checked, "persistence"}
        assert all("the user of this URL lacks the right" in found[name]["text"] for name in not_checked)
        assert "secret" not in json.dumps(found)
        assert ("rights" in found) == (role == "viewer")
        with raw(store) as admin:
            admin.execute_command("ACL", "SETUSER", role, "-zadd")
        if role != "viewer":
            rights = findings_of("--url", where, "--namespace", "shop")["rights"]
            assert (rights["verdict"], "zadd" in rights["text"]) == ("bad", True)
        with raw(store) as admin:
            admin.execute_command("ACL", "SETUSER", "nobody", "on", "nopass", "~hf:{shop}:*", "+exists")
        found = findings_of("--url", store.tcp_url.replace("://", "://nobody:any@"), "--namespace", "shop")
        assert "INFO is barred" in found["store"]["text"]
        assert "Not checked" in found["core"]["text"]


@pytest.mark.full
def test_slow_calls_of_ours_are_named_without_their_arguments(
    store: ScratchStore, client: Client, place: tuple[str, ...]
) -> None:
    with raw(store) as admin:
        before = admin.config_get("slowlog-log-slower-than")["slowlog-log-slower-than"]
        admin.slowlog_reset()
        try:
            admin.config_set("slowlog-log-slower-than", 0)
            client.queues["mail"].put("K", {"password": "hunter2"})
        finally:
            admin.config_set("slowlog-log-slower-than", before)
        found = findings_of(*place)["slow log"]
        admin.slowlog_reset()
    assert found["verdict"] in ("note", "warn")
    assert "slow calls of holdfast in a day; the longest is " in found["text"]
    assert "hunter2" not in found["text"]


def facts(config: dict[str, str] | None = None, **info: str) -> StoreFacts:
    return StoreFacts(info, config)


@pytest.mark.parametrize(
    ("finding", "verdict", "words"),
    [
        (version(facts(redis_version="7.0.1")), "ok", "Redis 7.0.1"),
        (version(facts(redis_version="6.2.9")), "bad", "too old"),
        (version(facts(redis_version="7.2.4", valkey_version="7.1.0")), "bad", "Valkey 7.1.0"),
        (persistence(facts({"appendfsync": "always"}, aof_enabled="1")), "ok", "loses nothing"),
        (persistence(facts({"appendfsync": "everysec"}, aof_enabled="1")), "ok", "up to 2 s"),
        (persistence(facts({"appendfsync": "no"}, aof_enabled="1")), "warn", "up to 30 s"),
        (persistence(facts({"appendfsync": "always"}, aof_enabled="1", aof_delayed_fsync="3")), "note", "3 flushes"),
        (persistence(facts(aof_enabled="1")), "note", "CONFIG GET is barred"),
        (persistence(facts({}, aof_enabled="1", aof_last_write_status="err")), "bad", "cannot be written"),
        (persistence(facts({"save": ""}, aof_enabled="0")), "warn", "loses everything"),
        (persistence(facts({"save": "60 1"}, rdb_changes_since_last_save="7")), "warn", "loses 7 changes"),
        (persistence(facts({"save": "60 1"}, rdb_last_bgsave_status="err")), "bad", "snapshot failed"),
        (eviction(facts(maxmemory_policy="noeviction")), "ok", "deletes nothing"),
        (eviction(facts(maxmemory_policy="allkeys-lru")), "bad", "deletes jobs"),
        (eviction(facts(maxmemory_policy="volatile-ttl")), "warn", "deletes results"),
        (memory(facts(used_memory="50000000", maxmemory="100000000")), "ok", "50.0 MB used, 50% of maxmemory"),
        (memory(facts(used_memory="80000000", maxmemory="100000000")), "bad", "almost full: 80.0 MB used, 80%"),
        (memory(facts(used_memory="95000000", maxmemory="100000000")), "bad", "95%"),
        (memory(facts(used_memory="99500000", maxmemory="100000000")), "bad", "almost full"),
        (memory(facts(used_memory="99500000", maxmemory="100000000", errorstat_OOM="count=2")), "bad", "full and refuses puts"),
        (memory(facts(used_memory="90000000", maxmemory="100000000", errorstat_OOM="count=2")), "bad", "almost full"),
        (memory(facts(used_memory="2000000000", maxmemory="9000000000", mem_fragmentation_ratio="1.8")), "note", "1.80"),
        (memory(facts(used_memory="1", total_system_memory="8000000000")), "note", "8.0 GB, without maxmemory"),
        (memory(facts(used_memory="nonsense")), "note", "0 B used"),
        (replication(facts(role="master", connected_slaves="0")), "ok", "without replicas"),
        (replication(facts(role="master", connected_slaves="1", slave0="ip=a,lag=1")), "ok", "1 s behind"),
        (replication(facts(role="master", connected_slaves="2", slave0="lag=x", slave1="lag=60")), "warn", "2 replicas"),
        (replication(facts(role="slave", master_link_status="down")), "bad", "is a replica"),
    ],
)  # fmt: skip
def test_the_store_is_judged_by_what_it_reports(finding: Any, verdict: str, words: str) -> None:
    assert finding.verdict == verdict
    assert words in finding.text
    assert finding.remedy or verdict == "ok"


@pytest.mark.full
def test_another_core_in_the_store_is_named(place: tuple[str, ...]) -> None:
    ours = library()
    with ScratchStore("valkey") as store, raw(store) as admin:
        for other, verdict in (("0.0.1", "warn"), ("99.0.0", "note")):
            other_text = ours.text.replace(f'"{ours.version}"', f'"{other}"').replace(ours.digest, "0" * 16)
            admin.function_load(other_text, replace=True)
            admin.fcall("hf1_info", 1, "hf:{default}:", "make", 0)
            found = findings_of("--url", store.url)["core"]
            assert (found["verdict"], found["text"].split()[1]) == (verdict, other)
        assert "hf1_info" in str(admin.function_list())


@pytest.mark.full
def test_a_store_that_does_not_respond_has_an_exit_code_of_its_own() -> None:
    gone = holdfast("doctor", "--url", "unix:///nowhere.sock", "--wait", "0.1")
    assert (gone.returncode, gone.stderr.count("\n"), gone.stdout) == (3, 1, "")
    with ScratchStore("valkey") as store:
        os.kill(store.pid, signal.SIGSTOP)
        try:
            stopped = holdfast("doctor", "--url", store.url, "--wait", "0.5")
        finally:
            os.kill(store.pid, signal.SIGCONT)
        assert (stopped.returncode, stopped.stderr.count("\n")) == (3, 1)
        assert "the store unix:" in stopped.stderr
        assert " s (Timeout" in stopped.stderr
