"""python-api.md 5 and 6 in workers: the snippets as written, who completes, what is recorded, and edited code."""

import os
from pathlib import Path

import pytest
from worker_kit import until

SNIPPETS = """
import holdfast

class Parcel:
    @staticmethod
    def pack(job):   job.complete("ship")
    @staticmethod
    def ship(job):   job.complete()

class Fetch:
    @staticmethod
    @holdfast.retry(ConnectionError, TimeoutError)
    def process(job):
        download(job); job.complete()

def download(job):
    if job.retries_left > 1:
        raise TimeoutError

class Instance:
    def process(self, job): ...

class Nothing:
    pass

class Returning:
    @staticmethod
    def process(job): ...
"""


@pytest.fixture
def snippets(shop):
    Path(shop.here, "snippets.py").write_text(SNIPPETS)
    return shop


def save(file: Path, source: str) -> None:
    """Save a module so that its time differs by a second: Python tells what it compiled before by whole ones."""
    before = file.stat().st_mtime_ns
    file.write_text(source)
    os.utime(file, ns=(before + 10**9, before + 10**9))


def group(shop, jid):
    until(lambda: shop.state(jid) == "failed", "the job failed")
    return shop.job(jid).failure["group"]


def test_one_class_describes_a_pipeline(snippets, pool):
    snippets.start(pool, "-q", "pack", "-q", "ship")
    jid = snippets.client.queues["pack"].put("snippets.Parcel", {})
    until(lambda: snippets.state(jid) == "complete", "the parcel is shipped")
    assert [entry["queue"] for entry in snippets.job(jid).history if entry["what"] == "popped"] == [
        "pack",
        "ship",
    ]


@pytest.mark.full
def test_a_method_is_retried_by_the_decorator(snippets, pool):
    snippets.start(pool)
    jid = snippets.q.put("snippets.Fetch", {}, retries=3)
    until(lambda: snippets.state(jid) == "complete", "the third try succeeds")
    assert snippets.job(jid).attempts == 3


@pytest.mark.full
@pytest.mark.parametrize(
    ("klass", "name"),
    [
        ("snippets.Instance", "q-TypeError"),
        ("snippets.Nothing", "q-method-missing"),
        ("snippets.Crate", "q-AttributeError"),
        ("no_such_shop.Crate", "q-ModuleNotFoundError"),
        ("os.path", "q-NotAllowed"),
    ],
)
def test_what_cannot_be_performed_fails_in_a_group_that_says_why(snippets, pool, klass, name):
    snippets.start(pool)
    assert group(snippets, snippets.q.put(klass, {})) == name


@pytest.mark.full
def test_returning_completes_with_auto_complete_only(snippets, pool):
    worker = snippets.start(pool)
    jid = snippets.q.put("snippets.Returning", {})
    until(lambda: "call job.complete(), or run the worker with --auto-complete" in worker.said(), "a warning")
    assert snippets.state(jid) == "running"
    worker.end()
    snippets.start(pool, "--auto-complete")
    done = snippets.q.put("snippets.Returning", {})
    until(lambda: snippets.state(done) == "complete", "the job is complete")


VERSION = "class Job:\n    @staticmethod\n    def perform(job):\n        job['version'] = {}\n"


@pytest.mark.full
def test_a_worker_picks_up_edited_code_and_survives_a_broken_save(shop, pool):
    file = Path(shop.here, "edited.py")
    file.write_text(VERSION.format(1))
    worker = shop.start(pool)

    def version():
        jid = shop.q.put("edited.Job", {})
        until(lambda: shop.state(jid) in ("complete", "failed"), "the job has ended")
        return shop.job(jid)

    assert version()["version"] == 1
    save(file, VERSION.format(2))
    until(lambda: version()["version"] == 2, "the new code runs")
    save(file, "def broken(:\n")
    until(lambda: version().state == "failed", "the broken save is seen")
    assert version().failure["group"] == "q-SyntaxError"
    save(file, VERSION.format(3))
    until(lambda: version().state == "complete", "the good save is seen")
    assert version()["version"] == 3
    assert worker.process.poll() is None
