"""What each command prints on terminals of 80 and of 200 columns, and in a pipe: the files in `layouts`.

After a change that is meant, `HOLDFAST_LAYOUTS=write pytest tests/cli/test_layouts.py` writes them anew; look at each difference.
"""

import difflib
import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import layout_store
import pyte
import pytest

import programs
from holdfast import Client
from holdfast.cli.main import holdfast
from holdfast.testing import ScratchStore
from terminal import written

LAYOUTS = Path(__file__).with_name("layouts")
COLUMNS = {"80": 80, "200": 200, "pipe": 0}
ROWS = 130

READS = f"""
stats
queues list
queues list nothing-*
queues list --sort waiting --limit 2
queues show mail
queues show import
queues stats mail
queues show mial
jobs list
jobs list queue:mail
jobs list state:failed
jobs list state:running --columns jid,worker,popped,data,tags
jobs list tag:nobody
jobs list queu:mail
jobs list queue:import --limit 2
jobs show {layout_store.jid(1)}
jobs show {layout_store.jid(102)}
jobs show after
jobs show nobody
jobs tree after
jobs why {layout_store.jid(0)}
jobs why later
jobs why report-12
jobs why {layout_store.jid(100)}
jobs log {layout_store.jid(1)}
jobs log after
jobs result {layout_store.jid(3)}
jobs result after
jobs stack after
jobs export jid:{layout_store.jid(0)}
failed
failed list nothing-*
failed show mail-ValueError
operations
operations show {layout_store.jid(900)}
operations show {layout_store.jid(902)}
workers list
workers show {layout_store.HOST}-4710-0
workers show old
workers check old {layout_store.HOST}-4710
workers stack old
recurring list
recurring show nightly-report
throttles list
throttles show printer
topics list
topics show reminders
topics get reminders order-17
topics get reminders nobody
topics ready reminders
tags
audit
audit --who eve
config list
config dump
config get heartbeat
config get nothing
acl viewer
metrics show --queues 1
"""
CHANGES = f"""
queues pause mail --why 'no mail server' --for 2h
queues pause mail mail-eu
queues resume mail*
queues set mail max-waiting 100
queues purge mail-eu --state scheduled --dry-run
queues purge mail --yes
queues drain mail --timeout 10ms
queues forget import
jobs retry {layout_store.jid(100)} nobody
jobs retry --filter state:failed --dry-run
jobs cancel --filter queue:reports --yes
jobs move slow row-1 row-2
jobs edit row-3 --priority 5 --tag new
jobs delete row-4
jobs expire {layout_store.jid(1)}
jobs fail row-5
jobs run later
jobs track row-5
jobs untrack row-5 row-6
jobs import jobs.jsonl --keep-jids
failed retry import-shop.errors.ARatherLongNameOfAnErrorThatGoesOnAndOn --yes
failed mute mail-ValueError --for 2h
failed unmute mail-ValueError
failed cancel mail-ValueError --yes
operations resume {layout_store.jid(902)}
operations stop {layout_store.jid(902)}
operations undo {layout_store.jid(902)} --yes
workers quiet {layout_store.HOST}-4710
workers resume {layout_store.HOST}-4710 nobody
workers forget old
recurring run nightly-report
recurring pause nightly-report
recurring resume nightly-report poll
recurring edit nightly-report --interval 1d
recurring delete poll --yes
throttles set printer 2 --for 1h
throttles release printer report-12 --yes
throttles delete printer --yes
topics put reminders order-19 hello
topics reserve reminders --ttr 5m
topics give-back reminders order-18
topics reserve reminders
topics done reminders order-18 nobody
topics reserve reminders --json
topics release reminders order-19 --delay 1h
topics release reminders order-19
topics requeue reminders
topics put reminders order-20 hello
topics pull reminders --limit 2
topics delete reminders order-17 nobody --yes
config set heartbeat 60
config unset heartbeat
config load settings.json
put shop.jobs.mail.send --arg 7 --jid put-1
"""
EMPTY = """
stats
queues list
jobs list
failed
operations
workers list
recurring list
throttles list
topics list
tags
audit
config list
"""
OTHERS = {
    "demo": "runs for a minute; test_demo.py",
    "worker": "logs until it is stopped; tests/worker",
    "store": "the embedded store; test_store.py",
    "settings": "shows the environment and a file; test_settings_command.py",
    "flows": "jobs that follow each other; test_flows_command.py",
    "stats statsd": "prints nothing; test_stats_command.py",
    "top": "fills the screen; test_top.py",
    "doctor": "shows the server that it runs on; test_doctor_command.py",
    "metrics serve": "serves until it is stopped; test_metrics_command.py",
    "events": "follows what happens; test_events_command.py",
    "notify": "follows what happens; test_notify_command.py",
    "topics serve": "serves until it is stopped; tests/web/test_topic_endpoints.py",
    "recurring next": "counts from the time of day; test_operator_commands.py",
    "recurring prune": "deletes what workers have noted; test_operator_commands.py",
    "workers drain": "waits for a worker; test_incidents.py",
    "recurring add": "makes a job beside those of the layouts; tests/console/test_findings.py",
    "topics push": "delivers until it is stopped; test_topics_push.py",
    "lua": "prints Lua; test_lua_texts.py",
    "bench": "prints measurements; test_bench.py",
    "web": "serves until it is stopped; tests/web/test_serving.py",
}
"""Commands whose output differs each time, or is no picture; and where they are tested."""


