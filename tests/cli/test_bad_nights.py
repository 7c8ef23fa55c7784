"""Ten bad nights, each solved from a shell: what is seen first, what explains it, what repairs it, and that it is well afterwards.

Commands that the product names are run as they are printed.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import redis

import programs
from command_line import holdfast
from holdfast import Client
from holdfast.commands.jobs import PutMany
from holdfast.commands.workers import WorkerSeen
from holdfast.errors import Refused
from holdfast.testing.clock import START_MS, StoppedClock
from holdfast.testing.store import ScratchStore
from waiting import until

SHOP = """
import os, pathlib, threading

HERE = pathlib.Path(os.environ["NIGHT_HERE"])


class Send:
    @staticmethod
    def process(job):
        job.complete()


class Poison:
    @staticmethod
    def process(job):
        os.kill(os.getpid(), 9)


class Hang:
    @staticmethod
    def process(job):
        (HERE / "hangs").touch()
        pause = threading.Event()
        while not (HERE / "gate").exists():
            pause.wait(0.01)
        job.complete()


class Deploy:
    @staticmethod
    def process(job):
        if not (HERE / "mended").exists():
            raise ValueError("no template 'spring'")
        job.complete()
"""
GHOSTS = """
import holdfast
client = holdfast.Client()

@client.job(queue="mail", name="ghosts.haunt")
def haunt(house):
    return f"boo {house}"
