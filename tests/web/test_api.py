"""The JSON API: each page has a twin, the OpenAPI document describes all of it, and errors are problem documents."""

import asyncio
import re
from typing import Any

import jsonschema
import pytest
from everything import addresses
from openapi_spec_validator import validate
from starlette.testclient import TestClient

from holdfast import AsyncClient, Client
from holdfast.testing.store import ScratchStore
from holdfast.web import auth, create_app
from holdfast.web.live import Hub
from holdfast.web.pages import TABLE
from holdfast.web.sessions import Sessions
from holdfast.web.views import ActionRoute, View

PROBLEM = "application/problem+json"
ACTIONS = list(TABLE.actions.values())


def is_problem(response: Any, status: int) -> bool:
    found = response.json()
    assert (response.status_code, response.headers["content-type"]) == (status, PROBLEM), response.text
    assert (found["status"], bool(found["title"])) == (status, True)
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]+", found["request"]), found["request"]
    return True


@pytest.fixture
def document(web: TestClient) -> dict[str, Any]:
    found: dict[str, Any] = web.get("/api/v1/openapi.json").json()
    return found


# Pages and their twins.


@pytest.mark.full
def test_each_page_links_a_twin_that_has_what_the_document_describes(
    web: TestClient, names: dict[str, str], document: dict[str, Any]
) -> None:
    for view, place, address in addresses(names):
        twin = web.get(address)
        assert twin.status_code == 200, (place, twin.text)
        assert twin.headers["content-type"] == "application/json", place
        described = document["paths"][view.twin]["get"]["responses"]["200"]["content"]["application/json"]
        schema = {**described["schema"], "components": document["components"]}
        jsonschema.validate(twin.json(), schema, cls=jsonschema.Draft202012Validator)
        page = web.get(place)
        if page.headers["content-type"].startswith("text/html"):
            link = f'<link rel="alternate" type="application/json" href="{address}">'
            assert link in page.text, place


@pytest.mark.full
def test_a_page_that_is_asked_for_as_json_leads_to_its_twin(web: TestClient, names: dict[str, str]) -> None:
    headers = {"Accept": "application/json"}
    for _, place, address in addresses(names):
        found = web.get(f"{place}?limit=5&limit=7", headers=headers, follow_redirects=False)
        assert (found.status_code, found.headers["location"]) == (303, f"{address}?limit=5&limit=7")
    both = web.get("/queues", headers={"Accept": "text/html, application/json"}, follow_redirects=False)
    assert both.status_code == 200


@pytest.mark.full
@pytest.mark.parametrize("view", TABLE.views, ids=lambda view: view.name)
def test_the_errors_of_a_twin_are_problem_documents(web: TestClient, view: View) -> None:
    place = f"/api/v1{view.twin}".replace("{name}", "nowhere")
    if "{name}" in view.path and view.path.split("/")[1] not in ("topics", "tags"):
        assert is_problem(web.get(place), 404)
    elif "limit" in view.query.__struct_fields__:
        for value in ("x", "0", "-1", "NaN"):
            assert is_problem(web.get(place, params={"limit": value}), 400)
    for method in ("PUT", "DELETE", "PATCH"):
        found = web.request(method, place)
        assert is_problem(found, 405)
        assert found.headers["allow"] in ("GET, HEAD", "GET, HEAD, POST")


def test_what_is_not_there_is_a_problem_document_too(web: TestClient) -> None:
    assert is_problem(web.get("/api/v1/nowhere"), 404)
    assert is_problem(web.post("/api/v1/queues/explode", json={}), 404)
    assert is_problem(web.post("/api/v1/queues", json={}), 405)


# Actions.


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: f"{action.noun}-{action.verb}")
def test_the_errors_of_an_action_are_problem_documents(web: TestClient, action: ActionRoute) -> None:
    place = f"/api/v1/{action.noun}/{action.verb}"
    assert is_problem(web.post(place, json=[]), 400)
    assert is_problem(web.post(place, json={"reason": 5}), 400)
    assert is_problem(web.post(place, content=b"{", headers={"Content-Type": "application/json"}), 400)
    assert is_problem(web.post(place, content=b"a=b", headers={"Content-Type": "text/plain"}), 415)
    assert is_problem(web.post(place, json={"reason": "x" * (1 << 20)}), 413)
    assert is_problem(web.put(place, json={}), 405)


# The document.


