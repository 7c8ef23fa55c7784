"""A client without a URL: the embedded store is there when it is needed, and found again when it ended."""

import asyncio
import logging
import os
import signal

import pytest

from holdfast import AsyncClient, Client, gather
from holdfast.commands.workers import WorkerSeen
from holdfast.store import status, stop


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A data directory of this test's own, and an environment that names no store."""
    monkeypatch.setenv("HOLDFAST_DIR", str(tmp_path / "store"))
    monkeypatch.delenv("HOLDFAST_URL", raising=False)
    monkeypatch.delenv("REDIS_URL", raising=False)
    yield tmp_path / "store"
    if (tmp_path / "store").exists():
        stop(tmp_path / "store")


def test_the_first_call_starts_the_store_and_says_which(home, caplog):
    client = Client()
    assert not home.exists()
    with caplog.at_level(logging.INFO, "holdfast"):
        jid = client.queues["q"].put("K", {"n": 1})
    assert f"using the embedded store in {home}, durability fsync" in caplog.text
    assert client.shard.settings.durability == "fsync"
    other = Client()
    assert other == client
    assert other.jobs[jid]["n"] == 1
    client.close()
    other.close()


def test_a_store_that_was_killed_comes_back_with_its_jobs(home):
    client = Client()
    jid = client.queues["q"].put("K")
    os.kill(status(home).pid, signal.SIGKILL)
    assert client.queues["q"].pop().jid == jid
    client.close()


def test_a_loop_finds_the_same_store(home):
    async def story():
        async with AsyncClient() as client:
            return await client.queues["q"].put("K")

    jid = asyncio.run(story())
    client = Client()
    assert client.jobs[jid].state == "waiting"
    client.close()


def test_the_level_may_be_lower(home):
    client = Client(durability="memory")
    assert client.queues["q"].put("K")
    client.close()


def test_a_program_whose_jobs_wait_in_an_embedded_store_without_workers_is_warned_once(home, caplog):
    client = Client()
    client.queues["q"].put("K", delay=60)
    client.shard.unserved.AFTER = 0.0  # of a job that is due later this is no time yet
    client.queues["q"].length()
    assert "no worker" not in caplog.text
    client.queues["q"].put_many([("K", {})])
    for _ in range(3):
        client.queues["q"].put("K")
    [line] = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert line == (
        f"jobs of this program have waited for 0 s, and no worker has been seen in the embedded store in {home}, "
        'namespace "default": start one there with `holdfast worker`, or set HOLDFAST_URL to the store of your workers'
    )
    client.close()


def test_a_program_with_a_loop_is_warned_too(home, caplog):
    async def story():
        async with AsyncClient() as client:
            client.shard.unserved.AFTER = 0.0
            await client.queues["q"].put("K")
            await client.queues["q"].length()

    asyncio.run(story())
    assert caplog.text.count(f"no worker has been seen in the embedded store in {home}") == 1


def test_nothing_is_warned_of_before_jobs_have_waited_30_seconds_or_where_a_worker_was_seen(home, caplog):
    now = [1000.0]
    client = Client()
    client.shard.unserved._clock = lambda: now[0]
    client.queues["q"].put("K")
    now[0] += 29.9
    client.queues["q"].put("K")
    assert client.shard.unserved is not None
    client.run(WorkerSeen("box-1"))
    now[0] += 0.2
    client.queues["q"].put("K")
    assert client.shard.unserved is None
    assert "no worker" not in caplog.text
    client.close()


def test_a_result_that_is_not_there_in_time_names_the_store_if_no_worker_was_seen_in_it(home):
    client = Client()
    handle = client.jobs.handle(client.queues["q"].put("K"))
    hint = (
        f'has not ended in time; no worker has been seen in the embedded store in {home}, namespace "default": '
        "start one there with `holdfast worker`, or set HOLDFAST_URL"
    )
    for wait in (lambda: handle.result(0), lambda: client.result_of(handle.jid, 0)):
        with pytest.raises(TimeoutError) as late:
            wait()
        assert hint in str(late.value)
    with pytest.raises(TimeoutError, match="no worker has been seen in the embedded store"):
        gather(handle, timeout=0)
    client.run(WorkerSeen("box-1"))
    with pytest.raises(TimeoutError) as late:
        handle.result(0)
    assert "no worker" not in str(late.value)
    client.close()
