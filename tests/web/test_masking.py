"""What the rules of masking hide is in no page, twin, export, stream and bundle; an administrator may reveal it, which is audited."""

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from typing import Any

import httpx
import pytest
from browsing import served
from starlette.testclient import TestClient

from holdfast import Client
from holdfast.commands.admin import Audit, AuditLine
from holdfast.commands.leases import CompleteMany, Done
from holdfast.console.handles import Console
from holdfast.console.masking import Mask
from holdfast.console.operations.spec import Spec
from holdfast.testing.clock import START_MS, StoppedClock
from holdfast.web import User, create_app
from holdfast.web.pages import TABLE

Browse = Callable[..., TestClient]
SECRET, CARD = "hunter2-of-ada", "4111-1111-1111-1111"
REDACT = ["*.password", "password", r"re:\d{4}-\d{4}-\d{4}-\d{4}"]
DATA = {"user": {"password": SECRET}, "password": SECRET, "note": f"pays with {CARD}"}
NAMES = {
    "/queues/{name}": "mail", "/failed/{name}": "mail-ValueError", "/recurring/{name}": "often", "/topics/{name}": "notes", "/tags/{name}": "vip",
}  # fmt: skip


@pytest.fixture
def jids(client: Client) -> list[str]:
    """A failed, a completed, a running and a waiting job, and one that was retried with other data, all with secrets."""
    clock = StoppedClock(client, START_MS)
    clock.start()
    client.config.set("keep-data", 1)
    queue, console = client.queues["mail"], Console(client, "ada")
    found = [queue.put("jobs.Pay", DATA, tags=["vip"]) for _ in range(5)]
    failed, done, running, again = queue.pop(4)
    failed.log(f"tried {CARD}")
    failed.fail("mail-ValueError", f"Traceback\nValueError: no card {CARD}")
    result = json.dumps({"password": SECRET, "card": CARD}).encode()
    kept = Done(done.jid, done.facts.token, keep_ms=600_000, result=result)
    client.run(CompleteMany(done.worker_name, [kept]))
    running.progress(0.5, f"charging {CARD}")
    again.retry(group="mail-ValueError", message=f"ValueError: {CARD}")
    for jid in found:
        client.job(jid).track()
    queue.recur("jobs.Pay", DATA, 600, jid="often")
    console.update_recurring("often", data=DATA | {"n": 3})
    client.topics["notes"].put("m", json.dumps(DATA), delay=600)
    client.topics["notes"].put("text", f"pay with {CARD}", delay=600)
    client.run(Audit("ada", "deploy", "x", f"with {CARD}"))
    client.run(Audit("ada", "pause", "x", json.dumps({"password": SECRET, "why": CARD})))
    console.edit(found[0], DATA | {"n": 1})
    console.run_operation(
        console.start_operation(Spec(action="data", filter="state:failed", value=json.dumps(DATA)))
    )
    return found


@pytest.fixture
def web(browse: Browse) -> TestClient:
    return browse(redact=REDACT)


def paths(jids: list[str], console: Console) -> Iterator[str]:
    """All pages, those of jobs and queues with all that can be asked for."""
    [operation] = [one.id for one in console.operations()]
    for view in TABLE.views:
        if "{name}" not in view.path:
            yield view.path
        elif view.path in NAMES:
            yield view.path.format(name=NAMES[view.path])
    for jid in jids:
        yield f"/jobs/{jid}"
        yield from (f"/jobs/{jid}?at={line}" for line in (1, 2, 3))
        yield from (f"/jobs/{jid}?raw={part}" for part in ("data", "result", "message"))
    yield f"/jobs/{jids[3]}?first=1&second=1"
    yield from (
        f"/queues/mail?tab={tab}" for tab in ("running", "waiting", "failed", "recurring", "scheduled")
    )
    yield from (f"/jobs?q=queue:mail&export={kind}" for kind in ("csv", "jsonl"))
    yield from (
        "/jobs?q=queue:mail",
        f"/operations/{operation}",
        "/about?doctor=true",
        "/failed/mail-ValueError?limit=1",
        f"/failed/mail-ValueError?edited={operation}",
    )


@pytest.mark.full
def test_no_page_twin_or_export_has_what_is_masked(web: TestClient, client: Client, jids: list[str]) -> None:
    looked = 0
    for path in paths(jids, Console(client)):
        for url, accept in (
            (path, "text/html"),
            (f"/api/v1{path if path != '/' else '/overview'}", "application/json"),
        ):
            answer = web.get(url, headers={"Accept": accept})
            assert answer.status_code == 200, (url, answer.text[:300])
            for secret in (SECRET, CARD):
                assert secret not in unescape(answer.text), url
            looked += "••••" in unescape(answer.text) or "\\u2022" in answer.text
    assert looked > 20
    assert SECRET not in web.get("/live?once=1").text


