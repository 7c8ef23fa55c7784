"""Findings are snoozed for a time or until they grow, for everybody who looks at the overview."""

import asyncio
import json

import pytest

from holdfast import AsyncClient, Client
from holdfast.console.handles import AsyncConsole, Console
from holdfast.console.health.snooze import KEY
from holdfast.errors import UnknownName, UsageError
from holdfast.testing.clock import START_MS, StoppedClock


@pytest.fixture
def clock(client: Client) -> StoppedClock:
    found = StoppedClock(client, START_MS)
    found.advance(seconds=0)
    return found


@pytest.fixture
def console(client: Client, clock: StoppedClock) -> Console:
    return Console(client, "ada@box")


def fail(client: Client, count: int, group: str = "mail-ValueError", queue: str = "mail") -> None:
    client.queues[queue].put_many([("jobs.Send", {})] * count)
    for job in client.queues[queue].pop(count):
        job.fail(group, "no")


def shown(console: Console) -> list[tuple[str, str]]:
    return [(one.kind, one.subject) for one in console.overview().attention]


SURGE = ("surge", "mail-ValueError")


def test_a_snoozed_finding_is_left_out_until_its_time_is_over(
    console: Console, client: Client, clock: StoppedClock
) -> None:
    fail(client, 25)
    assert shown(console) == [SURGE]
    made = console.snooze(*SURGE, seconds=3600)
    assert (made.jobs, made.who, made.severity) == (25, "ada@box", "urgent")
    other = Console(client, "grace")
    assert shown(other) == []
    assert [one.snooze for one in other.overview().snoozed] == [made]
    clock.advance(seconds=3599)
    assert shown(console) == []
    clock.advance(seconds=1)
    fail(client, 1)  # in the hour that begins
    assert ("many-failures", "mail-ValueError") not in shown(console)
    assert console.snoozes() == (made,)
    fail(client, 40)
    assert shown(console) == [SURGE]
    lines = [(line.what, line.target, line.detail) for line in console.audit().rows]
    assert ("snooze", "surge mail-ValueError", "for 3600 s") in lines


def test_growth_brings_it_back(console: Console, client: Client) -> None:
    fail(client, 25)
    console.snooze(*SURGE)
    fail(client, 11)
    assert shown(console) == []
    fail(client, 1)
    assert shown(console) == [SURGE]
    console.snooze(*SURGE)  # in place of the one before
    assert shown(console) == []
    assert len(console.snoozes()) == 1


def test_a_finding_that_became_more_urgent_comes_back(
    console: Console, client: Client, clock: StoppedClock
) -> None:
    client.queues["mail"].put("jobs.Send", {})
    assert [(one.kind, one.severity) for one in console.overview().attention] == [("no-worker", "note")]
    console.snooze("no-worker", "mail")
    assert shown(console) == []
    clock.advance(seconds=61)
    assert [(one.kind, one.severity) for one in console.overview().attention] == [("no-worker", "urgent")]


def test_a_matter_that_began_again_comes_back(console: Console, client: Client, clock: StoppedClock) -> None:
    client.queues["mail"].put("jobs.Send", {})
    console.pause("mail")
    console.snooze("paused", "mail", seconds=99_999)
    assert shown(console) == []
    clock.advance(seconds=1)
    console.resume("mail")
    console.pause("mail")
    assert shown(console) == [("paused", "mail")]


def test_all_findings_of_a_kind_are_snoozed_until_there_are_many_more(
    console: Console, client: Client
) -> None:
    for number in range(14):
        client.queues[f"q{number}"].put("jobs.Send", {})
        console.pause(f"q{number}")
        if number == 3:
            console.snooze("paused")
            assert shown(console) == []
    assert [one.count for one in console.overview().attention] == [14]
    console.snooze("queue")  # all that is about any queue
    assert shown(console) == []


def test_a_group_is_muted_before_it_needs_attention_and_when_it_is_made_anew_it_is_not(
    console: Console, client: Client, clock: StoppedClock
) -> None:
    fail(client, 3)
    console.snooze("failure group", "mail-ValueError")
    [group] = console.failures()
    assert all(one.mutes(group) for one in console.snoozes())
    console.act("cancel", *[row.jid for row in console.jobs("state:failed").jobs])
    clock.advance(seconds=1)
    fail(client, 25)
    assert shown(console) == [SURGE]


def test_a_snooze_is_ended(console: Console, client: Client) -> None:
    fail(client, 25)
    console.snooze(*SURGE)
    assert console.unsnooze(*SURGE)
    assert shown(console) == [SURGE]
    assert not console.unsnooze(*SURGE)
    assert [line.what for line in console.audit(limit=2).rows] == ["unsnooze", "snooze"]


def test_what_is_not_there_is_refused(console: Console) -> None:
    with pytest.raises(UsageError, match="about: expected one of surge, "):
        console.snooze("weather")
    with pytest.raises(UnknownName, match="nothing about surge x needs attention"):
        console.snooze("surge", "x")
    with pytest.raises(UnknownName):
        console.snooze("failure group", "x")


def test_what_others_wrote_into_the_setting_is_no_snooze_and_lists_leave_the_setting_out(
    console: Console, client: Client
) -> None:
    fail(client, 25)
    for text in ("", "{}", "[1]", "\ud800".encode("utf-8", "surrogatepass").decode(errors="replace")):
        client.config.set(KEY, text)
        assert console.snoozes() == ()
    console.snooze(*SURGE)
    assert KEY not in console.settings().others
    assert len(json.loads(client.config.all[KEY])) == 1


def test_snoozes_of_one_moment_are_all_kept(client: Client) -> None:
    for number in range(4):
        fail(client, 1, f"g{number}", f"q{number}")

    async def all_at_once() -> int:
        async with AsyncClient(client.store_url, namespace=client.settings.namespace) as other:
            console = AsyncConsole(other, "ada")
            await asyncio.gather(*(console.snooze("failure group", f"g{number}") for number in range(4)))
            return len(await console.snoozes())

    assert asyncio.run(all_at_once()) == 4
