"""`holdfast bench`, run as people run it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.cli.bench import histogram
from holdfast.client.sync import Client
from holdfast.testing import ScratchStore


def bench(*words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    program = Path(sys.executable).with_name("holdfast")
    return subprocess.run(
        [program, "bench", *words],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        timeout=600,
    )


def temporary_directories(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.full
def test_an_embedded_store_of_its_own_is_measured_and_gone_afterwards(tmp_path: Path) -> None:
    # A store at these addresses would not answer: a benchmark never looks for one.
    nowhere = "unix:///nowhere"
    answer = bench(
        "--seconds", "0.2", "--json", TMPDIR=str(tmp_path), REDIS_URL=nowhere, HOLDFAST_URL=nowhere
    )
    assert (answer.returncode, answer.stderr) == (0, "")
    said = json.loads(answer.stdout)
    assert said["durability"] == "fsync"
    assert [figure["what"] for figure in said["figures"]] == [
        "SET, one by one",
        "put, one by one",
        "pop, one by one",
        "put, pop and complete, one by one",
        "put, 100 at once",
        "put, pop and complete, 100 at once",
    ]
    assert said["figures"][0]["times_set"] == 1
    assert all(figure["per_second"] > 0 and figure["times_set"] > 0 for figure in said["figures"])
    assert temporary_directories(tmp_path) == []


@pytest.mark.full
def test_a_store_at_a_url_is_left_as_it_was(url: str, namespace: str) -> None:
    with Client(url, namespace=namespace) as client:
        client.queues["mine"].put("app.Job")
    before = keys_of(url)
    answer = bench("--url", url, "--seconds", "0.2")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "put, pop and complete, 100 at once\t" in answer.stdout
    assert keys_of(url) == before


@pytest.mark.full
def test_every_job_ends_although_threads_drop_some_of_them(tmp_path: Path) -> None:
    words = ("--drop-jobs", "--jobs", "60", "--workers", "4", "--stages", "2", "--drop-share", "0.2")
    nowhere = "unix:///nowhere"
    answer = bench(*words, "--json", TMPDIR=str(tmp_path), REDIS_URL=nowhere, HOLDFAST_URL=nowhere)
    assert (answer.returncode, answer.stderr) == (0, "")
    said = json.loads(answer.stdout)
    assert said["plan"] == {"forgetfulness": 0.2, "stages": 2, "jobs": 60, "workers": 4, "retries": 5}
    assert said["completed"] + said["failed"] == 60
    assert said["dropped"] > 0
    assert list(said["queues"]) == ["stage-0", "stage-1"]
    # On a busy machine a thread may lose a lease without meaning to.
    assert sum(stats["retries"] for stats in said["queues"].values()) >= said["dropped"]
    assert said["queues"]["stage-1"]["run"]["count"] == said["completed"]
    assert said["put_seconds"] > 0
    assert said["work_seconds"] > 1  # a dropped job is missed after a second
    assert said["server_memory"] > 0
    assert temporary_directories(tmp_path) == []


@pytest.mark.full
def test_jobs_that_are_dropped_too_often_fail(url: str) -> None:
    words = (
        "--drop-jobs",
        "--jobs",
        "20",
        "--drop-share",
        "0.9",
        "--retries",
        "0",
        "--quiet",
        "--url",
        url,
    )
    before = keys_of(url)
    answer = bench(*words)
    assert (answer.returncode, answer.stderr) == (0, "")
    lines = dict(line.split(maxsplit=1) for line in answer.stdout.splitlines()[1:7])
    assert int(lines["failed"]) >= int(lines["dropped"]) > 0
    assert "####" not in answer.stdout
    assert keys_of(url) == before


@pytest.mark.full
def test_a_run_prints_its_histograms_and_leaves_what_it_wrote_if_asked(tmp_path: Path) -> None:
    with ScratchStore(tcp=True) as store:
        words = ("--host", "127.0.0.1", "--port", str(store.port), "--no-flush")
        answer = bench("--drop-jobs", "--jobs", "10", "--drop-share", "0", *words)
        assert answer.returncode == 0
        assert "stage-0, wait:\n   0 s       10  ####" in answer.stdout
        namespace = answer.stderr.split()[-1]
        with Client(store.url, namespace=namespace) as client:
            assert len(client.jobs.complete()) == 10
            assert client.queues["stage-0"].heartbeat == 1


@pytest.mark.parametrize(
    ("place", "name"), [(0, "0 s"), (59, "59 s"), (60, "1 min"), (118, "59 min"), (119, "1 h"), (141, "23 h"),
                        (142, "1 d"), (147, "6 d")]
)  # fmt: skip
def test_a_bucket_of_a_histogram_is_named_by_where_it_begins(place: int, name: str) -> None:
    buckets = [0] * 148
    buckets[place] = 3
    assert [line[:6].strip() for line in histogram(buckets)] == [name]


@pytest.mark.full
@pytest.mark.parametrize(
    "words",
    [
        ("--seconds", "0"),
        ("--url", "ftp://x"),
        ("--url", "redis://x", "--durability", "memory"),
        ("--jobs", "5"),
        ("--quiet",),
        ("--host", "a..b"),
        ("--drop-jobs", "--seconds", "5"),
        ("--drop-jobs", "--no-flush"),
        ("--drop-jobs", "--jobs", "0"),
        ("--drop-jobs", "--drop-share", "1.5"),
        ("--url", "redis://x", "--port", "7"),
    ],
)
def test_bad_usage_is_one_sentence(words: tuple[str, ...]) -> None:
    answer = bench(*words)
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert "Traceback" not in answer.stderr


def keys_of(url: str) -> set[bytes]:
    """Every key of benchmarks in the store."""
    import redis

    with redis.Redis.from_url(url) as connection:
        return set(connection.scan_iter("hf:{bench-*"))
