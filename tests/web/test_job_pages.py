"""The pages of jobs: the search and its export, one job, what is done to jobs, completed and tracked jobs, tags."""

import csv
import io
import json
import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from starlette.testclient import TestClient

from holdfast import Client
from holdfast.console.handles import Console
from holdfast.console.page_paths import segment
from holdfast.console.search.filter_values import FIELDS
from holdfast.settings import DEFAULT_BACKLOG
from holdfast.web import User
from holdfast.web.pages.job import arguments_of, moments_of, parts_of
from holdfast.web.pages.jobs import narrowed, neutral

Browse = Callable[..., TestClient]
HOSTILE = [
    "<script>alert(1)</script>",
    "\"'\\",
    "a/b",
    "..",
    "%2F",
    "🦑",
    "{{'q'*9}}",
    "a//b/",
    "~x",
    "\u202eright",
]
BY_SCRIPT = {"HX-Request": "true"}


def put(client: Client, count: int = 1, queue: str = "mail", **options: Any) -> list[str]:
    return [
        client.queues[queue].put("jobs.Send", {"n": n, "password": "hunter2"}, **options)
        for n in range(count)
    ]


def fail(client: Client, queue: str = "mail") -> str:
    [job] = client.queues[queue].pop(1)
    job.fail("mail-ValueError", "Traceback (most recent call last):\nValueError: no luck")
    return str(job.jid)


def act(web: TestClient, verb: str, noun: str = "jobs", **fields: Any) -> Any:
    return web.post(f"/act/{noun}/{verb}", data=fields, headers=BY_SCRIPT)


def api(web: TestClient, verb: str, **fields: Any) -> Any:
    return web.post(f"/api/v1/jobs/{verb}", json=fields)


# Pages of an empty store, and of names of any characters.


@pytest.mark.full
@pytest.mark.parametrize("path", ["/jobs", "/completed", "/tracked", "/tags"])
def test_an_empty_list_shows_how_to_fill_it_and_its_twin_is_json(web: TestClient, path: str) -> None:
    page = web.get(path)
    assert (page.status_code, "holdfast " in page.text) == (200, True)
    assert web.get(f"{path}/").status_code == 200
    assert web.get(f"/api/v1{path}").json()["now"] > 0


@pytest.mark.full
def test_names_of_any_characters_are_text_everywhere(web: TestClient, client: Client) -> None:
    for name in HOSTILE:
        client.queues[name].put(
            "<script>" + name, {name: name}, jid=f"jid{name}", tags=[name], depends=["unknown"]
        )
        Console(client).act("track", f"jid{name}")
    paths = ["/jobs?limit=50", "/tracked", "/tags"]
    once = [name for name in HOSTILE if "%" not in name]  # this client decodes paths twice
    paths += [f"/jobs/{segment(f'jid{name}')}?at=1" for name in once]
    paths += [f"/tags/{segment(name)}" for name in once]
    for path in paths:
        page = web.get(path)
        assert (page.status_code, path) == (200, path)
        assert "<script>alert" not in page.text
        assert "{{7*7}}" in page.text or ">49<" not in page.text
        assert web.get(f"/api/v1{path}").status_code == 200


@pytest.mark.full
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/jobs?q=stat:x", 400),
        ("/jobs?limit=x", 400),
        ("/jobs?after=nonsense", 400),
        ("/jobs/unknown", 404),
        ("/completed?after=nonsense", 400),
        ("/tracked?tab=nowhere", 400),
        ("/tags/unknown", 404),
        ("/tags?after=nonsense", 400),
    ],
)
def test_a_bad_query_is_400_and_an_unknown_name_404(web: TestClient, path: str, status: int) -> None:
    assert web.get(path).status_code == status
    problem = web.get(f"/api/v1{path}")
    assert (problem.status_code, problem.json()["status"]) == (status, status)


# Search.


