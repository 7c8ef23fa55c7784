"""The example pipeline of the documentation: in a worker of its own, as a program, and step by step."""

import os
import subprocess
import sys

import pytest
from worker_kit import until

from holdfast import gnomes


def test_a_worker_takes_a_job_through_all_three_queues(shop):
    jid = shop.client.queues["underpants"].put("holdfast.gnomes.GnomesJob", {"pairs": 3})
    queues = ("-q", "profit", "-q", "unknown", "-q", "underpants")
    shop.start("process", *queues, "--import", "holdfast.gnomes")
    until(lambda: shop.state(jid) == "complete", "there is profit")
    assert shop.job(jid)["profit"] == 15


@pytest.mark.full
def test_each_step_leads_to_the_next(client):
    jid = client.queues["underpants"].put(gnomes.GnomesJob, {})
    for queue in gnomes.QUEUES:
        client.queues[queue].pop().process()
    assert client.jobs[jid].state == "complete"
    assert client.jobs[jid]["profit"] == 5


@pytest.mark.full
def test_it_is_a_program_that_never_uses_a_store_it_was_not_given(url, tmp_path):
    words = [sys.executable, "-m", "holdfast.gnomes", "--jobs", "2"]
    ended = subprocess.run([*words, "--url", url], capture_output=True, text=True, timeout=60, check=True)
    assert [line.partition("state: ")[2] for line in ended.stdout.splitlines()] == [
        "complete, pairs: 1, collected: 1, idea: something with 1 pairs, profit: 5",
        "complete, pairs: 2, collected: 2, idea: something with 2 pairs, profit: 10",
    ]
    dead = subprocess.run(
        [*words, "--url", "redis://127.0.0.1:1"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (dead.returncode, dead.stdout, dead.stderr.count("\n")) == (3, "", 1)
    assert (
        "holdfast.gnomes: put: no connection to the store redis://127.0.0.1:1 (URL from --url) in "
        in dead.stderr
    )
    assert float(dead.stderr.partition(" over ")[2].split()[0]) < 3
    environment = {**os.environ, "REDIS_URL": "redis://127.0.0.1:1", "HOLDFAST_DIR": str(tmp_path / "store")}
    alone = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert alone.stdout.count("complete") == 2
    stop = [sys.executable, "-m", "holdfast.cli.main", "store", "stop"]
    subprocess.run(stop, env=environment, capture_output=True, timeout=60, check=True)
