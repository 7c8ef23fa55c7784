"""Operations on many jobs go on where they were when the web process is started again, in a real browser."""

from pathlib import Path

import pytest
from browsing import Visits, expect, fail, toast

from holdfast import Client
from holdfast.console.handles import Console
from waiting import until
from web_process import serving

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore:a sync holdfast.Client is used")]
JOBS = 40


def test_a_slow_retry_is_stopped_and_resumed_and_survives_two_ends_of_its_process(
    visit: Visits, client: Client, tmp_path: Path
) -> None:
    jids, console = fail(client, JOBS), Console(client)
    place = (str(client.store_url), client.settings.namespace)

    def changed() -> int:
        [operation] = console.operations()
        return operation.changed

    with serving(*place, tmp_path / "first", "--auth", "none") as (address, _):
        page = visit("/failed/mail-ValueError", base=address + "/")
        page.get_by_role("button", name="Retry slowly…").click()
        dialog = page.locator("dialog[open]")
        rate = dialog.locator("select")
        rate.evaluate("select => select.options[0].value = '4'")  # four a second: the test is short
        dialog.locator(".acts .btn").last.click()
        question = page.locator("#dialog[open]")
        expect(question).to_contain_text(f"Retry {JOBS} jobs?")
        question.locator(".acts .btn").last.click()
        page.wait_for_url("**/operations/*")
        until(lambda: changed() >= 4, "it goes on")
        page.get_by_role("button", name="Stop").click()
        toast(page, "Operation stopped; it can be resumed.")
        expect(page.locator("main .pill").first).to_have_text("stopped")
        page.context.close()
    before = changed()
    assert 4 <= before < JOBS
    with serving(*place, tmp_path / "second", "--auth", "none") as (address, process):
        page = visit("/operations", base=address + "/")
        page.locator("tbody").get_by_role("link").first.click()
        page.get_by_role("button", name="Resume").click()
        until(lambda: changed() >= before + 4, "it goes on where it was")
        page.context.close()
        process.kill()
        process.wait(30)
    assert changed() < JOBS
    with serving(*place, tmp_path / "third", "--auth", "none") as (address, _):
        page = visit("/operations", base=address + "/")
        page.locator("tbody").get_by_role("link").first.click()
        until(lambda: changed() == JOBS, "another process has taken it over by itself", 120)
        expect(page.locator("main .pill").first).to_have_text("done")
        page.context.close()
    assert client.queues["mail"].counts["waiting"] == JOBS
    for jid in jids:
        lines = [line["what"] for line in client.job(jid).history]
        assert lines == ["put", "popped", "failed", "put"], jid