def test_a_search_says_how_much_it_looked_at_and_what_the_jobs_have_in_common(
    web: TestClient, client: Client
) -> None:
    put(client, 30, tags=["vip"])
    put(client, 3, queue="sms")
    page = web.get("/api/v1/jobs", params={"q": "state:waiting", "limit": 25}).json()
    assert (len(page["found"]["jobs"]), page["found"]["candidates"], page["window"]) == (25, 33, 33)
    facets = {one["field"]: one["values"] for one in page["facets"]}
    assert [(one["value"], one["count"]) for one in facets["queue"]] == [("mail", 30), ("sms", 3)]
    narrow = web.get("/api/v1/jobs", params={"q": facets["queue"][1]["q"]}).json()
    assert len(narrow["found"]["jobs"]) == 3
    rest = web.get(
        "/api/v1/jobs", params={"q": "state:waiting", "after": page["found"]["cursor"], "limit": 25}
    ).json()
    assert len(rest["found"]["jobs"]) == 8
    html = web.get("/jobs", params={"q": "state:waiting"}).text
    assert "33 searched" in html or "of 33" in html
    assert (
        web.get("/jobs", params={"q": "state:waiting", "fragment": "rows"}).text.lstrip().startswith("<div")
    )


def test_an_error_of_a_filter_points_at_its_place(web: TestClient) -> None:
    page = web.get("/jobs", params={"q": "state:failed stat:x"})
    assert "<code>state:failed <mark>stat:x</mark></code>" in page.text
    assert "did you mean" in page.text


def test_a_jid_in_the_search_leads_to_its_job(web: TestClient, client: Client) -> None:
    [jid] = put(client)
    found = web.get("/jobs", params={"q": f" {jid} "}, follow_redirects=False)
    assert (found.status_code, found.headers["location"]) == (303, f"/jobs/{jid}")
    assert web.get("/jobs", params={"q": "ab" * 16}).status_code == 200


@pytest.mark.parametrize(
    ("q", "narrow"),
    [
        ("", "queue:mail"),
        ("state:failed", "state:failed queue:mail"),
        ("tag:a or tag:b", "(tag:a or tag:b) queue:mail"),
    ],
)
def test_a_filter_is_narrowed_as_a_whole(q: str, narrow: str) -> None:
    assert narrowed(q, "queue", "mail") == narrow


@pytest.mark.full
def test_an_export_has_all_matching_jobs_as_csv_and_as_lines_of_json(web: TestClient, client: Client) -> None:
    put(client, 300)
    client.queues["mail"].put("=cmd()", {}, tags=["+x"])
    found = web.get("/jobs", params={"q": "queue:mail", "export": "csv"})
    assert found.headers["content-disposition"] == 'attachment; filename="jobs.csv"'
    rows = list(csv.DictReader(io.StringIO(found.text)))
    assert (len(rows), rows[-1]["klass"], rows[-1]["tags"]) == (301, "'=cmd()", "'+x")
    assert json.loads(rows[0]["data"])["n"] == 0
    lines = web.get("/api/v1/jobs", params={"q": "queue:mail", "export": "jsonl"}).text.splitlines()
    assert (len(lines), json.loads(lines[0])["queue"]) == (301, "mail")
    assert list(rows[0]) == list(json.loads(lines[0]))
    assert web.get("/jobs", params={"export": "csv", "q": "stat:x"}).status_code == 400


@pytest.mark.parametrize(
    ("cell", "safe"),
    [
        ("=1", "'=1"),
        ("@x", "'@x"),
        (" =1", "' =1"),
        ("\tx", "'\tx"),
        ("-5", "-5"),
        ("-5+x", "'-5+x"),
        ("ok", "ok"),
    ],
)
def test_a_cell_that_a_spreadsheet_would_run_is_neutralised(cell: str, safe: str) -> None:
    assert neutral(cell) == safe


# One job.


