"""The pages of workers, settings, operations, the audit log, about and the API: HTML and JSON, and what they change."""

import json
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from starlette.testclient import TestClient

from holdfast import Client
from holdfast.commands.workers import WorkerSeen
from holdfast.console.handles import Console
from holdfast.console.operations.operations import Operation
from holdfast.console.operations.spec import Spec
from holdfast.console.page_paths import segment
from holdfast.testing.clock import START_MS, StoppedClock
from holdfast.web import User, create_app
from waiting import until

Browse = Callable[..., TestClient]
PAGES = (
    "/workers", "/config", "/config?tab=patterns", "/config?tab=priorities&patterns=*", "/operations", "/audit",
    "/about", "/bundle", "/api",
)  # fmt: skip
SAME_SITE = {"Sec-Fetch-Site": "same-origin"}
HOSTILE = (
    "<script>alert(1)</script>",
    "'\"><b>",
    "a/b",
    "..",
    "a%b",
    "🦑 é",
    "{{7*7}}",
    "a//b/",
    "~x",
    "-x",
)


def seen(client: Client, name: str, *queues: str, **facts: str) -> None:
    client.run(WorkerSeen(name, {"queues": json.dumps(queues), "slots": "4", "host": "box", **facts}))


@pytest.mark.full
@pytest.mark.parametrize("page", PAGES)
def test_each_page_is_shown_for_an_empty_store_and_has_a_twin(web: TestClient, page: str) -> None:
    shown, twin = web.get(page), web.get("/api/v1" + page)
    assert (shown.status_code, twin.status_code) == (200, 200), (shown.text[-600:], twin.text)
    assert shown.text.count("<h1") == 1
    assert isinstance(twin.json(), dict)


@pytest.mark.full
@pytest.mark.parametrize(
    "page",
    [
        "/workers?limit=0", "/workers?by=pool", "/workers?after=x", "/config?tab=other", "/operations?after=-1",
        "/operations?limit=0", "/audit?after=x", "/audit?limit=x", "/about?doctor=perhaps",
    ],
)  # fmt: skip
def test_a_query_that_is_wrong_is_refused(web: TestClient, page: str) -> None:
    assert (web.get(page).status_code, web.get("/api/v1" + page).status_code) == (400, 400)


@pytest.mark.full
@pytest.mark.parametrize("page", ["/workers/nobody", "/operations/nothing"])
def test_what_is_not_known_is_not_found(web: TestClient, page: str) -> None:
    assert (web.get(page).status_code, web.get("/api/v1" + page).status_code) == (404, 404)


# Workers.


@pytest.mark.full
@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_any_characters_are_texts_and_lead_to_their_page(
    web: TestClient, client: Client, name: str
) -> None:
    seen(client, name, name, host=name, version=name, pool=name, pid="9" * 4000)
    with Client(client.store_url, namespace=client.settings.namespace, hostname=name) as worker:
        worker.queues[name].put(name)
        [job] = worker.queues[name].pop(1)
        for page in ("/workers", "/workers?by=version", f"/workers/{segment(name)}?failures=1"):
            html = web.get(page).text
            assert not [text for text in HOSTILE[:2] if text in html]
            assert f'href="/workers/{segment(name)}"' in html or page.startswith("/workers/")
        twin = web.get(f"/api/v1/workers/{segment(name)}").json()
    assert (twin["name"], [one["job"]["jid"] for one in twin["running"]]) == (name, [job.jid])


@pytest.mark.full
def test_a_worker_has_its_slots_its_order_of_queues_and_its_failures(web: TestClient, client: Client) -> None:
    client.queue_patterns.set_queue_identifier_patterns({"slow": ["reports"]})
    seen(client, "w", "@slow", "mail", busy="1")
    for queue in ("mail", "reports", "mail"):
        client.queues[queue].put("k.K")
    with Client(client.store_url, namespace=client.settings.namespace, hostname="w") as worker:
        [lost, held] = worker.queues["mail"].pop(2)
        lost.fail("mail-Error", "no luck")
    twin = web.get("/api/v1/workers/w?failures=1").json()
    assert [one["queues"] for one in twin["steps"]] == [["reports", "mail"]]
    assert [(one["job"]["jid"], one["klass"], one["lease_seconds"]) for one in twin["running"]] == [
        (held.jid, "k.K", 30)
    ]
    assert twin["failures"]["groups"] == [["mail-Error", 1]]
    html = web.get("/workers/w?failures=1").text
    assert "mail-Error" in html
    assert "3 slots are free" in html
    region = web.get("/workers/w?failures=1&fragment=worker").text
    assert "<h1" in region
    assert "mail-Error" not in region
    assert "<html" not in region


