"""Whatever the older web app showed and did is here, under our own URLs: pages and their twins, actions and their errors."""

import json
import re
from typing import Any

import pytest
from starlette.testclient import TestClient

from holdfast import Client
from holdfast.console.page_paths import segment

NAME = "eu/mail: 50 %"


@pytest.fixture
def shop(client: Client) -> Client:
    """Jobs in all states that the older pages list, under names of odd characters."""
    queue, other = client.queues[NAME], client.queues["calm"]
    client.throttles["api"].set_maximum(3)
    queue.put("jobs.Send", {"a": 1}, jid="parent", tags=["vip/eu"], priority=7, throttles=["api"])
    queue.put("jobs.Send", {"b": 2}, jid="child", depends=["parent"])
    other.put("jobs.Fetch", {}, jid="broken")
    other.pop(1)[0].fail("calm-ValueError", "Traceback (most recent call last):\nValueError: no luck")
    other.put("jobs.Fetch", {}, jid="over")
    other.pop(1)[0].complete()
    queue.recur("jobs.Digest", {"c": 3}, interval=3600, offset=3600, jid="hourly")
    client.jobs["child"].track()  # type: ignore[union-attr]
    client.queue_patterns.set_queue_identifier_patterns({"critical": ["mail-*"]})
    return client


PAGES: dict[str, tuple[str, str, list[str]]] = {
    "overview": ("/", "/overview", [NAME, "calm-ValueError", "waiting"]),
    "queues": ("/queues", "/queues", [NAME, "calm"]),
    "one queue": (f"/queues/{segment(NAME)}", "", [NAME, "waiting"]),
    **{
        f"tab {tab}": (f"/queues/{segment(NAME)}?tab={tab}", "", [jid])
        for tab, jid in (("waiting", "parent"), ("depends", "child"), ("recurring", "hourly"), ("running", NAME), ("throttled", NAME), ("scheduled", NAME), ("stalled", NAME))
    },
    "dynamic queues": ("/config?tab=patterns", "", ["critical", "mail-*", "default"]),
    "queue priority": ("/config?tab=priorities", "", ["default"]),
    "throttles": ("/throttles", "", ["api"]),
    "workers": ("/workers", "", ["WORKER"]),
    "one worker": ("/workers/WORKER", "", ["WORKER"]),
    "tracked": ("/tracked", "", ["child"]),
    "tracked by state": ("/tracked?tab=depends", "", ["child"]),
    "failed": ("/failed", "", ["calm-ValueError", "no luck"]),
    "one group": ("/failed/calm-ValueError", "", ["calm-ValueError", "broken", "no luck"]),
    "completed": ("/completed", "", ["over", "jobs.Fetch"]),
    "a job": ("/jobs/parent", "", ["parent", "jobs.Send", "vip/eu", "api", "child"]),
    "a recurrence": ("/jobs/hourly", "", ["hourly", "jobs.Digest"]),
    "a tag": (f"/tags/{segment('vip/eu')}", "", ["vip/eu", "parent"]),
    "config": ("/config", "", ["jobs-history", "grace-period"]),
    "about": ("/about", "", ["htmx"]),
}  # fmt: skip


def text_of(html: str) -> str:
    """Return what a page shows, without what changes from request to request."""
    main = html[html.index("<main") :]
    return re.sub(
        r'value="[0-9a-f]{16}"|data-ms="\d+"|datetime="[^"]+"|title="[^"]+"|>[^<>]*\bago<|\d+ ms|now',
        "",
        main,
    )


def without_times(found: Any) -> Any:
    if isinstance(found, dict):
        return {
            name: without_times(one)
            for name, one in found.items()
            if not name.endswith(("_ms", "now", "seen", "id"))
        }
    return [without_times(one) for one in found] if isinstance(found, list) else found


@pytest.mark.full
@pytest.mark.parametrize("page", PAGES)
def test_each_page_is_found_with_and_without_a_slash_at_its_end_and_its_twin_has_the_same_content(
    web: TestClient, shop: Client, page: str
) -> None:
    path, twin, texts = PAGES[page]
    worker = (
        web.get("/api/v1/workers").json()["fleet"]["workers"]["rows"][0]["name"] if "workers" in path else ""
    )
    path, texts = path.replace("WORKER", segment(worker)), [one.replace("WORKER", worker) for one in texts]
    place, _, query = path.partition("?")
    bare, slashed = [web.get(f"{one}?{query}") for one in (place, place.rstrip("/") + "/")]
    assert (bare.status_code, slashed.status_code) == (200, 200)
    assert len(text_of(bare.text)) == pytest.approx(len(text_of(slashed.text)), rel=0.02)
    twins = [web.get(f"/api/v1{twin or place}{end}?{query}") for end in ("", "/")]
    assert [one.status_code for one in twins] == [200, 200]
    first, second = [without_times(one.json()) for one in twins]
    assert first.keys() == second.keys()
    shown, said = bare.text, json.dumps(twins[0].json(), ensure_ascii=False)
    for text in texts:
        assert text in shown, text
        assert text in said, text


# Actions: what the older app called each, ours, its fields, and what it answers to each mistake.