"""


class Night:
    """A shell at night, on one namespace: what an operator types, and workers."""

    def __init__(self, here: Path, url: str, namespace: str) -> None:
        self.here = here
        self.place = ("--url", url, "--namespace", namespace)
        self.workers: list[Any] = []

    def types(self, *words: str, code: int = 0) -> str:
        """What a command prints; it ends with this exit code."""
        done = holdfast(*words, *self.place)
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def follows(self, line: str, *more: str, code: int = 0) -> str:
        """Type a command line that was printed, which names this store."""
        words = shlex.split(line)
        assert words[0] == "holdfast", line
        assert "--url" in words, line
        done = holdfast(*words[1:], *more)
        assert done.returncode == code, (line, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def reads(self, *words: str) -> Any:
        """The JSON that a command prints, whatever its exit code."""
        return json.loads(holdfast(*words, "--json", *self.place).stdout)

    def finding(self, check: str) -> tuple[str, str, str]:
        """What the doctor finds by this check: verdict, sentence, command."""
        [found] = [one for one in self.reads("doctor")["findings"] if one["check"] == check]
        return found["verdict"], found["text"], found["remedy"]

    def first_look(self, kind: str) -> dict[str, Any] | None:
        """What `holdfast stats` shows of this kind."""
        found: list[dict[str, Any]] = self.reads("stats")["attention"]
        return next((one for one in found if one["kind"] == kind), None)

    def fix(self, jid: str, check: str) -> str:
        """The command with which `holdfast jobs why` resolves what blocks a job."""
        checks = self.reads("jobs", "why", jid)["checks"]
        [found] = [one["fix"] for one in checks if one["check"] == check]
        assert found
        return str(found)

    def works(self, *flags: str) -> Any:
        """Start a worker of queue `mail`, in the directory of the code."""
        words = [sys.executable, "-m", "holdfast.cli.main", "worker", "-q", "mail", *self.place, *flags]
        with (self.here / "worker.log").open("ab") as log:
            worker = programs.popen(words, cwd=self.here, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.workers.append(worker)
        return worker

    def kill(self, worker: Any) -> None:
        """Kill a worker with its children at one moment, as the loss of a machine does."""
        file = Path(f"/proc/{worker.pid}/task/{worker.pid}/children")
        pids = [worker.pid, *map(int, file.read_text().split())] if worker.poll() is None else []
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                os.kill(pid, number)
        worker.wait(30)


@pytest.fixture
def night(tmp_path: Path, url: str, namespace: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Night]:
    (tmp_path / "shop.py").write_text(SHOP)
    monkeypatch.setenv("NIGHT_HERE", str(tmp_path))
    shell = Night(tmp_path, url, namespace)
    yield shell
    for worker in shell.workers:
        shell.kill(worker)


@pytest.fixture
def stopped(client: Client) -> StoppedClock:
    clock = StoppedClock(client, START_MS)
    clock.start()
    return clock


def fill(client: Client, queue: str, klass: str, count: int) -> None:
    for at in range(0, count, 500):
        words: list[str | bytes] = []
        for number in range(at, min(at + 500, count)):
            words += [f"job-{number}", klass, json.dumps({"lang": "de", "n": number})]
        client.run(PutMany(queue, words))


def test_a_poison_job_is_found_by_its_group_and_cancelled(night: Night) -> None:
    jid = night.types("put", "shop.Poison", "--klass", "-q", "mail", "--max-losses", "1").strip()
    good = night.types("put", "shop.Send", "--klass", "-q", "mail").strip()
    night.works("--path", str(night.here))
    until(lambda: night.reads("failed")["groups"], "the poison has failed", 60.0)
    [group] = night.reads("failed")["groups"]
    assert group["queues"] == ["mail"]
    shown = night.types("failed", "show", group["name"])
    assert jid in shown
    why = night.types("jobs", "why", jid)
    assert "It failed" in why
    assert "SIGKILL" in why or "signal 9" in why
    assert "crashed" in night.types("jobs", "show", jid)
    assert night.fix(jid, "failure").startswith("holdfast jobs retry --url ")
    night.types("jobs", "cancel", jid)
    assert night.reads("failed")["groups"] == []
    assert night.reads("jobs", "show", good)["facts"]["state"] == "complete"


def test_a_queue_that_fills_up_is_limited_and_worked_off(
    night: Night, client: Client, stopped: StoppedClock
) -> None:
    fill(client, "mail", "shop.Send", 200)
    stopped.advance(minutes=10)
    client.run(WorkerSeen("small-0", {"queues": '["mail"]', "slots": "1", "busy": "1"}))
    seen = night.first_look("waiting-long")
    assert seen is not None
    assert seen["text"].startswith("the next job has waited for 10 min; 200 waiting")
    verdict, text, command = night.finding("backlogs")
    assert (verdict, text.partition(":")[0]) == ("warn", "Queue mail")
    assert command == seen["command"]
    shown = night.follows(command)
    assert "200 waiting" in shown
    assert "small-0" in shown
    night.types("queues", "set", "mail", "max-waiting", "200")
    refused = night.types("put", "shop.Send", "--klass", "-q", "mail", code=1)
    assert "queue mail is full (max-waiting)" in refused
    night.works("--path", str(night.here), "--pool", "thread", "--drain")
    night.types("queues", "drain", "mail", "--timeout", "60s")
    night.types("queues", "set", "mail", "max-waiting", "none")
    assert night.finding("backlogs")[0] == "ok"


def test_a_stuck_throttle_is_widened_and_slots_left_behind_are_released(
    night: Night, client: Client, store: ScratchStore, stopped: StoppedClock
) -> None:
    client.config["heartbeat"] = 86_400
    night.types("throttles", "set", "smtp", "1")
    jids = [
        night.types("put", "shop.Send", "--klass", "-q", "mail", "--throttle", "smtp").strip() for _ in "abc"
    ]
    held = client.queues["mail"].pop()
    assert held is not None
    assert client.queues["mail"].pop() is None
    stopped.advance(hours=3)
    seen = night.first_look("throttle-full")
    assert seen is not None
    assert "1 of 1 slots are taken, and 2 jobs wait for one" in seen["text"]
    assert f"{held.jid} has held one for 3 h" in seen["text"]
    waiting = next(jid for jid in jids if jid != held.jid)
    assert "Throttle smtp is full" in night.types("jobs", "why", waiting)
    assert held.jid in night.follows(night.fix(waiting, "throttles"))
    night.types("throttles", "set", "smtp", "2")
    again = client.queues["mail"].pop()
    assert again is not None
    again.complete()
    held.complete()
    last = client.queues["mail"].pop()
    assert last is not None
    last.complete()
    # A slot whose job is gone.
    night.types("throttles", "set", "smtp", "1")
    with redis.Redis(unix_socket_path=str(store.socket_path)) as admin:
        admin.zadd(f"{client.root}h:smtp", {"ghost": stopped.now_ms})
    night.types("put", "shop.Send", "--klass", "-q", "mail", "--throttle", "smtp")
    assert client.queues["mail"].pop() is None
    verdict, text, command = night.finding("throttles")
    assert (verdict, "such as ghost" in text) == ("bad", True)
    assert "1 slot of smtp released" in night.follows(command, "--yes")
    assert client.queues["mail"].pop() is not None
    assert night.finding("throttles")[0] == "ok"


@pytest.mark.full
def test_a_dead_worker_loses_its_jobs_at_once_by_one_command(
    night: Night, client: Client, stopped: StoppedClock
) -> None:
    jid = night.types("put", "shop.Hang", "--klass", "-q", "mail").strip()
    worker = night.works("--path", str(night.here), "--name", "crew")
    until(lambda: (night.here / "hangs").exists(), "the job runs", 60.0)
    night.kill(worker)
    stopped.advance(seconds=45)
    verdict, text, command = night.finding("silent workers")
    assert (verdict, text.startswith("Worker crew")) == ("bad", True)
    assert "silent for 45 s, and holds 1 job" in text
    seen = night.first_look("worker-gone")
    assert seen is not None
    assert seen["command"] == command
    assert jid in night.types("workers", "show", "crew")
    assert command.startswith("holdfast worker -q mail")
    assert "1 job expired" in night.follows(seen["also"], "--yes")
    (night.here / "gate").touch()
    night.works("--path", str(night.here), "--drain")
    until(lambda: night.reads("jobs", "show", jid)["facts"]["state"] == "complete", "another ran it", 60.0)
    assert night.finding("silent workers")[0] == "ok"
    night.types("workers", "forget", "crew")


@pytest.mark.full
@pytest.mark.parametrize("count", [300, pytest.param(50_000, marks=pytest.mark.full)])
def test_a_bad_deploy_is_tried_by_one_job_before_the_others(night: Night, client: Client, count: int) -> None:
    fill(client, "mail", "shop.Deploy", count)
    while jobs := client.queues["mail"].pop(256):
        for job in jobs:
            job.fail("mail-ValueError", "Traceback\nValueError: no template 'spring'")
    seen = night.first_look("surge")
    assert seen is not None
    assert f"{count:,} jobs failed in this hour, 0 an hour before" in seen["text"]
    verdict, _, command = night.finding("failures")
    assert (verdict, command) == ("bad", seen["command"])
    shown = night.follows(command)
    assert "200  ValueError: no template 'spring'" in shown
    assert "200 of 200 have job shop.Deploy" in shown
    night.works("--path", str(night.here), "--pool", "thread")
    retry = ("failed", "retry", "mail-ValueError", "--probe", "--yes")
    said = night.types(*retry, code=1)
    assert "did not complete: " in said
    assert "ValueError: no template 'spring'" in said
    assert night.reads("failed")["groups"][0]["count"] == count
    (night.here / "mended").touch()
    night.kill(night.workers.pop())
    night.works("--path", str(night.here), "--pool", "thread")
    said = night.types(*retry)
    assert "has completed" in said
    assert f"{count - 1:,} jobs retried, 0 unchanged, 0 refused" in said
    assert night.reads("failed")["groups"] == []
    assert night.finding("failures")[0] == "ok"
    assert "bulk retry" in night.types("audit")


@pytest.mark.full
def test_a_recurrence_gone_wild_is_paused_and_its_jobs_purged(
    night: Night, client: Client, stopped: StoppedClock
) -> None:
    client.run(WorkerSeen("crew-0", {"queues": '["reports"]'}))
    wild = client.queues["reports"].recur("shop.Report", {}, interval=1, jid="every-second")
    stopped.advance(minutes=5)
    client.run(WorkerSeen("crew-0", {"queues": '["reports"]'}))
    job = client.queues["reports"].pop()
    assert job is not None
    job.complete()
    verdict, text, command = night.finding("recurrences")
    assert (verdict, text.partition(":")[0]) == ("warn", f"Recurring job {wild}")
    assert "puts a job every 1 s into queue reports, where " in text
    assert "every-second" in night.types("recurring", "list", "reports")
    assert "every-second is paused" in night.follows(command)
    assert "to cancel" in night.types("queues", "purge", "reports", "--dry-run")
    assert "jobs cancelled" in night.types("queues", "purge", "reports", "--yes")
    night.types("recurring", "edit", wild, "--interval", "1h")
    night.types("recurring", "resume", wild)
    assert night.finding("recurrences")[0] == "ok"
    assert night.reads("queues", "show", "reports")["counts"]["waiting"] == 0


@pytest.mark.full
def test_a_full_store_is_purged(tmp_path: Path) -> None:
    limits = {"maxmemory": "16mb", "maxmemory-policy": "noeviction"}
    with ScratchStore("valkey", settings=limits) as store, Client(store.url) as client:
        night = Night(tmp_path, store.url, "default")
        client.queues["small"].put("shop.Send")
        data = json.dumps({"text": "x" * 20_000})

        def refused() -> str:
            with suppress(Refused):
                for _ in range(2000):
                    client.queues["dumps"].put("shop.Dump", data)
            said = holdfast("put", "shop.Send", "--klass", "-q", "mail", "--data", data, *night.place)
            return said.stderr if said.returncode == 1 else ""

        assert "memory" in until(refused, "puts are refused")
        verdict, text, command = night.finding("memory")
        assert verdict == "bad"
        assert "of maxmemory 16" in text
        assert "dumps" in night.follows(command)
        assert "jobs cancelled" in night.types("queues", "purge", "dumps", "--yes")
        assert night.finding("memory")[0] in ("ok", "note")
        night.types("put", "shop.Send", "--klass", "-q", "mail")


@pytest.mark.full
def test_of_two_versions_the_older_workers_are_made_quiet(night: Night, client: Client) -> None:
    for name, version in (("old-0", "0.1.9"), ("new-0", "0.2.0"), ("new-1", "0.2.0")):
        client.run(WorkerSeen(name, {"queues": '["mail"]', "version": version}))
    verdict, text, command = night.finding("worker versions")
    assert verdict == "warn"
    assert text.startswith("Workers of 2 versions: 0.1.9 (1), 0.2.0 (2).")
    assert "old-0 is quiet: it takes no more jobs" in night.follows(command)
    quiet = {row["name"]: row["quiet"] for row in night.reads("workers", "list")}
    assert quiet == {"old-0": True, "new-0": False, "new-1": False}
    night.types("workers", "forget", "old-0")
    assert night.finding("worker versions")[0] == "ok"


@pytest.mark.full
def test_a_slow_store_is_named_within_seconds(tmp_path: Path) -> None:
    with ScratchStore("valkey") as store, Client(store.url) as client:
        night = Night(tmp_path, store.url, "default")
        client.queues["mail"].put("shop.Send")
        os.kill(store.pid, signal.SIGSTOP)
        try:
            for words in (("doctor",), ("stats",), ("queues", "list")):
                said = night.types(*words, "--wait", "0.5", code=3)
                assert "the store unix:" in said
                assert " s (Timeout" in said
                assert "--wait SECONDS waits longer" in said
        finally:
            os.kill(store.pid, signal.SIGCONT)
        with redis.Redis(unix_socket_path=str(store.socket_path)) as admin:
            admin.config_set("slowlog-log-slower-than", 0)
            client.queues["mail"].put("shop.Send")
            admin.config_set("slowlog-log-slower-than", 10_000)
        verdict, text, command = night.finding("slow log")
        assert verdict in ("note", "warn")
        assert "slow calls of holdfast in a day; the longest is " in text
        assert command.startswith("redis-cli -")
        assert command.endswith("SLOWLOG GET 10")
        with redis.Redis(unix_socket_path=str(store.socket_path)) as admin:
            admin.slowlog_reset()
        assert night.finding("slow log")[0] == "ok"


@pytest.mark.full
def test_a_job_that_nobody_knows_waits_for_a_worker_with_its_code(night: Night) -> None:
    jid = night.types("put", "ghosts.haunt", "-q", "mail", "--arg", "7").strip()
    night.works("--path", str(night.here))
    until(lambda: "does not have its code" in night.types("jobs", "why", jid), "it was given back", 60.0)
    assert "there is no module 'ghosts'" in night.types("jobs", "why", jid)
    fix = night.fix(jid, "unknown")
    assert fix.startswith("holdfast worker -q mail --url ")
    assert fix.endswith(" --path DIR")
    (night.here / "other").mkdir()
    (night.here / "other" / "ghosts.py").write_text(GHOSTS)
    night.kill(night.workers.pop())
    night.works("--path", str(night.here / "other"), "--import", "ghosts")
    until(lambda: night.reads("jobs", "show", jid)["facts"]["state"] == "complete", "it ran", 60.0)
    assert night.types("jobs", "result", jid).strip() == '"boo 7"'
    assert "There is no such job" in night.types("jobs", "why", "nobody", code=1)