@pytest.mark.full
def test_a_worker_without_jobs_is_not_doing_anything(web: TestClient, client: Client) -> None:
    seen(client, "w", "q")
    assert "Idle" in web.get("/workers/w").text


@pytest.mark.full
def test_why_there_is_no_stack_is_shown(web: TestClient, client: Client) -> None:
    seen(client, "w", "q")
    assert "does not exist" in web.get("/workers/w?stack=nothing").text
    assert "does not exist" in web.get("/api/v1/workers/w?stack=nothing").json()["stack"]["problem"]


@pytest.mark.full
def test_two_versions_and_silent_workers_are_pointed_out(web: TestClient, client: Client) -> None:
    clock = StoppedClock(client, START_MS)
    clock.start()
    seen(client, "old", "q", version="1.0")
    clock.advance(seconds=40)
    assert "is silent" in web.get("/workers").text
    seen(client, "a", "q", version="1.0")
    seen(client, "b", "q", version="1.1")
    assert "2 versions are running" in web.get("/workers").text


def test_workers_are_quieted_and_resumed_by_form_and_by_json(web: TestClient, client: Client) -> None:
    seen(client, "w-0", "q", pool="process")
    seen(client, "w-1", "q", pool="process")
    done = web.post("/api/v1/workers/quiet", json={"name": ["w"]}).json()
    assert (done["changed"], sorted(done["undo"]["fields"]["name"])) == (2, ["w-0", "w-1"])
    assert [one.quiet for one in client.workers.all()] == [True, True]
    form = web.post("/act/workers/resume", data={"name": "w-1", "back": "/workers"}, follow_redirects=False)
    assert (form.status_code, form.headers["location"]) == (303, "/workers")
    assert {one.name: one.quiet for one in client.workers.all()} == {"w-0": True, "w-1": False}
    assert web.post("/api/v1/workers/quiet", json={"name": ["nobody"]}).status_code == 404
    assert web.post("/api/v1/workers/quiet", json={"name": []}).status_code == 400


@pytest.mark.full
def test_a_worker_that_is_alive_is_forgotten_only_when_that_was_asked(
    web: TestClient, client: Client
) -> None:
    seen(client, "w", "q")
    assert "listed again" in web.post("/act/workers/forget", data={"name": "w"}).text
    assert [one.name for one in client.workers.all()] == ["w"]
    assert web.post("/api/v1/workers/forget", json={"name": ["w"]}).json()["changed"] == 1
    assert client.workers.all() == []


def test_the_leases_of_a_worker_are_timed_out_after_a_dry_run(web: TestClient, client: Client) -> None:
    seen(client, 'w"1', "q")
    client.queues["q"].put("k.K")
    with Client(client.store_url, namespace=client.settings.namespace, hostname='w"1') as worker:
        worker.queues["q"].pop(1)
    filter = web.get("/api/v1/workers/w%221").json()["filter"]
    dry = web.post("/api/v1/jobs/expire", json={"q": filter, "dry_run": True}).json()
    assert dry["result"]["matched"] == 1
    web.post("/api/v1/jobs/expire", json={"q": filter})
    until(lambda: client.queues["q"].counts["running"] == 0, "the lease was taken")


# Settings.


@pytest.mark.full
def test_settings_are_reviewed_before_they_are_changed(web: TestClient, client: Client) -> None:
    fields = {"name": ["heartbeat", "stats-days", ""], "value": ["60", "400", ""], "seen": ["30", "400", ""]}
    asked = web.post("/act/config/set", data=fields)
    assert (asked.status_code, "heartbeat: 30 → 60" in asked.text, "stats-days:" in asked.text) == (
        200,
        True,
        False,
    )
    assert client.config.get("heartbeat") == 30
    web.post("/act/config/set", data={**fields, "confirm": "yes"})
    assert client.config.get("heartbeat") == 60


