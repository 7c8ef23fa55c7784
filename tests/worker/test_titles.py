"""Titles (workers.md 6): what `ps` shows of each process, and at most ten times a second."""

import re
import signal
import threading
from pathlib import Path

import pytest
from worker_kit import process_lives, until

import waiting
from holdfast.release import VERSION
from holdfast.worker import process_state
from holdfast.worker.process_state import PAUSE, Title, get_title, set_title
from holdfast.worker.signals import UNWIND


def shown(pid: int) -> str:
    """The title of a process as `ps` finds it."""
    return Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").decode()


def shows(pid: int, status: str) -> bool:
    moment = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d"
    return re.fullmatch(rf"holdfast-{re.escape(VERSION)}: {status} at {moment}", shown(pid)) is not None


@pytest.mark.full
def test_titles_say_what_a_worker_does_just_now(shop, pool):
    worker = shop.start(pool, "-q", "r", workers=2)
    if pool == "serial":
        pids = [worker.pid]
        paused = "Paused -- .*"
    else:
        until(lambda: shows(worker.pid, "Working with 2 children for q, r"), "the parent counts its children")
        pids = worker.children()
        paused = "Paused -- with 2 children for q, r"
    for pid in pids:
        until(lambda pid=pid: shows(pid, r"Waiting for q, r \(ordered\)"), "a worker waits")
    jid = shop.chores.hog.put("a").jid
    until(lambda: shop.notes("begin"), "a job runs")
    busy = int(shop.notes("begin")[0].split()[-1])
    word = {"serial": "Single processing", "process": "Processing", "fork": "Processing"}.get(pool)
    job = rf"{word} chores\.hog \({jid} / q / running\)" if word else "Processing 1 job"
    until(lambda: shows(busy, job), "the job is shown")
    if pool == "fork":
        until(lambda: any(shows(pid, rf"Forked {busy} at \d+") for pid in pids), "so is who forked it")
    shop.open()
    if pool == "fork":
        until(lambda: not process_lives(busy), "its process has ended")
    else:
        until(lambda: shows(busy, r"Waiting for q, r \(ordered\)"), "it waits again")
    if pool != "serial":
        worker.signal(signal.SIGUSR2)
        until(lambda: shows(worker.pid, paused), "the parent is paused")
        for pid in pids:
            until(lambda pid=pid: shows(pid, r"Paused -- q, r \(ordered\)"), "the children are paused")
        worker.signal(signal.SIGCONT)
        until(lambda: shows(worker.pid, "Working with 2 children for q, r"), "it goes on")


@pytest.fixture
def said(monkeypatch):
    """What was shown, instead of showing it."""
    shown = []
    monkeypatch.setattr(process_state, "set_title", shown.append)
    return shown


def statuses(said: list[str]) -> list[str]:
    return [re.sub(r"holdfast-\S+ | at \S+$", "", title) for title in said]


@pytest.mark.full
def test_a_title_is_shown_ten_times_a_second_at_most_and_the_last_word_is_not_lost(said):
    title, begun = Title(), process_state.monotonic()
    for number in range(1000):
        title.show("job %d", number)
    waiting.until(lambda: statuses(said)[-1] == "job 999", "the last one is shown")
    assert statuses(said)[0] == "job 0"
    assert len(said) <= 2 + (process_state.monotonic() - begun) / PAUSE
    title.show("job %d", 999)
    title.show("job %d", 7)
    title.close()
    assert title.due() < float("inf")
    assert not [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]


def test_a_title_without_a_thread_says_when_it_is_due(said, monkeypatch):
    monkeypatch.setattr(process_state, "monotonic", lambda: 1000.0)
    title = Title(follows=False)
    title.show("one")
    assert title.due() == float("inf")
    title.show("two")
    assert statuses(said) == ["one"]
    assert title.due() == pytest.approx(1000.0 + PAUSE)
    title.catch_up()
    assert (statuses(said), title.due()) == (["one", "two"], float("inf"))


@pytest.mark.full
def test_a_new_process_shows_its_own_title_at_once(said):
    title = Title()
    title.show("one")
    title.renew()
    title.show("two")
    assert statuses(said) == ["one", "two"]


@pytest.mark.full
def test_a_title_is_one_line_whatever_is_in_it_and_is_given_back():
    before = get_title()
    set_title("y" * 600)
    has_room = len(get_title()) == 600  # the system has as much as the program's words and environment took
    set_title(before)
    title = Title()
    title.show("%s", "klass\n\x1b[31m%s\udcff" + "x" * 9000)
    shown = get_title()
    assert shown.isprintable()
    assert "klass??[31m%s?xx" in shown
    assert len(shown) < 600
    assert re.search(r" at \d{4}-", shown) or not has_room
    title.close()
    assert get_title() == before
    set_title("a\nb")
    assert get_title() == "a?b"
    set_title(before)


@pytest.mark.full
def test_the_thread_that_catches_up_leaves_signals_to_the_main_thread():
    title = Title()
    try:
        title.show("first")
        title.show("second")
        thread = title._later
        status = Path(f"/proc/self/task/{thread.native_id}/status").read_text()
        blocked = int(re.search(r"SigBlk:\s*([0-9a-f]+)", status)[1], 16)
        assert all(blocked >> (number - 1) & 1 for number in (signal.SIGTERM, UNWIND))
        assert not signal.pthread_sigmask(signal.SIG_BLOCK, []) & {signal.SIGTERM, UNWIND}
    finally:
        title.close()
