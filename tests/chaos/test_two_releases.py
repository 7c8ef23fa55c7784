"""An earlier release and today's on one store: workers and producers of both, restarted in turn under load.

Nothing is lost and nothing runs twice. `HOLDFAST_RELEASES_SECONDS=600` makes it last ten minutes.
"""

import os
import signal
import subprocess
import sys
import tarfile
from collections import Counter
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from time import monotonic

import pytest

from holdfast import Client
from holdfast.commands.recurring import CalendarFacts, Recur
from holdfast.core.library import library
from holdfast.testing import ScratchStore
from waiting import pause, until

EARLIER = {"0.1": "f08dfbc", "0.2": "c8ce86da"}
"""The commits of the releases that may share a store with this one."""
HERE = Path(__file__).parent
NAMESPACE = "releases"
SECONDS = float(os.environ.get("HOLDFAST_RELEASES_SECONDS", "60"))
TURN = 3.0


@dataclass(frozen=True)
class Release:
    """A release by its number, and where its sources are."""

    number: str
    source: Path


@pytest.fixture(params=EARLIER)
def earlier(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """An earlier release, from this checkout's history."""
    commit = EARLIER[request.param]
    words = ["git", "-C", str(HERE.parents[1]), "archive", commit, "src"]
    try:
        found = subprocess.run(words, capture_output=True, timeout=60)
    except FileNotFoundError:
        pytest.skip("LOUD SKIP: git is not installed, so no earlier release was run")
    if found.returncode:
        pytest.skip(f"LOUD SKIP: {commit} is not in this checkout's history, so no earlier release was run")
    there = tmp_path_factory.mktemp("earlier")
    with tarfile.open(fileobj=BytesIO(found.stdout)) as archive:
        archive.extractall(there, filter="data")
    return Release(request.param, there / "src")


class Program:
    """A worker or a producer of one release, which is ended and started again."""

    def __init__(self, here: Path, url: str, name: str, source: Path, words: list[str]) -> None:
        paths = [str(source), str(HERE)]
        self._env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "RELEASES_HERE": str(here),
            "HOLDFAST_URL": url,
        }
        self._log = here / f"{name}.log"
        self.name, self._url, self._words = name, url, words
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, *self._words],
                cwd=HERE,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def end(self) -> None:
        """End it as it ends by itself when all that it has in hand is done."""
        assert self.process is not None
        worker = self.name.startswith("worker")
        self.process.send_signal(signal.SIGQUIT if worker else signal.SIGTERM)
        code = self.process.wait(120)
        assert code == 0, f"{self.name} ended with {code}:\n{self.said()[-3000:]}"

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(30)

    def said(self) -> str:
        return self._log.read_text(errors="replace")


def programs(here: Path, url: str, earlier: Release) -> list[Program]:
    """Producers first: the earlier one makes the namespace."""
    made = []
    for kind in ("producer", "worker"):
        for release, source in ((earlier.number, earlier.source), ("today", HERE.parents[1] / "src")):
            for number in (1, 2):
                name = f"{kind}-{release}-{number}"
                pool = ("process", "asyncio")[number - 1]
                words = {
                    "producer": ["-c", f"import releases_work; releases_work.produce({name!r})"],
                    "worker": [
                        *("-m", "holdfast.cli.main", "worker", "--url", url, "--namespace", NAMESPACE),
                        *("--import", "releases_work", "-q", "work-*", "-q", "other"),
                        *("--pool", pool, "-w", "1", "--name", name),
                    ],
                }[kind]
                if kind == "worker" or number == 1:
                    made.append(Program(here, url, name, source, words))
    return made


def lines(here: Path, kind: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for path in here.glob(f"{kind}-[0-9]*"):
        found.update(path.read_text().split())
    return found


@pytest.mark.full
def test_two_releases_share_a_store_and_nothing_is_lost_or_doubled(earlier: Release, tmp_path: Path) -> None:
    with ScratchStore("valkey", "process") as store:
        ring = programs(tmp_path, store.url, earlier)
        turns = 0
        try:
            for program in ring:
                program.start()
            until(lambda: len(lines(tmp_path, "ran")) > 50, "jobs run", 60)
            end = monotonic() + SECONDS
            while monotonic() < end:
                program = ring[turns % len(ring)]
                turns += 1
                program.end()
                program.start()
                pause(TURN)
            for program in ring:
                if program.name.startswith("producer"):
                    program.end()
            put = lines(tmp_path, "put")
            until(lambda: not put - lines(tmp_path, "ran"), "all jobs ran", 120)
            for program in ring:
                if program.name.startswith("worker"):
                    program.end()
        finally:
            for program in ring:
                program.kill()
        ran = lines(tmp_path, "ran")
        print(f"{len(put)} jobs put, {len(ran)} ran, {turns} restarts in {SECONDS:.0f} s")
        assert set(put) - set(ran) == set(), "lost"
        assert {jid: count for jid, count in ran.items() if count > 1} == {}, "doubled"
        with Client(store.url, namespace=NAMESPACE) as client:
            assert client.shard.info is None or client.shard.info.digest == library().digest
            counts = client.queues.counts
            assert sum(row["running"] + row["waiting"] + row["stalled"] for row in counts) == 0
            assert client.jobs.failed() == {}
        assert not [program.name for program in ring if "Traceback" in program.said()]


EARLIER_CLIENT = """
import os, holdfast
client = holdfast.Client(os.environ["HOLDFAST_URL"], namespace="releases")
job = client.recurring["nightly"]
print(job.interval)
job.priority = 3
for replace in (
    lambda: setattr(job, "interval", 5),
    lambda: client.queues["work-a"].recur("releases_work.note", {}, 60, jid="nightly"),
):
    try:
        replace()
    except holdfast.errors.HoldfastError as error:
        print(type(error).__name__, error)
"""


@pytest.mark.full
def test_an_earlier_release_performs_what_a_calendar_puts_and_may_not_replace_it(
    earlier: Release, tmp_path: Path
) -> None:
    with ScratchStore("valkey", "process") as store, Client(store.url, namespace=NAMESPACE) as client:
        _, _, *workers = programs(tmp_path, store.url, earlier)
        worker = next(one for one in workers if earlier.number in one.name)
        worker.start()
        try:
            until(lambda: "started as process" in worker.said(), "the earlier worker runs", 60)
            now = round(client.store_time() * 1000)
            plan = [(now + number * 100, now + number * 100) for number in range(10)]
            facts = CalendarFacts("0 3 1 1 *", "Europe/Berlin", missed="all")
            data = b'{"args": [1]}'
            client.run(Recur("work-a", "releases_work.note", 100, data, "close", calendar=facts, plan=plan))
            until(lambda: lines(tmp_path, "ran").total() == 10, "each moment has run", 60)
            assert lines(tmp_path, "ran") == Counter(f"close-{number}" for number in range(1, 11))
            client.queues["work-a"].recur(
                "releases_work.note", {"args": [1]}, cron="0 3 * * *", jid="nightly"
            )
            said = subprocess.run(
                [sys.executable, "-c", EARLIER_CLIENT],
                env={**os.environ, "PYTHONPATH": str(earlier.source), "HOLDFAST_URL": store.url},
                capture_output=True,
                text=True,
                timeout=60,
                check=True,
            ).stdout
            assert said.startswith("86400.0\n")
            assert said.count("WrongState nightly follows a calendar") == 2
            found = client.recurring["nightly"]
            assert found is not None
            assert (found.cron, found.priority) == ("0 3 * * *", 3)
        finally:
            worker.kill()
