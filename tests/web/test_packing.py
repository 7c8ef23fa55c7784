"""Responses packed by gzip: which, for whom, and how much that may cost."""

import asyncio
import gzip
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from browsing import served
from starlette.testclient import TestClient

from holdfast import Client
from holdfast.web import User, create_app
from holdfast.web.packing import packed, takes_gzip

HERE = {"Sec-Fetch-Site": "same-origin", "Accept-Encoding": "gzip, br"}
Browse = Callable[..., TestClient]


@pytest.fixture(autouse=True)
def _jobs(client: Client) -> None:
    client.queues["mail"].put_many([("Mail.send", {"n": n}) for n in range(30)])


def is_packed(found: Any) -> bool:
    return found.headers.get("content-encoding") == "gzip"


@pytest.mark.full
def test_pages_json_styles_and_scripts_are_a_fraction_of_their_size_and_the_same_in_the_end(
    web: TestClient,
) -> None:
    for path in (
        "/queues",
        "/api/v1/jobs?q=state:waiting",
        "/static/0/app.css",
        "/static/0/app.js",
        "/static/0/vendor/htmx.min.js",
    ):
        found, plain = web.get(path, headers=HERE), web.get(path, headers={"Accept-Encoding": "identity"})
        assert (is_packed(found), is_packed(plain)) == (True, False), path
        assert int(found.headers["content-length"]) * 2 < len(plain.content), path
        assert "accept-encoding" in found.headers["vary"].lower()
        if path.startswith("/static"):
            assert found.content == plain.content


@pytest.mark.full
def test_the_live_stream_fonts_and_short_responses_are_not_packed(client: Client) -> None:
    with served(create_app(client)) as base, httpx.Client(base_url=base, headers=HERE, timeout=30) as http:
        assert not is_packed(http.get("static/0/vendor/inter.woff2"))
        assert not is_packed(http.get("api/v1/health"))
        with http.stream("GET", "live") as live:
            assert not is_packed(live)
            assert next(live.iter_lines()) == "event: tick"


@pytest.mark.full
@pytest.mark.parametrize(
    ("headers", "is_own"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, True),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, False),
        ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate"}, False),
        ({"Cookie": "session=1"}, False),
        ({"Cookie": "session=1", "Referer": "http://testserver/queues"}, True),
        ({"Cookie": "session=1", "Referer": "http://testserver.evil.example/"}, False),
        ({"Authorization": "Basic eDp5"}, False),
        ({"Accept": "text/html"}, False),
        ({"Authorization": "Bearer t"}, True),
        ({}, True),
    ],
)
def test_what_a_page_of_another_site_may_have_asked_for_is_not_packed(
    client: Client, headers: dict[str, str], is_own: bool
) -> None:
    with TestClient(create_app(client, auth=lambda _: User("ada", "viewer"))) as browser:
        for path in ("/queues?filter=guess", "/api/v1/jobs?q=state:waiting"):
            found = browser.get(path, headers={"Accept-Encoding": "gzip", **headers})
            assert found.status_code == 200
            assert is_packed(found) == is_own, path
        assert is_packed(browser.get("/static/0/app.css", headers={"Accept-Encoding": "gzip", **headers}))


def test_the_length_of_a_packed_response_varies(client: Client) -> None:
    with TestClient(create_app(client), headers=HERE) as browser:
        lengths = {browser.get("/api/v1/filter").headers["content-length"] for _ in range(20)}
    assert len(lengths) > 5


@pytest.mark.parametrize(
    ("accepted", "takes"),
    [
        ("", False),
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("gzip;q=0", False),
        ("gzip ; q = 0.000, *", False),
        ("x-gzip2", False),
    ],
)
def test_gzip_is_only_for_those_who_name_it(accepted: str, takes: bool) -> None:
    assert takes_gzip({"accept-encoding": accepted}) == takes


def test_a_large_response_is_packed_in_slices_between_which_others_have_their_turn() -> None:
    content = bytes(range(256)) * (1 << 13)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def both() -> bytes:
        counting = asyncio.create_task(count())
        found = await packed(content)
        counting.cancel()
        return found

    assert gzip.decompress(asyncio.run(both())) == content
    assert turns >= 7
