"""The example of a program that retries what failed, over the JSON API, against a real server and a real worker."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import Client
from holdfast.testing.store import ScratchStore
from holdfast.web.credentials import hash_token
from waiting import until
from web_process import serving

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "night_repairs.py"
JOBS = '''
from pathlib import Path

class Charge:
    """Fails at its first run, or at each one."""

    @staticmethod
    def process(job):
        seen = Path(job["seen"]) / job.jid
        if "broken" in job or not seen.exists():
            seen.touch()
            raise ValueError("the bank does not respond")
        job.complete()
'''


@pytest.fixture
def worker(tmp_path: Path, store: ScratchStore, namespace: str) -> Iterator[None]:
    (tmp_path / "night.py").write_text(JOBS)
    words = ["--queue", "bills", "--queue", "lost", "--path", str(tmp_path), "--url", store.url]
    command = [sys.executable, "-m", "holdfast.cli.main", "worker", *words, "--namespace", namespace]
    with (tmp_path / "worker.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log)
    yield
    process.terminate()
    assert process.wait(30) == 0


def counts(client: Client, queue: str) -> tuple[int, int]:
    found = client.queues[queue].counts
    return found["waiting"] + found["running"], found["failed"]


@pytest.mark.full
@pytest.mark.usefixtures("worker")
def test_it_retries_a_group_of_jobs_after_one_of_them_succeeded_and_leaves_one_whose_probe_fails(
    client: Client, store: ScratchStore, namespace: str, tmp_path: Path
) -> None:
    for _ in range(4):
        client.queues["bills"].put("night.Charge", {"seen": str(tmp_path)})
        client.queues["lost"].put("night.Charge", {"seen": str(tmp_path), "broken": True})
    until(lambda: (counts(client, "bills"), counts(client, "lost")) == ((0, 4), (0, 4)), "all failed", 60)
    users = tmp_path / "users"
    users.write_text(f"robot:operator:{hash_token('t0ken')}\n")
    users.chmod(0o600)
    auth = ("--auth", "bearer", "--users", str(users))
    with serving(store.url, namespace, tmp_path / "web", *auth) as (address, _):
        env = {**os.environ, "HOLDFAST_WEB": address, "HOLDFAST_TOKEN": "t0ken"}
        done = subprocess.run(
            [sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=200, env=env, check=False
        )
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.splitlines()) == {
        "bills-ValueError: the probe is complete",
        "3 jobs: retried.",
        "lost-ValueError: the probe is failed",
    }
    until(lambda: counts(client, "bills") == (0, 0), "all complete", 60)
    assert counts(client, "lost") == (0, 4)
    assert {line.who for line in client.audit.newest(9)} == {"robot"}
