"""Journey 54: pages, the JSON API, the gateway and the topic endpoints, each served alone."""

import subprocess
import sys
from collections.abc import Callable

import pytest
from callers import Verbs

from holdfast import UsageError
from holdfast.web import User, create_app

PLACES = {
    "pages": ("GET", "/queues"),
    "api": ("GET", "/api/v1/queues"),
    "gateway": ("POST", "/v1/queues"),
    "topics": ("GET", "/ready/help"),
}


@pytest.mark.parametrize("part", PLACES)
def test_each_part_can_be_served_alone_and_the_others_are_404(
    programs: Callable[..., Verbs], part: str
) -> None:
    http = programs(parts=[part], auth=lambda _: User("ada", "admin")).http
    sent = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}
    for name, (method, place) in PLACES.items():
        found = http.request(method, place, headers=sent)
        assert (found.status_code == 200) is (name == part), (name, found.text)
        if name != part:
            assert (found.status_code, found.json()["type"]) == (404, "holdfast:not-found")
            assert found.headers["content-type"] == "application/problem+json"
    for place in ("/", "/live?once=1", "/static/x/app.css", "/act/queues/pause"):
        is_off = "not served here" in http.get(place, headers=sent).text
        assert is_off is (part != "pages"), place


def test_parts_are_served_together(programs: Callable[..., Verbs]) -> None:
    http = programs(parts=["api", "gateway"], auth=lambda _: User("ada", "admin")).http
    sent = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}
    statuses = [http.request(method, place, headers=sent).status_code for method, place in PLACES.values()]
    assert statuses == [404, 200, 200, 404]


@pytest.mark.full
@pytest.mark.parametrize("part", ["api", "gateway", "topics"])
def test_only_the_pages_need_templates(part: str) -> None:
    program = (
        "import sys; sys.modules['jinja2'] = None\n"
        "from holdfast.web import create_app\n"
        f"create_app('redis://localhost:1', parts=['{part}'])"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("parts", [[], ["page"], "gateway"])
def test_parts_that_do_not_exist_are_refused(parts: object) -> None:
    with pytest.raises(UsageError, match="create_app"):
        create_app(parts=parts)  # type: ignore[arg-type]
