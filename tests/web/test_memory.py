"""Eight hours of a busy store with pages open, shortened by load and a fast clock: the memory of pages and server is flat."""

import os
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import httpx
import pytest
from browsing import Visits
from playwright.sync_api import CDPSession, Page

from holdfast import Client
from waiting import LONGER
from web_process import serving

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore:a sync holdfast.Client is used")]

CHANGES = 28_800 * LONGER
"""Changes that the server reports: one a second, for eight hours."""
WARM = 9_600
"""Changes until lists are full, caches are filled and code is compiled."""
LONGEST = 600 * LONGER
"""Seconds that all of it may take."""
PAGES = ("/", "/queues/mail?tab=waiting")
FASTER = """
  window.updates = 0;
  document.addEventListener("htmx:after:swap", () => window.updates++);
  const { setTimeout: later, setInterval: again } = window;
  window.setTimeout = (act, wait = 0, ...rest) => later(act, wait / 20, ...rest);
  window.setInterval = (act, wait, ...rest) => again(act, wait / 20, ...rest);
"""


class Used(NamedTuple):
    """What is in use after garbage was collected: bytes of JavaScript, what is in the document and what listens to it."""

    heap: int
    nodes: int
    listeners: int
    documents: int


MORE = Used(500_000, 2_000, 60, 20)
"""By how much a page may differ; an object kept at each change, or an element with its children at each load, is more."""
MORE_SERVER = (8_000_000, 8)
"""By how much the server may differ: bytes, and files and connections."""


def use_of(page: Page) -> Used:
    """Collect the garbage of a page and measure what is left."""
    devtools = page.context.new_cdp_session(page)
    smallest = _measured(devtools)
    for _ in range(20):  # what a page has just loaded and put in place is garbage a moment later
        smallest = Used(*map(min, smallest, _measured(devtools)))
    devtools.detach()
    return smallest


def _measured(devtools: CDPSession) -> Used:
    for _ in range(3):
        devtools.send("HeapProfiler.collectGarbage")
    heap = int(devtools.send("Runtime.getHeapUsage")["usedSize"])
    found = devtools.send("Memory.getDOMCounters")
    return Used(heap, found["nodes"], found["jsEventListeners"], found["documents"])


def use_of_process(pid: int) -> tuple[int, int]:
    """Return the bytes of memory of a process, and how many files and connections it has open."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir(f"/proc/{pid}/fd"))


def updates_of(page: Page) -> int:
    """Return how often a part of a page was loaded again."""
    return int(page.evaluate("window.updates"))


def work(client: Client) -> Iterator[None]:
    """Change jobs, queues, workers and failures, a little each time: what is in the store stays as much as it is."""
    mail = client.queues["mail"]
    mail.put_many([("jobs.Send", {"n": number}) for number in range(60)])
    failed: deque[str] = deque()
    tenants: deque[tuple[str, str]] = deque()
    for number in range(1_000_000):
        client.worker_name = f"worker-{number % 12}"
        mail.put_many([("jobs.Send", {"n": number})] * 8)
        first, *others = mail.pop(8)
        for job in others:
            job.complete()
        first.fail(f"group-{number % 5}", f"ValueError: {number}")
        failed.append(first.jid)
        name = f"tenant-{number}".ljust(120, "-")  # what is kept of a queue that is gone shows by its length
        tenants.append((name, client.queues[name].put("jobs.Send", {})))
        if len(failed) > 12:
            client.jobs.cancel(failed.popleft())
            gone, jid = tenants.popleft()
            client.jobs.cancel(jid)
            client.queues[gone].forget()
        yield


def work_until(changes: int, rounds: Iterator[None], server: httpx.Client) -> None:
    """Work until the server has reported so many changes. Streams are opened and left, as browsers do every five minutes."""
    deadline = monotonic() + LONGEST
    while server.get("/live?once=1").json()["v"] < changes:
        assert monotonic() < deadline, f"not within {LONGEST} s: {changes} changes"
        for _ in range(20):
            next(rounds)
        with server.stream("GET", "/live") as stream:
            assert next(stream.iter_lines()) == "event: tick"


def test_eight_hours_of_changes_leave_the_memory_of_pages_and_server_flat(
    visit: Visits, client: Client, tmp_path: Path
) -> None:
    place = (str(client.store_url), client.settings.namespace)
    visit.expect("htmx:error: timeout")  # to a clock that is twenty times as fast, half a second is late
    with (
        serving(*place, tmp_path / "web", "--auth", "none") as (address, process),
        httpx.Client(base_url=address, timeout=60) as server,
    ):
        context = visit.context()
        context.add_init_script(FASTER)
        rounds = work(client)
        next(rounds)
        pages = [visit(path, address + "/", context) for path in PAGES]
        work_until(WARM, rounds, server)
        before = [use_of(page) for page in pages]
        served, loaded = use_of_process(process.pid), [updates_of(page) for page in pages]
        work_until(CHANGES, rounds, server)
        after = [use_of(page) for page in pages]
        more = [updates_of(page) - once for page, once in zip(pages, loaded, strict=True)]
        served_after = use_of_process(process.pid)
        context.close()
    assert min(more) > 50, "the pages did not follow"
    assert_flat([*before, served], [*after, served_after], [MORE, MORE, MORE_SERVER])


def assert_flat(
    before: Sequence[Sequence[int]], after: Sequence[Sequence[int]], most: Sequence[Sequence[int]]
) -> None:
    """Check that nothing has grown by more than it may."""
    for old, new, limits in zip(before, after, most, strict=True):
        assert all(b - a < limit for a, b, limit in zip(old, new, limits, strict=True)), (old, new)
