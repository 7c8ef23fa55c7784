"""Which store and namespace a command works on, how long it waits for the store, and what it prints if either is missing."""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

import programs
from holdfast import Client
from holdfast.cli.main import run
from holdfast.commands.workers import WorkerSeen
from holdfast.testing import ScratchStore

Called = subprocess.CompletedProcess[str]


def call(*words: str, **environment: str) -> Called:
    """Run a command line to its end, in an environment that names no store but what is given here."""
    names = ("HOLDFAST_URL", "REDIS_URL", "HOLDFAST_NAMESPACE")
    clean = {name: text for name, text in os.environ.items() if name not in names}
    return programs.run([sys.executable, "-m", "holdfast.cli.main", *words], env=clean | environment)


def is_one_sentence(text: str) -> bool:
    return text.startswith("holdfast: ") and text.count("\n") == 1


@pytest.mark.full
def test_the_namespace_and_the_store_of_the_environment_are_used_unless_flags_name_others(
    client: Client, url: str, namespace: str
) -> None:
    client.queues["mail"].put("K")
    with Client(url, namespace=f"{namespace}-b") as other:
        other.queues["post"].put("K")
    found = call("stats", HOLDFAST_URL=url, HOLDFAST_NAMESPACE=namespace)
    assert "mail\t1\t0" in found.stdout, found.stderr
    found = call("stats", "--namespace", f"{namespace}-b", HOLDFAST_URL=url, HOLDFAST_NAMESPACE=namespace)
    assert "post\t1\t0" in found.stdout, found.stderr