@pytest.mark.filterwarnings("ignore:a sync holdfast.Client is used")
def test_the_stream_names_the_messages_of_topics_that_come_and_go_and_has_nothing_of_their_bodies(
    client: Client,
) -> None:
    topic, stop = client.topics["news"], threading.Event()

    def put_and_take() -> None:
        for number in itertools.count():
            topic.put_many({f"{kind}-{number}": {"password": SECRET} for kind in ("kept", "gone")}, delay=60)
            topic.put(f"done-{number}", {"password": SECRET})
            topic.delete(f"gone-{number}")
            topic.pull()
            if stop.wait(0.05):
                return

    with (
        served(create_app(client, redact=REDACT)) as base,
        ThreadPoolExecutor(1) as pool,
        httpx.stream("GET", base + "live", timeout=30) as stream,
    ):
        lines = stream.iter_lines()
        assert next(lines) == "event: tick"
        pool.submit(put_and_take)
        try:
            found = reports(lines)
        finally:
            stop.set()
    for kind, prefix in (
        ("scheduled", ("kept", "gone", "done")),
        ("cancelled", "gone"),
        ("completed", "done"),
    ):
        report = found[f"message_{kind}"]
        assert report["topic"] == "news"
        assert report["count"] >= len(report["ids"]) > 0
        assert all(id.startswith(prefix) for id in report["ids"])


def reports(lines: Iterator[str]) -> dict[str, Any]:
    """Read a stream until it had each kind of report about messages; nothing of it has a body."""
    found: dict[str, Any] = {}
    kind = ""
    for line in lines:
        assert SECRET not in line
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("data: ") and kind.startswith("message_"):
            found[kind] = json.loads(line.removeprefix("data: "))
            if len(found) == 3:
                break
    return found


def test_questions_and_dry_runs_have_nothing_that_is_masked(web: TestClient, jids: list[str]) -> None:
    for path, fields in (
        ("jobs/edit", {"jid": jids[0], "patch": '{"n": 4}'}),
        ("jobs/cancel", {"q": "queue:mail"}),
        ("jobs/data", {"q": "queue:mail", "value": '{"n": 5}'}),
        ("failed/retry", {"name": "mail-ValueError"}),
    ):
        answer = web.post(f"/act/{path}", data=fields)
        assert answer.status_code == 200
        assert SECRET not in unescape(answer.text)
    dry = web.post("/api/v1/jobs/cancel", json={"q": "queue:mail", "dry_run": True})
    assert SECRET not in dry.text


@pytest.mark.full
def test_an_administrator_reveals_a_part_and_the_audit_log_has_a_line(
    web: TestClient, client: Client, jids: list[str]
) -> None:
    assert "/act/jobs/reveal" in web.get(f"/jobs/{jids[0]}").text
    assert "/act/jobs/reveal" in web.get("/recurring/often").text
    parts = {"data": (jids[0], SECRET), "result": (jids[1], CARD), "message": (jids[0], CARD)}
    for part, (jid, secret) in parts.items():
        found = web.post("/api/v1/jobs/reveal", json={"jid": jid, "part": part}).json()
        assert secret in json.dumps(found["result"])
        line = Console(client).audit(limit=1).rows[0]
        assert (line.what, line.target, line.detail) == ("reveal", jid, part)
    shown = unescape(web.post("/act/jobs/reveal", data={"jid": "often"}).text)
    assert SECRET in shown
    assert "Change nothing" not in shown
    assert web.post("/api/v1/jobs/reveal", json={"jid": "x"}).status_code == 404
    assert web.post("/api/v1/jobs/reveal", json={"jid": jids[0], "part": "x"}).status_code == 400


@pytest.mark.full
def test_others_are_not_offered_that_and_are_refused(browse: Browse, client: Client, jids: list[str]) -> None:
    operator = browse(redact=REDACT, auth=lambda _: User("ann", "operator"))
    assert "/act/jobs/reveal" not in operator.get(f"/jobs/{jids[0]}").text
    before = len(Console(client).audit(limit=100).rows)
    assert operator.post("/api/v1/jobs/reveal", json={"jid": jids[0]}).status_code == 403
    assert len(Console(client).audit(limit=100).rows) == before


@pytest.mark.full
def test_where_nothing_is_masked_nothing_is_revealed(browse: Browse, jids: list[str]) -> None:
    assert "/act/jobs/reveal" not in browse().get(f"/jobs/{jids[0]}").text


@pytest.mark.parametrize(
    "detail",
    [
        'q → {"a":1,"password":"CANARY","text":"x → y"}',
        'a → b → {"password":"CANARY"}',
        '{"password":"CANARY"} → {"password":"CANARY"}',
        'q → {"password":"CANARY","cut…',
    ],
)
def test_an_arrow_in_what_was_changed_uncovers_nothing_in_the_audit_log(detail: str) -> None:
    for what in ("edit", "bulk data", "config"):
        line = AuditLine("1-0", 1, "ada", what, "j", detail)
        shown = Mask(["*.password"]).within(line).detail
        assert "CANARY" not in shown or (what == "config" and "cut" in detail and "••••" in shown), (
            what,
            shown,
        )


def test_of_two_members_of_one_name_none_is_shown_that_was_not_looked_at() -> None:
    assert "CANARY" not in Mask(["*.password"]).json_text('{"a":{"password":"CANARY"},"a":1}')