@pytest.mark.full
def test_the_page_of_a_failed_job_shows_what_happened_and_what_can_be_done(
    web: TestClient, client: Client
) -> None:
    put(client, tags=["vip"])
    jid = fail(client)
    page = web.get(f"/jobs/{jid}").text
    for part in ("no luck", "mail-ValueError", "Retry", "Edit and requeue", "Delete", "vip", "Put", "Popped"):
        assert part in page, part
    twin = web.get(f"/api/v1/jobs/{jid}").json()
    assert twin["detail"]["facts"]["state"] == "failed"
    assert "retry" in twin["actions"]
    assert "expire" not in twin["actions"]
    assert twin["fixes"]["failure"]["verb"] == "retry"
    assert twin["recipes"][0]["cli"].startswith("holdfast jobs retry")
    assert jid in twin["recipes"][0]["curl"]


@pytest.mark.full
def test_a_viewer_sees_a_job_and_no_button(browse: Browse, client: Client) -> None:
    [jid] = put(client)
    viewer = browse(auth=lambda _: User("eve", "viewer"))
    page = viewer.get(f"/jobs/{jid}")
    assert (page.status_code, 'action="/act/' in page.text) == (200, False)
    assert viewer.post("/api/v1/jobs/cancel", json={"jid": [jid]}).status_code == 403


def test_what_is_known_of_a_job_that_is_gone_is_shown_with_404(web: TestClient, client: Client) -> None:
    [jid] = put(client)
    Console(client, "ada@box").act("cancel", jid)
    page = web.get(f"/jobs/{jid}")
    assert page.status_code == 404
    assert "was canceled, or expired" in page.text
    assert "ada@box" in page.text
    assert "ada@box" in web.get(f"/jobs/{jid}?fragment=job").text
    twin = web.get(f"/api/v1/jobs/{jid}")
    assert (twin.status_code, twin.json()["status"]) == (404, 404)


@pytest.mark.full
def test_a_recurring_job_has_a_page_of_its_own(web: TestClient, client: Client) -> None:
    client.queues["mail"].recur("jobs.Digest", {"to": "all"}, interval=900, jid="digest")
    page = web.get("/jobs/digest")
    assert (page.status_code, "15" in page.text, "jobs.Digest" in page.text) == (200, True, True)
    assert web.get("/api/v1/jobs/digest").json()["recurring"]["interval"] == 900


def test_raw_data_are_a_file_of_plain_text(web: TestClient, client: Client) -> None:
    jid = client.queues["mail"].put("jobs.Send", {"html": "<script>"})
    found = web.get(f"/jobs/{jid}?raw=data")
    assert found.headers["content-type"] == "text/plain; charset=utf-8"
    assert found.headers["content-disposition"].startswith("attachment")
    assert found.json() == {"html": "<script>"}


@pytest.mark.full
def test_masked_values_are_nowhere(browse: Browse, client: Client) -> None:
    web = browse(redact=["password", "re:no l.ck"])
    put(client)
    jid = fail(client)
    put(client, tags=["vip"])
    for path in (
        f"/jobs/{jid}", f"/api/v1/jobs/{jid}", f"/jobs/{jid}?raw=data", f"/jobs/{jid}?raw=message", "/jobs?export=csv",
        "/jobs?export=jsonl", "/api/v1/jobs?q=state:failed", "/api/v1/tags/vip",
    ):  # fmt: skip
        text = web.get(path).text
        assert "hunter2" not in text, path
        assert "no luck" not in text, path
    assert "••••" in web.get(f"/jobs/{jid}").text
    assert api(web, "edit", jid=jid, data="{}").status_code == 400
    assert api(web, "edit", jid=jid, patch='{"n": 7}').json()["changed"] == 1
    assert json.loads(client.jobs[jid].data) == {"n": 7, "password": "hunter2"}