def test_a_setting_changed_meanwhile_is_refused_with_both_values(web: TestClient, client: Client) -> None:
    client.config.set("heartbeat", 90)
    body = {"name": ["heartbeat"], "value": ["60"], "seen": ["30"]}
    found = web.post("/api/v1/config/set", json=body)
    assert found.status_code == 409
    assert "'90'" in found.json()["title"]
    assert "'30'" in found.json()["title"]
    assert client.config.get("heartbeat") == 90


@pytest.mark.parametrize(
    "body",
    [
        {"name": ["heartbeat"], "value": ["soon"]}, {"name": ["stats-days"], "value": ["0"]},
        {"name": ["a", "b"], "value": ["1"]}, {"name": ["a"], "value": ["1"], "seen": ["1", "2"]},
        {"name": 5}, {"name": ["x\u0000"], "value": ["1"]},
    ],
)  # fmt: skip
def test_settings_that_are_wrong_are_refused(web: TestClient, client: Client, body: dict[str, Any]) -> None:
    before = client.config.all
    assert web.post("/api/v1/config/set", json=body).status_code == 400
    assert client.config.all == before


def test_one_setting_is_reset_from_a_form_of_all_and_that_is_undone(web: TestClient, client: Client) -> None:
    client.config.update({"heartbeat": 60, "team": "payments"})
    fields = {
        "name": ["heartbeat", "team"],
        "value": ["77", "payments"],
        "seen": ["60", "payments"],
        "reset": "heartbeat",
    }
    done = web.post("/api/v1/config/set", json=fields).json()
    assert client.config.get("heartbeat") == 30
    web.post("/api/v1/config/set", json=done["undo"]["fields"])
    assert client.config.get("heartbeat") == 60
    web.post("/api/v1/config/set", json={"name": ["team"], "value": [""]})
    assert "team" not in client.config.all


@pytest.mark.full
def test_values_of_any_characters_stay_as_they_are_when_others_change(
    web: TestClient, client: Client
) -> None:
    odd = " <b>'\"{{7*7}}  "
    client.config.set("odd", odd)
    html = web.get("/config").text
    assert "<b>'" not in html
    body = {"name": ["odd", "heartbeat"], "value": [odd, "60"], "seen": [odd, "30"]}
    assert web.post("/api/v1/config/set", json=body).json()["changed"] == 1
    assert client.config.all["odd"] == odd


@pytest.mark.full
def test_patterns_are_saved_removed_and_restored(web: TestClient, client: Client) -> None:
    version = web.get("/api/v1/config").json()["order"]["identifiers_version"]
    fields = {
        "name": ["slow", "odd", "", "none"],
        "value": ["a, b *", '["a,b", " c"]', "", ""],
        "seen": version,
    }
    assert web.post("/api/v1/config/patterns", json=fields).status_code == 200
    wanted = {"slow": ["a", "b *"], "odd": ["a,b", " c"], "default": ["*"]}
    assert client.queue_patterns.get_queue_identifier_patterns() == wanted
    assert web.post("/api/v1/config/patterns", json=fields).status_code == 409
    html = web.get("/config?tab=patterns").text
    assert "[&#34;a,b&#34;,&#34; c&#34;]" in html
    done = web.post("/api/v1/config/patterns", json={"name": ["slow"], "value": ["x"], "drop": 0}).json()
    assert client.queue_patterns.get_queue_identifier_patterns() == {"default": ["*"]}
    web.post("/api/v1/config/patterns", json=done["undo"]["fields"])
    assert client.queue_patterns.get_queue_identifier_patterns() == wanted


@pytest.mark.parametrize(
    "body",
    [
        {"name": ["a"], "value": []}, {"name": ["a", "a"], "value": ["x", "y"]}, {"name": [""], "value": ["x"]},
        {"name": ["a"], "value": ["[1]"]}, {"name": ["a"], "value": ["x" * 500]},
    ],
)  # fmt: skip
def test_patterns_that_are_wrong_are_refused(web: TestClient, client: Client, body: dict[str, Any]) -> None:
    assert web.post("/api/v1/config/patterns", json=body).status_code == 400
    assert client.queue_patterns.get_queue_identifier_patterns() == {"default": ["*"]}


def rules(client: Client) -> list[tuple[str, bool]]:
    found = client.queue_patterns.get_queue_priority_patterns()
    return [(",".join(one.patterns), one.should_distribute_fairly) for one in found]