ACTIONS: dict[str, tuple[str, dict[str, Any], dict[int, list[dict[str, Any]]]]] = {
    "track": ("jobs/track", {"jid": ["parent"]}, {400: [{}], 404: [{"jid": ["nope"]}]}),
    "untrack": ("jobs/untrack", {"jid": ["child"]}, {400: [{}], 404: [{"jid": ["nope"]}]}),
    "priority": ("jobs/priority", {"jid": ["parent"], "value": "9"}, {400: [{}, {"jid": ["parent"], "value": "high"}, {"jid": ["parent"], "value": ""}], 404: [{"jid": ["nope"], "value": "9"}]}),
    "pause": ("queues/pause", {"name": [NAME]}, {400: [{}, {"name": [""]}], 404: [{"name": ["nope"]}]}),
    "unpause": ("queues/resume", {"name": [NAME]}, {400: [{}, {"name": [""]}], 404: [{"name": ["nope"]}]}),
    "timeout": ("jobs/expire", {"jid": ["held"]}, {400: [{}], 404: [{"jid": ["nope"]}], 409: [{"jid": ["parent"]}]}),
    "tag": ("jobs/tag", {"jid": ["parent"], "value": "new"}, {400: [{}, {"jid": ["parent"]}], 404: [{"jid": ["nope"], "value": "new"}]}),
    "untag": ("jobs/untag", {"jid": ["parent"], "value": "vip/eu"}, {400: [{}, {"jid": ["parent"]}], 404: [{"jid": ["nope"], "value": "x"}]}),
    "move": ("jobs/move", {"jid": ["parent"], "value": "calm"}, {400: [{}, {"jid": ["parent"]}], 404: [{"jid": ["nope"], "value": "calm"}]}),
    "undepend": ("jobs/undepend", {"jid": "child", "parent": ["parent"]}, {400: [{}], 404: [{"jid": "nope", "parent": ["parent"]}]}),
    "retry": ("jobs/retry", {"jid": ["broken"]}, {400: [{}], 404: [{"jid": ["nope"]}], 409: [{"jid": ["parent"]}]}),
    "retryall": ("failed/retry", {"name": ["calm-ValueError"]}, {400: [{}], 404: [{"name": ["nope"]}]}),
    "cancel": ("jobs/cancel", {"jid": ["child"]}, {400: [{}], 404: [{"jid": ["nope"]}], 409: [{"jid": ["parent"]}]}),
    "cancelall": ("failed/cancel", {"name": ["calm-ValueError"]}, {400: [{}], 404: [{"name": ["nope"]}]}),
    "throttle": ("throttles/set", {"id": "api", "maximum": 5}, {400: [{}, {"id": "api"}, {"maximum": 5}, {"id": "api", "maximum": -1}], 409: [{"id": "api", "maximum": 5, "seen": 1}]}),
    "expiration": ("throttles/set", {"id": "api", "seconds": 60}, {400: [{"seconds": 60}, {"id": "api", "seconds": -1}]}),
    "delete throttle": ("throttles/delete", {"id": "api"}, {400: [{}]}),
    "dynamic queues": ("config/patterns", {"name": ["slow"], "value": ["reports-*"]}, {400: [{"name": ["slow"]}], 409: [{"name": ["slow"], "value": ["a"], "seen": "old"}]}),
    "queue priority": ("config/priorities", {"pattern": ["mail-*"]}, {409: [{"pattern": ["mail-*"], "seen": "old"}]}),
}  # fmt: skip


def as_form(fields: dict[str, Any]) -> dict[str, Any]:
    return {**fields, "confirm": "yes"}


@pytest.mark.full
@pytest.mark.parametrize("action", ACTIONS)
def test_each_action_is_done_by_a_form_and_by_json_and_refuses_what_is_wrong(
    web: TestClient, shop: Client, action: str
) -> None:
    name, right, wrong = ACTIONS[action]
    if action == "unpause":
        shop.queues[NAME].pause()
    shop.queues["held"].put("jobs.Send", {}, jid="held")
    shop.queues["held"].pop(1)
    for status, bodies in wrong.items():
        for body in bodies:
            found = web.post(f"/api/v1/{name}", json=body)
            assert (found.status_code, found.json()["status"]) == (status, status), (body, found.text)
            by_form = web.post(f"/act/{name}", data=as_form(body), headers={"HX-Request": "true"})
            assert by_form.status_code == status, (body, by_form.text)
            assert "toast" in by_form.text
    assert (
        web.post(f"/api/v1/{name}", content=b"{", headers={"Content-Type": "application/json"}).status_code
        == 400
    )
    done = web.post(f"/api/v1/{name}", json=right)
    assert (done.status_code, done.json()["changed"]) == (200, 1), done.text
    again = web.post(f"/api/v1/{name}/", json=right)
    assert again.status_code in (200, 404, 409), again.text  # a slash at the end is accepted here too


def test_an_empty_field_for_a_number_counts_as_one_that_is_not_there(web: TestClient, shop: Client) -> None:
    form = {"id": "api", "maximum": "", "seconds": "60", "confirm": "yes"}
    assert web.post("/act/throttles/set", data=form, headers={"HX-Request": "true"}).status_code == 200
    facts = shop.throttles["api"].facts()
    assert (facts.maximum, 0 < (facts.ttl or 0) <= 60) == (3, True)
    form = {"id": "api", "maximum": "many", "confirm": "yes"}
    assert web.post("/act/throttles/set", data=form, headers={"HX-Request": "true"}).status_code == 400