@pytest.mark.full
def test_a_job_that_is_complete_has_no_bar_of_its_progress(web: TestClient, client: Client) -> None:
    [jid] = put(client)
    [job] = client.queues["mail"].pop(1)
    job.progress(0.86, "nearly")
    assert "Progress" in web.get(f"/jobs/{jid}").text
    job.complete()
    assert "Progress" not in web.get(f"/jobs/{jid}").text


def test_a_new_recurring_job_has_the_backlog_of_every_and_shows_it_before(
    web: TestClient, client: Client
) -> None:
    [field] = re.findall(r'<input[^>]*name="backlog"[^>]*>', web.get("/recurring?new=1").text)
    assert f'value="{DEFAULT_BACKLOG}"' in field
    api_of = web.post(
        "/api/v1/recurring/add",
        json={"queue": "mail", "klass": "shop.mail.welcome", "interval": 60, "jid": "r"},
    )
    assert api_of.status_code == 200
    assert client.recurring["r"].backlog == DEFAULT_BACKLOG


@pytest.mark.full
def test_two_attempts_are_compared_with_their_data(web: TestClient, client: Client) -> None:
    client.config.set("keep-data", 1)
    put(client)
    jid = fail(client)
    api(web, "edit", jid=jid, data='{"n": 99}', then="retry")
    fail(client)
    found = web.get(f"/api/v1/jobs/{jid}?first=1&second=2").json()
    assert found["comparison"]["data"][1] == {"n": 99}
    assert web.get(f"/jobs/{jid}?first=1&second=2").status_code == 200
    assert web.get(f"/jobs/{jid}?first=1&second=7").status_code == 400
    moments = moments_of(client.jobs[jid].facts)
    assert [one.state for one in moments] == ["waiting", "running", "failed", "waiting", "running", "failed"]
    assert 'id="moment"' in web.get(f"/jobs/{jid}?at=2").text


def test_the_stack_of_a_job_that_nobody_reports_on_is_explained(web: TestClient, client: Client) -> None:
    [jid] = put(client)
    assert "not running" in web.get(f"/api/v1/jobs/{jid}?stack=1").json()["stack_problem"]


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ({"args": [1], "kwargs": {"lang": "de"}}, (("1", 1), ("lang", "de"))),
        ({"kwargs": {"n": 1}}, (("n", 1),)),
        ({"args": 5}, None),
        ({"args": [], "more": 1}, None),
        ({}, None),
        ([], None),
    ],
)
def test_the_arguments_of_function_jobs_have_names(data: object, found: object) -> None:
    assert arguments_of(data) == found


def test_arguments_by_position_have_names_where_the_function_is_known(client: Client) -> None:
    @client.job(name="greetings.many")
    def many(first: int, second: int = 2, *rest: int, lang: str = "en") -> None: ...

    data = {"args": [1, 2, 3], "kwargs": {"lang": "de"}}
    found = arguments_of(data, "greetings.many")
    assert found == (("first", 1), ("second", 2), ("3", 3), ("lang", "de"))
    assert arguments_of({"args": [1]}, "greetings.many") == (("first", 1),)


def test_frames_of_libraries_are_told_from_those_of_the_application() -> None:
    message = (
        'Traceback (most recent call last):\n  File "/srv/jobs.py", line 3, in run\n    go()\n'
        '  File "/x/site-packages/lib.py", line 9, in go\n    raise E\n  File "/x/site-packages/b.py", line 1, in b\nE: no'
    )
    parts = parts_of(message)
    assert [one.kind for one in parts] == ["text", "application", "library", "text"]
    assert (parts[1].frames[0].function, len(parts[2].frames), parts[3].lines) == ("run", 2, ("E: no",))
    assert parts_of("plain") == parts_of("plain\n")


# What is done to jobs.


