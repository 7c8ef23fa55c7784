"""Pages and actions of failure groups, recurring jobs, topics and throttles: HTML, JSON, and what is refused."""

import json
from collections.abc import Callable
from html import unescape

import pytest
from starlette.testclient import TestClient

from holdfast import Client
from holdfast.console.handles import Console
from holdfast.console.page_paths import segment
from holdfast.web.users import User
from waiting import until

HOSTILE = ("<script>alert(1)</script>", "a\"b'c", "a/b", "..", "a%b", "🐳 x", "{{7*7}}", "a//b/")


def fail(client: Client, group: str, count: int, queue: str = "q", **data: object) -> list[str]:
    jids = [client.queues[queue].put("k.K", {"n": n, **data}) for n in range(count)]
    for job in client.queues[queue].pop(count):
        job.fail(group, f"Traceback\n  line 1\nError: no luck with {group}")
    return jids


def page(web: TestClient, path: str) -> str:
    response = web.get(path)
    assert response.status_code == 200, response.text
    return response.text


def act(web: TestClient, what: str, status: int = 200, **body: object) -> dict[str, object]:
    response = web.post(f"/api/v1/{what}", json=body)
    assert response.status_code == status, response.text
    found: dict[str, object] = response.json()
    return found


def submit(web: TestClient, what: str, status: int = 303, **fields: object) -> str:
    response = web.post(f"/act/{what}", data={"back": "/about", **fields}, follow_redirects=False)
    assert response.status_code == status, response.text
    return unescape(response.text)


@pytest.mark.full
@pytest.mark.parametrize("path", ["/failed", "/recurring", "/topics", "/throttles"])
def test_lists_are_there_in_an_empty_store(web: TestClient, path: str) -> None:
    assert "<h1>" in page(web, path)
    assert web.get("/api/v1" + path).status_code == 200
    assert web.get(path + "/").status_code == 200


@pytest.mark.full
@pytest.mark.parametrize("path", ["/failed/x", "/recurring/x", "/throttles/x"])
def test_an_unknown_name_is_not_found(web: TestClient, path: str) -> None:
    assert web.get(path).status_code == 404
    assert web.get("/api/v1" + path).status_code == 404


@pytest.mark.full
@pytest.mark.parametrize(
    "path",
    [
        "/failed?limit=0",
        "/failed?limit=x",
        "/failed?sort=size",
        "/failed?after=x",
        "/failed?hours=-1",
        "/recurring?after=x",
        "/topics?after=x",
        "/topics/t?limit=9999",
        "/throttles?limit=0",
        "/throttles?after=x",
    ],
)
def test_a_query_that_makes_no_sense_is_refused(web: TestClient, client: Client, path: str) -> None:
    client.topics["t"].put("m", "x")
    assert web.get(path).status_code == 400
    assert web.get("/api/v1" + path).status_code == 400


@pytest.mark.full
@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_any_characters_have_their_pages(web: TestClient, client: Client, name: str) -> None:
    fail(client, name, 1, name)
    client.queues[name].recur(name, {"text": name}, 60, jid=name, tags=[name])
    client.topics[name].put(name, name, delay=99)
    console = Console(client)
    console.set_throttle(name, 2)
    for path in ("failed", "recurring", "topics", "throttles"):
        for url in (f"/{path}", f"/{path}/{segment(name)}"):
            text = page(web, url)
            assert "<script>alert" not in text
            assert name in unescape(text), url
    assert web.get(f"/api/v1/failed/{segment(name)}").json()["group"]["name"] == name
    assert web.get(f"/api/v1/topics/{segment(name)}").json()["queued"][0]["id"] == name
    assert web.get(f"/api/v1/throttles/{segment(name)}").json()["detail"]["throttle"]["id"] == name
    assert web.get(f"/api/v1/recurring/{segment(name)}").json()["facts"]["jid"] == name


# Failure groups.


@pytest.mark.full
def test_a_group_shows_its_messages_what_is_shared_and_its_jobs(web: TestClient, client: Client) -> None:
    fail(client, "g", 30, locale="de")
    text = unescape(page(web, "/failed"))
    assert "30 jobs in 1 group" in text
    assert "Error: no luck with g" in text
    found = web.get("/api/v1/failed/g").json()
    assert found["messages"] == [["Error: no luck with g", 30]]
    assert ["data.locale", "de"] in [[one["what"], one["value"]] for one in found["shares"]]
    assert len(found["jobs"]["jobs"]) == 25
    second = web.get("/api/v1/failed/g", params={"after": found["jobs"]["cursor"], "first": 26}).json()
    assert len(second["jobs"]["jobs"]) == 5
    chosen = web.get("/failed/g", params={"message": "Error: no luck with g"})
    assert "Traceback of this message" in chosen.text
    assert "No job of this group has this message" in web.get("/failed/g?message=other").text


