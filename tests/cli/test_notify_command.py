"""workers.md 15: `holdfast notify`, with a real program, a real listener for its posts, and a desktop that writes down."""

import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import IO

import pytest
from receiving import HttpReceiver, SmtpReceiver, serving

import programs
from holdfast import Client
from holdfast.cli.main import run
from holdfast.cli.notices.notice import JobNotice, notice_of
from holdfast.cli.notices.sinks import Lines
from holdfast.console.masking import MASKED, Mask
from holdfast.testing.store import ScratchStore
from waiting import until

NOTHING = Mask([])
"""Hides nothing."""


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

    def start(*flags: str, first: str = "listening to the tracked jobs of") -> "subprocess.Popen[str]":
        words = [sys.executable, "-m", "holdfast.cli.main", "notify", "--url", url, "--namespace", namespace]
        told = programs.popen(
            [*words, *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PATH": f"{desktop.parent}:{os.environ['PATH']}"},
        )
        running.append(told)
        assert first in line_of(told.stderr)
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


def read_until(pipe: IO[str] | None, *texts: str) -> str:
    """What a program prints until all of some texts were in it."""
    found: list[str] = []

    def read() -> None:
        assert pipe is not None
        while not all(text in "".join(found) for text in texts) and (line := pipe.readline()):
            found.append(line)

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    reading.join(60)
    assert all(text in "".join(found) for text in texts), "".join(found)
    return "".join(found)


def fail(client: Client, count: int, group: str) -> None:
    queue = client.queues["mail"]
    for _ in range(count):
        queue.put("k.K")
        job = queue.pop()
        assert job is not None
        job.fail(group, "no answer")


def ended(
    told: "subprocess.Popen[str]", code: int = 0, sign: signal.Signals = signal.SIGINT
) -> tuple[list[str], str]:
    """What it printed, once a signal has ended it."""
    told.send_signal(sign)
    out, err = told.communicate(timeout=30)
    assert told.returncode == code, err
    return out.splitlines(), err


@pytest.mark.full
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


@pytest.mark.full
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


@pytest.mark.full
def test_what_a_rule_of_redaction_matches_is_masked_in_names_and_texts_of_notices(
    client: Client, telling: Callable[..., "subprocess.Popen[str]"], receiver: HttpReceiver
) -> None:
    told = telling(
        "--webhook",
        f"{receiver.url}/hook",
        "--web",
        "jobs.example",
        "--redact",
        "*.password",
        "--redact",
        r"re:\d{16}",
    )
    card, queue = "4111111111111111", client.queues["q"]
    jid = queue.put("k.K", tags=[f"card-{card}"], jid=f"order-{card}", retries=0)
    client.track(jid)
    job = queue.pop()
    assert job is not None
    # Where a long message is cut, too.
    job.fail(f"k-{card}", f"refused {card} {'x' * 3965} {card}")
    fail(client, 30, f"group-{card}")
    until(lambda: {one["event"] for _, one in receiver.got} >= {"track", "popped", "failed"}, "all are sent")
    ended(told)
    assert "41111" not in json.dumps([body for _, body in receiver.got])
    [failed] = [body for _, body in receiver.got if body["event"] == "failed"]
    assert (failed["jid"], failed["job"]["tags"]) == (f"order-{MASKED}", [f"card-{MASKED}"])
    assert (failed["failure"]["group"], failed["link"]) == (f"k-{MASKED}", "")
    assert failed["failure"]["message"].startswith(f"refused {MASKED} xxx")


@pytest.mark.full
def test_the_words_for_jobs_that_are_gone_or_done(client: Client) -> None:
    queue = client.queues["q"]
    done = queue.put("k.K")
    job = queue.pop()
    assert job is not None
    job.complete()
    assert notice_of(client, "completed", done, "", NOTHING).what == "completed"
    words = {
        event: notice_of(client, event, "gone", "", NOTHING).line
        for event in ("completed", "popped", "put", "failed")
    }
    assert words == {
        "completed": "gone completed", "popped": "gone popped", "put": "gone moved", "failed": "gone failed",
    }  # fmt: skip
    assert notice_of(client, "stalled", done, "", NOTHING).what == "stalled"
    assert notice_of(client, "untrack", "a/b c", "http://w", NOTHING).link == "http://w/jobs/a%2Fb%20c"
    assert notice_of(client, "track", "x" * 200, "", NOTHING).line == "x" * 23 + "… is being tracked"


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


@pytest.mark.full
def test_a_desktop_without_the_program_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(["notify", "--desktop"]) == 2


@pytest.mark.full
def test_a_surge_goes_everywhere_with_a_link_and_posts_are_signed(
    client: Client, telling: Callable[..., "subprocess.Popen[str]"], receiver: HttpReceiver, tmp_path: Path
) -> None:
    secret, mails = tmp_path / "secret", SmtpReceiver()
    secret.write_text("s3cret of 16 bytes\n")
    secret.chmod(0o600)
    with serving(mails):
        told = telling(
            *(
                "--webhook",
                f"{receiver.url}/hook",
                "--secret-file",
                str(secret),
                "--chat",
                f"{receiver.url}/chat",
            ),
            *("--smtp", f"127.0.0.1:{mails.port}", "--smtp-plain", "--mail-from", "jobs@example.org"),
            *(
                "--mail-to",
                "ops@example.org",
                "--mail-to",
                "ada@example.org",
                "--web",
                "https://jobs.example/hf/",
            ),
            *("--event", "surge", "--every", "1s", "--desktop"),
            first="looking for failure surges of",
        )
        fail(client, 21, "mail/Ünreachable..")
        until(lambda: len(receiver.got) == 2 and len(mails.mails) == 2, "all have the notice")
        lines, _ = ended(told, sign=signal.SIGTERM)
    assert lines == []
    link = "https://jobs.example/hf/failed/mail%2F%C3%9Cnreachable.."
    text = f"failure group mail/Ünreachable..: 21 jobs failed in this hour, 0 an hour before; 21 in the group {link}"
    hook = next(body for path, body in receiver.got if path == "/hook")
    chat = next(body for path, body in receiver.got if path == "/chat")
    assert (hook["event"], hook["group"], hook["count"], hook["hour"], hook["link"], hook["text"]) == (
        "surge", "mail/Ünreachable..", 21, 21, link, text,
    )  # fmt: skip
    assert chat == {"text": text}
    signed = [headers["Holdfast-Signature"] for _, headers in receiver.raw if "Holdfast-Signature" in headers]
    assert len(signed) == 1  # chats check none
    assert sorted(mails.recipients) == ["<ada@example.org>", "<ops@example.org>"]
    assert {mail["Subject"][:41] for mail in mails.mails} == {"[holdfast] failure group mail/Ünreachable"}
    assert link in mails.mails[0].get_content()
    assert "|failure group mail/Ünreachable..: 21 jobs failed" in (tmp_path / "shown").read_text()


@pytest.mark.full
def test_term_delivers_what_waits_in_time(
    client: Client, telling: Callable[..., "subprocess.Popen[str]"], receiver: HttpReceiver
) -> None:
    stuck = HttpReceiver()
    stuck.codes = [None] * 100
    with serving(stuck):
        told = telling(
            *("--webhook", f"{receiver.url}/T0KEN", "--webhook", f"{stuck.url}/T0KEN"),
            *("--limit", "1/h", "--stdout"),
        )
        for number in range(5):
            client.track(client.queues["q"].put("k.K", jid=f"job-{number}"))
        read_until(told.stdout, "job-4")
        until(lambda: receiver.got and stuck.got, "the first is sent")
        begun = monotonic()
        _, err = ended(told, sign=signal.SIGTERM)
        assert monotonic() - begun < 25
    first, digest = receiver.bodies
    assert (first["jid"], digest["event"], digest["counts"]) == ("job-0", "digest", {"track": 4})
    assert f"{stuck.url}: 5 notices not delivered" in err
    assert "T0KEN" not in err


@pytest.mark.full
def test_an_output_that_nobody_reads_does_not_keep_it_from_ending(
    client: Client, telling: Callable[..., "subprocess.Popen[str]"], receiver: HttpReceiver
) -> None:
    told = telling("--stdout", "--webhook", receiver.url)
    jid = client.queues["q"].put("k.K", tags=["x" * 200])
    for _ in range(300):
        client.track(jid)
        client.untrack(jid)
    until(lambda: sum(body.get("total", 1) for body in receiver.bodies) == 600, "others are not delayed")
    told.send_signal(signal.SIGTERM)
    assert told.wait(40) == 0
    assert told.stderr is not None
    printed = told.stderr.read()
    assert "Traceback" not in printed
    assert "Fatal" not in printed


@pytest.mark.full
def test_an_outage_of_the_store_is_printed_and_survived(
    telling: Callable[..., "subprocess.Popen[str]"], namespace: str
) -> None:
    with ScratchStore() as store, Client(store.url, namespace=namespace) as client:
        told = telling("--url", store.url, "--every", "1s")
        store.kill()
        printed = read_until(told.stderr, "the store is unavailable", "failure groups cannot be read")
        store.restart()
        printed += read_until(
            told.stderr, "the subscription is active again", "failure groups can be read again"
        )
        client.track(client.queues["q"].put("k.K", jid="a"))
        assert line_of(told.stdout) == "a is being tracked\n"
        _, err = ended(told)
        assert "Traceback" not in printed + err


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--mail-to", "a@b.c"], "--mail-to requires --smtp"),
        (["--mail-to", "a@b.c", "--smtp", "h"], "--mail-from, their sender"),
        (["--mail-from", "a@b.c"], "require --mail-to"),
        (["--smtp", "smtp://u:pa55@h"], "require --mail-to"),
        (["--mail-to", "a@b.c", "--mail-from", "a@b.c", "--smtp", "smtp://u:pa55@h"], "--smtp must not contain the password"),
        (["--mail-to", "a@b.c", "--mail-from", "a", "--smtp", "h"], "--mail-from: expected an address"),
        (["--secret-file", "/dev/null"], "give --webhook too"),
        (["--secret-file", "/dev/null", "--webhook", "http://h/pa55"], "every user of this machine may read"),
        (["--limit", "5"], "--limit: expected"),
        (["--every", "0.5s"], "--every: expected 1s to 1h, got 0.5 s"),
        (["--every", "2h"], "--every: expected 1s to 1h"),
        (["--web", "ftp://h"], "--web: expected a URL"),
        (["--web", "http://u@h"], "--web: expected a URL"),
        (["--web", "http://h/?x=1"], "--web: expected a URL"),
        (["--web", "http://a..b"], "--web: expected a URL"),
        (["--web", "http://h:99999"], "--web: expected a URL"),
        (["--web", "http://h:x"], "--web: expected a URL"),
        (["--web", "http://[::1].evil.example"], "--web: expected a URL"),
        (["--web", "http://a\\\\b"], "--web: expected a URL"),
        (["--web", "http://-a"], "--web: expected a URL"),
        (["--web", "https://x;y"], "--web: expected a URL"),
        (["--webhook", "http://u:pa55@h/x"], "--webhook must be a URL"),
        (["--event", "none"], "is not one of"),
    ],
)  # fmt: skip
def test_options_that_do_not_go_together_are_refused_without_secrets(
    flags: list[str], problem: str, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["notify", "--url", url, *flags]) == 2
    printed = capsys.readouterr().err
    assert problem in " ".join(printed.split())
    assert "pa55" not in printed


def test_a_secret_that_is_too_short_to_sign_with_is_refused(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("15 bytes, is it\n")
    secret.chmod(0o600)
    assert run(["notify", "--url", url, "--webhook", "http://h/x", "--secret-file", str(secret)]) == 2
    assert "secret: expected at least 16 bytes, or none" in capsys.readouterr().err


@pytest.mark.full
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
