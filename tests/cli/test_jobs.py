"""`holdfast jobs`, through the command itself."""

import json

import pytest

from command_line import holdfast
from holdfast import Client


@pytest.mark.full
def test_why_says_what_keeps_a_job_from_running(client: Client, url: str, namespace: str) -> None:
    queue = client.queues["mail"]
    jid = queue.put("K")
    queue.pause(why="deploy")
    said = holdfast("jobs", "why", jid, "--url", url, "--namespace", namespace)
    assert said.returncode == 0, said.stderr
    first, head, *rows = said.stdout.splitlines()
    assert first.startswith("Queue mail was paused")
    assert head.split("\t") == ["check", "verdict", "finding", "remedy"]
    table = {row.split("\t")[0]: row.split("\t")[1:] for row in rows}
    assert table["pause"][0] == "blocks"
    assert table["pause"][2] == f"holdfast queues resume --url {url} --namespace {namespace} mail"


def test_why_answers_programs_with_json(client: Client, url: str, namespace: str) -> None:
    jid = client.queues["mail"].put("K", delay=60)
    said = holdfast("jobs", "why", jid, "--url", url, "--namespace", namespace, "--json")
    found = json.loads(said.stdout)
    assert (found["jid"], found["state"]) == (jid, "scheduled")
    assert [check["check"] for check in found["checks"] if check["verdict"] == "blocks"] == ["due", "workers"]


@pytest.mark.full
def test_why_ends_with_1_for_a_job_that_nobody_knows(client: Client, url: str, namespace: str) -> None:
    client.queues["mail"].put("K")
    said = holdfast("jobs", "why", "nobody", "--url", url, "--namespace", namespace)
    assert (said.returncode, said.stderr) == (1, "")
    assert "no such job" in said.stdout