@pytest.mark.full
def test_priorities_are_added_moved_removed_and_restored_by_buttons_of_a_form(
    web: TestClient, client: Client
) -> None:
    def save(*patterns: str, **more: object) -> Any:
        seen = web.get("/api/v1/config").json()["order"]["rules_version"]
        found = web.post(
            "/act/config/priorities", data={"pattern": patterns, "seen": seen, "back": "/config", **more}
        )
        assert found.status_code == 200

    save("mail", "a, b", "", fairly="1")
    assert rules(client) == [("mail", False), ("a,b", True), ("default", False)]
    save("mail", "a, b", "default", "", fairly="1", up="1")
    assert rules(client) == [("a,b", True), ("mail", False), ("default", False)]
    save("a, b", "mail", "default", "", fairly="0", down="1")
    assert rules(client) == [("a,b", True), ("default", False), ("mail", False)]
    save("a, b", "default", "mail", "", fairly="0", up="0", drop="2")
    assert rules(client) == [("a,b", True), ("default", False)]
    done = web.post("/api/v1/config/priorities", json={"pattern": []}).json()
    assert rules(client) == [("default", False)]
    web.post("/api/v1/config/priorities", json=done["undo"]["fields"])
    assert rules(client) == [("a,b", True), ("default", False)]
    stale = {"pattern": ["x"], "seen": "0" * 16}
    assert web.post("/api/v1/config/priorities", json=stale).status_code == 409


def test_the_queues_of_a_worker_can_be_tried(web: TestClient, client: Client) -> None:
    for queue in ("mail-a", "mail-b", "other"):
        client.queues[queue].put("k.K")
    twin = web.get("/api/v1/config", params={"patterns": "mail-*, !mail-b"}).json()
    assert [one["queues"] for one in twin["trial"]] == [["mail-a"]]


@pytest.mark.full
@pytest.mark.parametrize(
    ("noun", "verb"),
    [("config", "set"), ("config", "patterns"), ("config", "priorities"), ("workers", "forget")],
)
def test_an_operator_may_not_change_what_is_for_administrators(browse: Browse, noun: str, verb: str) -> None:
    web = browse(auth=lambda _: User("ada", "operator"))
    assert web.post(f"/api/v1/{noun}/{verb}", json={"name": []}).status_code == 403
    html = web.get("/config").text
    assert 'action="/act/config/set"' not in html or "Review changes" not in html


# Operations and the audit log.


def operation(client: Client, **spec: Any) -> Operation:
    console = Console(client, "ada@box")
    return console.run_operation(console.start_operation(Spec(**spec)))


@pytest.mark.full
def test_an_operation_has_its_numbers_and_is_undone(web: TestClient, client: Client) -> None:
    jids = [client.queues["q"].put("k.K", {"n": number}) for number in range(3)]
    done = operation(client, action="priority", filter="queue:q", value="7")
    twin = web.get(f"/api/v1/operations/{done.id}").json()
    assert (twin["operation"]["changed"], twin["operation"]["spec"]["who"]) == (3, "ada@box")
    assert done.id in web.get("/operations").text
    undone = web.post("/api/v1/operations/undo", json={"id": done.id}).json()
    until(
        lambda: web.get(f"/api/v1/operations/{undone['operation']}").json()["operation"]["state"] == "done",
        "undone",
    )
    assert [client.jobs[jid].priority for jid in jids] == [0, 0, 0]
    assert web.post("/api/v1/operations/undo", json={"id": done.id}).status_code == 409
    assert "was undone" in web.get(f"/operations/{done.id}").text


@pytest.mark.full
def test_an_operation_is_stopped_and_resumed_from_a_form(web: TestClient, client: Client) -> None:
    for number in range(4):
        client.queues["q"].put("k.K", {"n": number})
    started = web.post("/api/v1/jobs/priority", json={"q": "queue:q", "value": "7", "rate": 0.5}).json()
    id = started["operation"]
    twin = f"/api/v1/operations/{id}"
    until(lambda: web.get(twin).json()["operation"]["changed"], "it has begun")
    web.post("/act/operations/stop", data={"id": id, "back": "/operations"})
    assert web.get(twin).json()["operation"]["state"] == "stopped"
    assert "Resume" in web.get(f"/operations/{id}").text
    web.post("/act/operations/resume", data={"id": id, "back": "/operations"})
    assert web.get(twin).json()["operation"]["state"] == "running"
    assert web.post("/api/v1/operations/stop", json={"id": id}).json()["changed"] == 1
    assert web.post("/api/v1/operations/stop", json={"id": id}).json()["changed"] == 0


