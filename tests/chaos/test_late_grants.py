"""Grants that reach a worker later than their lease lasts."""

import signal
from pathlib import Path

import pytest
from crew import Crew
from diary import entries
from proxy import Proxy

from holdfast import Client
from holdfast.commands.admin import ConfigSet
from holdfast.commands.jobs import Put
from holdfast.testing.store import ScratchStore
from holdfast.worker.settings import POOLS
from waiting import until

SLOW = pytest.mark.full


@pytest.mark.full
@pytest.mark.parametrize(
    "pool", [pytest.param("process", marks=SLOW), "asyncio", pytest.param("serial", marks=SLOW)]
)
def test_a_worker_goes_on_when_a_grant_reached_it_too_late(
    pool: str, store: ScratchStore, proxy: Proxy, namespace: str, tmp_path: Path
) -> None:
    with Client(store.url, namespace=namespace) as client, Crew(tmp_path, proxy.url, namespace) as crew:
        client.run(ConfigSet("heartbeat", "1"))
        client.run(ConfigSet("grace-period", "0"))
        jids = [client.run(Put("q", "errands.anothing")) for _ in range(5)]
        late = proxy.aim("delay", "hf1_pop", seconds=1.3)
        flags = ["--concurrency", "5"] if pool == "asyncio" else []
        crew.start("-q", "q", "--pool", pool, "-w", "1", "--interval", "0.2", "-m", "errands", *flags)
        until(late.hit.is_set, "it was given jobs late")
        until(lambda: client.queues["q"].counts["waiting"] == 0, "it took all jobs")
        until(lambda: {job.state for job in client.jobs.get(*jids)} == {"complete"}, "all are done")


@pytest.mark.parametrize("pool", POOLS)
def test_a_job_that_is_granted_while_its_worker_is_told_to_stop_goes_back_free(
    pool: str, store: ScratchStore, proxy: Proxy, namespace: str, tmp_path: Path
) -> None:
    with Client(store.url, namespace=namespace) as client, Crew(tmp_path, proxy.url, namespace) as crew:
        # A delayed reply shows the job running before the worker knows of it.
        late = proxy.aim("delay", "hf1_pop", seconds=0.5)
        klass = "errands.anothing" if pool == "asyncio" else "errands.nothing"
        jid = client.run(Put("q", klass))
        worker = crew.start("-q", "q", "--pool", pool, "-w", "1", "--interval", "0.2", "-m", "errands")
        until(late.hit.is_set, "it asks for jobs")
        worker.signal(signal.SIGTERM)
        assert worker.wait(30) == 0
        [job] = client.jobs.get(jid)
        assert (job.state, job.losses, job.retries_left) == ("waiting", 0, job.original_retries)


@pytest.mark.full
@pytest.mark.parametrize("pool", POOLS)
def test_a_job_that_is_granted_to_a_worker_that_stops_goes_back_free_also_after_a_failure(
    pool: str, store: ScratchStore, proxy: Proxy, namespace: str, tmp_path: Path
) -> None:
    """The lines that go with a failure are a numbered call too, and not the one that takes jobs."""
    with Client(store.url, namespace=namespace) as client, Crew(tmp_path, proxy.url, namespace) as crew:
        failing = client.run(Put("q", "errands.afail_aloud"))
        worker = crew.start("-q", "q", "--pool", pool, "-w", "1", "--interval", "30", "-m", "errands")
        until(lambda: client.jobs.get(failing)[0].state == "failed", "it reports a failure")
        proxy.aim("delay", "hf1_pop", seconds=1)
        jid = client.run(Put("q", "errands.anothing"))
        until(lambda: client.jobs.get(jid)[0].state == "running", "it is granted the next job")
        worker.signal(signal.SIGTERM)
        assert worker.wait(30) == 0
        [job] = client.jobs.get(jid)
        assert (job.state, job.losses, job.retries_left) == ("waiting", 0, job.original_retries)


@pytest.mark.full
@pytest.mark.parametrize(("pool", "klass"), [("thread", "unwind_slowly"), ("asyncio", "aunwind_slowly")])
def test_a_job_that_is_granted_to_a_child_that_is_ending_is_renewed_until_it_goes_back(
    pool: str, klass: str, store: ScratchStore, proxy: Proxy, namespace: str, tmp_path: Path
) -> None:
    """Its lease of a second is shorter than the other job takes to unwind; a second worker would notice its end."""
    flags = ["-q", "q", "-w", "1", "--interval", "0.2", "--term-timeout", "4", "-m", "errands"]
    env = {"ERRANDS_HERE": str(tmp_path)}
    with (
        Client(store.url, namespace=namespace) as client,
        Crew(tmp_path, proxy.url, namespace, env) as crew,
    ):
        client.run(ConfigSet("heartbeat", "1"))
        client.run(ConfigSet("grace-period", "0"))
        slow = client.run(Put("q", f"errands.{klass}", b'{"args":[2.5]}'))
        worker = crew.start(*flags, "--pool", pool, "--concurrency", "2")
        until(lambda: any(entry["what"] == "begin" for entry in entries(tmp_path)), "the first job runs")
        late = proxy.aim("delay", "hf1_pop", seconds=0.5)
        jid = client.run(Put("q", "errands.nothing" if pool == "thread" else "errands.anothing"))
        until(late.hit.is_set, "the second job is granted")
        worker.signal(signal.SIGTERM)
        crew.start(*flags, "--pool", "process", url=store.url)
        assert worker.wait(30) == 0
        client.jobs.cancel(slow)
        until(lambda: client.jobs.get(jid)[0].state == "complete", "another worker performs it")
        [job] = client.jobs.get(jid)
        assert [line.what for line in job.facts.history if line.what in ("lost", "timed-out")] == []
        assert (job.losses, job.retries_left) == (0, job.original_retries)
