"""Searches take turns, end with whoever asked for them, and are not begun by pages of other sites."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import httpx
import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.testclient import TestClient

from holdfast import Client
from holdfast.web import User, create_app
from holdfast.web.site import IN_LINE, PAGE, Searches
from waiting import until

HEAVY = "queue:bulk (" + " or ".join(f"zz{at:x}" for at in range(120)) + ")"


class Visitor:
    """A client of a search: its request, and whether it has gone."""

    def __init__(self, page: str = "", method: str = "GET") -> None:
        self.messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        headers = [(PAGE.lower().encode(), page.encode())] if page else []
        self.request = Request({"type": "http", "method": method, "headers": headers}, self.messages.get)

    def leave(self) -> None:
        self.messages.put_nowait({"type": "http.request", "body": b""})
        self.messages.put_nowait({"type": "http.disconnect"})


class Search:
    """A search that is at work until it is let go."""

    def __init__(self, searches: Searches, user: str = "ada", page: str = "", method: str = "GET") -> None:
        self.visitor, self.at_work, self.go = Visitor(page, method), asyncio.Event(), asyncio.Event()
        self.task = asyncio.ensure_future(self._run(searches, user))

    async def _run(self, searches: Searches, user: str) -> str:
        async with searches.turn(self.visitor.request, user):
            self.at_work.set()
            await self.go.wait()
        return "found"

    async def status(self) -> int:
        try:
            await asyncio.wait_for(self.task, 30)
        except HTTPException as error:
            return error.status_code
        return 200


def in_a_loop(run: Callable[[Searches], Coroutine[Any, Any, None]]) -> None:
    searches = Searches()
    asyncio.run(run(searches))
    assert searches._lines == {}
    assert searches._of_pages == {}


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_one_search_of_a_user_is_at_work_and_four_are_in_line() -> None:
    async def run(searches: Searches) -> None:
        some = [Search(searches) for _ in range(IN_LINE + 2)]
        other = Search(searches, "bob")
        await turns()
        assert [one.at_work.is_set() for one in some] == [True, *[False] * (IN_LINE + 1)]
        assert await some[-1].status() == 429
        assert other.at_work.is_set()
        for one in some[:-1]:
            await asyncio.wait_for(one.at_work.wait(), 30)
            one.go.set()
            assert await one.status() == 200
        other.go.set()
        assert await other.status() == 200

    in_a_loop(run)


@pytest.mark.full
@pytest.mark.parametrize("at", [0, 2])
def test_a_search_ends_when_its_client_has_gone(at: int) -> None:
    async def run(searches: Searches) -> None:
        some = [Search(searches) for _ in range(IN_LINE + 1)]
        await turns()
        some[at].visitor.leave()
        assert await some[at].status() == 400
        more = Search(searches)  # its place is free
        for one in (*(one for one in some if one is not some[at]), more):
            one.go.set()
            assert await one.status() == 200

    in_a_loop(run)


def test_a_newer_search_of_a_page_ends_the_older_one_and_no_other() -> None:
    async def run(searches: Searches) -> None:
        other, older = Search(searches, page="b"), Search(searches, page="a")
        foreign = Search(searches, "bob", page="a")
        await turns()
        newer = Search(searches, page="a")
        assert await older.status() == 409
        for one in (other, newer, foreign):
            one.go.set()
            assert await one.status() == 200

    in_a_loop(run)


def test_an_action_is_not_ended_by_a_search_of_its_page() -> None:
    async def run(searches: Searches) -> None:
        action = Search(searches, page="a", method="POST")
        await turns()
        search = Search(searches, page="a")
        await turns()
        for one in (action, search):
            one.go.set()
            assert await one.status() == 200

    in_a_loop(run)


def test_a_cancellation_from_elsewhere_stays_one() -> None:
    async def run(searches: Searches) -> None:
        one = Search(searches)
        await turns()
        one.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await one.task

    in_a_loop(run)


@pytest.fixture
def bulk(client: Client) -> None:
    """So many jobs with so much data that a search of HEAVY takes a second of computing."""
    big = {"items": [{f"k{at}": f"lorem ipsum dolor sit amet {at}"} for at in range(400)]}
    for _ in range(1000):
        client.queues["bulk"].put("K", big)


@pytest.mark.full
@pytest.mark.usefixtures("bulk")
def test_over_http_a_newer_search_of_a_page_takes_the_place_of_its_older_one(client: Client) -> None:
    from browsing import served

    app = create_app(client)
    with served(app) as address, httpx.Client(base_url=address, timeout=60) as http:
        headers, found = {PAGE: "p1", "Accept": "application/json"}, list[httpx.Response]()

        def search() -> None:
            found.append(httpx.get(f"{address}api/v1/jobs", params={"q": HEAVY}, headers=headers, timeout=60))

        older = threading.Thread(target=search)
        older.start()
        lines = app._site.searches._lines  # type: ignore[union-attr]
        until(lambda: bool(lines) or bool(found), "the older search is at work")
        assert not found, found[0].text[:500]
        newer = http.get("api/v1/jobs", params={"q": "queue:bulk"}, headers=headers)
        older.join(60)
        assert (newer.status_code, found[0].status_code) == (200, 409)
        until(lambda: not lines, "no search is at work")


# Other sites.

FOREIGN = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
SHOWN = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
FRAMED = {**SHOWN, "Sec-Fetch-Dest": "iframe"}


@pytest.mark.full
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (FOREIGN, 403),
        ({**FOREIGN, "Sec-Fetch-Site": "same-site"}, 403),
        ({**FOREIGN, "Sec-Fetch-Site": "same-origin"}, 200),
        ({**FOREIGN, "Sec-Fetch-Site": "none"}, 200),
        ({**SHOWN, "Sec-Fetch-Dest": "object"}, 403),
        (SHOWN, 200),
        (FRAMED, 403),
    ],
)
@pytest.mark.parametrize("path", ["/jobs?q=a", "/api/v1/jobs?q=a", "/static", "/v1/health", "/ready/t"])
def test_a_page_of_another_site_makes_no_browser_ask_but_to_show_a_page(
    web: TestClient, path: str, headers: dict[str, str], status: int
) -> None:
    found = web.get(path, headers=headers)
    assert (found.status_code == 403) is (status == 403), found.text


@pytest.mark.full
def test_frames_of_sites_that_the_application_names_are_shown(browse: Callable[..., TestClient]) -> None:
    browser = browse(frame_ancestors=["https://ops.example"])
    assert browser.get("/jobs", headers=FRAMED).status_code == 200
    assert browser.get("/jobs", headers=FOREIGN).status_code == 403


@pytest.mark.full
def test_a_program_with_a_token_is_no_page_of_another_site(browse: Callable[..., TestClient]) -> None:
    browser = browse(auth=lambda _: User("ann", "viewer"))
    headers = {**FOREIGN, "Authorization": "Bearer x"}
    assert browser.get("/api/v1/queues", headers=headers).status_code == 200
    assert browser.get("/api/v1/queues", headers={**headers, "Cookie": "a=b"}).status_code == 403