@pytest.mark.full
def test_the_document_is_valid_and_has_each_view_and_action(document: dict[str, Any]) -> None:
    validate(document)
    assert document["openapi"] == "3.1.0"
    gets = {path for path, one in document["paths"].items() if "get" in one}
    posts = {path for path, one in document["paths"].items() if "post" in one}
    assert gets == {view.twin for view in TABLE.views} | {"/health"}
    assert posts == {f"/{action.noun}/{action.verb}" for action in ACTIONS}
    for path in posts:
        assert {"400", "403", "404", "409", "413", "503"} <= set(document["paths"][path]["post"]["responses"])


def test_the_document_needs_a_login_as_everything_does(client: Client) -> None:
    with TestClient(create_app(client, auth=auth.TokenLink(Sessions(b"s" * 32)))) as nobody:
        for path in ("/api/v1/openapi.json", "/api/v1/nowhere", "/api/v1/queues"):
            assert is_problem(nobody.get(path), 401)
        assert nobody.get("/api/v1/health").json() == {"store": "ok"}  # probes have no user


def test_requests_of_one_moment_start_one_poller(store: ScratchStore, namespace: str) -> None:
    async def story() -> None:
        client = AsyncClient(store.url, namespace=namespace)
        hub = Hub(client)
        await asyncio.gather(*(hub.look() for _ in range(5)))
        assert [task.get_name() for task in asyncio.all_tasks()].count("holdfast-web-live") == 1
        assert hub.counters["t.queues"] == 0
        await hub.close()
        await client.close()
        await asyncio.sleep(0)

    asyncio.run(story())


# The words of the gateway.


def test_a_put_in_the_words_of_the_gateway_is_the_same_put(web: TestClient, client: Client) -> None:
    request = {
        "queue": "mail",
        "klass": "Klass",
        "data": ["any", 1],
        "jid": "j",
        "tags": ["a"],
        "throttles": ["t"],
        "retries": 7,
        "timeout": 60,
    }
    assert web.post("/v1/put", json={**request, "jid": "other"}).status_code == 200
    response = web.post("/api/v1/queues/put", json=request)
    assert response.status_code == 200, response.text
    mine, theirs = client.jobs["j"], client.jobs["other"]
    for name in ("klass_name", "data", "tags", "throttles", "original_retries"):
        assert getattr(mine, name) == getattr(theirs, name)
    assert mine.facts.options == theirs.facts.options


def test_a_put_that_meets_the_holder_of_its_key_names_that_and_has_no_undo(
    web: TestClient, client: Client
) -> None:
    jid = client.queues["mail"].put("Klass", {}, unique_key="a")
    request = {"queue": "mail", "klass": "Klass", "data": {"n": 1}, "unique_key": "a"}
    for how, words in (("", "no job was put"), ("replace", "replaced")):
        response = web.post("/api/v1/queues/put", json={**request, "on_conflict": how})
        assert response.status_code == 200, response.text
        done = response.json()
        assert (done["result"], done["undo"]) == ({"jid": jid}, None)
        assert words in done["text"]
    response = web.post("/api/v1/queues/put", json={**request, "on_conflict": "raise"})
    assert jid in response.text


def test_a_list_of_one_name_may_be_the_name_and_lists_have_the_gateway_s_words_too(
    web: TestClient, client: Client
) -> None:
    client.queues["mail"].put("Klass", {}, jid="j")
    for body in ({"name": "mail"}, {"queues": ["mail"]}, {"queues": "mail"}):
        client.queues["mail"].unpause()
        assert web.post("/api/v1/queues/pause", json=body).json()["changed"] == 1
    assert web.post("/api/v1/jobs/track", json={"jids": ["j"]}).json()["changed"] == 1


@pytest.mark.full
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"queue": "q", "klass": "K", "code": "k"}, "either code"),
        ({"queue": "q"}, "either code"),
        ({"queue": "q", "klass": "K", "timeout": "soon"}, "timeout"),
        ({"queue": "q", "klass": "K", "only_new": "yes"}, "only_new"),
    ],
)
def test_a_put_that_cannot_be_is_refused_with_its_field(
    body: dict[str, Any], words: str, web: TestClient
) -> None:
    response = web.post("/api/v1/queues/put", json=body)
    assert is_problem(response, 400)
    assert words in response.json()["title"]


@pytest.mark.full
def test_a_field_in_both_words_is_refused(web: TestClient) -> None:
    response = web.post("/api/v1/queues/pause", json={"name": ["a"], "queues": ["b"]})
    assert is_problem(response, 400)
    assert "twice" in response.json()["title"]
