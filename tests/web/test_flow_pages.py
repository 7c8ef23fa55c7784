"""Pages of flows: the list, one flow as a graph, a timeline and a table, what is done to it, and the jobs that are part of it."""

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from html import unescape
from typing import Any

import pytest
from everything import put_flow
from starlette.requests import HTTPConnection
from starlette.testclient import TestClient

from holdfast import AsyncClient, Client, group
from holdfast.commands.admin import AuditList
from holdfast.commands.flows import Edge, FlowStep, StepParents
from holdfast.commands.job_rows import JobRow
from holdfast.commands.jobs import Cancel
from holdfast.console.handles import AsyncConsole, Console
from holdfast.web import User
from holdfast.web.live import with_flows
from holdfast.web.pages.flows import nodes_of

Browse = Callable[..., TestClient]
EVIL = "<b onclick='x'>\"{{7*7}} ../"


def chord(client: Client, jid: str = "nightly", count: int = 3, queue: str = "q") -> None:
    """Put a flow of `count` jobs that are counted, and one behind them."""
    jobs: list[tuple[str, Sequence[Edge]]] = [("shop.count", ()) for _ in range(count)]
    jobs.append(("shop.total", [Edge(f"{jid}-{number}") for number in range(count)]))
    put_flow(client, jid, jobs, queue, "total")


def end(client: Client, *failing: int, count: int = 3, queue: str = "q") -> None:
    """Let the first jobs of a queue end, those of these numbers with a failure."""
    for number, job in enumerate(client.queues[queue].pop(count)):
        if number in failing:
            job.fail("q-ValueError", "Traceback (most recent call last):\nValueError: no page")
        else:
            job.complete()


def act(web: TestClient, what: str, **body: object) -> Any:
    """Call an action of the API, and return its response."""
    response = web.post(f"/api/v1/flows/{what}", json=body)
    assert response.status_code == 200, response.text
    return response.json()


def rows(html: str, table: str) -> list[list[str]]:
    """Return the cells of a table as text."""
    [body] = re.findall(rf'id="{table}".*?<tbody>(.*?)</tbody>', html, re.DOTALL)
    return [[text(cell) for cell in re.findall(r"<td\b[^>]*>(.*?)</td>", row, re.DOTALL)] for row in body.split("</tr>")[:-1]]  # fmt: skip