def test_masked_parts_of_data_and_messages_are_on_no_page(
    browse: Callable[..., TestClient], client: Client
) -> None:
    web = browse(redact=["password", r"re:\b\d{16}\b"])
    jids = [client.queues["q"].put("k.K", {"password": "hunter2"}) for _ in range(3)]
    for job in client.queues["q"].pop(3):
        job.fail("g", "Error: card 4711471147114711")
    client.queues["q"].recur("k.K", {"password": "hunter2"}, 60, jid="r")
    client.topics["t"].put("m", '{"password": "hunter2"}', delay=99)
    for path in ("/failed", "/failed/g", "/recurring", "/recurring/r", "/topics/t"):
        for text in (page(web, path), web.get("/api/v1" + path).text):
            assert "hunter2" not in text
            assert "4711471147114711" not in text
    assert jids
    act(web, "recurring/edit", jid="r", priority=3, data="")
    assert Console(client).recurring_job("r").data == b'{"password":"hunter2"}'


def test_the_question_before_a_change_of_a_group_counts_its_jobs_also_where_data_are_masked(
    browse: Callable[..., TestClient], client: Client
) -> None:
    fail(client, "g", 3)
    asked = browse(redact=["*.password"]).post("/act/failed/retry", data={"name": "g"})
    assert asked.status_code == 200
    assert "3 failed" in asked.text
    assert "3 in queue q" in asked.text


def test_all_jobs_of_a_group_are_retried_after_a_dry_run(web: TestClient, client: Client) -> None:
    fail(client, 'g "1"', 5)
    fail(client, "other", 2)
    asked = submit(web, "failed/retry", 200, name='g "1"')
    assert "Retry 5 jobs?" in asked
    assert client.jobs.failed() == {'g "1"': 5, "other": 2}
    submit(web, "failed/retry", name=['g "1"', "other"], confirm="yes")
    until(lambda: client.jobs.failed() == {}, "the operation to end")
    fail(client, "third", 2)
    done = act(web, "failed/cancel", name=["third"])
    assert done["changed"] == 2
    assert client.jobs.failed() == {}
    act(web, "failed/retry", 400, name=[])
    act(web, "failed/move", 400, name=["x" * 300], value="q")


def test_a_probe_is_retried_alone_and_offers_the_others(web: TestClient, client: Client) -> None:
    fail(client, "g", 2)
    done = act(web, "failed/probe", name="g")
    assert client.jobs.failed() == {"g": 1}
    text = unescape(page(web, str(done["place"])))
    assert "The probe" in text
    assert "Retry the rest" in text
    assert str(act(web, "failed/probe", name="g")["place"]).startswith("/jobs/")
    act(web, "failed/probe", 404, name="g")
    submit(web, "failed/probe", 303, name="g")  # the error is shown on the page before


def test_the_data_of_a_group_are_changed_before_it_is_retried(web: TestClient, client: Client) -> None:
    [jid] = fail(client, "g", 1, locale="de")
    assert "Change the data of 1 job?" in submit(web, "failed/edit", 200, name="g", patch='{"locale": "fr"}')
    done = act(web, "failed/edit", name="g", patch='{"locale": "fr"}')
    until(lambda: json.loads(client.jobs[jid].data)["locale"] == "fr", "the operation to end")
    assert client.jobs[jid].state == "failed"
    assert "The change of the data" in unescape(page(web, str(done["place"])))
    act(web, "failed/edit", 400, name="g", patch="no JSON")


# Recurring jobs.


