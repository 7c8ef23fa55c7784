"""That the benchmarks run; what they measure is for people to read, and never asserted."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.core.library import library

REPO = Path(__file__).resolve().parents[1]


@pytest.mark.full
def test_a_benchmark_measures_the_core_and_prints_its_table() -> None:
    results = REPO / "benchmarks" / "results.md"
    before = results.read_bytes() if results.exists() else b""
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", "core_cpu"],
        cwd=REPO,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert answer.returncode == 0, answer.stderr
    assert "valkey: lifecycle, batch 100" in answer.stdout
    assert "figures missed" in answer.stdout
    assert (results.read_bytes() if results.exists() else b"") == before, "a quick look writes no results"


@pytest.mark.parametrize("name", ["NO_ROOT_READ", "NO_WAIT_SAMPLE", "WIDER_HEADER"])
def test_what_the_core_is_measured_without_is_found_in_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(REPO))
    prices = importlib.import_module("benchmarks.prices")
    assert prices.patched(library().text, getattr(prices, name), "changed") != library().text


def test_a_benchmark_that_does_not_exist_is_refused() -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks", "no_such"], cwd=REPO, capture_output=True, text=True
    )
    assert answer.returncode == 2
    assert "there is no benchmark no_such" in answer.stderr


@pytest.mark.full
def test_what_importing_costs_is_measured_beside_the_driver() -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", "imports"],
        cwd=REPO,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert answer.returncode == 0, answer.stderr
    for what in (
        "import redis",
        "import holdfast",
        "from holdfast import Client",
        "from holdfast import AsyncClient",
    ):
        assert what in answer.stdout
