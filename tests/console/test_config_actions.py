"""Settings, queue patterns and queue priorities are changed only if they are as they were shown."""

import asyncio

import pytest

from holdfast import AsyncClient, Client
from holdfast.client.patterns import QueuePriorityPattern as Rule
from holdfast.console.configuration import SettingChange as Change
from holdfast.console.handles import AsyncConsole, Console
from holdfast.errors import UsageError, WrongState


@pytest.fixture
def console(client: Client) -> Console:
    return Console(client, "ada@box")


def whats(console: Console) -> list[tuple[str, str]]:
    return [(line.what, line.target) for line in console.audit().rows]


def test_a_setting_is_written_if_it_has_the_value_that_was_seen(console: Console, client: Client) -> None:
    [done] = console.change_settings(Change("heartbeat", "60", seen="30"))
    assert (done.before, done.after, done.was_set) == ("30", "60", False)
    assert client.config.get("heartbeat") == 60
    assert whats(console) == [("set config", "heartbeat")]


def test_a_setting_that_somebody_else_changed_is_left_alone_and_both_values_are_named(
    console: Console, client: Client
) -> None:
    console.configure("heartbeat", 90)
    with pytest.raises(WrongState, match="it is '90' now, not '30'"):
        console.change_settings(
            Change("max-data", "2048", seen="1048576"), Change("heartbeat", "60", seen="30")
        )
    assert client.config.get("heartbeat") == 90
    assert client.config.get("max-data") == 1_048_576


def test_of_changes_of_one_moment_one_is_made(client: Client) -> None:
    async def all_at_once() -> list[object]:
        async with AsyncClient(client.store_url, namespace=client.settings.namespace) as other:
            console = AsyncConsole(other, "ada")
            changes = [Change("heartbeat", str(60 + number), seen="30") for number in range(8)]
            calls = [console.change_settings(one) for one in changes]
            return list(await asyncio.gather(*calls, return_exceptions=True))

    results = asyncio.run(all_at_once())
    assert sum(isinstance(one, WrongState) for one in results) == 7
    [made] = [one for one in results if isinstance(one, list)]
    assert str(client.config.get("heartbeat")) == made[0].after


def test_nothing_is_written_when_one_value_is_wrong(console: Console, client: Client) -> None:
    with pytest.raises(UsageError, match="stats-days: expected a whole number from 1 to 3660"):
        console.change_settings(Change("heartbeat", "60"), Change("stats-days", "0"))
    assert client.config.get("heartbeat") == 30
    with pytest.raises(UsageError, match="twice"):
        console.change_settings(Change("heartbeat", "60"), Change("heartbeat", "70"))


def test_a_setting_gets_its_default_and_one_of_a_user_goes(console: Console, client: Client) -> None:
    console.configure("max-data", 2048)
    console.configure("team", "payments")
    done = console.change_settings(Change("max-data", None), Change("team", None, seen="payments"))
    assert [(one.name, one.after) for one in done] == [("max-data", "1048576"), ("team", "")]
    assert "team" not in client.config.all
    assert console.change_settings(Change("team", None), Change("heartbeat", None)) == []


def test_the_lease_of_a_queue_is_its_own_or_that_of_all(console: Console) -> None:
    console.configure("mail-heartbeat", 600)
    found = console.settings()
    assert (found.lease_of("mail"), found.lease_of("other")) == (600, 30)


def test_patterns_are_replaced_if_they_are_as_they_were_shown(console: Console, client: Client) -> None:
    client.queues["mail"].put("k.K")
    shown = console.queue_order()
    assert [(one.name, one.patterns, one.queues) for one in shown.identifiers] == [
        ("default", ("*",), ("mail",))
    ]
    assert console.set_patterns({"slow": ["m*"], "none": []}, seen=shown.identifiers_version)
    assert [one.name for one in console.queue_order().identifiers] == ["slow", "default"]
    with pytest.raises(WrongState, match="slow"):
        console.set_patterns({}, seen=shown.identifiers_version)
    assert not console.set_patterns({"slow": ["m*"]})
    assert console.set_patterns({})
    assert [one.name for one in console.queue_order().identifiers] == ["default"]
    assert [what for what, _ in whats(console)] == ["set queue patterns"] * 2


def test_rules_are_replaced_if_they_are_as_they_were_shown(console: Console, client: Client) -> None:
    client.queues["mail"].put("k.K")
    shown = console.queue_order()
    assert console.set_priorities([Rule(["mail"], True)], seen=shown.rules_version)
    assert [(one.patterns, one.is_fair, one.queues) for one in console.queue_order().rules] == [
        (("mail",), True, ("mail",)), (("default",), False, ())
    ]  # fmt: skip
    with pytest.raises(WrongState, match="priorities were changed meanwhile"):
        console.set_priorities([], seen=shown.rules_version)
    with pytest.raises(UsageError):
        console.set_priorities([Rule([""])])
    assert [what for what, _ in whats(console)] == ["set queue priorities"]


def test_the_audit_log_is_searched_by_who_and_what(console: Console, client: Client) -> None:
    for number in range(5):
        console.configure("heartbeat", 40 + number)
    Console(client, "bob@web").configure("grace-period", 9)
    assert [line.target for line in console.audit_lines(who="bob").rows] == ["grace-period"]
    page = console.audit_lines(what="heartbeat", limit=3)
    rest = console.audit_lines(what="heartbeat", limit=3, before=page.next)
    assert [line.detail for line in (*page.rows, *rest.rows)] == ["44", "43", "42", "41", "40"]
    assert (rest.next, console.audit_lines(who="nobody").next) == ("", "")


def test_an_installation_says_which_store_it_has_and_what_is_wrong(console: Console, namespace: str) -> None:
    found = console.installation()
    assert (found.namespace, found.heartbeat, found.digest) == (namespace, 30, found.own_digest)
    assert found.memory > 0
    assert {"store", "persistence", "memory", "clock", "latency"} <= {one.check for one in found.findings}
    assert {"queues", "leftovers"} <= {one.check for one in console.doctor(keys=10).findings}


def test_an_async_console_changes_settings_too(aclient: AsyncClient) -> None:
    async def change() -> list[object]:
        other = AsyncConsole(aclient, "bob@web")
        done = await other.change_settings(Change("heartbeat", "60", seen="30"))
        order = await other.queue_order()
        await other.set_patterns({"a": ["b"]}, seen=order.identifiers_version)
        await other.set_priorities([Rule(["b"])], seen=order.rules_version)
        facts = [
            done[0].after,
            len((await other.audit_lines()).rows),
            (await other.installation()).durability,
        ]
        facts.append((await other.doctor(keys=0)).verdict in ("ok", "note", "warn", "bad"))
        await aclient.close()
        return facts

    assert asyncio.run(change()) == ["60", 3, "memory", True]
