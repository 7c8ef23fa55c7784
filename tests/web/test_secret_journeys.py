"""People look at the arguments and results of function jobs, and at what is masked, in a real browser."""

import sys
from pathlib import Path

import pytest
from browsing import Visits, expect, go, put, served, stay

import programs
from holdfast import Client
from holdfast.console.handles import Console
from holdfast.web import create_app

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore:a sync holdfast.Client is used")]
CODE = """
from holdfast import Client

app = Client("{url}", namespace="{namespace}")


@app.job(queue="mail", result_keep=8)
def greet(name: str, lang: str = "en") -> dict:
    return {{"text": f"{{name}} in {{lang}}"}}
"""


@pytest.fixture
def greetings(client: Client, tmp_path: Path) -> Path:
    """A module with a function job, which is no job of this process."""
    code = CODE.format(url=client.store_url, namespace=client.settings.namespace)
    (tmp_path / "greetings.py").write_text(code)
    return tmp_path


def test_a_function_job_has_its_arguments_by_name_and_its_result_until_its_time_is_over(
    visit: Visits, client: Client, greetings: Path, address: str
) -> None:
    program = "import greetings; print(greetings.greet.put(name='Ada', lang='de').jid)"
    jid = programs.run([sys.executable, "-c", program], cwd=greetings).stdout.strip()
    page = visit(f"/jobs/{jid}")
    facts = page.locator("section", has=page.get_by_role("heading", name="Arguments"))
    expect(facts).to_contain_text("name")
    expect(facts).to_contain_text("Ada")
    expect(facts).to_contain_text("lang")
    result = page.locator("section", has=page.get_by_role("heading", name="Result"))
    assert not result.count()
    stay(page)
    words = [
        "worker",
        "--url",
        str(client.store_url),
        "--namespace",
        client.settings.namespace,
        "--queue",
        "mail",
    ]
    words += ["--path", str(greetings), "--import", "greetings", "--drain"]
    programs.run([sys.executable, "-m", "holdfast.cli.main", *words], cwd=greetings)
    expect(result).to_contain_text("Ada in de")
    expect(result).to_contain_text("kept for")
    expect(page.locator("h1 .pill")).to_have_text("complete")
    assert page.evaluate("window.stays")
    expect(result).to_have_count(0)
    go(page, f"{address}jobs/{jid}")
    expect(result).to_have_count(0)


def test_an_administrator_reveals_what_is_masked_and_others_see_that_in_the_audit_log(
    visit: Visits, client: Client
) -> None:
    [jid] = put(client, 1)
    Console(client).edit(jid, {"password": "hunter2", "n": 1})
    with served(create_app(client, redact=["password"])) as base:
        page = visit(f"/jobs/{jid}", base=base)
        expect(page.locator("main")).to_contain_text("••••")
        assert "hunter2" not in page.content()
        page.get_by_role("button", name="Reveal").click()
        dialog = page.locator("#dialog[open]")
        expect(dialog).to_contain_text("hunter2")
        expect(dialog.get_by_role("link", name="Close")).to_be_focused()
        page.keyboard.press("Escape")
        expect(page.locator("#dialog")).to_be_hidden()
        assert "hunter2" not in page.content()
        go(page, base + "audit")
        line = page.locator("tbody tr").first
        expect(line).to_contain_text("reveal")
        expect(line).to_contain_text(jid)
        assert "hunter2" not in page.content()
        page.context.close()
