"""`holdfast bench`, run as people run it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.client.sync import Client


def bench(*words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    program = Path(sys.executable).with_name("holdfast")
    return subprocess.run(
        [program, "bench", *words],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        timeout=120,
    )


def temporary_directories(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


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


def test_our_share_of_what_importing_costs_is_printed() -> None:
    answer = bench("--imports", "--json")
    assert (answer.returncode, answer.stderr) == (0, "")
    figures = {figure["what"]: figure for figure in json.loads(answer.stdout)["figures"]}
    assert list(figures) == [
        "import redis",
        "import holdfast",
        "from holdfast import Client",
        "from holdfast import AsyncClient",
    ]
    assert figures["import redis"]["percent"] == 100
    assert figures["from holdfast import Client"]["cpu_ms"] > 0


def test_a_store_at_a_url_is_left_as_it_was(url: str, namespace: str) -> None:
    with Client(url, namespace=namespace) as client:
        client.queues["mine"].put("app.Job")
    before = keys_of(url)
    answer = bench("--url", url, "--seconds", "0.2")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "put, pop and complete, 100 at once\t" in answer.stdout
    assert keys_of(url) == before


@pytest.mark.parametrize(
    "words", [("--seconds", "0"), ("--url", "ftp://x"), ("--url", "redis://x", "--durability", "memory")]
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
