"""The helpers around real workers: section 13.3 of the Python API."""

import os
import sys
from pathlib import Path

import pytest

from holdfast import Client, UsageError
from holdfast.testing import (
    RealWorker,
    drain_worker_queues,
    run_jobs,
    run_worker_concurrently_with,
    stop_worker_after,
)
from waiting import until

POOLS = ["serial", "process", "asyncio"]
JOBS = """
import os
from pathlib import Path
import holdfast

app = holdfast.Client("redis://127.0.0.1:1/0", timeout=0.1, deadline=0)

class Note:
    @staticmethod
    def perform(job):
        with open(job["to"], "a") as file:
            file.write(f"{os.getpid()}\\n")

class Stray:
    @staticmethod
    def perform(job):
        app.queues["strays"].put(Note, {"to": job["to"]})
"""


@pytest.fixture
def jobs(tmp_path):
    """The directory of a module with jobs that write down which process performed them; only the worker is told of it."""
    (tmp_path / "notes_to_file.py").write_text(JOBS)
    before = [*sys.path]
    yield tmp_path
    sys.modules.pop("notes_to_file", None)
    assert sys.path == before


class Crew:
    """A client, a worker for `queues`, and the notes its jobs left."""

    def __init__(self, client: Client, jobs: Path, pool: str) -> None:
        self.client = client
        self.file = jobs / "notes"
        self.worker = RealWorker(client, ["mail", "post"], pool=pool, paths=[jobs])

    def put(self, count: int, queue: str = "mail") -> None:
        self.client.queues[queue].put_many([("notes_to_file.Note", {"to": str(self.file)})] * count)

    @property
    def notes(self) -> list[str]:
        return self.file.read_text().split() if self.file.exists() else []


@pytest.fixture(params=POOLS)
def crew(request, client, jobs):
    return Crew(client, jobs, request.param)


@pytest.mark.full
def test_a_worker_runs_concurrently_with_a_block_and_ends_with_it(crew):
    with run_worker_concurrently_with(crew.worker):
        crew.put(2)
        until(lambda: len(crew.notes) == 2, "both were performed")
        until(lambda: len(crew.client.workers.counts) == 1, "the worker is known")
    crew.put(1)
    assert len(crew.client.queues["mail"]) == 1
    assert len(crew.notes) == 2
    # Threads share our process; other pools have their own.
    assert (crew.notes[0] == str(os.getpid())) == (crew.worker.settings.pool == "serial")


@pytest.mark.full
def test_a_worker_stops_after_a_block(crew):
    def block():
        crew.put(1)
        return until(lambda: crew.notes, "it was performed")

    assert stop_worker_after(crew.worker, block) == crew.notes


@pytest.mark.full
def test_the_error_of_a_block_comes_out_and_the_worker_stops(crew):
    with pytest.raises(LookupError), run_worker_concurrently_with(crew.worker):
        raise LookupError
    crew.put(1)
    assert len(crew.client.queues["mail"]) == 1


@pytest.mark.full
def test_exactly_so_many_jobs_are_run(crew):
    crew.put(5)
    run_jobs(crew.worker, 3)
    assert len(crew.notes) == 3
    assert len(crew.client.queues["mail"]) == 2


@pytest.mark.full
def test_queues_are_drained(crew):
    crew.put(3)
    crew.put(2, "post")
    drain_worker_queues(crew.worker)
    assert len(crew.notes) == 5
    assert (len(crew.client.queues["mail"]), len(crew.client.queues["post"])) == (0, 0)
    drain_worker_queues(crew.worker)


def test_jobs_that_do_not_come_are_waited_for_with_a_deadline(crew):
    with pytest.raises(TimeoutError, match=r"within 0\.3 s"):
        run_jobs(crew.worker, 1, timeout=0.3)


@pytest.mark.full
def test_modules_to_import_are_imported_before_the_first_job(crew):
    crew.worker = RealWorker(
        crew.client,
        ["mail"],
        pool=crew.worker.settings.pool,
        paths=[crew.file.parent],
        imports=["notes_to_file", "of_nobody"],
    )
    module = f"from pathlib import Path; Path({str(crew.file)!r}).write_text('imported\\n')"
    (crew.file.parent / "of_nobody.py").write_text(module)
    crew.put(1)
    drain_worker_queues(crew.worker)
    assert crew.notes[0] == "imported"
    sys.modules.pop("of_nobody", None)


@pytest.mark.full
def test_the_clients_of_the_jobs_work_on_the_store_of_the_test_in_other_processes_too(client, jobs):
    crew = Crew(client, jobs, "process")
    client.queues["mail"].put("notes_to_file.Stray", {"to": str(crew.file)})
    drain_worker_queues(crew.worker)
    assert client.jobs.failed() == {}
    assert len(client.queues["strays"]) == 1


@pytest.mark.parametrize(
    ("queues", "options", "complaint"),
    [
        ([], {}, "at least one queue"),
        ("mail", {}, "queues must be a list"),
        (["q"], {"imports": "shop"}, "imports must be a list"),
        (["q"], {"pool": "tree"}, "no pool 'tree'"),
        (["q"], {"concurrency": 3}, "one job"),
        (
            ["q"],
            {"imports": [__file__]},
            "imports: expected a module name such as test_helpers_for_real_workers, got the file ",
        ),
    ],
)
def test_a_worker_that_cannot_be_is_refused(client, queues, options, complaint):
    with pytest.raises(UsageError, match=complaint):
        RealWorker(client, queues, **options)


def test_a_number_of_jobs_that_cannot_be_is_refused(client):
    with pytest.raises(UsageError, match="count"):
        run_jobs(RealWorker(client, ["q"]), 0)
