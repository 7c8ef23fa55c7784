"""workers.md 15: `holdfast notify`, with a real program, a real listener for its posts, and a desktop that writes down."""

import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any

import msgspec
import pytest

import programs
from holdfast import Client
from holdfast.cli import notices as delivering
from holdfast.cli.notices import Chat, Delivery, Lines, Notice, Sink, Undelivered, Webhook, notice_of
from holdfast.errors import UsageError
from holdfast.testing.store import ScratchStore
from waiting import until


class Ear:
    """An HTTP server that keeps what is posted, and answers with the codes it is told, then 200."""

    def __init__(self) -> None:
        ear = self
        self.heard: list[tuple[str, Any]] = []
        self.codes: list[int] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.headers["Content-Type"] == "application/json"
                ear.heard.append((self.path, json.loads(body)))
                code = ear.codes.pop(0) if ear.codes else 200
                self.send_response(code)
                if 300 <= code < 400:
                    self.send_header("Location", f"{ear.url}/elsewhere")
                self.end_headers()

            def do_GET(self) -> None:
                ear.heard.append((self.path, None))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def ear() -> Iterator[Ear]:
    ear = Ear()
    thread = threading.Thread(target=ear.server.serve_forever, args=(0.01,))
    thread.start()
    yield ear
    ear.server.shutdown()
    thread.join()
    ear.server.server_close()


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
    client: Client, telling: Callable[..., "subprocess.Popen[str]"], ear: Ear, tmp_path: Path
) -> None:
    told = telling(
        "--stdout",
        "--webhook",
        f"{ear.url}/hook/secret",
        "--chat",
        f"{ear.url}/chat",
        "--desktop",
        "--web",
        "jobs.example:8",
    )
    seen = lambda count: until(lambda: len(ear.heard) == 2 * count, f"{count} events are told")  # noqa: E731
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
    posted = [body for path, body in ear.heard if path == "/hook/secret"]
    chatted = [body for path, body in ear.heard if path == "/chat"]
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


def notice(number: int = 0) -> Notice:
    return Notice("track", f"jid-{number}", 0.0, "is being tracked", "")


def test_a_post_is_tried_again_where_that_helps(ear: Ear, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivering, "PAUSES", (0.01, 0.02))
    ear.codes = [503, 429, 200, 404]
    delivery = Delivery(Webhook(f"{ear.url}/token"))
    for number in range(3):
        delivery.give(notice(number))
    until(lambda: len(ear.heard) == 5, "all tries are made")
    delivery.close()
    assert [body["jid"] for _, body in ear.heard] == ["jid-0"] * 3 + ["jid-1", "jid-2"]


def test_what_is_lost_is_said_once_without_secrets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ear: Ear
) -> None:
    monkeypatch.setattr(delivering, "PAUSES", ())
    ear.codes = [500, 500]
    delivery = Delivery(Webhook(f"{ear.url}/token"))
    for number in range(3):
        delivery.give(notice(number))
    delivery.close()
    assert capsys.readouterr().err.splitlines() == [
        "http://127.0.0.1: a notice is lost: HTTP status 500",
        "http://127.0.0.1: works again; 2 notices were lost",
    ]


def test_a_sink_that_is_stuck_holds_up_nobody(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(delivering, "MOST_WAITING", 2)
    gate = threading.Event()

    class Stuck(Sink):
        name = "stuck"

        def deliver(self, notice: Notice) -> None:
            gate.wait(30)

    delivery = Delivery(Stuck())
    for number in range(10):
        delivery.give(notice(number))
    assert "stuck: a notice is lost: it does not keep up" in capsys.readouterr().err
    gate.set()
    delivery.close()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nonsense",
        "file:///etc/passwd",
        "http://",
        "ftp://host/",
        "http://[",
        "http://a..b/",
        "http://h:x/",
    ],
)
@pytest.mark.parametrize("kind", [Webhook, Chat])
def test_what_is_no_url_is_refused(kind: type[Webhook], url: str) -> None:
    with pytest.raises(UsageError, match=r"--(webhook|chat) must be a URL"):
        kind(url)


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_nothing_counts_as_delivered(ear: Ear, code: int) -> None:
    ear.codes = [code]
    with pytest.raises(Undelivered, match=f"{code}, a redirect") as caught:
        Webhook(f"{ear.url}/here").deliver(notice())
    assert caught.value.is_lasting
    assert [path for path, _ in ear.heard] == ["/here"]


@pytest.mark.parametrize("call", ["@channel", "@everyone", "<!channel>", "<@U123>", "@here"])
def test_the_text_of_a_job_calls_nobody_in_a_chat(ear: Ear, call: str) -> None:
    words = f"look {call} at a@example.com"
    Chat(ear.url).deliver(msgspec.structs.replace(notice(), what=words, failure={"message": words}))
    [(_, body)] = ear.heard
    assert call not in body["text"]
    assert "a@example" not in body["text"].replace("\u200b", "|")
    assert "a@example.com" in body["text"].replace("\u200b", "")


def test_nobody_at_the_other_end_is_undelivered(ear: Ear) -> None:
    ear.server.server_close()
    with pytest.raises(Undelivered) as raised:
        Webhook(ear.url).deliver(notice())
    assert not raised.value.is_lasting


def test_lines_have_the_message_of_a_failure_below(capsys: pytest.CaptureFixture[str]) -> None:
    failed = Notice("failed", "a", 0.0, "failed by b", "", {"tags": []}, {"message": "one\ntwo\x9b"})
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