def test_a_recurring_job_is_made_run_changed_paused_and_deleted(web: TestClient, client: Client) -> None:
    console = Console(client)
    submit(
        web,
        "recurring/add",
        queue="q",
        klass="shop.mail.welcome",
        interval="3600",
        jid="r",
        data="[7]",
        offset="600",
    )
    assert (console.recurring_job("r").interval_ms, console.recurring_job("r").retries) == (3_600_000, 0)
    act(web, "recurring/add", 400, queue="q", klass="shop.mail.welcome", interval=60, jid="r")
    put = act(web, "recurring/run", jid=["r"])
    assert put["result"] == {"r": "r-1"}
    act(
        web,
        "recurring/edit",
        jid="r",
        interval=7200,
        priority=5,
        tags="a, b",
        data={"args": [8]},
        klass="k.K",
    )
    changed = console.recurring_job("r")
    assert (changed.interval_ms, changed.priority, changed.tags) == (7_200_000, 5, ("a", "b"))
    assert (changed.data, changed.klass) == (b'{"args":[8]}', "k.K")
    submit(
        web,
        "recurring/edit",
        jid="r",
        interval="60",
        klass="k.K",
        queue="q",
        priority="5",
        retries="1",
        backlog="0",
        tags="b",
        data="",
    )
    assert (console.recurring_job("r").interval_ms, console.recurring_job("r").tags) == (60_000, ("b",))
    assert act(web, "recurring/edit", jid="r")["text"] == "Nothing to change."
    submit(web, "recurring/pause", jid="r")
    assert "paused" in page(web, "/recurring/r")
    act(web, "recurring/resume", jid=["r"])
    assert "r-1" in page(web, "/recurring/r")
    submit(web, "recurring/delete", jid="r")
    assert web.get("/recurring/r").status_code == 404


@pytest.mark.parametrize(
    ("what", "body", "status"),
    [
        ("run", {"jid": ["x"]}, 404),
        ("run", {"jid": []}, 400),
        ("pause", {"jid": ["x"]}, 404),
        ("delete", {"jid": ["x"]}, 404),
        ("edit", {"jid": "x", "priority": 1}, 404),
        ("edit", {"jid": "r", "interval": 0}, 400),
        ("edit", {"jid": "r", "data": "{"}, 400),
        ("edit", {"jid": "r", "priority": "high"}, 400),
        ("add", {"queue": "", "klass": "k.K", "interval": 5}, 400),
        ("add", {"queue": "q", "klass": "k.K", "interval": -5}, 400),
        ("add", {"queue": "q", "klass": "k.K"}, 400),
    ],
)
def test_recurring_jobs_that_make_no_sense_are_refused(
    web: TestClient, client: Client, what: str, body: dict[str, object], status: int
) -> None:
    client.queues["q"].recur("k.K", {}, 60, jid="r")
    act(web, f"recurring/{what}", status, **body)


# Topics.


def test_messages_are_put_delivered_postponed_given_back_and_cancelled(
    web: TestClient, client: Client
) -> None:
    assert "No message is pending" in page(web, "/topics/mail")
    submit(web, "topics/put", topic="mail", id="m", body="Hello", delay="500")
    assert "Hello" in page(web, "/topics/mail")
    act(web, "topics/put", 409, topic="mail", id="m", body="again")
    act(web, "topics/put", 400, topic="mail", id="n", body="x", delay=-1)
    act(web, "topics/deliver", topic="mail", id=["m"])
    item = client.topics["mail"].reserve()
    assert item.id == "m"
    act(web, "topics/deliver", 404, topic="mail", id=["m"])
    assert [one["id"] for one in web.get("/api/v1/topics/mail").json()["reserved"]] == ["m"]
    submit(web, "topics/give-back", topic="mail", id="m")
    act(web, "topics/give-back", 404, topic="mail", id=["m"])
    act(web, "topics/postpone", topic="mail", id=["m"], delay=900)
    assert client.topics["mail"].ready_count() == 0
    assert act(web, "topics/cancel", topic="mail", id=["m", "x"])["changed"] == 1
    act(web, "topics/cancel", 404, topic="mail", id=["m"])


# Throttles.


def test_limits_are_set_undone_and_deleted(web: TestClient, client: Client) -> None:
    client.queues["q"].put("k.K")
    done = act(web, "throttles/set", id="ql:q:q", maximum=3)
    assert done["text"] == "Queue q: at most 3 at once."
    assert done["undo"] == {"noun": "throttles", "verb": "delete", "fields": {"id": "ql:q:q"}}
    submit(web, "throttles/set", id="ql:q:q", maximum="5", seen="3")
    act(web, "throttles/set", 409, id="ql:q:q", maximum=7, seen=3)
    act(web, "throttles/set", id="ql:q:q", seconds=60)
    row = web.get("/api/v1/throttles").json()["queues"]["rows"][0]
    assert (row["facts"]["maximum"], 0 < row["facts"]["ttl"] <= 60) == (5, True)
    act(web, "throttles/set", 400, id="ql:q:q")
    act(web, "throttles/set", 400, id="ql:q:q", maximum=-1)
    submit(web, "throttles/delete", id="ql:q:q")
    assert web.get("/api/v1/throttles/ql:q:q").json()["detail"]["throttle"]["facts"]["maximum"] == 0


