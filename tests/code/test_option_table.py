"""The options of a put are one table: what it has, every door has."""

from typing import Any, get_args

import click
import msgspec
import pytest

from holdfast import Client, UsageError
from holdfast.cli.put import put as put_command
from holdfast.cli.recurring import add as add_command
from holdfast.code.put_options import OPTIONS, Conflict, kept_options
from holdfast.commands.options import ExtraOptions, JobWithOptions, PutWithOptions
from holdfast.console.transfer import JobLine
from holdfast.errors import HoldfastError
from holdfast.web.gateway.verbs import verbs
from holdfast.web.pages.queues import PutJob

OF_MODE = {"only_new"}
"""The gateway takes `mode`, and an export has none."""
OF_KEYS = {"unique_key", "unique_for", "on_conflict", "debounce_max"}
"""A job does not know its unique key, so an export has none."""


def flags(command: click.Command) -> set[str]:
    return {str(one.name) for one in command.params}


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_is_taken_by_every_door(name: str) -> None:
    option = OPTIONS[name]
    fields = {
        *ExtraOptions.__struct_fields__,
        *JobWithOptions.__struct_fields__,
        *PutWithOptions.__struct_fields__,
    }
    assert option.field in fields
    assert name in flags(put_command)
    assert (name in flags(add_command)) == option.recurring
    if name not in OF_MODE:
        assert name in verbs()["put"].request.__struct_fields__
    if name not in OF_MODE | OF_KEYS | {"delay"}:  # a line of an export has `due`
        assert name in JobLine.__struct_fields__
    if not option.is_list:
        assert name in PutJob.__struct_fields__
    assert option.doc.endswith((".", "]."))
    assert option.label


@pytest.mark.parametrize("name", [name for name, option in OPTIONS.items() if option.stored])
def test_a_kept_option_comes_back_under_its_name(name: str, client: Client) -> None:
    value = {"backoff": 5}.get(name, 60)
    client.queues["q"].put("k", {}, jid="j", **{name: value})
    stored = client.jobs["j"].facts.options
    assert set(stored) >= {OPTIONS[name].stored}
    found = kept_options(stored)
    assert {each for each in found if found[each] is not None} == {name}
    if name in ("timeout", "result_keep"):
        assert found[name] == 60.0


@pytest.mark.parametrize(
    "name", [name for name, option in OPTIONS.items() if option.recurring and name != "jid"]
)
def test_a_recurring_job_takes_it_and_refuses_a_wrong_value(name: str, client: Client) -> None:
    given = {"tags": ["a"], "throttles": ["a"], "unique_key": "a"}.get(name, 5)
    good: dict[str, Any] = {name: given, **({"unique_key": "a"} if name == "unique_for" else {})}
    client.queues["q"].recur("k", {}, 60, jid="r", **good)
    assert client.recurring["r"]
    with pytest.raises(UsageError, match=name):
        client.queues["q"].recur("k", {}, 60, jid="r", **{**good, name: object()})


@pytest.mark.parametrize("choice", get_args(Conflict))
def test_client_and_core_know_the_same_values_of_on_conflict(choice: str, client: Client) -> None:
    assert OPTIONS["on_conflict"].check("on_conflict", choice) == choice
    own = ExtraOptions(unique_key="a", on_conflict=choice)
    assert client.run(PutWithOptions("q", JobWithOptions("k", options=own)))
    wrong = ExtraOptions(unique_key="a", on_conflict="none")
    for put in (
        lambda: OPTIONS["on_conflict"].check("on_conflict", "none"),
        lambda: client.run(PutWithOptions("q", JobWithOptions("k", options=wrong))),
    ):
        with pytest.raises(HoldfastError, match=rf"\b{choice}\b"):
            put()


def test_a_result_of_recurring_jobs_need_not_be_kept(client: Client) -> None:
    client.queues["q"].recur("k", {}, 60, jid="r", result_keep=0)
    job = client.queues["q"].pop()
    assert job
    assert kept_options(job.facts.options)["result_keep"] == 0


def test_requests_and_lines_have_no_field_twice() -> None:
    assert len(msgspec.structs.fields(PutJob)) == len({one.name for one in msgspec.structs.fields(PutJob)})
