"""`holdfast top` on terminals of two sizes: what is seen, and what keys do."""

import pytest

from command_line import holdfast
from holdfast import Client
from holdfast.cli.top import pause_after
from terminal import Terminal

SIZES = [(24, 80), (50, 200)]


@pytest.fixture
def busy(client: Client) -> Client:
    """Three queues, one of which has failed jobs, and a name that is hostile."""
    for name, count in (("mail", 5), ("import", 3), ("o[31md", 1)):
        for _ in range(count):
            client.queues[name].put("k.K", {})
    for job in client.queues["mail"].pop(2):
        job.fail("mail-Error", "no \x1b[31mluck")
    return client


def words(url: str, namespace: str, *more: str) -> tuple[str, ...]:
    return ("top", "--url", url, "--namespace", namespace, "--interval", "0.3", *more)


@pytest.mark.full
@pytest.mark.parametrize(("rows", "columns"), SIZES)
def test_queues_are_shown_and_every_line_fits(
    busy: Client, url: str, namespace: str, rows: int, columns: int
) -> None:
    with Terminal(*words(url, namespace), rows=rows, columns=columns) as seen:
        text = seen.shows("mail", "import", "7 waiting", "2 failed", "q quit")
        assert len(text.splitlines()) <= rows
        seen.press("q")
        assert seen.code() == 0


@pytest.mark.full
def test_a_queue_is_paused_and_resumed_after_a_question(busy: Client, url: str, namespace: str) -> None:
    with Terminal(*words(url, namespace)) as seen:
        seen.shows("mail")
        seen.press("p")
        seen.shows("Pause queue import? (y/n)")
        seen.press("n")
        seen.shows("nothing was changed")
        assert not busy.queues["import"].counts["paused"]
        seen.press("py")
        seen.shows("queue import is paused")
        assert busy.queues["import"].counts["paused"]
        seen.shows(" paused")
        seen.press("py")
        seen.shows("queue import is resumed")
        assert not busy.queues["import"].counts["paused"]


@pytest.mark.full
def test_a_failure_group_is_retried(busy: Client, url: str, namespace: str) -> None:
    with Terminal(*words(url, namespace)) as seen:
        seen.shows("mail")
        seen.press("\t\t")
        seen.shows("mail-Error", "last hour")
        seen.press("r")
        seen.shows("Retry all jobs of group mail-Error?")
        seen.press("y")
        seen.shows("2 jobs retried, 0 refused")
        assert busy.jobs.failed() == {}


@pytest.mark.full
def test_arrows_select_and_s_sorts(busy: Client, url: str, namespace: str) -> None:
    with Terminal(*words(url, namespace)) as seen:
        seen.shows("by waiting")
        seen.press("\x1b[B\x1b[Bp")
        seen.shows("Pause queue o[31md?")
        seen.press("ns")
        seen.shows("by running")


def test_nothing_is_changed_read_only(busy: Client, url: str, namespace: str) -> None:
    with Terminal(*words(url, namespace, "--read-only")) as seen:
        seen.shows("mail")
        seen.press("p")
        seen.shows("started with --read-only")


@pytest.mark.full
def test_ctrl_c_ends_it(busy: Client, url: str, namespace: str) -> None:
    with Terminal(*words(url, namespace)) as seen:
        seen.shows("mail")
        seen.press("\x03")
        assert seen.code() == 0


def test_a_look_that_takes_long_is_taken_less_often() -> None:
    assert pause_after(took=0.001, interval=2.0) == 2.0
    assert pause_after(took=0.05, interval=2.0) == 5.0
    assert pause_after(took=3.0, interval=2.0) == 10.0
    assert pause_after(took=3.0, interval=60.0) == 60.0


@pytest.mark.full
def test_it_needs_a_terminal(url: str, namespace: str) -> None:
    ended = holdfast(*words(url, namespace))
    assert ended.returncode == 2
    assert "requires a terminal" in ended.stderr


def test_a_terminal_that_cannot_move_the_cursor_is_told_what_can(url: str, namespace: str) -> None:
    with Terminal(*words(url, namespace), env={"TERM": "dumb"}) as terminal:
        assert terminal.code() == 2
        assert "holdfast stats --watch" in terminal.text
