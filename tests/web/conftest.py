"""The web application against a real store."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from holdfast import Client
from holdfast.web import create_app

SAME_SITE = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture
def browse(client: Client) -> Iterator[Callable[..., TestClient]]:
    """Make a client of the application of this test's namespace, with some options."""
    made: list[TestClient] = []

    def browsing(**options: Any) -> TestClient:
        browser = TestClient(create_app(client, **options), headers=SAME_SITE, raise_server_exceptions=False)
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