@pytest.fixture
def scratch() -> Iterator[ScratchStore]:
    """A store for each test: its core remembers that a minute of a queue was noted, and the clock of the next test begins earlier."""
    with ScratchStore() as store:
        yield store


@pytest.mark.full
@pytest.mark.parametrize("form", COLUMNS)
def test_each_command_prints_what_its_layout_shows(scratch: ScratchStore, tmp_path: Path, form: str) -> None:
    with Client(scratch.url, namespace=layout_store.NAMESPACE) as client:
        layout_store.make(client)
    (tmp_path / "jobs.jsonl").write_text('{"jid": "in-1", "queue": "slow", "klass": "K"}\n')
    (tmp_path / "settings.json").write_text('{"heartbeat": 30}')
    shown = [
        picture(line, COLUMNS[form], tmp_path, scratch.url, namespace)
        for namespace, part in ((layout_store.NAMESPACE, READS + CHANGES), ("default", EMPTY))
        for line in part.split("\n")
        if line
    ]
    file, text = LAYOUTS / f"{form}.txt", "\n\n".join(shown) + "\n"
    if os.environ.get("HOLDFAST_LAYOUTS") == "write":
        file.write_text(text)
    before = file.read_text().splitlines()
    differences = difflib.unified_diff(before, text.splitlines(), str(file), "now", lineterm="")
    assert not list(differences), "\n".join(difflib.unified_diff(before, text.splitlines(), lineterm=""))


@pytest.mark.full
def test_each_command_has_a_layout_or_a_test_of_its_own() -> None:
    shown = [shlex.split(line) for line in (READS + CHANGES).split("\n")]
    for words in commands(holdfast):
        known = " ".join(words) in OTHERS or words[0] in OTHERS
        named = words[:-1] if words[-1] == "list" and words[0] in ("failed", "operations") else words
        assert known or any(line[: len(named)] == named for line in shown), f"holdfast {' '.join(words)}"


PRINTS_JSON_ANYWAY = {"jobs export", "top", "metrics serve", "topics serve"}
"""Commands without --json: their output is lines of JSON, or nothing that a program reads."""


def test_each_command_has_json_and_examples() -> None:
    for words in commands(holdfast):
        name, command = " ".join(words), command_of(words)
        options = {option for parameter in command.params for option in parameter.opts}
        assert name in PRINTS_JSON_ANYWAY or "--json" in options, name
        text = f"{command.epilog}{command.help}"
        assert name in WITHOUT_EXAMPLES or "holdfast " in text, name


WITHOUT_EXAMPLES = {"demo", "worker", "top", "lua", "bench"}


def command_of(words: list[str]) -> click.Command:
    command: click.Command = holdfast
    for word in words:
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word) or command
    return command


@pytest.mark.full
@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {}])
def test_no_list_is_coloured(client: Client, url: str, namespace: str, environment: dict[str, str]) -> None:
    client.queues["mail"].put("K", jid="j")
    env = {**os.environ, "HOLDFAST_URL": url, "HOLDFAST_NAMESPACE": namespace, **environment}
    for line in ("stats", "queues list", "jobs why j", "doctor"):
        words = [sys.executable, "-m", "holdfast.cli.main", *line.split()]
        assert b"\x1b" not in written(words, 80, Path.cwd(), env)[1]


def commands(group: click.Group, before: tuple[str, ...] = ()) -> Iterator[list[str]]:
    """The words of each command below a group; a group that runs by itself is one too."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        words = (*before, name)
        if isinstance(command, click.Group):
            yield from commands(command, words)
            if not command.invoke_without_command:
                continue
        yield list(words)


def picture(line: str, columns: int, directory: Path, url: str, namespace: str) -> str:
    """A command line, what a person sees of it, and its exit code if that is not 0."""
    environment = {
        **os.environ,
        "HOLDFAST_URL": url,
        "HOLDFAST_NAMESPACE": namespace,
        "TERM": "xterm-256color",
    }
    for name in ("COLUMNS", "LINES", "NO_COLOR"):
        environment.pop(name, None)
    words = [sys.executable, "-m", "holdfast.cli.main", *shlex.split(line)]
    code, text = (on_terminal if columns else in_pipe)(words, columns, directory, environment)
    text = re.sub(r"\b0[0-9a-f]{31}\b", lambda found: found[0] if "e7157000" in found[0] else "f" * 32, text)
    text = re.sub(r"(holdfast_scrape_seconds) [0-9.e-]+", r"\1 0.002", text)
    text = re.sub(r"(holdfast_store_memory_bytes) [0-9.e+]+", r"\1 2.8e+06", text)
    text = re.sub(r"(running after) [0-9.]+ s\b", r"\1 0.1 s", text)
    return f"$ holdfast {line}\n{text}" + (f"\n(exit code {code})" if code else "")


def in_pipe(words: list[str], columns: int, directory: Path, environment: dict[str, str]) -> tuple[int, str]:
    done = programs.run(words, cwd=directory, env=environment)
    shown = (done.stdout.rstrip(), *(f"(error) {line}" for line in done.stderr.splitlines()))
    return done.returncode, "\n".join(line for line in shown if line)


def on_terminal(
    words: list[str], columns: int, directory: Path, environment: dict[str, str]
) -> tuple[int, str]:
    """The exit code, and what stands on the screen."""
    screen = pyte.Screen(columns, ROWS)
    code, text = written(words, columns, directory, environment)
    pyte.ByteStream(screen).feed(text)
    return code, "\n".join(line.rstrip() for line in screen.display).rstrip()
