"""`holdfast jobs`: find, show and change jobs, through the command itself."""

import json
import re
from pathlib import Path

import pytest

import programs
from command_line import holdfast
from holdfast import Client
from holdfast.code.put_options import OPTIONS
from holdfast.commands.leases import Complete
from terminal import Terminal

WRONG = [
    ("sate:failed", 'unknown field "sate"; did you mean "state"?', "\n  sate:failed\n  ^\n"),
    ("state:failed (queue:x", 'this "(" is not closed', "\n  state:failed (queue:x\n               ^\n"),
]


@pytest.fixture
def place(url: str, namespace: str) -> tuple[str, ...]:
    return ("--url", url, "--namespace", namespace)


def fail(
    client: Client, queue: str, count: int, group: str = "", message: str = "ValueError: no"
) -> list[str]:
    """Put jobs that then fail, and return their jids."""
    for _ in range(count):
        client.queues[queue].put("jobs.send", {"n": 1})
    jobs = client.queues[queue].pop(count)
    for job in jobs:
        job.fail(group or f"{queue}-ValueError", message)
    return [job.jid for job in jobs]


def lines(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


def test_list_shows_what_a_filter_matches_and_states_the_effort(
    client: Client, place: tuple[str, ...]
) -> None:
    jid = client.queues["mail"].put("jobs.send", {"order": {"id": 17}}, tags=["vip"])
    client.queues["mail"].put("jobs.send", {"order": {"id": 18}})
    said = holdfast("jobs", "list", "data.order.id=17", *place)
    head, *rows = lines(said.stdout)
    assert (said.returncode, head) == (0, ["jid", "state", "queue", "job", "age"])
    assert [row[:4] for row in rows] == [[jid, "waiting", "mail", "jobs.send"]]
    assert said.stderr == "1 job found; searched 2 of 2: 2 jobs in any state in 1 queue\n"
    said = holdfast("jobs", "list", "tag:vip", "--columns", "jid,tags,data,ended", *place)
    assert lines(said.stdout)[1] == [jid, "vip", '{"order": {"id": 17}}', ""]
    assert "1 job by tag" in said.stderr


@pytest.mark.full
def test_list_is_paged_by_a_cursor_and_all_follows_it(client: Client, place: tuple[str, ...]) -> None:
    jids = {client.queues[f"q{at}"].put("K") for at in range(5)}
    first = json.loads(holdfast("jobs", "list", "--limit", "3", "--json", *place).stdout)
    assert (len(first["jobs"]), first["candidates"]) == (3, 5)
    second = json.loads(holdfast("jobs", "list", "--after", first["cursor"], "--json", *place).stdout)
    assert second["cursor"] == ""
    assert {row["jid"] for row in first["jobs"] + second["jobs"]} == jids
    row = second["jobs"][0]
    assert (row["ended"], row["tags"], row["data"]) == (None, [], {})
    assert abs(row["created"] - client.store_time()) < 600
    said = holdfast("jobs", "list", "--all", *place)
    assert {row[0] for row in lines(said.stdout)[1:]} == jids
    said = holdfast("jobs", "list", "--limit", "3", *place)
    assert "To continue: holdfast jobs list --url" in said.stderr


@pytest.mark.full
@pytest.mark.parametrize(("text", "sentence", "caret"), WRONG)
def test_a_filter_that_cannot_be_read_is_shown_with_its_place(
    text: str, sentence: str, caret: str, client: Client, place: tuple[str, ...]
) -> None:
    client.queues["q"].put("K")
    for words in (("jobs", "list", text), ("jobs", "cancel", "--filter", text), ("jobs", "export", text)):
        said = holdfast(*words, *place)
        assert (said.returncode, said.stdout) == (2, "")
        assert sentence in said.stderr
        assert caret in said.stderr


@pytest.mark.full
def test_wrong_words_are_usage_errors(client: Client, place: tuple[str, ...]) -> None:
    jid = client.queues["q"].put("K")
    for words in (
        ("list", "--columns", "jid,nope"), ("list", "--all", "--after", "x"), ("list", "--after", "x"), ("retry",),
        ("retry", jid, "--filter", "state:failed"), ("retry", jid, "--rate", "3"), ("cancel", "--filter", ""),
        ("edit", jid), ("edit", jid, "--data", "{"), ("edit", jid, "--patch", "[1]"), ("edit", jid, "--tag", "a,b"),
        ("edit", "--filter", "queue:q", "--data", "{}"), ("edit", jid, "--data", "[" * 9000),
        ("retry", "--filter", "state:failed", "--rate", "nan"), ("log", jid, "--follow", "--interval", "nan"), ("edit", "--filter", "queue:q", "--tag", "a", "--priority", "1"),
    ):  # fmt: skip
        said = holdfast("jobs", *words, *place)
        assert (said.returncode, said.stdout) == (2, ""), words
        assert "Traceback" not in said.stderr


def test_show_has_everything_about_a_job(client: Client, place: tuple[str, ...]) -> None:
    [jid] = fail(
        client, "mail", 1, message="Traceback (most recent call last):\n  x\nValueError: bad address"
    )
    after = client.queues["mail"].put(
        "jobs.next", depends=[client.queues["mail"].put("jobs.first", jid="first")]
    )
    said = holdfast("jobs", "show", jid, *place)
    assert said.returncode == 0
    for text in (
        "\nstate     failed\n",
        "ValueError: bad address",
        '  "n": 1\n',
        "mail-ValueError",
        "popped queue=mail",
    ):
        assert text in said.stdout
    found = json.loads(holdfast("jobs", "show", jid, "--json", *place).stdout)
    assert (found["facts"]["state"], found["attempts"][0]["outcome"]) == ("failed", "failed")
    assert found["facts"]["failure"]["group"] == "mail-ValueError"
    assert (
        "waits for\njid\tstate\tqueue\tjob\nfirst\twaiting" in holdfast("jobs", "show", after, *place).stdout
    )
    assert (
        f"is waited for by\njid\tstate\tqueue\tjob\n{after}"
        in holdfast("jobs", "show", "first", *place).stdout
    )


def test_show_has_the_options_of_the_put_that_are_kept(client: Client, place: tuple[str, ...]) -> None:
    jid = client.queues["mail"].put(
        "jobs.send", expires=3600, timeout=90, result_keep=0, backoff="exponential"
    )
    shown = holdfast("jobs", "show", jid, *place).stdout
    facts = dict(re.split("  +", line, maxsplit=1) for line in shown.partition("\n\n")[0].splitlines())
    assert {name: facts[name] for name in ("time limit", "result kept", "backoff")} == {
        "time limit": "1 min 30 s",
        "result kept": "0 s",
        "backoff": "1 s to 600 s",
    }
    assert re.search(r" UTC \(in (59 min|1 h)", facts["expires"])
    kept = {option.label.lower() for option in OPTIONS.values() if option.stored}
    plain = holdfast("jobs", "show", client.queues["mail"].put("jobs.send"), *place).stdout
    assert kept <= set(facts)
    assert not [line for line in plain.splitlines() if line.startswith(tuple(kept))]


@pytest.mark.full
def test_a_job_of_another_namespace_does_not_exist(client: Client, url: str, place: tuple[str, ...]) -> None:
    client.queues["q"].put("K")
    with Client(url, namespace=f"{client.settings.namespace}-b") as other:
        jid = other.queues["q"].put("K")
    for words in (
        ("show", jid),
        ("log", jid),
        ("result", jid),
        ("cancel", jid),
        ("edit", jid, "--data", "{}"),
    ):
        said = holdfast("jobs", *words, *place)
        assert (said.returncode, said.stdout) == (1, ""), words
        assert said.stderr.startswith("holdfast: ")
        assert said.stderr.count("\n") == 1


def test_log_prints_lines_and_progress_and_follows_to_the_end(client: Client, place: tuple[str, ...]) -> None:
    jid = client.queues["q"].put("K")
    [job] = client.queues["q"].pop(1)
    job.report(0.5, "half", lines=["one", "two"])
    said = holdfast("jobs", "log", jid, *place)
    assert (said.returncode, said.stdout, said.stderr) == (0, "one\ntwo\n", "running, 50% half\n")
    with Terminal("jobs", "log", jid, "--follow", "--interval", "0.1", *place) as screen:
        screen.shows("one", "two", "running, 50% half")
        job.report(0.9, "nearly", lines=["three"])
        screen.shows("three", "90% nearly")
        job.fail("q-X", "over")
        screen.shows("failed")
        assert screen.code() == 1


@pytest.mark.full
def test_result_is_json_or_a_sentence(client: Client, place: tuple[str, ...]) -> None:
    jid = client.queues["q"].put("K", result_keep=60)
    said = holdfast("jobs", "result", jid, *place)
    assert (said.returncode, said.stdout) == (1, "")
    assert f"{jid} has not ended; `holdfast jobs why" in said.stderr
    [job] = client.queues["q"].pop(1)
    client.run(Complete(client.worker_name, job.facts, keep_ms=60_000, result=b'{"sum": 3}'))
    said = holdfast("jobs", "result", jid, *place)
    assert (said.returncode, json.loads(said.stdout)) == (0, {"sum": 3})
    [failed] = fail(client, "q", 1, message="over")
    said = holdfast("jobs", "result", failed, *place)
    assert (said.returncode, said.stderr) == (1, "holdfast: q-ValueError: over\n")


@pytest.mark.full
def test_each_action_changes_jobs_by_jid_and_names_those_that_refuse(
    client: Client, place: tuple[str, ...]
) -> None:
    [jid] = fail(client, "mail", 1)
    said = holdfast("jobs", "retry", jid, "nope", *place)
    assert (said.returncode, said.stdout) == (1, f"{jid} retried\n")
    assert said.stderr == "holdfast: job nope does not exist\n"
    said = holdfast("jobs", "retry", jid, "--json", *place)
    refused = {"jid": jid, "code": "HF_WRONG_STATE", "reason": f"{jid} is waiting"}
    assert (said.returncode, json.loads(said.stdout)) == (
        1,
        {"changed": [], "same": [], "refused": [refused]},
    )
    for words, shown in (
        (("move", "slow", jid), "moved"), (("edit", jid, "--delay", "60"), "delayed"), (("run", jid), "started"),
        (("track", jid), "tracked"), (("track", jid), "unchanged"), (("untrack", jid), "untracked"),
    ):  # fmt: skip
        said = holdfast("jobs", *words, *place)
        assert (said.returncode, said.stdout) == (0, f"{jid} {shown}\n"), said.stderr
    [job] = client.queues["slow"].pop(1)
    assert (job.jid, holdfast("jobs", "expire", jid, *place).stdout) == (jid, f"{jid} expired\n")
    assert holdfast("jobs", "cancel", jid, *place).stdout == f"{jid} cancelled\n"
    assert client.jobs[jid] is None


@pytest.mark.full
def test_delete_refuses_what_runs_and_cancel_does_not(client: Client, place: tuple[str, ...]) -> None:
    jid = client.queues["q"].put("K")
    client.queues["q"].pop(1)
    said = holdfast("jobs", "delete", jid, *place)
    assert (said.returncode, said.stderr) == (1, f"holdfast: {jid} is running\n")
    waiting = client.queues["q"].put("K")
    said = holdfast("jobs", "delete", "--filter", "queue:q", "--yes", *place)
    assert said.returncode == 0
    assert client.jobs[waiting] is None
    assert holdfast("jobs", "cancel", jid, *place).returncode == 0


@pytest.mark.full
def test_edit_changes_data_and_attributes(client: Client, place: tuple[str, ...], tmp_path: Path) -> None:
    jid = client.queues["q"].put("K", {"a": 1, "b": {"c": 2}}, tags=["old"])
    words = (
        "--patch",
        '{"a": null, "b": {"d": 3}}',
        "--priority",
        "7",
        "--retries",
        "2",
        "--tag",
        "x",
        "--untag",
        "old",
    )
    said = holdfast("jobs", "edit", jid, *words, *place)
    assert (said.returncode, said.stdout.count("\n")) == (0, 5)
    job = client.job(jid)
    assert (json.loads(job.data), job.priority, job.original_retries, job.tags) == (
        {"b": {"c": 2, "d": 3}},
        7,
        2,
        ["x"],
    )
    (tmp_path / "new.json").write_text('{"z": 1}')
    assert (
        holdfast("jobs", "edit", jid, "--data", f"@{tmp_path}/new.json", *place).stdout == f"{jid} changed\n"
    )
    assert holdfast("jobs", "edit", jid, "--data", '{"z": 1}', *place).stdout == f"{jid} unchanged\n"
    assert json.loads(client.job(jid).data) == {"z": 1}
    client.queues["q"].pop(1)
    said = holdfast("jobs", "edit", jid, "--data", "{}", *place)
    assert (said.returncode, said.stderr) == (1, f"holdfast: {jid} is running\n")


def test_an_edit_in_the_editor_does_not_overwrite_a_change_made_meanwhile(
    client: Client, url: str, namespace: str, place: tuple[str, ...], tmp_path: Path
) -> None:
    jid = client.queues["q"].put("K", {"n": 1})
    editor = tmp_path / "editor"
    other = f"holdfast.Client({url!r}, namespace={namespace!r})"
    editor.write_text(
        "#!/bin/sh\nsed -i s/1/2/ $1\n"
        f"""[ -z "$MEANWHILE" ] || {programs.sys.executable} -c "import holdfast; """
        f"""from holdfast.console.handles import Console; Console({other}).edit('{jid}', {{'n': 5}})"\n"""
    )
    editor.chmod(0o755)
    with Terminal(
        "jobs", "edit", jid, "--editor", *place, env={"EDITOR": str(editor), "VISUAL": str(editor)}
    ) as screen:
        screen.shows("changed")
        assert screen.code() == 0
    assert json.loads(client.job(jid).data) == {"n": 2}
    env = {"EDITOR": str(editor), "VISUAL": str(editor), "MEANWHILE": "1"}
    client.queues["q"].put("K", {"n": 1}, jid=jid)
    with Terminal("jobs", "edit", jid, "--editor", *place, env=env) as screen:
        screen.shows("was changed meanwhile")
        assert screen.code() == 1
    assert json.loads(client.job(jid).data) == {"n": 5}
