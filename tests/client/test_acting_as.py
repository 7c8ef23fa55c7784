"""`client.acting_as("ada@laptop")`: what it changes has a line in the audit log, and nothing else differs."""

import asyncio

import pytest

from holdfast import AsyncClient, Client, UsageError
from holdfast.commands import COMMANDS
from holdfast.commands.base import AuditedChange
from holdfast.commands.queues import Pause
from holdfast.errors import JobNotFound

LINES = {
    "flow_close",
    "flow_forget",
    "throttle_set", "throttle_delete", "throttle_release", "pause", "queue_set", "queue_forget", "config_set", "config_unset", "setting",
    "identifiers_set", "priorities_set", "worker_quiet", "worker_forget", "recur_pause", "recur_run", "recur_update", "recur_cancel",
    "recur_tag", "topic_reschedule", "topic_delete", "depend",
}  # fmt: skip


def lines(client: Client) -> list[tuple[str, str, str, str]]:
    return [(one.who, one.what, one.target, one.detail) for one in reversed(client.audit.newest(100))]


def test_changes_of_an_acting_client_are_audited_and_those_of_the_client_are_not(client: Client) -> None:
    ada = client.acting_as("ada@laptop")
    client.queues["mail"].pause()
    ada.queues["mail"].unpause()
    ada.queues["mail"].set_bound("max-waiting", 5)
    ada.throttles["printer"].maximum = 3
    ada.config["heartbeat"] = 90
    assert lines(client) == [
        ("ada@laptop", "resume", "mail", ""),
        ("ada@laptop", "set queue", "mail", "max-waiting=5"),
        ("ada@laptop", "set throttle", "printer", "maximum=3 seconds=0"),
        ("ada@laptop", "set config", "heartbeat", "90"),
    ]
    assert not client.queues["mail"].paused


def test_what_programs_do_is_not_audited(client: Client) -> None:
    ada = client.acting_as("ada@laptop")
    jid = ada.queues["mail"].put("Klass", {})
    with ada.batch():
        ada.queues["mail"].put("Klass", {})
    job = ada.queues["mail"].pop()
    assert job
    assert job.jid == jid
    job.complete()
    assert ada.queues["mail"].length() == 1
    assert lines(client) == []


def test_a_refused_change_leaves_no_line(client: Client) -> None:
    ada = client.acting_as("ada@laptop")
    ada.queues["mail"].recur("Klass", {}, 60, jid="r")
    template = ada.recurring["r"]
    assert template
    client.recurring.cancel("r")
    with pytest.raises(JobNotFound):
        template.pause()
    assert lines(client) == []


def test_a_name_that_cannot_be_is_refused_at_once(client: Client) -> None:
    for wrong in ("", "a\nb", 7):
        with pytest.raises(UsageError, match="actor"):
            client.acting_as(wrong)  # type: ignore[arg-type]


def test_an_async_client_acts_too_and_waits_on_the_connection_of_its_client(client: Client) -> None:
    async def story() -> None:
        async with AsyncClient(client.store_url, namespace=client.settings.namespace) as other:
            ada = other.acting_as("ada@laptop")
            await ada.queues["mail"].pause()
            await asyncio.gather(*(ada.queues[name].pause() for name in ("a", "b")))
            assert await ada.run_all([Pause(("c",), True)]) == [1]
            assert ada._results is other._results

    asyncio.run(story())
    assert sorted(line[2] for line in lines(client)) == ["a", "b", "c", "mail"]


def test_the_commands_that_operators_use_have_a_line_each() -> None:
    having = {
        verb
        for verb, kind in COMMANDS.items()
        if "audit_line" in vars(kind) and isinstance(vars(kind)["audit_line"], property)
    }
    assert having == LINES
    assert Pause(("q",), True, "w", "deploy").audit_line == AuditedChange("pause", "q", "deploy")