@pytest.mark.full
@pytest.mark.parametrize(
    ("verb", "value", "state"),
    [
        ("move", "other", "waiting"),
        ("priority", "7", "waiting"),
        ("retries", "9", "waiting"),
        ("tag", "a,b", "waiting"),
        ("untag", "vip", "waiting"),
        ("track", "", "waiting"),
        ("untrack", "", "waiting"),
        ("delay", "600", "scheduled"),
        ("data", '{"x": 1}', "waiting"),
    ],
)
def test_each_action_works_from_a_form_and_by_json(
    web: TestClient, client: Client, verb: str, value: str, state: str
) -> None:
    first, second = put(client, 2, tags=["vip"])
    Console(client).act("track", first, second) if verb == "untrack" else None
    form = act(web, verb, jid=first, value=value)
    assert (form.status_code, "toast" in form.text, "hf:jobs" in form.headers["hx-trigger"]) == (
        200,
        True,
        True,
    )
    assert api(web, verb, jid=[second], value=value).json()["changed"] == 1
    assert [client.jobs[jid].state for jid in (first, second)] == [state] * 2


def test_actions_on_failed_running_and_scheduled_jobs(web: TestClient, client: Client) -> None:
    put(client, 2)
    jid = fail(client)
    assert api(web, "retry", jid=[jid]).json()["undo"]["verb"] == "fail"
    [job] = client.queues["mail"].pop(1)
    assert act(web, "expire", jid=job.jid).status_code == 200
    [later] = put(client, delay=600)
    assert act(web, "run", jid=later).status_code == 200
    assert client.jobs[later].state == "waiting"
    assert act(web, "cancel", jid=later).status_code == 200
    assert act(web, "run", jid=jid).status_code == 409
    assert act(web, "run", jid="unknown").status_code == 404
    assert act(web, "priority", jid=jid, value="high").status_code == 400
    assert api(web, "run", jid=[jid]).status_code == 409
    assert api(web, "run", jid=["unknown"]).status_code == 404
    assert api(web, "priority", jid=[jid], value="high").status_code == 400
    assert api(web, "run").status_code == 400
    assert api(web, "run", jid=[jid], q="state:waiting").status_code == 400
    assert api(web, "run", jid=[jid], dry_run=True).status_code == 400


def test_a_value_that_is_missing_and_a_deletion_are_asked_for(web: TestClient, client: Client) -> None:
    jids = put(client, 2)
    asked = act(web, "move", jid=jids[0])
    assert 'name="value"' in asked.text
    assert 'name="confirm" value="yes"' in asked.text
    assert "Cancel 2 jobs?" in web.post("/act/jobs/cancel", data={"jid": jids}).text
    alone = web.post("/act/jobs/cancel", data={"jid": jids[0], "back": "/jobs?q=x"})
    assert "Cancel this job?" in alone.text
    assert 'href="/jobs?q=x"' in alone.text
    assert client.jobs[jids[0]] is not None
    done = web.post(
        "/act/jobs/cancel", data={"jid": jids, "confirm": "yes", "back": "/jobs"}, follow_redirects=False
    )
    assert (done.status_code, done.headers["location"]) == (303, "/jobs")
    assert client.jobs[jids[0]] is None


def test_the_question_before_a_deletion_lists_the_jobs_that_wait(web: TestClient, client: Client) -> None:
    [parent, other] = put(client, 2)
    child = client.queues["later"].put("jobs.Child", {}, depends=[parent])
    grandchild = client.queues["later"].put("jobs.Grandchild", {}, depends=[child])
    asked = unescape(act(web, "cancel", jid=parent, confirm="button").text)
    assert "2 other jobs wait for them" in asked
    assert "Cancel the 2 jobs that wait for them too" in asked
    assert child in asked
    assert grandchild in asked
    assert "the 2 jobs that wait" in unescape(act(web, "cancel", q="queue:mail").text)
    assert api(web, "cancel", jid=[parent]).status_code == 409
    assert act(web, "cancel", jid=parent, dependents="true", confirm="yes").status_code == 200
    assert [client.jobs[jid] for jid in (parent, child, grandchild)] == [None] * 3
    script = {"HX-Request": "true"}
    alone = web.post("/act/jobs/cancel", data={"jid": other, "confirm": "button"}, headers=script)
    assert "cancelled." in alone.text  # its button has asked


