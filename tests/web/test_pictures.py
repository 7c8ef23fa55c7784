"""Every page as people see it: in both themes at three widths, with a check of accessibility, and pictures to look at.

The pictures are in `.holdfast/pictures`. With HOLDFAST_DOCS_PICTURES=1 those of the guide are written too.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from browsing import Visits, expect, go, served
from playwright.sync_api import Page
from scene import FAILED, HOSTILE, Scene

from holdfast import Client
from holdfast.console.page_paths import segment
from holdfast.testing.store import ScratchStore
from holdfast.web import create_app

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore:a sync holdfast.Client is used")]
# What drives the browser runs an event loop in this thread.
ROOT = Path(__file__).resolve().parents[2]
PICTURES = Path(os.environ.get("HOLDFAST_PICTURES") or ROOT / ".holdfast" / "pictures")
LARGEST = 300_000
TABS = (
    "stats",
    "running",
    "waiting",
    "throttled",
    "scheduled",
    "stalled",
    "depends",
    "recurring",
    "failed",
    "settings",
)
ODD = segment(HOSTILE)
PAGES = {
    "overview": "/", "overview-day": "/?range=24h", "queues": "/queues",
    **{f"queue-{tab}": f"/queues/webhooks?tab={tab}" for tab in TABS},
    "queue-mailers": "/queues/mailers", "queue-scheduled-jobs": "/queues/mailers?tab=scheduled", "queue-throttled-jobs": "/queues/billing?tab=throttled",
    "queue-depends-jobs": "/queues/search-index?tab=depends", "queue-stalled-jobs": "/queues/reports?tab=stalled", "queue-recurring-jobs": "/queues/reports?tab=recurring", "queue-paused": "/queues/nightly",
    "queue-odd": f"/queues/{ODD}",
    "jobs": "/jobs", "jobs-search": "/jobs?q=state:failed+queue:webhooks", "jobs-error": "/jobs?q=stat:failed", "filter": "/filter",
    "job-failed": f"/jobs/{FAILED}", "job-compare": f"/jobs/{FAILED}?first=1&second=2", "job-past": f"/jobs/{FAILED}?at=2", "job-depends": "/jobs/diamond-end", "job-odd": f"/jobs/{segment('j' + HOSTILE)}",
    "job-unknown": "/jobs/0193a1b2c3d48f0e9a7b6c5d4e3fffff",
    "failed": "/failed", "failure": "/failed/httpx.ReadTimeout", "failure-odd": f"/failed/{ODD}",
    "recurring": "/recurring", "recurring-new": "/recurring?new=1", "recurring-nightly": "/recurring/nightly-report", "recurring-job": "/recurring/rebuild-index", "recurring-odd": f"/recurring/{ODD}",
    "flows": "/flows", "flow": "/flows/nightly-28", "flow-failed": "/flows/nightly-28?state=failed", "flow-policies": "/flows/order-4711", "flow-odd": f"/flows/{ODD}",
    "job-of-flow": "/jobs/nightly-28-3",
    "topics": "/topics", "topic": "/topics/reminders", "topic-odd": f"/topics/{ODD}",
    "workers": "/workers", "workers-by-version": "/workers?by=version", "worker": "/workers/gpu-a-2113", "worker-failures": "/workers/web-2-811?failures=1",
    "throttles": "/throttles", "throttle": "/throttles/stripe-api", "throttle-odd": f"/throttles/{ODD}",
    "tracked": "/tracked", "tags": "/tags", "tag": "/tags/vip", "completed": "/completed",
    "config": "/config", "config-patterns": "/config?tab=patterns", "config-priorities": "/config?tab=priorities",
    "operations": "/operations", "operation": "", "audit": "/audit", "about": "/about", "about-doctor": "/about?doctor=true", "bundle": "/bundle", "api": "/api",
}  # fmt: skip
NOT_FOUND = {"jobs-error": 400, "job-unknown": 404}
AXE = """() => axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"]})"""
Theme = Literal["light", "dark"]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A namespace with something on every page."""
    with (
        ScratchStore("valkey") as store,
        Client(store.url, namespace="test-shop") as made,
    ):
        Scene(made).fill()
        yield made


@pytest.fixture(scope="module")
def address(client: Client) -> Iterator[str]:
    app = create_app(client, environment="staging", redact=["*.password"])
    with served(app) as found:
        yield found


@pytest.fixture
def place(address: str, client: Client, request: pytest.FixtureRequest) -> tuple[str, str]:
    """The name and the URL of a page."""
    name = request.param
    if name != "operation":
        return name, PAGES[name]
    [*_, first] = client_operations(client)
    return name, f"/operations/{first}"


def client_operations(client: Client) -> list[str]:
    from holdfast.console.handles import Console

    return [one.id for one in Console(client).operations()]


def opened(visit: Visits, base: str, name: str, path: str, width: int, theme: Theme) -> Page:
    """Open a page and wait until all that it loads by itself is there."""
    visit.expect("status of (400|404)")
    page = visit(
        "static/nothing",
        viewport={"width": width, "height": 900},
        color_scheme=theme,
        reduced_motion="reduce",
    )
    found = go(page, base.rstrip("/") + path)
    assert found.status == NOT_FOUND.get(name, 200)
    expect(page.locator("#chip")).to_have_text("Live")
    for chart in page.locator("hf-chart").all():
        expect(chart.locator("canvas")).to_be_visible()
    page.evaluate("document.fonts.ready")
    return page


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("place", PAGES, indirect=True)
def test_a_page_fits_every_width_and_breaks_no_rule_of_accessibility(
    visit: Visits, address: str, place: tuple[str, str], theme: Theme
) -> None:
    name, path = place
    PICTURES.mkdir(parents=True, exist_ok=True)
    page = opened(visit, address, name, path, 1440, theme)
    faults = []
    # The themes differ in colours alone.
    for width in (1440, 1024, 390) if theme == "light" else (1440,):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function("innerWidth === " + str(width))
        page.screenshot(path=PICTURES / f"{name}-{width}-{theme}.png", full_page=True, animations="disabled")
        over = page.evaluate("document.documentElement.scrollWidth") - width
        faults += [f"{width}: {over} pixels too wide"] if over > 0 else []
        faults += [f"{width}: {one}" for one in violations(page)] if width != 1024 else []
    assert faults == []


def violations(page: Page) -> list[str]:
    """Return what axe-core objects to."""
    axe = pytest.importorskip("axe_playwright_python", reason="LOUD SKIP: axe-core is not installed")
    source = Path(axe.__file__).with_name("axe.min.js").read_text()
    if not page.evaluate("'axe' in window"):
        page.evaluate(source)
    found: dict[str, Any] = page.evaluate(AXE)
    return [
        f"{one['id']}: {node['html'][:200]}: {node['failureSummary'][:300]}"
        for one in found["violations"]
        for node in one["nodes"][:5]
    ]


# The pictures of the guide.


@pytest.mark.skipif(
    not os.environ.get("HOLDFAST_DOCS_PICTURES"), reason="written on request: HOLDFAST_DOCS_PICTURES=1"
)
@pytest.mark.parametrize(
    ("name", "path", "theme", "height"),
    [
        ("overview", "/", "light", 900),
        ("job", f"/jobs/{FAILED}", "dark", 1560),
        ("flow", "/flows/nightly-28?state=failed", "light", 1000),
    ],
)
def test_the_pictures_of_the_guide_are_small(
    visit: Visits, address: str, name: str, path: str, theme: Theme, height: int
) -> None:
    page = opened(visit, address, name, path, 1440, theme)
    page.set_viewport_size({"width": 1440, "height": height})
    target = ROOT / "docs" / "images" / f"{name}.png"
    target.parent.mkdir(exist_ok=True)
    page.screenshot(path=target, animations="disabled")
    make_small(target)
    assert target.stat().st_size < LARGEST


def make_small(picture: Path) -> None:
    """Keep the 256 most frequent colours of a picture, where the library for that is installed."""
    try:
        from PIL import Image
    except ImportError:
        return
    with Image.open(picture) as found:
        image = found.convert("RGB")
    colors: list[Any] = image.getcolors(1 << 24) or []
    frequent = sorted(colors, reverse=True)[:256]
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for _, color in frequent for part in color])
    image.quantize(palette=palette, dither=Image.Dither.NONE).save(picture, optimize=True)
