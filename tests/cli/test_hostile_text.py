"""Text that others wrote, in logs, tables, sentences and JSON: it steers no terminal and forges no line (review B7)."""

import json
import logging
import sys
from pathlib import Path

import pytest

from command_line import holdfast
from holdfast import Client
from holdfast.commands.workers import WorkerSeen
from holdfast.logs import TextFormatter
from holdfast.text import indented, one_line, printable, printable_json

FORGED = "2026-01-01 00:00:00,000 | PID 1 | [INFO] all is well"
EVIL = f"\x1b]0;owned\x07\x1b[2J\x9b31m\r\n{FORGED}\u202etxt\x00\x7f"


def steers(text: str) -> set[str]:
    """The characters of a text that a terminal would obey."""
    return {letter for letter in text if not letter.isprintable() and letter not in "\n\t"}


@pytest.mark.parametrize("make", [printable, one_line, indented])
def test_nothing_that_steers_a_terminal_comes_through(make) -> None:
    assert not steers(make(EVIL))
    assert make("naïve — 漢字 🚀") == "naïve — 漢字 🚀"
    if make is not printable:
        assert not any(line.startswith(FORGED[:10]) for line in make(EVIL).splitlines())


@pytest.mark.full
def test_json_means_the_same_when_it_is_made_safe() -> None:
    for said in ({"message": EVIL + "\U000e0001\ud800", "ok": "漢字"}, ["plain"]):
        for indent in (None, 2):
            safe = printable_json(json.dumps(said, ensure_ascii=False, indent=indent))
            assert not steers(safe)
            assert json.loads(safe) == said
    assert "漢字" in safe or "plain" in safe


def test_a_log_line_cannot_forge_another_and_a_traceback_stays_readable() -> None:
    try:
        raise ValueError(EVIL)
    except ValueError:
        record = logging.makeLogRecord({"msg": "job %s", "args": (EVIL,), "exc_info": sys.exc_info()})
    first, *others = TextFormatter().format(record).split("\n")
    assert " job " in first
    assert others
    assert all(line.startswith("    ") for line in others)
    assert not steers(first + "".join(others))


@pytest.mark.full
def test_commands_show_what_jobs_and_workers_said_without_obeying_it(
    client: Client, url: str, namespace: str
) -> None:
    queue = client.queues["q"]
    jid = queue.put("shop.Order", {})
    [job] = queue.pop(1)
    job.fail("group", EVIL)
    client.run(WorkerSeen("w", {"host": "box\x9b31m", "pool": EVIL, "pid": "1"}))
    place = ("--url", url, "--namespace", namespace)
    said = [holdfast(*words, *place) for words in (
        ("jobs", "why", jid), ("jobs", "why", jid, "--json"), ("jobs", "stack", jid),
        ("workers", "list"), ("workers", "list", "--json"), ("workers", "check", "w"), ("stats",),
    )]  # fmt: skip
    for one in said:
        assert not steers(one.stdout + one.stderr), one.args


@pytest.mark.full
def test_a_worker_logs_what_a_job_says_without_obeying_it(
    client: Client, url: str, namespace: str, tmp_path: Path
) -> None:
    (tmp_path / "rude.py").write_text(
        "import logging\n"
        "class Rude:\n"
        "    @staticmethod\n"
        f"    def process(job): logging.warning('said %s', {EVIL!r}); raise ValueError({EVIL!r})\n"
    )
    client.queues["q"].put("rude.Rude", {})
    log = tmp_path / "log"
    words = ("--drain", "--pool", "serial", "--path", str(tmp_path), "--logger", str(log))
    said = holdfast("worker", "-q", "q", *words, "--url", url, "--namespace", namespace)
    text = log.read_text()
    assert "said" in text
    assert "ValueError" in text
    for one in (text, said.stderr, said.stdout):
        assert not steers(one)
        assert not any(line.startswith(FORGED[:30]) for line in one.splitlines())
