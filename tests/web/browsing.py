"""Chromium on pages of a server that runs here: what a page reports as an error fails the test."""

import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Locator,
    Page,
    Playwright,
    Response,
    expect,
    sync_playwright,
)

from holdfast import Client
from waiting import until

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]  # fmt: skip
PATIENCE = 30_000
"""Milliseconds that a condition may take to become true; the machine may be busy."""
expect.set_options(timeout=PATIENCE)


@contextmanager
def served(app: Any, port: int = 0) -> Iterator[str]:
    """Serve an application on a free loopback port, and yield its URL, which ends with a slash."""
    listening = socket.create_server(("127.0.0.1", port))
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1, ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join(30)
        listening.close()


_running: list[Playwright] = []


@contextmanager
def playwright() -> Iterator[Playwright]:
    """Start Playwright, or take the one that runs: there can be only one in a process."""
    if _running:
        yield _running[0]
        return
    with sync_playwright() as made:
        _running.append(made)
        try:
            yield made
        finally:
            _running.clear()


@contextmanager
def chromium(*more: str) -> Iterator[Browser]:
    """Start Chromium, with some more arguments; without one the test is skipped."""
    if CHROMIUM is None:
        pytest.skip("LOUD SKIP: Chromium is not installed, so no page was looked at")
    with playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=[*ARGUMENTS, *more])
        yield found
        found.close()


@contextmanager
def own_chromium(folder: Path, *more: str) -> Iterator[Browser]:
    """Start a Chromium with one window, whose tabs hide each other; without one the test is skipped."""
    if CHROMIUM is None:
        pytest.skip("LOUD SKIP: Chromium is not installed, so no page was looked at")
    words = [CHROMIUM, *ARGUMENTS, f"--user-data-dir={folder}", "--remote-debugging-port=0", *more]
    process = subprocess.Popen([*words, "about:blank"], stderr=subprocess.DEVNULL)
    try:
        noted = folder / "DevToolsActivePort"
        until(lambda: noted.exists() and noted.read_text().count("\n"), "Chromium listens", within=60)
        port = noted.read_text().split()[0]
        with playwright() as driver:
            found = driver.chromium.connect_over_cdp(f"http://127.0.0.1:{port}", no_defaults=True)
            yield found
            found.close()
    finally:
        process.terminate()
        process.wait(30)


class Visits:
    """Opens pages, each in a browser context of its own unless one is given, and collects what they report."""

    def __init__(self, browser: Browser, base: str) -> None:
        self.base = base
        self.problems: list[str] = []
        self._browser = browser
        self._expected: list[str] = []
        self._contexts: list[BrowserContext] = []

    def context(self, **options: Any) -> BrowserContext:
        """Return a new context, 1440 × 900 unless the options say otherwise."""
        made = self._browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **options})
        made.set_default_timeout(PATIENCE)
        self._contexts.append(made)
        return made

    def __call__(
        self, path: str = "", base: str = "", context: BrowserContext | None = None, **options: Any
    ) -> Page:
        """Open a page in a tab of its own and return it when it has loaded."""
        page = (context or self.context(**options)).new_page()
        page.on("console", lambda it: self._note(it.text) if it.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self._note(str(error)))
        page.goto((base or self.base) + path.removeprefix("/"), wait_until="load")
        return page

    def expect(self, pattern: str) -> None:
        """Allow a report that matches, such as that of a response with status 409."""
        self._expected.append(pattern)

    def close(self) -> None:
        """Close all pages, and fail if one reported anything that is not expected."""
        for context in self._contexts:
            context.close()
        unexpected = [
            text for text in self.problems if not any(re.search(one, text) for one in self._expected)
        ]
        assert not unexpected, unexpected

    def _note(self, text: str) -> None:
        self.problems.append(text)


def go(page: Page, path: str) -> Response:
    """Load another page of the same application in a tab, and return the response."""
    found = page.goto(path, wait_until="load")
    assert found is not None
    return found


# What tests of journeys do in the store, and do again and again on pages.


def put(
    client: Client, count: int, queue: str = "mail", klass: str = "jobs.Send", **options: Any
) -> list[str]:
    """Put jobs and return their jids."""
    return client.queues[queue].put_many([(klass, {"n": number}) for number in range(count)], **options)


def fail(
    client: Client, count: int, group: str = "mail-ValueError", queue: str = "mail", **options: Any
) -> list[str]:
    """Put jobs, let them fail in a group, and return their jids."""
    jids = put(client, count, queue, **options)
    left = count
    while left:
        for job in client.queues[queue].pop(min(left, 500)):
            job.fail(group, f"Traceback (most recent call last):\nValueError: no luck with {queue}")
            left -= 1
    return jids


def confirm(page: Page, text: str) -> None:
    """Check what the dialog asks, and answer with its last button."""
    dialog = page.locator("dialog[open]")
    expect(dialog).to_contain_text(text)
    dialog.locator(".acts .btn").last.click()


def toast(page: Page, text: str) -> None:
    """Wait for a message."""
    expect(page.locator(".toast").last).to_contain_text(text)


def tile(page: Page, key: str) -> Locator:
    """Return the large number that follows a counter."""
    return page.locator(f'.tile [data-live="{key}"]')


def stay(page: Page) -> None:
    """Mark the page as it is loaded now, for `is_same`."""
    page.evaluate("window.stays = true")


def is_same(page: Page) -> bool:
    """Return whether the page was not loaded again since `stay`."""
    return bool(page.evaluate("window.stays === true"))
