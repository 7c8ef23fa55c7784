"""workers.md 15: `holdfast notify`, with a real program, a real listener for its posts, and a desktop that writes down."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest
from receiving import HttpReceiver, serving

import programs
from holdfast import Client
from holdfast.cli.notices.notice import JobNotice, notice_of
from holdfast.cli.notices.sinks import Lines
from holdfast.testing.store import ScratchStore
from waiting import until


@pytest.fixture
def receiver() -> Iterator[HttpReceiver]:
    made = HttpReceiver()
    with serving(made):
        yield made


@pytest.fixture
def telling(url: str, namespace: str, tmp_path: Path) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Starts `holdfast notify`, and goes on when it listens."""
    desktop = tmp_path / "bin" / "notify-send"
    desktop.parent.mkdir()
    desktop.write_text(f'#!/bin/sh\nprintf "%s|" "$@" >> {tmp_path}/shown\n')
    desktop.chmod(0o755)
    running: list[subprocess.Popen[str]] = []

    def start(*flags: str) -> "subprocess.Popen[str]":
        words = [sys.executable, "-m", "holdfast.cli.main", "notify", "--url", url, "--namespace", namespace]
        told = programs.popen(
            [*words, *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PATH": f"{desktop.parent}:{os.environ['PATH']}"},
        )
        running.append(told)
        assert "listening to the tracked jobs of" in line_of(told.stderr)
        return told

    yield start
    for told in running:
        told.kill()
        told.communicate(timeout=30)


def line_of(pipe: IO[str] | None) -> str:
    """The next line that a program prints."""
    assert pipe is not None
    assert select.select([pipe], [], [], 60)[0], "it prints nothing"
    return pipe.readline()


def ended(told: "subprocess.Popen[str]", code: int = 0) -> tuple[list[str], str]:
    """What it printed, once INT has ended it."""
    told.send_signal(signal.SIGINT)
    out, err = told.communicate(timeout=30)
    assert told.returncode == code, err
    return out.splitlines(), err


def test_one_jobs_life_is_told_in_words_everywhere(
    client: Client, telling: Callable[..., "subprocess.Popen[str]"], receiver: HttpReceiver, tmp_path: Path
) -> None:
    told = telling(
        "--stdout",
        "--webhook",
        f"{receiver.url}/hook/secret",
        "--chat",
        f"{receiver.url}/chat",
        "--desktop",
        "--web",
        "jobs.example:8",
    )
    seen = lambda count: until(lambda: len(receiver.got) == 2 * count, f"{count} events are told")  # noqa: E731
    here, there = client.queues["here"], client.queues["there"]
    jid = here.put("k.K", tags=["vip", "eu"], jid="order-7", retries=0)
    client.track(jid)
    seen(1)
    job = here.pop()
    assert job is not None
    seen(2)
    job.complete("there")
    seen(3)
    job = there.pop()
    assert job is not None
    seen(4)
    job.fail("k-Error", "no <luck>\nat all \x1b[31m")
    seen(5)
    here.put("k.K", tags=["vip", "eu"], jid=jid)
    seen(6)
    client.untrack(jid)
    seen(7)
    client.track(jid)
    seen(8)
    client.jobs.cancel(jid)
    seen(9)
    lines, _ = ended(told)

    me, end = client.worker_name, "[vip, eu] http://jobs.example:8/jobs/order-7"
    assert lines == [
        f"order-7 is being tracked {end}",
        f"order-7 popped by {me} {end}",
        f"order-7 advanced to there {end}",
        f"order-7 popped by {me} {end}",
        f"order-7 failed by {me} {end}",
        "    no <luck>",
        "    at all ?[31m",
        f"order-7 moved to here {end}",
        f"order-7 no longer tracked {end}",
        f"order-7 is being tracked {end}",
        "order-7 canceled http://jobs.example:8/jobs/order-7",
    ]
    posted = [body for path, body in receiver.got if path == "/hook/secret"]
    chatted = [body for path, body in receiver.got if path == "/chat"]
    assert [body["text"] for body in posted] == [line for line in lines if not line.startswith(" ")]
    assert [body["event"] for body in posted] == [
        "track", "popped", "completed", "popped", "failed", "put", "untrack", "track", "canceled",
    ]  # fmt: skip
    failed = posted[4]
    assert (failed["jid"], failed["failure"]["group"], failed["failure"]["worker"]) == (
        "order-7",
        "k-Error",
        me,
    )
    assert (failed["job"]["klass"], failed["job"]["queue"], failed["job"]["state"]) == (
        "k.K",
        "there",
        "failed",
    )
    assert failed["failure"]["message"].startswith("no <luck>\nat all")
    assert posted[8]["job"] is None
    assert chatted[4]["text"].endswith("\n```no &lt;luck&gt;\nat all ?[31m```")
    shown = (tmp_path / "shown").read_text()
    assert shown.count("--app-name|holdfast|--|") == 9
    assert f"|order-7 failed by {me}|order-7 failed by {me} [vip, eu]" in shown
    assert "no &lt;luck&gt;" in shown


def test_chosen_events_come_as_json_and_nobody_reading_ends_it(
    client: Client, telling: Callable[..., "subprocess.Popen[str]"]
) -> None:
    told = telling("--json", "--event", "track")
    jid = client.queues["q"].put("k.K")
    client.track(jid)
    client.untrack(jid)
    first = json.loads(line_of(told.stdout))
    assert (first["event"], first["jid"], first["link"]) == ("track", jid, "")
    assert first["text"] == f"{jid[-8:]} is being tracked"
    assert told.stdout is not None
    told.stdout.close()
    client.track(jid)
    assert told.wait(30) == 1
    assert told.stderr is not None
    assert "Traceback" not in told.stderr.read()


def test_the_words_for_jobs_that_are_gone_or_done(client: Client) -> None:
    queue = client.queues["q"]
    done = queue.put("k.K")
    job = queue.pop()
    assert job is not None
    job.complete()
    assert notice_of(client, "completed", done, "").what == "completed"
    words = {
        event: notice_of(client, event, "gone", "").line for event in ("completed", "popped", "put", "failed")
    }
    assert words == {
        "completed": "gone completed", "popped": "gone popped", "put": "gone moved", "failed": "gone failed",
    }  # fmt: skip
    assert notice_of(client, "stalled", done, "").what == "stalled"
    assert notice_of(client, "untrack", "a/b c", "http://w").link == "http://w/jobs/a%2Fb%20c"
    assert notice_of(client, "track", "x" * 200, "").line == "x" * 23 + "… is being tracked"


def test_lines_have_the_message_of_a_failure_below(capsys: pytest.CaptureFixture[str]) -> None:
    failed = JobNotice(
        event="failed",
        when=0.0,
        jid="a",
        what="failed by b",
        job={"tags": []},
        failure={"message": "one\ntwo\x9b"},
    )
    Lines().deliver(failed)
    assert capsys.readouterr().out == "a failed by b\n    one\n    two?\n"


def test_a_desktop_without_the_program_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from holdfast.cli.main import run

    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(["notify", "--desktop"]) == 2


def test_a_connection_that_is_lost_comes_back(
    telling: Callable[..., "subprocess.Popen[str]"], namespace: str
) -> None:
    with ScratchStore() as store, Client(store.url, namespace=namespace) as client:
        told = telling("--url", store.url)
        jid = client.queues["q"].put("k.K", jid="a")
        channel = client.shard.event_channel("track")
        assert client.database.client_kill_filter(_type="pubsub") == 1
        until(lambda: client.database.pubsub_numsub(channel)[0][1], "it listens again")
        client.track(jid)
        assert line_of(told.stdout) == "a is being tracked\n"
        lines, err = ended(told)
        assert lines == []
        assert "Traceback" not in err
