"""`holdfast flows`: what operators see of flows, and do with them."""

import json
from typing import Any

import pytest

from command_line import holdfast
from holdfast import Client, group
from holdfast.commands.admin import AuditList
from holdfast.commands.leases import Complete

EVIL = "\x1b]0;owned\x07"


@pytest.fixture
def run(url: str, namespace: str) -> Any:
    """Runs a command in a pipe."""
    return lambda *words: holdfast(*words, "--url", url, "--namespace", namespace)


@pytest.fixture
def read(run: Any) -> Any:
    """Runs a command, which succeeds, and returns its JSON."""

    def reads(*words: str) -> Any:
        done = run(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return reads


@pytest.fixture
def nightly(client: Client) -> str:
    """A flow of three jobs, of which the second has failed and the third with it."""

    @client.job(name="shop.count", queue="q")
    def count(page: int) -> int:
        return page

    @client.job(name="shop.total", queue="q")
    def total(counts: list[int]) -> int:
        return sum(counts)

    client.put(group([count.call(1), count.call(2)]).then(total), jid="nightly")
    first, second = client.queues["q"].pop(2)
    client.run(Complete(client.worker_name, first, keep_ms=60_000, result=b"1"))
    second.fail("Broken", "it broke")
    return "nightly"


def test_flows_are_listed_and_shown_with_their_jobs(read: Any, run: Any, nightly: str):
    [flow] = read("flows", "list")["flows"]
    assert (flow["jid"], flow["label"], flow["state"]) == (nightly, "total", "failed")
    assert flow["counts"] == {"complete": 1, "failed": 2}
    assert run("flows").stdout.splitlines()[1].split("\t")[:5] == ["nightly", "total", "failed", "3", "3"]
    shown = read("flows", "show", nightly)
    assert [(job["jid"], job["state"], job["waits_for"]) for job in shown["jobs"]] == [
        ("nightly-0", "complete", ""),
        ("nightly-1", "failed", ""),
        ("nightly-2", "failed", "nightly-1"),
    ]


def test_failed_jobs_of_a_flow_are_retried_and_open_ones_cancelled_with_a_line_in_the_audit_log(
    read: Any, run: Any, nightly: str, client: Client
):
    assert read("flows", "retry", nightly) == {"retried": 2, "refused": {}}
    assert client.flow(nightly).counts == {"complete": 1, "waiting": 1, "depends": 1}
    assert "Give --yes" in run("flows", "cancel", nightly).stderr
    assert read("flows", "cancel", nightly, "--yes") == {"cancelled": 2, "refused": {}}
    assert client.flow(nightly).counts == {"complete": 1, "gone": 2}
    assert [line.what for line in client.run(AuditList())][:2] == ["cancel", "retry"]


def test_flows_that_have_ended_well_are_taken_off_the_list(read: Any, nightly: str, client: Client):
    @client.job(name="shop.other", queue="other")
    def other(page: int) -> int:
        return page

    client.put(other.call(1), jid="done")
    client.queues["other"].pop().complete()
    assert read("flows", "prune", "--yes") == {"pruned": ["done"]}
    assert [flow["jid"] for flow in read("flows", "list")["flows"]] == [nightly]


def test_an_unknown_flow_is_an_error_and_its_name_is_printable(run: Any, nightly: str):
    for words in (("show",), ("cancel", "--yes"), ("retry",)):
        done = run("flows", words[0], "nobody", *words[1:])
        assert (done.returncode, "flow nobody does not exist" in done.stderr) == (1, True)
    done = run("flows", "show", f"no{EVIL}")
    assert done.returncode != 0
    assert "\x1b" not in done.stderr


def test_a_namespace_without_flows_lists_none(read: Any, client: Client):
    client.queues["q"].put("k")
    assert read("flows") == {"flows": [], "next": "", "total": 0}
