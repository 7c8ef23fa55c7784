"""`holdfast events`, as a process that follows a namespace while the test changes it."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import IO, Any

import pytest
import redis

import programs
from command_line import holdfast
from holdfast import Client
from holdfast.console.access import rules_of
from holdfast.testing.store import ScratchStore
from waiting import until

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def follow(client: Client, url: str, namespace: str) -> Iterator[Start]:
    """Starts `holdfast events`, and returns when it follows."""
    running: list[subprocess.Popen[str]] = []
    client.queues.counts  # noqa: B018 - makes the namespace

    def start(*words: str, **files: Any) -> "subprocess.Popen[str]":
        command = [
            sys.executable,
            "-m",
            "holdfast.cli.main",
            "events",
            "--url",
            url,
            "--namespace",
            namespace,
        ]
        files = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **files}
        process = programs.popen([*command, *words], text=True, **files)
        running.append(process)
        assert line_of(process.stderr) == f"following the events of {namespace}\n"
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate(timeout=30)


def line_of(pipe: IO[str] | None) -> str:
    """The next line that a program prints; nothing after it is read."""
    assert pipe is not None
    line = b""
    while not line.endswith(b"\n"):
        assert select.select([pipe], [], [], 60)[0], f"it prints no line, only {line!r}"
        piece = os.read(pipe.fileno(), 1)
        assert piece, f"it has ended after {line!r}"
        line += piece
    return line.decode()


def ended(process: "subprocess.Popen[str]") -> tuple[int, list[str], str]:
    out, err = process.communicate(timeout=60)
    return process.returncode, out.splitlines(), err


@pytest.mark.full
def test_changes_are_lines_with_the_state_of_the_job_and_the_queue(client: Client, follow: Start) -> None:
    jid = client.queues["mail"].put("shop.Order", priority=1)
    client.queues["mail"].put("shop.Other")
    following = follow("--json", "--count", "2", "-q", "mail")
    client.queues["mail"].pop()
    code, lines, err = ended(following)
    assert (code, err) == (0, "")
    rows = {row["kind"]: row for row in map(json.loads, lines)}
    assert {**rows["job"], "when": 0} == {
        "when": 0, "event": "changed", "kind": "job", "name": jid, "queue": "mail", "klass": "shop.Order",
        "state": "running", "worker": client.worker_name,
    }  # fmt: skip
    assert (rows["queue"]["name"], rows["queue"]["waiting"], rows["queue"]["running"]) == ("mail", 1, 1)
    assert abs(rows["queue"]["when"] - time.time()) < 600


def test_a_job_is_followed_through_its_life(client: Client, follow: Start) -> None:
    jid = client.queues["mail"].put("shop.Order")
    client.queues["mail"].put("shop.Other")
    following = follow("--jid", jid)
    job = client.queues["mail"].pop()
    assert job is not None
    assert line_of(following.stdout).endswith(
        f"Z job {jid} running in queue mail, worker {client.worker_name} (shop.Order)\n"
    )
    job.complete("next")
    assert line_of(following.stdout).endswith(f"Z job {jid} waiting in queue next (shop.Order)\n")
    client.jobs.cancel(jid)
    assert line_of(following.stdout).endswith(f"Z job {jid} changed\n")


@pytest.mark.full
def test_queues_are_followed_by_name_or_pattern(client: Client, follow: Start) -> None:
    following = follow("-q", "mail-*", "-q", "slow", "--json")
    client.queues["other"].put("shop.Order")
    rows = []
    for queue in ("mail-a", "slow", "mail-"):
        jid = client.queues["other"].put("shop.Order")
        client.jobs[jid].move(queue)
        rows += [json.loads(line_of(following.stdout)), json.loads(line_of(following.stdout))]
        assert {(row["kind"], row["name"]) for row in rows[-2:]} == {("queue", queue), ("job", jid)}
        [counts] = [row for row in rows[-2:] if row["kind"] == "queue"]
        assert counts["waiting"] == 1
    following.send_signal(signal.SIGINT)
    assert ended(following) == (0, [], "")


@pytest.mark.full
def test_tracked_jobs_are_followed_by_their_events_alone(client: Client, follow: Start) -> None:
    following = follow("--tracked", "--json")
    queue = client.queues["mail"]
    queue.put("shop.Other")
    jid = queue.put("shop.Order", priority=1)
    client.track(jid)
    assert (
        json.loads(line_of(following.stdout)).items()
        >= {"event": "track", "name": jid, "state": "waiting"}.items()
    )
    job = queue.pop()
    assert job is not None
    assert json.loads(line_of(following.stdout))["event"] == "popped"
    job.fail("mail-X", "no")
    assert json.loads(line_of(following.stdout)).items() >= {"event": "failed", "state": "failed"}.items()
    following.send_signal(signal.SIGTERM)
    assert ended(following) == (0, [], "")


def test_an_event_of_a_tracked_job_is_one_line_with_its_change(client: Client, follow: Start) -> None:
    jid = client.queues["mail"].put("shop.Order")
    following = follow("--jid", jid, "--json")
    for event in ("track", "untrack"):
        getattr(client, event)(jid)
        assert json.loads(line_of(following.stdout))["event"] == event


@pytest.mark.full
def test_it_ends_after_a_time_or_a_number_of_lines(client: Client, follow: Start) -> None:
    assert ended(follow("--for", "0.1")) == (0, [], "")
    assert ended(follow("--for", "0.1", "--count", "1"))[0] == 1
    client.queues["mail"].put_many([("K", {})] * 50)
    following = follow("--count", "3")
    client.queues["mail"].pop(50)
    code, lines, _ = ended(following)
    assert (code, len(lines)) == (0, 3)


def test_many_changes_at_once_are_all_named(client: Client, follow: Start) -> None:
    jids = client.queues["mail"].put_many([("K", {})] * 400)
    following = follow("-q", "mail", "--json", "--count", "401")
    client.queues["mail"].pop(400)
    rows = list(map(json.loads, ended(following)[1]))
    assert {row["name"] for row in rows if row["kind"] == "job"} == set(jids)
    assert all("state" in row for row in rows if row["kind"] == "job")


@pytest.mark.full
def test_it_ends_when_nobody_reads_its_output_any_more(follow: Start) -> None:
    following = follow()
    assert following.stdout is not None
    following.stdout.close()
    assert following.wait(60) == 1
    assert following.stderr is not None
    assert following.stderr.read() == ""


def test_ctrl_c_on_a_terminal_ends_it_cleanly(client: Client, follow: Start) -> None:
    ours, theirs = pty.openpty()
    jid = client.queues["mail"].put("shop.Order", jid="a\u202eb")
    following = follow("--jid", jid, stdin=theirs, stdout=theirs, start_new_session=True)
    os.close(theirs)
    client.jobs[jid].move("next")
    shown = ""
    while "\n" not in shown:
        shown += os.read(ours, 4096).decode()
    assert shown.endswith("Z job a?b waiting in queue next (shop.Order)\r\n")
    os.write(ours, b"\x03")
    assert following.wait(60) == 0
    os.close(ours)
    assert following.stderr is not None
    assert following.stderr.read() == ""


@pytest.mark.full
def test_hostile_names_stay_printable(client: Client, follow: Start) -> None:
    following = follow("--count", "2")
    client.queues["a\u202eb"].put("K\u2066L")
    _, lines, _ = ended(following)
    assert all(line.isprintable() for line in lines)


@pytest.mark.full
def test_a_user_who_may_only_read_follows_tracked_jobs() -> None:
    with ScratchStore("valkey", tcp=True) as guarded, Client(guarded.url, namespace="shop") as client:
        jid = client.queues["mail"].put("shop.Order")
        with redis.Redis(port=guarded.port) as admin:
            admin.execute_command("ACL", "SETUSER", "viewer", *rules_of("viewer", "shop", "secret"))
        where = ("--url", guarded.tcp_url.replace("://", "://viewer:secret@"), "--namespace", "shop")
        refused = holdfast("events", *where)
        assert refused.returncode == 1
        assert "watch: the user of this URL lacks rights" in refused.stderr
        assert "`holdfast events --tracked` does not require the right to write" in refused.stderr
        command = [
            sys.executable,
            "-m",
            "holdfast.cli.main",
            "events",
            "--tracked",
            "--count",
            "1",
            *where,
        ]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as following:
            assert line_of(following.stderr).startswith("following")
            client.track(jid)
            assert ended(following)[0] == 0


@pytest.mark.full
def test_an_outage_is_reported_once_and_following_goes_on_after_it(client: Client) -> None:
    with ScratchStore("valkey") as shaky, Client(shaky.url, namespace="shop") as own:
        own.queues["mail"].put("K")
        command = [sys.executable, "-m", "holdfast.cli.main", "events", "--wait", "0.5", "--url", shaky.url]
        with subprocess.Popen(
            [*command, "--namespace", "shop", "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as following:
            assert line_of(following.stderr).startswith("following")
            shaky.restart()
            put = lambda: own.queues["mail"].put("K")  # noqa: E731
            until(lambda: put() and select.select([following.stdout], [], [], 0.3)[0], "it follows again", 90)
            following.send_signal(signal.SIGINT)
            assert ended(following)[0] == 0


@pytest.mark.full
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--count", "0"), 2),
        (("--for", "0"), 2),
        (("--follow", "--count", "1"), 2),
        (("--namespace", "nowhere"), 1),
        (("--namespace", "a b"), 2),
    ],
)
def test_what_cannot_be_followed_is_refused(url: str, words: tuple[str, ...], code: int) -> None:
    refused = holdfast("events", "--url", url, *words)
    assert (refused.returncode, refused.stdout) == (code, "")
    assert refused.stderr.strip()


def test_a_store_that_does_not_respond_has_an_exit_code_of_its_own() -> None:
    refused = holdfast("events", "--url", "unix:///nowhere.sock", "--wait", "0.1")
    assert (refused.returncode, refused.stderr.count("\n"), refused.stdout) == (3, 1, "")