def text(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


# The list.


def test_flows_are_listed_the_newest_first_with_how_many_of_their_jobs_have_ended(
    web: TestClient, client: Client
) -> None:
    chord(client)
    end(client, 1)
    put_flow(client, "later", [("shop.other", ())], "other", "other")
    html = web.get("/flows").text
    first, second = rows(html, "flows")
    assert (first[0].split()[0], first[1], first[2], first[3].split(" of")[0]) == ("later", "other", "running", "0 / 1 0")  # fmt: skip
    assert (second[0].split()[0], second[2], second[4]) == ("nightly", "failed", "2")
    assert "4 / 4" in second[3]
    assert 'href="/flows/nightly?state=failed#jobs"' in html
    assert 'href="/flows" aria-current="page"' in html
    found = web.get("/api/v1/flows").json()["found"]
    assert [(one["facts"]["id"], one["state"], one["counts"]) for one in found["rows"]] == [
        ("later", "running", {"waiting": 1}),
        ("nightly", "failed", {"complete": 2, "failed": 2}),
    ]


def test_the_list_is_read_page_by_page(web: TestClient, client: Client) -> None:
    for number in range(7):
        put_flow(client, f"f{number}", [("shop.other", ())])
    seen: list[str] = []
    after = ""
    for _ in range(9):
        page = web.get("/api/v1/flows", params={"limit": 3, "after": after}).json()["found"]
        assert page["total"] == 7
        seen += [one["facts"]["id"] for one in page["rows"]]
        after = page["next"]
        if not after:
            break
    assert seen == [f"f{number}" for number in reversed(range(7))]
    assert 'rel="next"' in web.get("/flows?limit=3").text
    assert web.get("/flows?limit=0").status_code == 400
    assert web.get("/flows?after=nonsense").status_code == 400


def test_without_flows_the_page_says_what_one_is_and_how_to_put_it(web: TestClient) -> None:
    html = web.get("/flows").text
    assert "No flows" in html
    assert "app.put(group(" in html


def test_a_flow_that_is_put_twice_is_listed_once(web: TestClient, client: Client) -> None:
    chord(client)

    @client.job(name="pages.one", queue="q")
    def one() -> None: ...

    assert client.put(one.call(), jid="twice").is_new
    assert not client.put(one.call(), jid="twice").is_new
    assert [row[0].split()[0] for row in rows(web.get("/flows").text, "flows")] == ["twice", "nightly"]


# One flow.


def test_the_page_of_a_flow_has_its_counts_graph_timeline_and_jobs(web: TestClient, client: Client) -> None:
    chord(client)
    end(client, 1)
    html = web.get("/flows/nightly").text
    assert re.search(r"<h1>nightly <span class=\"pill c-failed\">", html)
    assert "4 jobs, the last one total; put" in text(html)
    assert 'aria-label="2 complete, 2 failed"' in html
    assert html.count('<path class="edge" ') == 3
    for number, state in enumerate(("complete", "failed", "complete", "failed")):
        assert f'<a href="/jobs/nightly-{number}"><title>shop.{"total" if number == 3 else "count"}, {state}: nightly-{number}</title>' in html  # fmt: skip
    jobs = rows(html, "jobs-of-flow")
    assert [row[2] for row in jobs] == ["complete", "failed", "complete", "failed"]
    assert jobs[1][6] == "ValueError: no page"
    assert "nightly-1 did not complete" in jobs[3][6]
    assert ("took" in text(html), "runs for" in text(html)) == (True, False)


def test_jobs_that_are_alike_are_one_node_with_counts_also_in_chains_side_by_side(
    web: TestClient, client: Client
) -> None:
    jobs: list[tuple[str, Sequence[Edge]]] = []
    for number in range(0, 20, 2):
        jobs += [("shop.fetch", ()), ("shop.count", (Edge(f"f-{number}"),))]
    jobs.append(("shop.total", [Edge(f"f-{number}") for number in range(1, 20, 2)]))
    put_flow(client, "f", jobs)
    end(client, 0, count=4)
    found = web.get("/api/v1/flows/f").json()
    assert [(one["klass"], len(one["jids"]), one["counts"], one["waits_for"]) for one in found["nodes"]] == [
        ("shop.fetch", 10, {"complete": 3, "failed": 1, "waiting": 6}, []),
        ("shop.count", 10, {"depends": 6, "failed": 1, "waiting": 3}, [[0, "fail"]]),
        ("shop.total", 1, {"failed": 1}, [[1, "fail"]]),
    ]
    html = web.get("/flows/f").text
    assert "fetch × 10" in html
    assert (
        '<a href="/flows/f?node=0#jobs"><title>shop.fetch × 10: 1 failed, 6 waiting, 3 complete</title>'
        in html
    )
    own = web.get("/flows/f?node=0").text
    assert {row[1] for row in rows(own, "jobs-of-flow")} == {"shop.fetch"}
    assert [
        row[0].split()[0] for row in rows(web.get("/flows/f?node=0&state=failed").text, "jobs-of-flow")
    ] == ["f-0"]
    assert "shop.total" in text(re.findall(r"What waits for what.*?</table>", html, re.DOTALL)[0])
    refused = web.get("/flows/f?node=3")
    assert (refused.status_code, "this flow has no node 3" in unescape(refused.text)) == (400, True)


def alike(steps: Sequence[FlowStep]) -> list[int]:
    """Return how many jobs are in each node of a flow, of which none is kept."""
    rows = [JobRow(f"f-{number}", state="gone") for number in range(len(steps))]
    return [len(node.jids) for node in nodes_of(rows, steps)]


def after(*numbers: int, policy: Any = "fail") -> list[StepParents]:
    return [StepParents(policy, number, number) for number in numbers]


def test_jobs_are_alike_only_with_the_same_klass_policies_and_neighbours() -> None:
    starts = [FlowStep("a") for _ in range(6)]
    assert alike(starts) == [6]
    assert alike(starts[:4]) == [1] * 4
    assert alike([*starts, FlowStep("b", after(0))]) == [1, 5, 1]
    ends = [FlowStep("b", [StepParents("run" if number < 5 else "fail", 0, 0)]) for number in range(10)]
    assert alike([FlowStep("a"), *ends]) == [1, 5, 5]
    outside = [FlowStep("b", [StepParents("wait", jid=f"other {number % 2}")]) for number in range(10)]
    assert sorted(alike(outside)) == [5, 5]
    chain = [FlowStep("a", after(number - 1) if number else ()) for number in range(50)]
    assert alike(chain) == [1] * 50
    pairs = [FlowStep(f"k{number // 2}") for number in range(250)]
    assert alike(pairs) == [2] * 125  # too many nodes for one each


def test_a_graph_of_512_jobs_that_wait_for_each_other_is_folded_in_little_time() -> None:
    dense = [
        *(FlowStep("a") for _ in range(256)),
        *(FlowStep("b", [StepParents("fail", 0, 255)]) for _ in range(256)),
    ]
    begun = time.process_time()
    assert alike(dense) == [256, 256]
    each = [FlowStep("a", [StepParents("wait", 0, number - 1)] if number else ()) for number in range(512)]
    assert len(alike(each)) == 512
    assert time.process_time() - begun < 5


def test_the_largest_flow_has_a_small_page(web: TestClient, client: Client) -> None:
    chord(client, "large", 511)
    end(client, 0, 3, count=100)
    html = web.get("/flows/large").text
    assert len(html) < 120_000
    assert "count × 511" in html
    assert len(rows(html, "jobs-of-flow")) == 100
    second = web.get("/flows/large?after=500&first=501").text
    assert [row[1] for row in rows(second, "jobs-of-flow")] == ["shop.count"] * 11 + ["shop.total"]
    chain = [
        (f"shop.step{number}", (Edge(f"chain-{number - 1}"),) if number else ()) for number in range(512)
    ]
    put_flow(client, "chain", chain)
    html = web.get("/flows/chain").text
    assert len(html) < 250_000
    assert "472 further steps are not drawn." in text(html)
    assert "And 452 more rows." in text(html)


def test_the_policies_of_a_flow_are_drawn_and_jobs_that_are_not_of_it_are_named(
    web: TestClient, client: Client
) -> None:
    client.queues["q"].put("shop.Before", {}, jid="before")
    parents = (Edge("f-0"), Edge("f-1", "run"), Edge("before", "wait"))
    steps = [("shop.a", ()), ("shop.b", ()), ("shop.c", parents), ("shop.undo", (Edge("f-2", "rescue"),))]
    put_flow(client, "f", steps)
    html = web.get("/flows/f").text
    assert sorted(re.findall(r'<path class="(edge[^"]*)"', html)) == [
        "edge",
        "edge rescue",
        "edge run",
        "edge wait",
    ]
    assert "runs at any end" in html
    assert "runs on failure" in html
    assert '<a href="/jobs/before"><title>before, not of this flow</title>' in html
    assert "shop.b (any end)" in text(html)
    chord(client)
    assert "runs at any end" not in web.get("/flows/nightly").text


def test_a_flow_of_one_job_and_jobs_that_are_gone(web: TestClient, client: Client) -> None:
    put_flow(client, "one", [("shop.alone", ())])
    assert "1 job, last; put" in text(web.get("/flows/one").text).replace(" : ", ", ")
    chord(client)
    client.run(Cancel([f"nightly-{number}" for number in reversed(range(4))]))
    found = web.get("/api/v1/flows/nightly").json()
    assert (found["state"], found["counts"]) == ("gone", {"gone": 4})
    assert [one["klass"] for one in found["jobs"]] == ["shop.count"] * 3 + ["shop.total"]
    html = web.get("/flows/nightly").text
    assert (
        '<span class="pill c-quiet"><svg class="i" aria-hidden="true"><use href="#i-delete"/></svg>gone</span>'
        in html
    )
    assert 'data-verb="retry"' not in html
    assert 'data-verb="cancel"' not in html


def large(client: Client, count: int = 600) -> None:
    """Put a flow with a group of so many jobs, and one behind it."""

    @client.job(name="pages.count", queue="q")
    def count_one(page: int) -> int:
        return page

    @client.job(name="pages.total", queue="q")
    def total(counts: list[int]) -> int:
        return sum(counts)

    client.put(count_one.map(range(count)).then(total), jid="large")


def test_a_flow_with_a_large_group_has_its_counts_and_a_page_of_its_jobs(
    web: TestClient, client: Client
) -> None:
    large(client)
    end(client, 1, count=3)
    [row] = rows(web.get("/flows").text, "flows")
    assert (row[2], "5 / 602" in row[3], row[4]) == ("running", True, "3")
    found = web.get("/api/v1/flows/large?after=4&limit=2").json()
    assert (found["counts"]["complete"], found["counts"]["unfinished"]) == (2, 597)
    assert [one["jid"] for one in found["jobs"]] == ["large-4", "large-5"]
    assert (found["matching"], found["next"]) == (602, 6)
    group = found["nodes"][0]
    assert (group["members"], group["counts"], group["state"]) == (
        600,
        {"complete": 2, "failed": 1, "unfinished": 597},
        "failed",
    )
    html = web.get("/flows/large").text
    assert "group × 600" in html
    assert rows(html, "jobs-of-flow")[0][1] == "the group"
    assert 'href="/flows/large?after=2&amp;first=3#jobs"' in html
    failed = web.get("/api/v1/flows/large?state=failed").json()
    assert [one["jid"] for one in failed["jobs"]] == ["large-0", "large-1", "large-3"]
    waiting = web.get("/api/v1/flows/large?state=waiting&limit=100").json()
    assert (len(waiting["jobs"]), waiting["matching"], waiting["next"]) == (100, -1, 105)
    assert act(web, "retry", jid="large")["changed"] == 3
    assert "Close…" not in html
    refused = web.post("/api/v1/flows/forget", json={"jid": "large"})
    assert (refused.status_code, "not all ended" in refused.json()["title"]) == (409, True)
    assert act(web, "cancel", jid="large")["changed"] == 600
    assert web.get("/api/v1/flows/large").json()["counts"] == {"complete": 2, "gone": 600}


def test_an_open_flow_is_closed_after_a_question(web: TestClient, client: Client) -> None:
    @client.job(name="pages.open", queue="q")
    def page(number: int) -> int:
        return number

    client.put(group([page.call(1)]), jid="pages", open=True)
    html = web.get("/flows/pages").text
    assert "jobs so far" in text(html)
    assert "Close…" in html
    assert "Close this flow?" in web.post("/act/flows/close", data={"jid": "pages"}).text
    assert (act(web, "close", jid="pages")["changed"], act(web, "close", jid="pages")["changed"]) == (1, 0)
    assert (client.run(AuditList())[0].what, "Close…" in web.get("/flows/pages").text) == (
        "close flow",
        False,
    )
    chord(client)
    assert web.post("/api/v1/flows/close", json={"jid": "nightly"}).status_code == 409


def test_to_cancel_more_than_1000_jobs_an_administrator_types_a_word_and_a_page_changes_at_most_5000(
    browse: Browse, client: Client
) -> None:
    large(client, 1100)
    web = browse(auth=lambda _: User("ada", "operator"))
    assert web.post("/act/flows/cancel", data={"jid": "large"}).status_code == 403
    web = browse()
    assert "group × 1\u202f100" in web.get("/flows/large").text
    assert "Type cancel to confirm" in web.post("/act/flows/cancel", data={"jid": "large"}).text
    asked = web.post("/act/flows/cancel", data={"jid": "large", "confirm": "yes"}).text
    assert "Type cancel to confirm" in asked
    assert client.flow("large").counts == {"waiting": 1100, "depends": 2}
    assert act(web, "cancel", jid="large")["changed"] == 1102


@pytest.mark.parametrize("name", [EVIL, "é" * 95, "a" * 196])
def test_hostile_and_long_names_are_text_and_their_links_work(
    web: TestClient, client: Client, name: str
) -> None:
    put_flow(client, name, [(name, ()), (name, (Edge(f"{name}-0"),))], "q", name)
    end(client, 0, count=1)
    listed = web.get("/flows").text
    [place] = set(re.findall(r'href="(/flows/[^"?]+)" title', listed))
    page = web.get(place)
    assert page.status_code == 200
    assert {row[1] for row in rows(page.text, "jobs-of-flow")} == {name}
    for html in (listed, page.text):
        assert "<b onclick" not in html
        assert "49" not in re.findall(r"<h1>(.*?)</h1>", html, re.DOTALL)[0]
    for link in set(re.findall(r'href="(/jobs/[^"]+)"', page.text)):
        assert web.get(unescape(link)).status_code == 200
    assert act(web, "retry", jid=name)["changed"] == 2


def test_an_unknown_flow_is_not_found(web: TestClient) -> None:
    for place in ("/flows/nobody", "/api/v1/flows/nobody"):
        found = web.get(place)
        assert (found.status_code, "flow nobody does not exist" in found.text) == (404, True)
    for verb in ("retry", "cancel", "close", "forget"):
        assert web.post(f"/api/v1/flows/{verb}", json={"jid": "nobody"}).status_code == 404


def test_messages_of_failed_jobs_are_masked(browse: Browse, client: Client) -> None:
    put_flow(client, "f", [("shop.a", ())])
    [job] = client.queues["q"].pop(1)
    job.fail("G", "ValueError: the card 4711-0815 is refused")
    web = browse(redact=[r"re:\d{4}-\d{4}"])
    for place in ("/flows/f", "/api/v1/flows/f"):
        found = web.get(place).text
        assert ("is refused" in found, "4711-0815" in found) == (True, False)


def test_the_front_page_leads_to_a_flow_that_failed(web: TestClient, client: Client) -> None:
    chord(client)
    end(client, 1)
    html = web.get("/").text
    assert 'href="/flows/nightly"' in html


# What is done to it.


def test_failed_jobs_are_retried_after_a_question_that_counts_them(web: TestClient, client: Client) -> None:
    chord(client)
    end(client, 0, 1)
    asked = web.post("/act/flows/retry", data={"jid": "nightly", "back": "/flows/nightly"}).text
    assert "Retry 3 failed jobs?" in asked
    assert client.flow("nightly").counts["failed"] == 3
    done = web.post(
        "/act/flows/retry", data={"jid": "nightly", "confirm": "yes", "back": "/flows/nightly"}
    ).text
    assert "3 jobs: retried." in text(done)
    assert client.flow("nightly").counts == {"complete": 1, "waiting": 2, "depends": 1}
    assert client.run(AuditList())[0].what == "retry"
    assert act(web, "retry", jid="nightly") == {**act(web, "retry", jid="nightly"), "changed": 0}


def test_open_jobs_are_cancelled_the_last_ones_first(web: TestClient, client: Client) -> None:
    chord(client)
    end(client, count=1)
    asked = web.post("/act/flows/cancel", data={"jid": "nightly"}).text
    assert "Cancel 3 jobs?" in asked
    found = act(web, "cancel", jid="nightly")
    assert (found["changed"], found["refused"], "flow:nightly" in found["keys"]) == (3, [], True)
    assert client.flow("nightly").counts == {"complete": 1, "gone": 3}
    assert "all jobs of this flow are complete or gone" in act(web, "cancel", jid="nightly")["text"]


def test_a_cancel_can_be_undone_for_a_while_also_of_jobs_that_wait_for_completion(
    browse: Browse, client: Client
) -> None:
    steps: list[tuple[str, Sequence[Edge]]] = [("shop.a", ())]
    steps += [("shop.b", (Edge(f"f-{number}", "wait"),)) for number in range(139)]  # more than one chunk
    put_flow(client, "f", steps)
    web = browse(undo_seconds=600)
    assert "It can be undone for 10 min" in text(web.post("/act/flows/cancel", data={"jid": "f"}).text)
    headers = {"HX-Request": "true"}
    done = web.post("/act/flows/cancel", data={"jid": "f", "confirm": "yes"}, headers=headers).text
    assert "cancelled in 10 min" in text(done)
    [operation] = Console(client).operations()
    assert client.flow("f").counts == {"waiting": 1, "depends": 139}
    assert web.post("/act/operations/stop", data={"id": operation.id}, headers=headers).status_code == 200
    at_once = browse(undo_seconds=0.05)
    at_once.post("/act/flows/cancel", data={"jid": "f", "confirm": "yes"}, headers=headers)
    deadline = time.monotonic() + 30
    while client.flow("f").counts != {"gone": 140}:
        assert time.monotonic() < deadline, client.flow("f").counts
        time.sleep(0.05)


def test_a_flow_is_taken_off_the_list_and_its_jobs_stay(web: TestClient, client: Client) -> None:
    chord(client)
    assert "Take this flow off the list?" in web.post("/act/flows/forget", data={"jid": "nightly"}).text
    assert act(web, "forget", jid="nightly")["place"] == "/flows"
    assert web.get("/flows/nightly").status_code == 404
    assert client.jobs["nightly-0"].state == "waiting"
    line = client.run(AuditList())[0]
    assert (line.what, line.target) == ("forget flow", "nightly")


def test_viewers_and_a_read_only_application_change_nothing_and_limited_users_see_nothing(
    browse: Browse, client: Client
) -> None:
    chord(client)
    end(client, 1)

    def asked_by(**facts: Any) -> Callable[[HTTPConnection], User]:
        return lambda _: User("ada", **facts)

    for options in ({"auth": asked_by(role="viewer")}, {"auth": asked_by(role="admin"), "read_only": True}):
        web = browse(**options)
        html = web.get("/flows/nightly").text
        assert ("nightly-1" in html, "/act/flows/" in html) == (True, False)
        for verb in ("retry", "cancel", "forget"):
            assert web.post(f"/api/v1/flows/{verb}", json={"jid": "nightly"}).status_code == 403
    # Pages show whole namespaces: to see and change only some flows of one is not possible yet.
    for queues in (("q",), ("other",)):
        web = browse(auth=asked_by(role="operator", queues=queues))
        for place in ("/flows", "/flows/nightly", "/api/v1/flows", "/api/v1/flows/nightly"):
            found = web.get(place)
            assert (found.status_code, "nightly-1" in found.text) == (403, False)
        for verb in ("retry", "cancel", "forget"):
            assert web.post(f"/api/v1/flows/{verb}", json={"jid": "nightly"}).status_code == 403
    assert client.flow("nightly").counts == {"complete": 2, "failed": 2}


def test_the_api_is_described_with_its_roles_and_names(web: TestClient) -> None:
    paths = web.get("/api/v1/openapi.json").json()["paths"]
    assert {"/flows", "/flows/{name}", "/flows/retry", "/flows/cancel", "/flows/forget"} <= paths.keys()


# Jobs of flows.


def test_the_page_of_a_job_of_a_flow_leads_to_it_also_when_the_job_is_gone(
    web: TestClient, client: Client
) -> None:
    chord(client)
    client.queues["q"].put("shop.Other", {}, jid="order-17")
    html = web.get("/jobs/nightly-2").text
    assert "job 3 of 4 of flow nightly" in text(html)
    assert 'href="/flows/nightly"' in html
    assert web.get("/api/v1/jobs/nightly-2").json()["detail"]["flow"] == {
        "flow": "nightly",
        "number": 2,
        "total": 4,
        "label": "total",
    }
    assert "of flow" not in web.get("/jobs/order-17").text
    client.queues["q"].put("shop.Other", {}, jid="nightly-4")
    client.queues["q"].put("shop.Other", {}, jid="nightly-01")
    for jid in ("nightly-4", "nightly-01"):
        assert web.get(f"/api/v1/jobs/{jid}").json()["detail"]["flow"] is None
    client.run(Cancel(["nightly-3", "nightly-2"]))
    gone = web.get("/jobs/nightly-2")
    assert (gone.status_code, "It was job 3 of 4 of flow nightly" in text(gone.text)) == (404, True)


def test_a_job_and_the_flow_that_it_returned_lead_to_each_other(web: TestClient, client: Client) -> None:
    client.queues["q"].put("shop.Crawl", {}, jid="crawl")
    client.queues["q"].pop(1)
    put_flow(client, "crawl.1", [("shop.a", ())], "other")
    html = web.get("/jobs/crawl").text
    assert "returned flow crawl.1" in text(html)
    assert web.get("/api/v1/jobs/crawl").json()["detail"]["returned"] == "crawl.1"
    assert "returned by job crawl" in text(web.get("/flows/crawl.1").text)
    put_flow(client, "nobody.1", [("shop.a", ())], "other")
    put_flow(client, "crawl.2", [("shop.a", ())], "other")
    for flow in ("nobody.1", "crawl.2"):
        assert web.get(f"/api/v1/flows/{flow}").json()["returned_by"] == ""
    client.queues["q"].put("shop.Crawl", {}, jid="a" * 199)
    client.queues["q"].pop(1)
    assert web.get("/jobs/" + "a" * 199).status_code == 200


# Both consoles, and live updates.


def test_both_consoles_see_and_change_a_flow(client: Client, url: str) -> None:
    chord(client)
    end(client, 0)
    counts = Console(client).flow("nightly").counts

    async def story() -> None:
        async with AsyncClient(url, namespace=client.settings.namespace) as other:
            console = AsyncConsole(other, "grace@box")
            assert (await console.flow("nightly")).counts == counts
            assert await console.change_flow("nightly", "retry") == [("nightly-0", True), ("nightly-3", True)]
            assert await console.ended_flows() == []

    asyncio.run(story())
    assert [line.who for line in client.run(AuditList())][:1] == ["grace@box"]


def test_a_change_of_a_job_is_one_of_the_flow_that_it_may_be_part_of() -> None:
    assert with_flows({"job:a-b-12", "queue:q-1"}) == {"job:a-b-12", "queue:q-1", "flow:a-b", "flows"}
    assert with_flows({"job:0193a1b2", "queues"}) == {"job:0193a1b2", "queues"}