@pytest.mark.full
def test_what_a_page_deletes_can_be_undone_for_a_while(browse: Browse, client: Client) -> None:
    web = browse(undo_seconds=600)
    jids = put(client, 2)
    done = act(web, "cancel", jid=jids, confirm="yes")
    assert "2 jobs: cancelled in 10 min." in unescape(done.text)
    [found] = Console(client).operations()
    assert (found.spec.action, found.state, found.looked) == ("cancel", "running", 0)
    assert f'name="id" value="{found.id}"' in done.text
    shown = web.get(f"/operations/{found.id}").text
    assert "begins in" in shown
    assert "possible: no job was changed yet" in shown
    assert "not possible" not in shown
    for page in (shown, web.get("/operations").text):
        assert "scheduled</span>" in page
        assert "running</span>" not in page
    stopped = web.post("/api/v1/operations/stop", json={"id": found.id}).json()
    assert stopped["text"] == "Undone before any job was changed."
    assert client.queues["mail"].counts["waiting"] == 2
    assert (
        web.post("/api/v1/jobs/cancel", json={"jid": jids}).json()["changed"] == 2
    )  # programs are not asked


def test_all_that_match_are_counted_before_they_are_changed(web: TestClient, client: Client) -> None:
    put(client, 30)
    asked = act(web, "move", q="queue:mail", jid="of the page")
    assert "Move 30 jobs?" in asked.text
    assert "30 waiting" in asked.text
    assert api(web, "move", q="queue:mail", value="x", dry_run=True).json()["result"]["matched"] == 30
    assert client.queues["mail"].counts["waiting"] == 30
    done = act(web, "move", q="queue:mail", value="other", confirm="yes")
    assert "30 jobs: moved" in done.text
    assert client.queues["other"].counts["waiting"] == 30
    assert "No job matches" in act(web, "retry", q="queue:nowhere", confirm="yes").text


def test_many_jobs_are_changed_in_the_background(web: TestClient, client: Client) -> None:
    put(client, 150)
    done = api(web, "priority", q="queue:mail", value="5").json()
    assert done["operation"]
    assert done["place"] == f"/operations/{done['operation']}"


@pytest.mark.full
def test_more_than_a_thousand_are_deleted_by_an_admin_who_typed_it(browse: Browse, client: Client) -> None:
    put(client, 1001)
    operator = browse(auth=lambda _: User("ann", "operator"))
    admin = browse()
    assert "Type cancel to confirm" in act(admin, "cancel", q="queue:mail").text
    assert act(operator, "cancel", q="queue:mail", confirm="cancel").status_code == 403
    assert act(admin, "cancel", q="queue:mail", confirm="yes").status_code == 400
    assert client.queues["mail"].counts["waiting"] == 1001
    assert act(admin, "cancel", q="queue:mail", confirm="cancel").status_code == 200


def test_data_are_edited_after_their_difference_was_shown(web: TestClient, client: Client) -> None:
    put(client)
    jid = fail(client)
    digest = web.get(f"/api/v1/jobs/{jid}").json()["digest"]
    asked = act(web, "edit", jid=jid, data='{"n": 5}', seen=digest, then="retry")
    assert "password" in asked.text
    assert client.jobs[jid].state == "failed"
    done = act(web, "edit", jid=jid, data='{"n": 5}', seen=digest, then="retry", confirm="yes")
    assert "waits again" in done.text
    assert (client.jobs[jid].state, json.loads(client.jobs[jid].data)) == ("waiting", {"n": 5})
    assert act(web, "edit", jid=jid, data="{n}").status_code == 400
    assert act(web, "edit", jid=jid, data="{}", seen=digest).status_code == 409
    assert act(web, "edit", jid="unknown", data="{}").status_code == 404
    assert api(web, "edit", jid=jid).status_code == 400


