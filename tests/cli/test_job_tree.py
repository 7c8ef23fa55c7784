"""`holdfast jobs tree`: what a job waits for, and what waits for it."""

import json
from typing import Any

import pytest
from test_hostile_text import EVIL, steers

from command_line import holdfast
from holdfast import Client, chain, group
from holdfast.commands.leases import Complete


@pytest.fixture
def run(url: str, namespace: str) -> Any:
    """Runs a command in a pipe."""
    return lambda *words: holdfast("jobs", "tree", *words, "--url", url, "--namespace", namespace)


@pytest.fixture
def tree(run: Any) -> Any:
    """Returns the JSON of a tree."""

    def reads(*words: str) -> Any:
        done = run(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return reads


def jids(job: Any) -> Any:
    """The jids of a tree, as nested mappings."""
    return {one["jid"]: jids(one) for one in job["jobs"]}


@pytest.fixture
def nightly(client: Client) -> str:
    """A flow: two jobs, a third with their results, of which two more get the result. The first one is complete."""

    @client.job(name="tree.count", queue="q")
    def count(page: int) -> int:
        return page

    @client.job(name="tree.total", queue="q")
    def total(counts: list[int]) -> int:
        return sum(counts)

    sums = group([count.call(1), count.call(2)]).then(total)
    client.put(chain(sums, count).after(count.call(9), on_failure="run"), jid="nightly")
    [first] = client.queues["q"].pop(1)
    client.run(Complete(client.worker_name, first, keep_ms=60_000, result=b"1"))
    return "nightly"


def test_a_job_of_a_flow_shows_edges_that_are_closed_too(run: Any, tree: Any, client: Client, nightly: str):
    found = tree("nightly-3")
    assert found["flow"] == nightly
    before = found["waits_for"]["jobs"]
    assert [one["klass"] for one in before] == ["tree.count", "tree.count"]
    assert [[one["on_failure"] for one in parent["jobs"]] for parent in before] == [["run"], ["run"]]
    assert [[one["state"] for one in parent["jobs"]] for parent in before] == [["complete"], ["complete"]]
    assert [parent["jobs"][0]["is_repeated"] for parent in before] == [False, True]
    assert [(one["klass"], one["state"]) for one in found["waited_for_by"]["jobs"]] == [
        ("tree.count", "depends")
    ]
    shown = run("nightly-3").stdout
    assert "of flow nightly\n" in shown
    assert "waits for\n├─ nightly-" in shown
    assert "│  └─ nightly-" in shown
    assert "on_failure=run" in shown
    assert "(see above)" in shown


def test_jobs_that_depend_on_each_other_without_a_flow_are_a_tree(run: Any, tree: Any, client: Client):
    queue = client.queues["q"]
    queue.put("K", jid="a-1")
    queue.put("K", jid="b", depends=["a-1"])
    for jid in ("c", "d"):
        queue.put("K", jid=jid, depends=["b"])
    found = tree("b")
    assert (found["flow"], jids(found["waits_for"]), jids(found["waited_for_by"])) == (
        "",
        {"a-1": {}},
        {"c": {}, "d": {}},
    )
    assert jids(tree("a-1")["waited_for_by"]) == {"b": {"c": {}, "d": {}}}
    assert run("c").stdout.splitlines() == [
        "c depends K in queue q",
        "",
        "waits for",
        "└─ b depends K in queue q",
        "   └─ a-1 waiting K in queue q",
        "",
        "is waited for by",
        "no job",
    ]


def test_what_two_jobs_wait_for_is_shown_once(run: Any, tree: Any, client: Client):
    queue = client.queues["q"]
    for jid, parents in (("a", []), ("b", ["a"]), ("c", ["b"]), ("d", ["b"]), ("e", ["c", "d"])):
        queue.put("K", jid=jid, depends=parents)
    found = jids(tree("e")["waits_for"])
    assert sorted(map(str, found.values())) == ["{'b': {'a': {}}}", "{'b': {}}"]
    assert run("e").stdout.count("(see above)") == 1


def test_depth_and_number_are_limited_and_the_rest_is_counted(run: Any, tree: Any, client: Client):
    queue = client.queues["q"]
    queue.put("K", jid="a")
    for number in range(5):
        queue.put("K", jid=f"b{number}", depends=["a"])
    queue.put("K", jid="c", depends=["b0"])
    below = tree("a", "--depth", "1")["waited_for_by"]
    assert (len(below["jobs"]), below["more"], below["jobs"][0]["more"]) == (5, 0, 1)
    below = tree("a", "--limit", "3")["waited_for_by"]
    assert ([one["jid"] for one in below["jobs"]], below["more"]) == (["b0", "b1", "b2"], 2)
    assert below["jobs"][0]["more"] == 1
    shown = run("a", "--limit", "3").stdout
    assert "│  └─ … and 1 more\n" in shown
    assert shown.endswith("└─ … and 2 more\n")


def test_a_job_that_does_not_exist_has_no_tree(run: Any, client: Client):
    client.queues["q"].put("K")
    done = run("none")
    assert (done.returncode, done.stdout) == (1, "")
    assert "job none does not exist" in done.stderr


def test_a_job_of_a_flow_that_was_cancelled_keeps_its_place(tree: Any, client: Client, nightly: str):
    client.jobs.cancel("nightly-1")
    one, other = tree("nightly-3")["waits_for"]["jobs"]
    assert (one["jid"], one["state"], one["klass"], one["queue"]) == ("nightly-1", "gone", "tree.count", "")
    assert jids(one) == {"nightly-0": {}}
    assert other["state"] == "waiting"


def test_names_of_others_steer_no_terminal(run: Any, client: Client):
    evil = (
        EVIL.replace("\n", "").replace("\r", "").replace("\x00", "").replace("\x1b", "").replace("\x07", "")
    )
    evil = "".join(one for one in evil if one.isprintable() or one == "\u202e")
    client.queues[evil].put(evil, jid=f"{evil}-1")
    client.queues["q"].put(evil, jid="b", depends=[f"{evil}-1"])
    for words in (("b",), ("b", "--json")):
        shown = run(*words).stdout
        assert "waits" in shown
        assert not steers(shown)


def test_a_large_group_is_counted_and_each_of_its_jobs_leads_to_it(
    run: Any, tree: Any, client: Client, url: str, namespace: str
):
    @client.job(name="shop.count", queue="q")
    def count(page: int) -> int:
        return page

    @client.job(name="shop.total", queue="q")
    def total(counts: list[int]) -> int:
        return sum(counts)

    client.put(group(count.call(number) for number in range(600)).then(total), jid="large")
    found = tree("large-1")["waits_for"]
    assert [(one["klass"], one["more"]) for one in found["jobs"]] == [("holdfast.group", 600)]
    assert "└─ … and 600 more" in run("large-1").stdout
    found = tree("large-77")
    assert found["flow"] == "large"
    assert jids(found["waited_for_by"]) == {"large-0": {"large-1": {}}}
    why = holdfast("jobs", "why", "large-0", "--url", url, "--namespace", namespace).stdout
    assert "It stands for the group of flow large, and ends when all jobs of that have ended." in why
    assert (
        "It is job 78 of the 602 of flow large."
        in holdfast("jobs", "why", "large-77", "--url", url, "--namespace", namespace).stdout
    )