@pytest.mark.full
@pytest.mark.parametrize(
    "words", [("{}", "queues", "list"), ("queues", "{}", "list"), ("queues", "list", "{}"), ("{}", "tags")]
)
def test_the_store_and_the_namespace_may_be_named_before_and_behind_the_command(
    client: Client, url: str, namespace: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    client.queues["mail"].put("K", tags=["mail"])
    place = ["--url", url, "--namespace", namespace]
    assert run([part for word in words for part in (place if word == "{}" else [word])]) == 0
    assert "mail\t1" in capsys.readouterr().out


def test_what_stands_behind_the_command_wins(
    client: Client, url: str, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    client.queues["mail"].put("K")
    before = ["--url", "redis://127.0.0.1:1", "--namespace", "elsewhere"]
    assert run([*before, "queues", "list", "--url", url, "--namespace", namespace]) == 0
    assert "mail\t1" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ("stats",),
        ("jobs", "why", "j"),
        ("jobs", "stack", "j"),
        ("workers", "list"),
        ("workers", "quiet", "w"),
    ],
)
def test_a_namespace_that_does_not_exist_is_named_and_not_made(
    url: str, namespace: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        assert run([*words, "--url", url, "--namespace", namespace]) == 1
        printed = capsys.readouterr()
        assert printed.out == ""
        assert is_one_sentence(printed.err)
        assert (
            f"there is no namespace '{namespace}' in the store {url} (URL from --url): check --namespace"
            in printed.err
        )


def test_the_default_namespace_needs_no_first_put(capsys: pytest.CaptureFixture[str]) -> None:
    with ScratchStore() as store:
        assert run(["stats", "--url", store.url, "--namespace", "default"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "0 failed jobs, 0 workers"


@pytest.mark.full
@pytest.mark.parametrize(
    "words",
    [("stats",), ("jobs", "why", "j"), ("workers", "list"), ("config", "get", "k"), ("notify",), ("bench",)],
)
def test_a_store_that_refuses_connections_is_given_up_with_one_sentence(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    begun = monotonic()
    assert run([*words, "--url", "redis://127.0.0.1:1", "--wait", "0.2"]) == 3
    assert monotonic() - begun < 20
    printed = capsys.readouterr().err
    assert is_one_sentence(printed)
    assert "no connection to the store redis://127.0.0.1:1 (URL from --url) in " in printed
    assert "--wait SECONDS waits longer" in printed


@pytest.mark.full
@pytest.mark.parametrize(("words", "flag"), [(("stats",), "--wait"), (("put", "a.b"), "--store-wait")])
def test_a_refused_connection_is_given_up_after_a_second_and_the_error_names_what_gave_the_url(
    words: tuple[str, ...], flag: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_URL", raising=False)
    monkeypatch.setenv("REDIS_URL", "redis://me:secret@127.0.0.1:1/3")
    assert run(words) == 3
    printed = capsys.readouterr().err
    found = re.search(
        r"no connection to the store redis://me:…@127.0.0.1:1/3 \(URL from REDIS_URL\) in .* over ([\d.]+) s",
        printed,
    )
    assert found, printed
    assert float(found[1]) < 2.5
    assert f"{flag} SECONDS waits longer" in printed
    assert "secret" not in printed
    assert run([*words, flag, "2.9"]) == 3
    found = re.search(r" over ([\d.]+) s", capsys.readouterr().err)
    assert found
    assert float(found[1]) >= 2.8


def test_a_program_names_the_file_that_gave_a_url_where_nothing_listens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOLDFAST_URL", raising=False)
    Path("holdfast.toml").write_text('[notify]\nurl = "redis://127.0.0.1:1"\n')
    assert run(["notify", "--wait", "0.2"]) == 3
    assert "redis://127.0.0.1:1 (URL from holdfast.toml, [notify] url)" in capsys.readouterr().err


@pytest.mark.full
def test_a_store_that_accepts_and_never_replies_is_given_up_after_three_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        begun = monotonic()
        assert run(["stats", "--url", f"redis://127.0.0.1:{silent.getsockname()[1]}"]) == 3
    assert 2.5 < monotonic() - begun < 20
    found = re.search(r"the store \S+ \(URL from --url\) in .* over ([\d.]+) s", capsys.readouterr().err)
    assert found
    assert float(found[1]) >= 2.5


@pytest.mark.full
@pytest.mark.parametrize(
    "words",
    [
        ("stats", "--url", "redis://a..b:99"),
        ("worker", "-q", "q", "--url", "redis://a..b:99"),
        ("worker", "-q", "q", "--host", "a..b"),
        ("bench", "--host", "a..b"),
        ("stats", "statsd", "--host", "a..b"),
        ("notify", "--webhook", "http://["),
        ("notify", "--chat", "http://a..b/"),
        ("store", "path", "--dir", "~nosuch/x"),
        ("store", "start", "--dir", "~nosuch/x"),
        ("store", "status", "--dir", "~nosuch/x"),
        ("store", "stop", "--dir", "~nosuch/x"),
        ("demo", "--dir", "~nosuch/x"),
    ],
)
def test_a_host_a_url_or_a_directory_that_cannot_be_is_a_usage_error(words: tuple[str, ...]) -> None:
    found = call(*words)
    assert (found.returncode, found.stdout) == (2, "")
    assert is_one_sentence(found.stderr)


@pytest.mark.full
def test_a_directory_of_the_environment_that_cannot_be_is_a_usage_error() -> None:
    found = call("store", "path", HOLDFAST_DIR="~nosuch/x")
    assert found.returncode == 2
    assert is_one_sentence(found.stderr)


@pytest.fixture
def why(url: str, namespace: str) -> Callable[..., dict[str, str]]:
    """Runs `holdfast jobs why` with flags, and returns the remedy of each check."""

    def ask(jid: str, **environment: str) -> dict[str, str]:
        flags = () if environment else ("--url", url, "--namespace", namespace)
        found = call("jobs", "why", *flags, "--", jid, **environment)
        rows = [line.split("\t") for line in found.stdout.splitlines() if line.count("\t") == 3]
        return {row[0]: row[3] for row in rows}

    return ask


@pytest.mark.full
def test_a_command_in_a_remedy_works_as_it_is_printed(
    client: Client, url: str, namespace: str, why: Callable[..., dict[str, str]]
) -> None:
    queue = client.queues["mail"]
    queue.put("K", jid="-parent")
    queue.put("K", jid="child", depends=["-parent"])
    remedy = why("child")["dependencies"]
    assert remedy == f"holdfast jobs why --url {shlex.quote(url)} --namespace {namespace} -- -parent"
    found = call(*shlex.split(remedy)[1:])
    assert found.returncode == 0, found.stderr
    assert "No worker is known" in found.stdout
    assert why("-parent")["workers"].endswith(f"--url {shlex.quote(url)} --namespace {namespace}")


@pytest.mark.full
def test_a_remedy_repeats_no_flag_that_the_environment_has(
    client: Client, url: str, namespace: str, why: Callable[..., dict[str, str]]
) -> None:
    client.queues["mail"].put("K", jid="j")
    assert why("j", HOLDFAST_URL=url, HOLDFAST_NAMESPACE=namespace)["workers"] == "holdfast worker -q mail"


@pytest.mark.full
def test_quiet_workers_are_resumed_by_the_command_that_is_printed(
    client: Client, why: Callable[..., dict[str, str]]
) -> None:
    client.queues["mail"].put("K", jid="j")
    for name in ("w-0", "w-1"):
        client.run(WorkerSeen(name, {"queues": '["mail"]', "slots": "1", "pool": "process"}))
        client.workers.quiet(name)
    remedy = why("j")["workers"]
    assert remedy.startswith("holdfast workers resume --url ")
    assert call(*shlex.split(remedy)[1:]).returncode == 0
    assert not any(worker.quiet for worker in client.workers.all())


@pytest.mark.full
def test_a_result_that_does_not_come_in_time_names_a_complete_command(
    client: Client, url: str, namespace: str
) -> None:
    jid = client.queues["mail"].put("K")
    with pytest.raises(TimeoutError) as caught:
        client.result_of(jid, 0.01)
    [command] = re.findall(r"`holdfast (jobs [^`]*)`", str(caught.value))
    assert call(*shlex.split(command)).returncode == 0
    assert f"--namespace {namespace}" in command


def test_a_password_is_in_no_command_that_is_printed() -> None:
    client = Client("redis://ann:sEcrEt@box:1/0", namespace="shop")
    assert client.settings.flags == " --url 'redis://ann:…@box:1/0' --namespace shop"


def test_a_client_in_the_namespace_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_NAMESPACE", "shop")
    assert Client("redis://box").settings.namespace == "shop"
    assert Client("redis://box", namespace="other").settings.namespace == "other"
    monkeypatch.setenv("HOLDFAST_NAMESPACE", "")
    assert Client("redis://box").settings.namespace == "default"


@pytest.mark.full
def test_stats_and_the_list_of_workers_have_the_same_number_of_workers(
    client: Client, url: str, namespace: str
) -> None:
    place: Any = ("--url", url, "--namespace", namespace)
    for name in ("a-0", "a-1", "b"):
        client.run(WorkerSeen(name, {"pool": "process"}))
        client.queues["mail"].put("K")
    client.queues["mail"].pop()  # as a program does that is not a worker command
    listed = call("workers", "list", *place).stdout.splitlines()[1:]
    assert call("stats", *place).stdout.splitlines()[-1] == f"0 failed jobs, {len(listed)} workers"


@pytest.mark.full
def test_the_version_is_the_same_everywhere(client: Client, url: str, namespace: str) -> None:
    words = ("worker", "-q", "mail", "--url", url, "--namespace", namespace, "--workers", "1")
    working = subprocess.Popen([sys.executable, "-m", "holdfast.cli.main", *words], stderr=subprocess.DEVNULL)
    try:
        end = monotonic() + 30
        while not (found := client.workers.all()) and monotonic() < end:
            signal.sigtimedwait([signal.SIGCHLD], 0.05)
        assert {worker.facts["version"] for worker in found} == {call("--version").stdout.split()[1]}
    finally:
        working.terminate()
        working.wait(30)