@pytest.mark.parametrize("verb", ["stop", "resume", "undo"])
def test_an_unknown_operation_is_not_found(web: TestClient, verb: str) -> None:
    assert web.post(f"/api/v1/operations/{verb}", json={"id": "nothing"}).status_code == 404
    assert web.post(f"/api/v1/operations/{verb}", json={}).status_code == 400


@pytest.mark.full
def test_an_operation_whose_application_ended_is_finished_by_another_one_and_changes_each_job_once(
    browse: Browse, client: Client
) -> None:
    clock = StoppedClock(client, START_MS)
    clock.start()
    jids = [client.queues["q"].put("k.K", {"n": number}) for number in range(160)]
    with TestClient(create_app(client), headers=SAME_SITE) as first:
        body = {"q": "queue:q", "value": "later", "rate": 40}
        id = first.post("/api/v1/jobs/move", json=body).json()["operation"]
        until(lambda: client.queues["later"].counts["waiting"], "some jobs were moved")
    begun = Console(client).operation(id)
    assert begun.state == "running"
    assert 0 < begun.changed < 160
    clock.advance(seconds=31)  # its lease has ended
    second = browse()
    assert second.get("/operations").status_code == 200
    until(lambda: Console(client).operation(id).state == "done", "another application has finished it", 60)
    done = Console(client).operation(id)
    assert (done.changed, done.same, done.refused) == (160, 0, 0)
    moves = [[line["what"] for line in client.jobs[jid].history].count("put") for jid in jids]
    assert moves == [2] * 160  # once by its client, once into the other queue
    assert client.queues["later"].counts["waiting"] == 160


@pytest.mark.full
def test_the_audit_log_is_read_by_pages_and_searched(web: TestClient, client: Client) -> None:
    for name in HOSTILE:
        Console(client, name).pause(name, why=name)
    first = web.get("/api/v1/audit?limit=6").json()
    rest = web.get("/api/v1/audit", params={"limit": 6, "after": first["lines"]["next"]}).json()
    assert [line["who"] for line in (*first["lines"]["rows"], *rest["lines"]["rows"])] == [*reversed(HOSTILE)]
    found = web.get("/api/v1/audit", params={"who": "🦑"}).json()
    assert [line["target"] for line in found["lines"]["rows"]] == ["🦑 é"]
    html = web.get("/audit").text
    assert "<script>alert" not in html
    assert "{{7*7}}" in html


@pytest.mark.full
def test_data_in_the_audit_log_and_in_operations_are_masked(browse: Browse, client: Client) -> None:
    web = browse(redact=["password", r"re:\d{16}"])
    jid = client.queues["q"].put("k.K", {"password": "old"})
    Console(client, "ada@box").edit(jid, {"password": "s3cret", "card": "4111111111111111"})
    Console(client, "ada@box").edit(jid, {"password": "s3cret" + "x" * 2000})
    done = operation(client, action="data", filter="queue:q", value='{"password": "s3cret"}')
    for page in ("/audit", f"/operations/{done.id}", "/operations", "/bundle"):
        for shown in (web.get(page).text, web.get("/api/v1" + page).text):
            assert "s3cret" not in shown
            assert "4111111111111111" not in shown


# About, the bundle, the API.


@pytest.mark.full
def test_about_shows_the_store_the_licences_and_runs_the_doctor(web: TestClient) -> None:
    twin = web.get("/api/v1/about?doctor=1").json()
    assert twin["report"]["findings"]
    assert {"htmx", "inter", "jbmono", "uplot"} <= set(twin["licences"])
    assert twin["installation"]["store"].split()[0] in ("Valkey", "Redis")
    html = web.get("/about?doctor=1").text
    assert "leftovers" in html
    assert "Permission to use" in html
    assert "openapi.json" in html


def test_the_bundle_has_no_data_and_no_messages(web: TestClient, client: Client) -> None:
    client.queues["q"].put("k.K", {"a": "in-the-data"})
    [job] = client.queues["q"].pop(1)
    job.fail("q-Error", "in-the-message")
    operation(client, action="data", filter="state:failed", value='{"b": "in-the-patch"}')
    text = web.get("/api/v1/bundle").text
    assert "q-Error" in text
    assert not [word for word in ("in-the-data", "in-the-message", "in-the-patch") if word in text]


