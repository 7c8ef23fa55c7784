"""The web application against a real store."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import everything
import pytest
from starlette.testclient import TestClient

from holdfast import Client
from holdfast.web import create_app
from holdfast.web.gate import LOOPBACK

if TYPE_CHECKING:  # only tests in a browser import what drives it
    from browsing import Visits
    from playwright.sync_api import Browser

SAME_SITE = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture(scope="session", autouse=True)
def _test_client_is_local() -> Iterator[None]:
    """Starlette's test client calls itself `testclient`, and the host `testserver`: here they are this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("holdfast.web.auth.LOOPBACK", LOOPBACK | {"testclient", "testserver"})
        yield


@pytest.fixture
def browse(client: Client) -> Iterator[Callable[..., TestClient]]:
    """Make a client of the application of this test's namespace, with some options."""
    made: list[TestClient] = []

    def browsing(**options: Any) -> TestClient:
        app = create_app(client, **{"undo_seconds": 0, **options})
        browser = TestClient(app, headers=SAME_SITE, raise_server_exceptions=False)
        browser.__enter__()  # one event loop for all of its requests
        made.append(browser)
        return browser

    yield browsing
    for browser in made:
        browser.__exit__(None, None, None)


@pytest.fixture
def web(browse: Callable[..., TestClient]) -> TestClient:
    """A client of the application as it is without options."""
    return browse()


@pytest.fixture
def names(client: Client) -> dict[str, str]:
    """One of everything: the names of the pages, by the first segment of their paths."""
    return everything.fill(client)


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """One Chromium for the tests of a module."""
    from browsing import chromium

    with chromium() as found:
        yield found


@pytest.fixture
def visit(browser: "Browser", address: str) -> "Iterator[Visits]":
    """Open pages of the server at `address`. What the console reports, a refusal of the policy included, fails the test."""
    from browsing import Visits

    visits = Visits(browser, address)
    yield visits
    visits.close()


@pytest.fixture
def address(client: Client) -> Iterator[str]:
    """The URL of a server of the application of this test's namespace."""
    from browsing import served

    with served(create_app(client)) as found:
        yield found
