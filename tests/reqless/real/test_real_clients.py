"""Released clients work unchanged on our scripts: each story is told on the package's own script, and on ours."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from packages import HERE, SCRIPTS, environment, script_of, told, visit
from two_doors import Connection

from holdfast.testing import ScratchStore

STORIES = sorted(
    name
    for path in HERE.glob("stories_*.py")
    for name in re.findall(r"^def story_(\w+)", path.read_text(), re.M)
)
DATABASES = {"own": 4, "ours": 5}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("texts")


@pytest.fixture(params=SCRIPTS)
def package(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if environment(name) is None:
        pytest.skip(f"LOUD SKIP: {name} cannot be fetched, so no real client was run")
    return name


@pytest.mark.parametrize("whose", DATABASES)
@pytest.mark.parametrize("story", STORIES)
def test_a_released_client_is_served(
    story: str, whose: str, package: str, engine_store: ScratchStore, folder: Path
) -> None:
    url = f"{engine_store.url}?db={DATABASES[whose]}"
    went = told(package, script_of(package, whose, folder), url)
    assert went[story] == "", went[story]


@pytest.fixture
def line(engine_store: ScratchStore) -> Iterator[Connection]:
    made = Connection(engine_store.socket_path)
    yield made
    made.close()


@pytest.mark.full
@pytest.mark.parametrize("whose", DATABASES)
def test_a_forking_worker_performs_jobs(
    whose: str, package: str, engine_store: ScratchStore, folder: Path, tmp_path: Path, line: Connection
) -> None:
    """Its children pop, complete, fail and retry, and it ends when it is told to."""
    url, script = f"{engine_store.url}?db={DATABASES[whose]}", script_of(package, whose, folder)
    line.ask("SELECT", DATABASES[whose])
    line.ask("FLUSHDB")
    words = visit(package, script, url, "worker", "mail", "print")
    worker = subprocess.Popen(
        words, env=environment(package), cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    try:
        put = subprocess.run(
            visit(package, script, url, "put"),
            env=environment(package),
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert put.returncode == 0, put.stderr
        heard = sorted(line.ask("BLPOP", "told", 30)[1] for _ in range(7))
    finally:
        worker.terminate()
        worker.communicate(timeout=30)
    assert heard == [
        "falls started", "stumbles completed", "stumbles retried", "sum-0 completed", "sum-1 completed", "sum-2 completed", "sum-3 completed",
    ]  # fmt: skip
    done = subprocess.run(
        visit(package, script, url, "look"),
        env=environment(package),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.splitlines() == [
        "complete: stumbles sum-0 sum-1 sum-2 sum-3",
        "failed: print-ValueError 1",
        "sum-3: 7",
    ], done.stderr
