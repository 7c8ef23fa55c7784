"""The example workers in other languages: they perform jobs over HTTP, are killed, frozen and stopped, and lose none."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast import Client
from holdfast.testing.store import ScratchStore
from waiting import until
from web_process import serving

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
COMMANDS: dict[str, Callable[[Path], list[str]]] = {
    "worker.mjs": lambda program: ["node", str(program)],
    "worker.go": lambda program: [str(program.with_suffix(""))],
    "worker.sh": lambda program: ["sh", str(program)],
}
NEEDS = {"worker.mjs": ["node"], "worker.go": ["go"], "worker.sh": ["curl", "jq"]}
QUEUE = "thumbnails"


@pytest.fixture(params=COMMANDS)
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An example with a lease of 3 seconds, ready to run."""
    name: str = request.param
    for needed in NEEDS[name]:
        if shutil.which(needed) is None:
            pytest.skip(f"LOUD SKIP: {needed} is not installed, so {name} was not run")
    text, count = re.subn(r"(ttl(?:\] = \[.*, | = |=))30", r"\g<1>3", (EXAMPLES / name).read_text())
    assert count == 1, "the example has no line that names the length of a lease"
    found = tmp_path / name
    found.write_text(text)
    if name == "worker.go":
        env = {**os.environ, "GOCACHE": str(tmp_path / "cache"), "GOFLAGS": "-mod=mod"}
        subprocess.run(
            ["go", "build", "-o", str(found.with_suffix("")), str(found)], env=env, check=True, timeout=300
        )
    return found


@contextmanager
def running(program: Path, url: str, count: int) -> Iterator[list["subprocess.Popen[bytes]"]]:
    """Run `count` processes of the program, each in a process group of its own, while the block runs."""
    command = [*COMMANDS[program.name](program), url, QUEUE]
    log = program.with_suffix(".log").open("ab")
    found = [subprocess.Popen(command, start_new_session=True, stdout=log, stderr=log) for _ in range(count)]
    try:
        yield found
    finally:
        for one in found:
            if one.poll() is None:
                os.killpg(one.pid, signal.SIGKILL)
            one.wait(30)
        log.close()


def test_the_javascript_worker_has_forty_lines() -> None:
    assert len((EXAMPLES / "worker.mjs").read_text().splitlines()) <= 40


@pytest.mark.full
def test_a_thousand_jobs_are_performed_though_workers_are_killed_and_frozen(
    program: Path, store: ScratchStore, namespace: str, tmp_path: Path
) -> None:
    with (
        Client(store.url, namespace=namespace) as client,
        serving(store.url, namespace, tmp_path / "web", "--only", "gateway", "--auth", "none") as (url, _),
    ):
        client.config["grace-period"] = 0
        queue = client.queues[QUEUE]
        jids = queue.put_many([("thumbnails.Make", {"n": n}) for n in range(1000)])

        def done() -> int:
            return sum(job.state == "complete" for job in client.jobs.get(*jids))

        with running(program, url, 4) as [killed, frozen, *others]:
            until(lambda: done() >= 100, "a tenth is done", 120)
            os.killpg(killed.pid, signal.SIGKILL)
            os.killpg(frozen.pid, signal.SIGSTOP)
            until(lambda: done() == len(jids), "all are done", 600)
            os.killpg(frozen.pid, signal.SIGCONT)
            for one in (frozen, *others):
                one.terminate()
            assert [one.wait(60) for one in (frozen, *others)] == [0, 0, 0]
        assert done() == len(jids)
