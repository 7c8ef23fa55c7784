"""The front end in a browser, on the gallery: what the script adds, and what works without it."""

import re
from collections.abc import Iterator

import pytest
from browsing import Visits, expect, served
from gallery import application

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(application()) as found:
        yield found


def test_numbers_follow_the_stream_that_all_tabs_share(visit: Visits) -> None:
    page = visit()
    expect(page.locator("#chip")).to_have_text("Live")
    shown = page.locator(".nav [data-live='t.failed']")
    before = shown.inner_text()
    expect(shown).not_to_have_text(before)
    assert "\u202f" in shown.inner_text()


def test_a_paused_page_does_not_change(visit: Visits) -> None:
    page = visit()
    expect(page.locator("#chip")).to_have_text("Live")
    page.keyboard.press(".")
    expect(page.locator("#chip")).to_have_text("Paused")
    before = page.locator(".nav [data-live='t.failed']").inner_text()
    page.wait_for_timeout(2500)  # the stream sends a number each second
    assert page.locator(".nav [data-live='t.failed']").inner_text() == before


def test_pages_that_poll_show_the_same_numbers(visit: Visits) -> None:
    with served(application(live="poll")) as base:
        page = visit(base=base)
        expect(page.locator(".nav [data-live='t.failed']")).to_have_text("3\u202f400")
        expect(page.locator("#chip")).to_have_text("Live")
        page.context.close()


def test_rows_are_selected_singly_by_range_and_by_query(visit: Visits) -> None:
    page = visit()
    picks, bar = page.locator("[data-pick]"), page.locator(".bulk")
    expect(bar).to_be_hidden()
    picks.nth(1).check()
    picks.nth(4).click(modifiers=["Shift"])
    expect(bar.locator("[data-count]")).to_have_text("4")
    page.locator("[data-matching]").click()
    expect(bar.locator("[data-count]")).to_have_text("All 11\u202f183")
    page.keyboard.press("Escape")
    expect(bar).to_be_hidden()
    assert not page.locator("[data-pick]:checked").count()


def test_an_action_on_the_selection_is_reported_and_clears_it(visit: Visits) -> None:
    page = visit()
    page.locator("[data-pick]").first.check()
    page.locator("[data-pick]").nth(1).check()
    page.locator(".bulk [data-verb=retry]").click()
    expect(page.locator(".toast")).to_contain_text("2 jobs: retry done.")
    expect(page.locator(".toast form.act")).to_have_count(1)
    expect(page.locator(".bulk")).to_be_hidden()


def test_a_value_is_asked_for_beside_its_button_and_sent_by_enter(visit: Visits) -> None:
    page = visit()
    page.locator("[data-pick]").first.check()
    page.keyboard.press("m")
    field = page.locator(".bulk .menu[open] input")
    expect(field).to_be_focused()
    field.fill("other")
    with page.expect_request("**/act/jobs/move") as sent:
        field.press("Enter")
    assert "value=other" in str(sent.value.post_data)
    assert str(sent.value.post_data).count("jid=") == 1


def test_an_action_on_a_query_is_asked_for_in_a_dialog(visit: Visits) -> None:
    page = visit()
    page.keyboard.press("A")
    page.locator(".bulk [data-verb=cancel]").click()
    dialog = page.locator("#dialog[open]")
    expect(dialog).to_contain_text("Cancel 11 183 jobs?")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_a_single_action_asks_by_its_label_or_in_a_dialog(visit: Visits) -> None:
    page = visit()
    page.locator("#jobs-table .menu").first.click()
    button = page.locator("#jobs-table .menu[open] [data-verb=cancel]")
    button.click()
    expect(button).to_have_text("Cancel?")
    assert not page.locator(".toast").count()
    page.locator("main .head [data-verb=cancel]").click()
    expect(page.locator("#dialog[open]")).to_contain_text("the 3 jobs that depend on it")
    expect(page.locator("#dialog [data-close]")).to_be_focused()
    page.locator("#dialog .bad").click()
    expect(page.locator(".toast")).to_contain_text("1 jobs: cancel done.")


def test_rows_hold_still_while_somebody_is_in_them(visit: Visits) -> None:
    page = visit()
    rows = page.locator("#queues-table tbody tr")
    count = rows.count()
    page.locator("#queues-table tbody a").first.focus()
    page.evaluate("document.querySelector('form[action$=\"/gallery/add\"]').requestSubmit()")
    news = page.locator(".news")
    expect(news).to_have_text("1 new · show")
    assert rows.count() == count
    news.click()
    expect(rows).to_have_count(count + 1)
    expect(news).to_have_count(0)


def test_the_theme_is_kept_and_charts_follow_it(visit: Visits) -> None:
    page = visit(color_scheme="light")
    expect(page.locator("hf-chart canvas")).to_have_count(2)
    page.keyboard.press("T")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload()
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(10, 17, 16)"


def test_the_palette_finds_pages_queues_and_jobs(visit: Visits) -> None:
    page = visit()
    expect(page.locator("#chip")).to_have_text("Live")
    page.keyboard.press("Control+k")
    page.locator("#palette input").fill("mail")
    expect(page.locator("#palette li").first).to_contain_text("mailers")
    page.locator("#palette input").fill("0193a1b2c3d4")
    expect(page.locator("#palette li").first).to_contain_text("Job")
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).to_be_hidden()


def test_a_hidden_column_stays_hidden(visit: Visits) -> None:
    page = visit()
    head = page.locator("#queues-table th", has_text="Depends")
    page.locator("[data-columns] summary").click()
    with page.expect_response(re.compile("fragment=")):
        page.evaluate("htmx.trigger(document.querySelector('[data-keys]:has(#queues-table)'), 'hf')")
    page.locator("[data-columns] label", has_text="Depends").click()
    expect(head).to_be_hidden()
    page.reload()
    expect(head).to_be_hidden()


def test_single_keys_can_be_switched_off(visit: Visits) -> None:
    page = visit()
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.locator(".top .menu").click()
    page.locator("[data-choice=keys]").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_hidden()


def test_without_script_pages_can_be_read_and_actions_done(visit: Visits) -> None:
    page = visit(java_script_enabled=False, viewport={"width": 390, "height": 800})
    expect(page.locator("#chip")).to_be_hidden()
    page.locator(".menu-open").click()
    expect(page.locator(".nav a", has_text="Workers")).to_be_visible()
    page.locator(".nav .shut").click()
    page.locator("#jobs-table .menu summary").first.click()
    expect(page.locator("#jobs-table .menu[open] [data-verb=cancel]")).to_be_visible()
    expect(page.locator(".bulk [data-verb=retry]")).to_be_visible()


@pytest.mark.parametrize("width", [320, 390, 1024, 1440])
def test_no_page_scrolls_sideways(visit: Visits, width: int) -> None:
    page = visit(viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
