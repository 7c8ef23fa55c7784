"""Every page with a table, in a namespace with many jobs and long names: tables fit their cards, and what matters is in sight.

The pictures are in `.holdfast/pictures/tables`.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import crowd
import pytest
from browsing import Visits, expect, go, put, served
from playwright.sync_api import Page

from holdfast import Client
from holdfast.testing.store import ScratchStore
from holdfast.web import create_app

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore:a sync holdfast.Client is used")]
# What drives the browser runs an event loop in this thread.
ROOT = Path(__file__).resolve().parents[2]
PICTURES = Path(os.environ.get("HOLDFAST_PICTURES") or ROOT / ".holdfast" / "pictures") / "tables"
WIDTHS = (1440, 1280, 390)
SCROLLING = """() => [...document.querySelectorAll(".tw:has(table)")].filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth)
  .map((one) => `${one.ariaLabel} scrolls by ${one.scrollWidth - one.clientWidth}`)"""


IS_CUT = """(one) => {
  const whole = one.cloneNode(true);
  Object.assign(whole.style, { display: "inline-block", maxWidth: "none", whiteSpace: "nowrap", position: "absolute" });
  one.after(whole);
  const width = whole.offsetWidth;
  whole.remove();
  return width > one.offsetWidth + 1;
}"""


@pytest.fixture(scope="module")
def crowded() -> Iterator[Client]:
    with ScratchStore("valkey") as store, Client(store.url, namespace="test-crowd") as made:
        crowd.fill(made)
        yield made


@pytest.fixture(scope="module")
def crowded_address(crowded: Client) -> Iterator[str]:
    with served(create_app(crowded)) as found:
        yield found


def resized(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.wait_for_function(f"innerWidth === {width}")


@pytest.mark.parametrize("name", crowd.PAGES)
def test_no_table_scrolls_inside_its_card(visit: Visits, crowded_address: str, name: str) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    page = visit(crowd.PAGES[name], base=crowded_address)
    page.evaluate("document.fonts.ready")
    expect(page.locator("table[data-rows]").filter(visible=True).first).to_be_visible()
    faults = []
    for width in WIDTHS:
        resized(page, width)
        page.screenshot(path=PICTURES / f"{name}-{width}.png", full_page=True, animations="disabled")
        faults += [f"{width}: {one}" for one in page.evaluate(SCROLLING)]
        over = page.evaluate("document.documentElement.scrollWidth") - width
        faults += [f"{width}: {over} pixels too wide"] if over > 0 else []
    assert faults == []


def test_text_is_cut_by_the_room_there_is_and_has_all_of_it_as_a_title(
    visit: Visits, crowded_address: str
) -> None:
    page = visit("queues", base=crowded_address)
    link = page.locator("#queue td.k > a").filter(has_text=crowd.FIRST)
    widths = []
    for width in (900, 1280):
        resized(page, width)
        assert link.evaluate(IS_CUT)
        widths.append(link.bounding_box()["width"])  # type: ignore[index]
    assert widths[1] > widths[0] + 40
    expect(link).to_have_attribute("title", crowd.FIRST)
    resized(page, 2200)
    assert not link.evaluate(IS_CUT)


def test_each_failure_group_is_one_row_of_one_height(visit: Visits, crowded_address: str) -> None:
    page = visit("failed", base=crowded_address)
    for width in (1280, 1440):
        resized(page, width)
        heights = page.locator("#failed tbody tr[id]").evaluate_all(
            "(rows) => rows.map((one) => one.offsetHeight)"
        )
        assert len(heights) > 5
        assert max(heights) < 56, heights


def test_on_a_phone_a_queue_is_its_name_what_waits_and_states_with_their_words(
    visit: Visits, crowded_address: str
) -> None:
    page = visit("queues", base=crowded_address)
    resized(page, 390)
    row = page.locator("#queue tbody tr[id]").first
    expect(row.locator(".only-s")).to_contain_text("running")
    expect(row.locator(".only-s")).to_contain_text("failed")
    assert " / " not in row.inner_text()
    heads = page.locator("#queue thead th").filter(visible=True)
    assert [one.strip() for one in heads.all_inner_texts() if one.strip()] == ["Queue", "Wait", "More"]


def test_the_column_of_actions_stays_at_the_right_edge_of_a_table_that_scrolls(
    visit: Visits, crowded_address: str
) -> None:
    page = visit("queues", base=crowded_address)
    resized(page, 830)
    page.locator("section.card:has(#queue)").evaluate("(one) => { one.style.width = '300px' }")
    cell = page.locator("#queue tbody tr[id] > td:last-child").first
    frame = page.locator(".tw:has(#queue)")
    assert frame.evaluate("(one) => one.scrollWidth > one.clientWidth + 100")
    box, around = cell.bounding_box(), frame.bounding_box()
    assert box
    assert around
    assert abs(box["x"] + box["width"] - around["x"] - around["width"]) < 2
    cell.locator("summary").click()
    expect(cell.get_by_role("link", name="Settings")).to_be_visible()


def test_columns_that_are_empty_on_the_whole_page_are_hidden_until_somebody_chooses_them(
    visit: Visits, client: Client
) -> None:
    put(client, 3)
    context = visit.context()
    page = visit("queues", context=context)
    heads = page.locator("#queue thead th").filter(visible=True)
    expect(heads.filter(has_text="Wait").first).to_be_visible()
    for label in ("Run", "Thr", "Sched", "Stall", "Dep", "Rec", "Fail"):
        expect(page.locator("#queue thead th").get_by_text(label, exact=True)).to_be_hidden()
    page.locator("[data-columns=queue] summary").click()
    box = page.get_by_label("Sched", exact=True)
    expect(box).not_to_be_checked()
    box.check()
    expect(page.locator("#queue thead th").get_by_text("Sched", exact=True)).to_be_visible()
    expect(
        page.locator("#queue tbody tr[id] td").filter(visible=True).filter(has_text="0").first
    ).to_be_visible()
    go(page, page.url)
    expect(page.locator("#queue thead th").get_by_text("Sched", exact=True)).to_be_visible()
    page.locator("[data-columns=queue] summary").click()
    page.get_by_label("Sched", exact=True).uncheck()
    expect(page.locator("#queue thead th").get_by_text("Sched", exact=True)).to_be_hidden()
    client.queues["mail"].put("Late", {}, delay=600)
    page.mouse.move(700, 20)  # rows below the pointer hold still
    expect(page.locator("#queue thead th").get_by_text("Sched", exact=True)).to_be_hidden()


def test_a_column_appears_with_its_first_number(visit: Visits, client: Client) -> None:
    put(client, 1)
    page = visit("queues")
    page.mouse.move(700, 20)
    head = page.locator("#queue thead th").get_by_text("Sched", exact=True)
    expect(page.locator("#chip")).to_have_text("Live")
    expect(head).to_be_hidden()
    client.queues["mail"].put("Late", {}, delay=600)
    expect(head).to_be_visible()
