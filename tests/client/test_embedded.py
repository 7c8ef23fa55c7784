"""A client without a URL: the embedded store is there when it is needed, and found again when it ended."""

import asyncio
import logging
import os
import signal

import pytest

from holdfast import AsyncClient, Client
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