@pytest.mark.full
def test_a_slot_is_released_by_operators_and_limits_are_set_by_administrators(
    browse: Callable[..., TestClient], client: Client
) -> None:
    web = browse(auth=lambda request: User("ben", "operator"))
    Console(client).set_throttle("api", 1)
    for _ in range(2):
        client.queues["q"].put("k.K", throttles=["api"])
    [job] = client.queues["q"].pop(2)
    text = page(web, "/throttles/api")
    assert job.jid in text
    assert 'name="maximum"' not in text
    act(web, "throttles/set", 403, id="api", maximum=9)
    act(web, "throttles/delete", 403, id="api")
    act(web, "throttles/release", id="api", jid=[job.jid])
    act(web, "throttles/release", 409, id="api", jid=[job.jid])


@pytest.mark.full
def test_a_viewer_sees_everything_and_changes_nothing(
    browse: Callable[..., TestClient], client: Client
) -> None:
    web = browse(auth=lambda request: User("eve", "viewer"))
    fail(client, "g", 1)
    client.queues["q"].recur("k.K", {}, 60, jid="r")
    client.topics["t"].put("m", "x")
    for path in (
        "/failed",
        "/failed/g",
        "/recurring",
        "/recurring/r",
        "/recurring?new=1",
        "/topics",
        "/topics/t",
        "/throttles",
    ):
        assert 'action="/act/' not in page(web, path)
    for what in ("failed/retry", "failed/probe", "recurring/run", "topics/put", "throttles/release"):
        assert web.post(f"/api/v1/{what}", json={}).status_code == 403


@pytest.mark.full
@pytest.mark.parametrize(
    ("path", "region"),
    [
        ("/failed", "groups"),
        ("/failed/g", "whole"),
        ("/recurring", "rows"),
        ("/recurring/r", "whole"),
        ("/topics", "rows"),
        ("/topics/t", "messages"),
        ("/throttles", "rows"),
        ("/throttles/api", "whole"),
    ],
)
def test_regions_load_again_by_themselves(web: TestClient, client: Client, path: str, region: str) -> None:
    fail(client, "g", 1)
    client.queues["q"].recur("k.K", {}, 60, jid="r")
    client.topics["t"].put("m", "x")
    Console(client).set_throttle("api", 1)
    text = page(web, f"{path}?fragment={region}")
    assert text.lstrip().startswith(f'<div id="{region}"')
    assert "<html" not in text


# Snooze and mute.


@pytest.mark.full
def test_what_needs_attention_is_snoozed_and_shown_again(web: TestClient, client: Client) -> None:
    fail(client, "g", 25)
    html = page(web, "/")
    assert "Snooze for an hour" in html
    done = web.post("/api/v1/attention/snooze", json={"about": "surge", "subject": "g", "seconds": 60}).json()
    assert done["text"] == "g snoozed for 1\u202fm, or until it grows much larger."
    assert done["undo"] == {
        "noun": "attention",
        "verb": "unsnooze",
        "fields": {"about": "surge", "subject": "g"},
    }
    assert web.get("/api/v1/overview").json()["findings"] == []
    assert "Show again" in page(web, "/")
    submit(web, "attention/unsnooze", about="surge", subject="g")
    assert len(web.get("/api/v1/overview").json()["findings"]) == 1
    assert web.post("/api/v1/attention/snooze", json={"about": "surge", "subject": "x"}).status_code == 404
    assert web.post("/api/v1/attention/snooze", json={"about": "x"}).status_code == 400


def test_a_group_is_muted_and_unmuted(web: TestClient, client: Client) -> None:
    fail(client, "g", 25)
    submit(web, "failed/mute", name="g")
    assert web.get("/api/v1/failed").json()["muted"] == ["g"]
    assert web.get("/api/v1/failed/g").json()["is_muted"]
    assert web.get("/api/v1/overview").json()["findings"] == []
    assert "muted" in page(web, "/failed")
    submit(web, "failed/unmute", name="g")
    assert web.get("/api/v1/failed").json()["muted"] == []
    assert web.post("/api/v1/failed/mute", json={"name": ["x"]}).status_code == 404
