"""Notices of failure surges: the rule of the attention list, when they begin and end, with jobs that fail."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from holdfast import Client
from holdfast.cli.notices.notice import Notice, SurgeNotice, SurgePoller, SurgeWatch
from holdfast.commands.failures import FailureGroup
from holdfast.console.handles import Console
from holdfast.console.health.triage import MANY
from holdfast.console.masking import MASKED, Mask
from holdfast.console.page_paths import group_path, name_of
from holdfast.testing.clock import START_MS, StoppedClock
from holdfast.testing.store import ScratchStore
from waiting import until


def fail(client: Client, count: int, group: str = "mail-Timeout") -> None:
    queue = client.queues["mail"]
    for _ in range(count):
        queue.put("k.K")
        job = queue.pop()
        assert job is not None
        job.fail(group, "no answer")


def surging(client: Client) -> list[str]:
    """The groups that the attention list of the overview calls surges."""
    return [one.subject for one in Console(client).overview().attention if one.kind == "surge"]


@pytest.mark.full
def test_a_surge_begins_and_is_over_as_the_attention_list_has_it(client: Client) -> None:
    clock, console = StoppedClock(client, START_MS), Console(client)
    clock.start()
    clock.advance(minutes=-(clock.now % 3600) / 60)  # the first moment of an hour
    watch = SurgeWatch("https://jobs.example/x")
    fail(client, MANY)
    assert watch.look(console.failures()) == []
    assert surging(client) == []
    fail(client, 1)
    assert surging(client) == ["mail-Timeout"]
    [begun] = watch.look(console.failures())
    assert begun.line == (
        "failure group mail-Timeout: 21 jobs failed in this hour, 0 an hour before; 21 in the group "
        "https://jobs.example/x/failed/mail-Timeout"
    )
    assert (begun.event, begun.group, begun.count, begun.hour) == ("surge", "mail-Timeout", 21, 21)
    fail(client, 30)
    assert watch.look(console.failures()) == []
    clock.advance(minutes=61)
    assert surging(client) == []  # an hour begins with no failures
    assert watch.look(console.failures()) == []
    fail(client, 25)
    assert watch.look(console.failures()) == []  # it is the same surge
    clock.advance(hours=1)
    assert watch.look(console.failures()) == []
    clock.advance(hours=1)
    [over] = watch.look(console.failures())
    assert over.line.startswith(
        "failure group mail-Timeout: the surge is over: 0 jobs failed in this hour, 2 an hour before; 76 in the group https"
    )
    assert over.event == "surge-over"
    assert watch.look(console.failures()) == []


@pytest.mark.full
def test_a_surge_is_over_when_its_jobs_are_gone(client: Client) -> None:
    watch, console = SurgeWatch("http://w"), Console(client)
    fail(client, 30)
    assert len(watch.look(console.failures())) == 1
    client.unfail("mail-Timeout", "mail")
    [over] = watch.look(console.failures())
    assert over.line == "failure group mail-Timeout: the surge is over: no failed jobs are left"


@pytest.mark.parametrize(
    "name", ["a/b", "..", "a//b", "@channel <script>", "ü ⚙", "%2F?#", "~x", "\u202e", "-x\n"]
)
def test_groups_of_any_name_have_the_link_of_their_page(name: str) -> None:
    group = FailureGroup(name, 30, 0, 0, "j", 0, (*(0,) * 47, 30))
    [notice] = SurgeWatch("http://w").look([group])
    assert notice.link == "http://w" + group_path(name)
    assert notice.title.isprintable()
    written = notice.link.rpartition("/")[2]
    assert written not in ("", ".", "..")
    if "~" in written:
        assert name_of(written) == name


@contextmanager
def polling(client: Client, every: float = 0.05, *rules: str) -> Iterator[list[Notice]]:
    got: list[Notice] = []
    poller = SurgePoller(Console(client), every, "http://w", Mask(rules), [got.append])
    poller.start()
    try:
        yield got
    finally:
        poller.stop(30)


def test_a_surge_in_progress_is_reported_at_the_start(client: Client) -> None:
    fail(client, 30)
    with polling(client) as got:
        until(lambda: got, "the surge is reported")
    assert isinstance(got[0], SurgeNotice)
    assert got[0].hour == 30


@pytest.mark.full
def test_the_name_of_a_group_is_masked(client: Client) -> None:
    fail(client, 30)
    with polling(client, 0.05, "re:mail") as got:
        until(lambda: got, "the surge is reported")
    assert isinstance(got[0], SurgeNotice)
    assert (got[0].group, got[0].link) == (f"{MASKED}-Timeout", "")
    assert "mail" not in json.dumps(got[0].as_dict())


@pytest.mark.full
def test_an_outage_is_survived_and_printed_once(namespace: str, capsys: pytest.CaptureFixture[str]) -> None:
    printed: list[str] = []

    def has(text: str) -> Callable[[], Any]:
        def look() -> bool:
            printed.append(capsys.readouterr().err)
            return text in "".join(printed)

        return look

    with ScratchStore() as store, Client(store.url, namespace=namespace, deadline=0.1, timeout=1.0) as client:
        fail(client, 1)
        with polling(client) as got:
            os.kill(store.pid, signal.SIGSTOP)
            until(has("failure groups cannot be read: "), "the outage is printed")
            os.kill(store.pid, signal.SIGCONT)
            until(has("failure groups can be read again"), "the end of it too")
            fail(client, 30)
            until(lambda: got, "the surge is reported")
    assert "".join(printed).count("cannot be read") == 1