@pytest.mark.full
def test_the_page_of_the_api_names_each_path_of_the_document(web: TestClient) -> None:
    html, document = web.get("/api").text, web.get("/api/v1/openapi.json").json()
    assert [path for path in document["paths"] if f"<code>{path}</code>" not in html] == []


# What was changed meanwhile.


def etag(web: TestClient, path: str) -> dict[str, str]:
    return {"If-Match": web.get(f"/api/v1{path}").headers["etag"]}


def test_a_setting_is_changed_only_if_it_is_as_it_was_read(web: TestClient, client: Client) -> None:
    before = etag(web, "/config")
    change = {"name": ["heartbeat"], "value": ["60"]}
    assert web.post("/api/v1/config/set", json=change, headers=before).status_code == 200
    late = web.post("/api/v1/config/set", json=change | {"value": ["90"]}, headers=before)
    assert late.status_code == 412
    assert late.headers["etag"] == etag(web, "/config")["If-Match"]
    assert client.config.get("heartbeat") == 60
    assert (
        web.post("/api/v1/config/patterns", json={"name": ["a"], "value": ["b"]}, headers=before).status_code
        == 412
    )
    now = etag(web, "/config")
    assert (
        web.post("/api/v1/config/patterns", json={"name": ["a"], "value": ["b"]}, headers=now).status_code
        == 200
    )
    assert web.post("/api/v1/config/priorities", json={"pattern": ["a"]}, headers=now).status_code == 412
    assert web.post("/api/v1/config/set", json=change, headers={"If-Match": "*"}).status_code == 200


def test_a_limit_and_a_recurring_job_are_changed_only_if_they_are_as_they_were_read(
    web: TestClient, client: Client
) -> None:
    client.throttles["api"].set_maximum(1)
    client.queues["mail"].recur("jobs.Send", {}, 600, jid="often")
    for path, verb, fields in (
        ("/throttles/api", "throttles/set", {"id": "api", "maximum": 2}),
        ("/throttles/api", "throttles/delete", {"id": "api"}),
        ("/recurring/often", "recurring/edit", {"jid": "often", "priority": 3}),
        ("/recurring/often", "recurring/pause", {"jid": ["often"]}),
    ):
        before = etag(web, path)
        assert web.post(f"/api/v1/{verb}", json=fields, headers={"If-Match": '"x"'}).status_code == 412
        assert web.post(f"/api/v1/{verb}", json=fields, headers=before).status_code == 200
        assert web.post(f"/api/v1/{verb}", json=fields, headers=before).status_code in (404, 412)
    assert (
        web.post("/api/v1/workers/quiet", json={"name": ["x"]}, headers={"If-Match": "x"}).status_code == 400
    )


def test_a_limit_of_a_queue_that_was_changed_meanwhile_is_left_alone(web: TestClient, client: Client) -> None:
    client.queues["mail"].put("jobs.Send", {})
    for option, first, second in (
        ("max-waiting", "10", "20"),
        ("max-losses", "1", "2"),
        ("heartbeat", "60", "90"),
        ("throttle", "3", "4"),
    ):
        fields = {"name": "mail", "option": option, "value": first, "seen": ""}
        assert web.post("/api/v1/queues/set", json=fields).status_code == 200
        late = web.post("/api/v1/queues/set", json=fields | {"value": second})
        assert late.status_code == 409
        assert f'"{first}"' in late.json()["title"]
        again = fields | {"value": second, "seen": first}
        assert web.post("/api/v1/queues/set", json=again).status_code == 200
        assert web.post("/api/v1/queues/set", json=fields | {"value": "", "seen": second}).status_code == 200


@pytest.mark.full
def test_an_error_of_a_form_is_shown_beside_its_field(web: TestClient, client: Client) -> None:
    client.throttles["api"].set_maximum(3)
    script = {"HX-Request": "true"}
    fields = {"id": "api", "maximum": "9", "seen": "1", "fault": "api"}
    answer = web.post("/act/throttles/set", data=fields, headers=script)
    assert answer.status_code == 409
    assert '<hx-partial hx-target="#error-' in answer.text
    wrong = web.post("/act/throttles/set", data=fields | {"maximum": "many"}, headers=script)
    assert wrong.status_code == 400
    assert "Expected `int | null`" in unescape(wrong.text)