@pytest.mark.full
def test_a_dependency_is_removed(web: TestClient, client: Client) -> None:
    [parent] = put(client)
    child = client.queues["mail"].put("jobs.Child", {}, depends=[parent])
    page = web.get(f"/jobs/{child}").text
    assert "Waits for" in page
    assert 'class="graph"' in page
    assert act(web, "undepend", jid=child, parent=parent).status_code == 200
    assert client.jobs[child].state == "waiting"
    assert api(web, "undepend", jid=child, parent=[parent]).status_code == 409
    assert api(web, "undepend", jid="unknown", parent=[parent]).status_code == 404
    assert api(web, "undepend", jid=child).status_code == 409


# Lists.


@pytest.mark.full
def test_completed_jobs_are_shown_latest_first(web: TestClient, client: Client) -> None:
    jids = put(client, 3)
    for job in client.queues["mail"].pop(3):
        job.complete()
    twin = web.get("/api/v1/completed?limit=2").json()
    assert [one["job"]["jid"] for one in twin["found"]["rows"]] == jids[:0:-1]
    assert twin["found"]["kept_count"] == 50_000
    page = web.get("/completed").text
    assert "1–3 of 3" in page
    assert jids[0] in page


@pytest.mark.parametrize(
    ("missed", "shown"), [("once", "one job for all"), ("3", "one job for each of the last 3")]
)
def test_pages_show_the_cron_expression_of_a_calendar_and_no_interval(
    web: TestClient, client: Client, missed: str, shown: str
) -> None:
    client.queues["mail"].recur(
        "shop.mail.send",
        cron="30 3 * * *",
        zone="Europe/Berlin",
        missed=missed if missed == "once" else int(missed),
        jid="r",
    )
    page = web.get("/recurring/r").text
    assert "30 3 * * *" in page
    assert "Europe/Berlin" in page
    assert shown in page
    assert ">Interval<" not in page
    assert "30 3 * * *" in web.get("/queues/mail?tab=recurring").text
    assert "30 3 * * *" in web.get("/recurring").text


def test_tracked_jobs_have_tabs_and_marks_of_deleted_jobs_are_dismissed(
    web: TestClient, client: Client
) -> None:
    jids = put(client, 2)
    Console(client).act("track", *jids)
    Console(client).act("cancel", jids[0])
    assert "The job no longer exists" in web.get("/tracked?tab=expired").text
    assert jids[0] not in web.get("/tracked?tab=waiting").text
    assert act(web, "untrack", jid=jids[0]).status_code == 200
    assert web.get("/api/v1/tracked").json()["found"]["counts"] == {"waiting": 1}


@pytest.mark.full
def test_a_tag_has_a_page_with_its_total(web: TestClient, client: Client) -> None:
    put(client, 30, tags=["vip", "eu"])
    put(client, 2, tags=["eu"])
    tags = web.get("/api/v1/tags").json()["tags"]["rows"]
    assert tags == [["eu", 32], ["vip", 30]]
    page = web.get("/tags/vip").text
    assert "30 jobs have this tag" in page
    assert "1–25 of 30" in page
    assert web.get("/api/v1/tags/vip").json()["total"] == 30


@pytest.mark.full
def test_the_help_of_filters_has_each_field_and_names_of_this_namespace(
    web: TestClient, client: Client
) -> None:
    put(client, queue="a queue", tags=["vip"])
    found = web.get("/api/v1/filter").json()
    assert {one["name"] for one in found["fields"]} == set(FIELDS)
    assert found["values"]["queue"] == ['"a queue"']
    assert found["values"]["tag"] == ["vip"]
    assert "failed" in found["values"]["state"]
    page = web.get("/filter").text
    assert all(field.meaning[1:] in page for field in FIELDS.values())
    assert web.get("/jobs", params={"q": f"queue:{found['values']['queue'][0]}"}).text.count("jobs.Send") > 0
