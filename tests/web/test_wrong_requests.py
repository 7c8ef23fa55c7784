"""What cannot be: names that nothing has, queries that cannot be read, a store that does not respond."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from uuid import uuid4

import httpx
import pytest
from starlette.testclient import TestClient

from holdfast import Client
from holdfast.console.page_paths import segment
from holdfast.testing.store import ScratchStore
from holdfast.web import create_app
from holdfast.web.app import Application
from holdfast.web.pages import TABLE
from waiting import until, until_async

NAMES = ("a/b", "a:b", "a.b", "50%", "%2F", "two words", "🦑", "..", "<script>", "ü" * 60)
OF_NAMES = ("queues", "jobs", "failed", "recurring", "workers", "throttles", "operations", "tags")


def is_helpful(response: httpx.Response, status: int) -> bool:
    """Return whether an error is a page or a problem document with a sentence, and no traceback."""
    assert response.status_code == status, (response.url, response.text[:500])
    assert "Traceback" not in response.text
    if response.headers["content-type"].startswith("application/"):
        assert response.json()["status"] == status
        return len(response.json()["title"]) > 10
    return 'href="/queues"' in response.text and "<h1" in response.text  # the navigation is there


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_nothing_has_is_a_page_or_an_error_with_a_sentence(web: TestClient, name: str) -> None:
    for kind in OF_NAMES:
        place = f"/{kind}/{segment(name)}"
        assert is_helpful(web.get(place), 404)
        assert is_helpful(web.get(f"/api/v1{place}"), 404)
    assert web.get(f"/topics/{segment(name)}").status_code == 200  # the form for its first message


def test_an_action_on_what_is_not_there_says_so_and_changes_nothing(web: TestClient, client: Client) -> None:
    for name in NAMES:
        for place, body in (
            ("jobs/retry", {"jid": [name]}),
            ("failed/retry", {"name": [name]}),
            ("failed/probe", {"name": name}),
            ("recurring/pause", {"jid": [name]}),
            ("operations/stop", {"id": name}),
        ):
            found = web.post(f"/api/v1/{place}", json=body)
            assert found.status_code in (200, 400, 404, 409), (place, found.text)
            if found.status_code == 200:
                assert found.json()["changed"] == 0, (place, found.text)
    assert client.queues.counts == []


def test_the_page_of_a_job_that_expired_says_what_is_known(web: TestClient, client: Client) -> None:
    client.config["jobs-history-count"] = 0
    jid = client.queues["q"].put("K", {}, jid="gone: 100 %")
    [job] = client.queues["q"].pop(1)
    job.complete()
    until(lambda: client.jobs[jid] is None, "the job expired")
    assert is_helpful(web.get(f"/jobs/{segment(jid)}"), 404)
    found = web.get(f"/api/v1/jobs/{segment(jid)}")
    assert found.status_code == 404
    assert "gone" in found.text


@pytest.mark.full
@pytest.mark.parametrize(
    "query",
    ["state:", "state:nonsense", "(", '"', "data.=1", "priority:>x", "a" * 5000, "\0", "NOT", "queue:\ud800"],
)
def test_a_search_that_cannot_be_read_says_where(web: TestClient, query: str) -> None:
    address = httpx.QueryParams({"q": query.encode(errors="surrogatepass").decode(errors="replace")})
    page, twin = web.get(f"/jobs?{address}"), web.get(f"/api/v1/jobs?{address}")
    assert page.status_code == twin.status_code
    assert page.status_code in (200, 400)
    assert "Traceback" not in page.text
    if twin.status_code == 400:
        assert is_helpful(twin, 400)
        assert is_helpful(page, 400)


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("heartbeat", "soon"),
        ("heartbeat", "-1"),
        ("heartbeat", "1e999"),
        ("jobs-history", "9" * 400),
        ("jobs-history-count", "1.5"),
    ],
)
def test_a_setting_of_the_wrong_type_is_refused_before_anything_is_written(
    web: TestClient, client: Client, name: str, value: str
) -> None:
    before = dict(client.config.all)
    found = web.post("/api/v1/config/set", json={"name": name, "value": value})
    assert is_helpful(found, 400)
    assert dict(client.config.all) == before


# A store that does not respond.


@contextmanager
def stopped(store: ScratchStore) -> Iterator[None]:
    os.kill(store.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(store.pid, signal.SIGCONT)


async def timed(browser: httpx.AsyncClient, path: str) -> tuple[str, httpx.Response, float]:
    begun = monotonic()
    return path, await browser.get(path), monotonic() - begun


async def away_and_back(app: Application, store: ScratchStore) -> None:
    pages, twins = [view.path for view in TABLE.views], [f"/api/v1{view.twin}" for view in TABLE.views]
    paths = [path.replace("{name}", "q") for path in (*pages, *twins)]
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app),
        base_url="http://127.0.0.1",
        headers={"Sec-Fetch-Site": "same-origin"},
        timeout=60,
    ) as browser:
        assert (await browser.get("/queues/q")).status_code == 200
        with stopped(store):
            for first in ("/", "/api/v1/queues/q"):
                _, found, took = await timed(browser, first)
                assert is_helpful(found, 503)
                assert took < 4, (first, took)
            for path, found, _ in await asyncio.gather(*(timed(browser, path) for path in paths)):
                if path.endswith(("/api", "/bundle")) and found.status_code == 200:
                    continue  # what they show needs no store, or says that it does not respond
                assert is_helpful(found, 503), path
            assert is_helpful(await browser.get("/api/v1/health"), 503)
            refused = await browser.post("/api/v1/queues/pause", json={"name": ["q"]})
            assert is_helpful(refused, 503)

        async def is_back() -> bool:
            return all(
                [(await browser.get(path)).status_code == 200 for path in ("/queues/q", "/api/v1/queues")]
            )

        await until_async(is_back, "pages are shown again")
    await app.close()


@pytest.mark.full
def test_while_the_store_does_not_respond_pages_say_so_within_seconds_and_recover_by_themselves() -> None:
    with ScratchStore() as store, Client(store.url, namespace=f"test-{uuid4().hex[:12]}") as client:
        client.queues["q"].put("K", {})
        asyncio.run(away_and_back(create_app(client), store))
