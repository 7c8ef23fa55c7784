"""Each status that the gateway responds with, as a problem document with a stable type."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from callers import Verbs, served

from holdfast import Client
from holdfast.testing.store import ScratchStore
from holdfast.web import User, create_app
from holdfast.web.gateway import calling, endpoint

JSON = {"Authorization": "Bearer ada", "Content-Type": "application/json"}


def kind(found: httpx.Response) -> tuple[int, str]:
    """Status and type of a problem document."""
    assert found.headers["content-type"] == "application/problem+json", found.text
    problem = found.json()
    assert (problem["status"], bool(problem["title"]), bool(problem["request"])) == (
        found.status_code,
        True,
        True,
    )
    return found.status_code, problem["type"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"5",
        b'{"queue":"q","klass":"K"}x',
        b"\xff\xfe",
        b'{"queue":"\xff","klass":"K"}',
        b"[" * 5000,
    ],
)
def test_400_for_a_body_that_is_no_object_of_the_verb(verbs: Verbs, body: bytes) -> None:
    assert kind(verbs.http.post("/v1/put", content=body, headers=JSON)) == (400, "holdfast:bad-request")


def test_400_for_what_only_the_core_can_check(verbs: Verbs) -> None:
    found = verbs.post("tagged", tag="t", count=10_000, offset=2**53 - 1)
    assert found.status_code == 200
    found = verbs.post("list", set="waiting", name="q", count=600)
    assert kind(found) == (400, "holdfast:bad-request")
    assert found.json()["code"] == "HF_BAD_ARGUMENT"


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer nobody"}, {"Authorization": "Bearer old"}])
def test_401_without_a_token_that_is_known_and_has_not_ended(verbs: Verbs, headers: dict[str, str]) -> None:
    found = verbs.http.post("/v1/queues", json={}, headers={"Sec-Fetch-Site": "same-origin", **headers})
    assert kind(found) == (401, "holdfast:unauthorized")
    sentence = "This token is not valid, or has expired." if headers else "A bearer token is required."
    assert found.json()["title"] == sentence
    assert found.headers["www-authenticate"].startswith("Bearer")


def test_403_for_a_page_of_another_site(verbs: Verbs) -> None:
    found = verbs.http.post("/v1/queues", json={}, headers={"Sec-Fetch-Site": "cross-site"})
    assert kind(found) == (403, "holdfast:forbidden")


def test_403_for_changes_in_an_application_that_is_read_only(programs: Callable[..., Verbs]) -> None:
    verbs = programs(read_only=True)
    assert kind(verbs.post("put", queue="q", klass="K")) == (403, "holdfast:forbidden")
    assert verbs("queues") == []


def test_404_for_a_verb_that_does_not_exist_names_the_nearest(verbs: Verbs) -> None:
    found = verbs.post("heartbaet")
    assert kind(found) == (404, "holdfast:unknown-verb")
    assert found.json()["title"] == "There is no verb 'heartbaet'; did you mean 'heartbeat'?"
    for name in ("put/", "PUT", "call", "clock", "", "a/b", "%00"):
        assert kind(verbs.post(name)) == (404, "holdfast:unknown-verb")


def test_404_for_a_job_that_does_not_exist(verbs: Verbs) -> None:
    assert kind(verbs.post("move", queue="q", jid="none")) == (404, "holdfast:job-not-found")


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_405_for_another_method(verbs: Verbs, method: str) -> None:
    found = verbs.http.request(method, "/v1/put", headers={"Authorization": "Bearer ada"})
    assert kind(found) == (405, "holdfast:method-not-allowed")
    assert found.headers["allow"] == "POST"


def test_409_for_a_lost_lease_and_for_other_refusals(verbs: Verbs) -> None:
    jid = verbs("put", queue="q", klass="K")
    [job] = verbs("pop", worker="w", queues=["q"])
    for lease in ({"worker": "v", "token": job["token"]}, {"worker": "w", "token": job["token"] - 1}):
        found = verbs.post("complete", jid=jid, **lease)
        assert kind(found) == (409, "holdfast:lease-lost")
        assert found.json()["code"] == "HF_LEASE_LOST"
    verbs("complete", worker="w", jid=jid, token=job["token"])
    assert kind(verbs.post("timeout", jids=[jid])) == (409, "holdfast:refused")
    other = verbs("put", queue="q", klass="K", data=1)
    assert kind(verbs.post("put", queue="q", klass="K", data=2, jid=other, mode="only")) == (
        409,
        "holdfast:refused",
    )


def test_413_for_a_body_or_data_that_are_too_large(verbs: Verbs) -> None:
    large = "x" * (1 << 20)
    found = verbs.post("put", queue="q", klass="K", data=large)
    assert kind(found) == (413, "holdfast:too-large")
    assert found.json()["code"] == "HF_DATA_TOO_LARGE"
    headers = {**JSON, "Content-Length": str(endpoint.MOST_BYTES + 1)}
    assert kind(verbs.http.post("/v1/put", content=b"{}", headers=headers)) == (413, "holdfast:too-large")

    def pieces() -> Any:
        for _ in range(9):
            yield b" " * (1 << 20)

    assert kind(verbs.http.post("/v1/put", content=pieces(), headers=JSON)) == (413, "holdfast:too-large")
    assert verbs("put", queue="q", klass="K", data="x" * ((1 << 20) - 2))


@pytest.mark.parametrize("given", ["text/plain", "application/x-www-form-urlencoded", "", "text/json"])
def test_415_for_a_body_that_is_not_declared_as_json(verbs: Verbs, given: str) -> None:
    headers = {"Authorization": "Bearer ada", "Content-Type": given}
    found = verbs.http.post("/v1/put", content=b'{"queue":"q","klass":"K"}', headers=headers)
    assert kind(found) == (415, "holdfast:not-json")


def test_429_for_a_queue_that_is_full(verbs: Verbs) -> None:
    verbs("queue_set", queue="q", option="max-waiting", value=1)
    verbs("put", queue="q", klass="K")
    found = verbs.post("put", queue="q", klass="K")
    assert kind(found) == (429, "holdfast:queue-full")
    assert int(found.headers["retry-after"]) > 0


def test_429_for_too_many_requests_that_wait(
    programs: Callable[..., Verbs], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "MOST_WAITING", 0)
    verbs = programs()
    for verb, fields in (("pop", {"worker": "w", "queues": ["q"]}), ("await", {"jids": ["a"]})):
        found = verbs.post(verb, wait=5, **fields)
        assert kind(found) == (429, "holdfast:too-many-requests")
        assert int(found.headers["retry-after"]) > 0
        assert verbs.post(verb, **fields).status_code == 200


def test_429_for_too_many_unknown_tokens_which_bars_neither_right_nor_ended_nor_missing_ones(
    verbs: Verbs,
) -> None:
    for _ in range(6):  # ended ones do not count
        assert verbs.post("queues", "old").status_code == 401
    statuses = [verbs.post("queues", "wrong").status_code for _ in range(6)]
    assert statuses == [401] * 4 + [429] * 2
    found = verbs.post("queues", "wrong")
    assert kind(found) == (429, "holdfast:too-many-requests")
    assert int(found.headers["retry-after"]) > 0
    assert verbs.post("queues", "ada").status_code == 200
    assert verbs.post("queues", "old").status_code == 401
    assert verbs.http.post("/v1/queues", json={}).status_code == 401


@pytest.mark.full
def test_503_while_the_store_does_not_respond(namespace: str) -> None:
    with ScratchStore() as store:
        app = create_app(
            Client(store.url, namespace=namespace),
            auth=lambda _: User("ada", "admin"),
        )
        with (
            served(app) as address,
            httpx.Client(headers={"Sec-Fetch-Site": "same-origin"}, timeout=30) as http,
        ):
            assert http.post(address + "queues", json={}).status_code == 200
            assert http.get(address + "health").json() == {"store": "ok"}
            store.kill()
            for verb, fields in (
                ("queues", {}),
                ("put", {"queue": "q", "klass": "K"}),
                ("pop", {"worker": "w", "queues": ["q"], "wait": 5}),
            ):
                found = http.post(address + verb, json=fields)
                assert kind(found) == (503, "holdfast:store-unavailable")
                assert int(found.headers["retry-after"]) > 0
                assert str(store.socket_path) not in found.text
                assert "only_new" not in found.text
            assert kind(http.get(address + "health")) == (503, "holdfast:store-unavailable")


def test_health_and_description(verbs: Verbs) -> None:
    assert verbs.http.get("/v1/health").json() == {"store": "ok"}
    assert verbs.http.get("/v1/openapi.json").status_code == 401


def test_a_bug_is_500_and_its_text_is_not_shown(verbs: Verbs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "encode", lambda _: 1 / 0)
    found = verbs.post("queues")
    assert kind(found) == (500, "holdfast:error")
    assert "division" not in found.text
