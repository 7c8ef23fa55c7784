"""`holdfast put`: put jobs by the name of their code, and wait for a result."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from holdfast.cli.completion import names_of
from holdfast.cli.connection import StorePlace, wait_option, with_place
from holdfast.cli.options import given_options, put_flags
from holdfast.cli.output import FiniteRange, echo_text, json_option, print_json
from holdfast.client.sync import Client
from holdfast.client.unserved import without_workers
from holdfast.code.put_options import OPTIONS
from holdfast.code.steps import run_steps
from holdfast.codecs import MAX_DATA_CAP, decode
from holdfast.commands.base import NotedJid
from holdfast.commands.jobs import Outcome
from holdfast.console.put import NamedCode, put_step, steps_of
from holdfast.errors import HoldfastError, JobFailed, UsageError
from holdfast.text import one_line, printable_json


@click.command()
@click.argument("name")
@click.option(
    "-a",
    "--arg",
    "words",
    multiple=True,
    metavar="VALUE|NAME=VALUE",
    help="Argument of a function, as JSON or else as text; may be repeated.",
)
@click.option(
    "-d",
    "--data",
    metavar="JSON|@FILE|-",
    help="Data as JSON, @FILE, or - for standard input; for a function: an array of arguments, or an object of named ones.",
)
@click.option(
    "--klass", "is_class", is_flag=True, help="NAME is a class or module, and --data any JSON [default: {}]."
)
@click.option(
    "-q",
    "--queue",
    default="default",
    show_default=True,
    shell_complete=names_of("queues"),
    help="Queue to put the job into.",
)
@put_flags(*OPTIONS)
@click.option("--many", is_flag=True, help="Put a job for each line of standard input, each as for --data.")
@click.option("--wait", "waits", is_flag=True, help="Wait for the end of the job, and print its result.")
@click.option(
    "--wait-timeout",
    type=FiniteRange(0),
    metavar="SECONDS",
    help="Maximum time to wait for the end [default: no limit].",
)
@with_place
@wait_option("--store-wait")
@json_option
def put(
    name: str,
    words: Sequence[str],
    data: str | None,
    is_class: bool,
    many: bool,
    waits: bool,
    wait_timeout: float | None,
    queue: str,
    place: StorePlace,
    as_json: bool,
    **options: Any,
) -> int:
    """Put a job and print its jid.

    NAME is the stored name of a function job, such as shop.mail.welcome, or with --klass the name of a class. The code is not
    imported: the worker checks the arguments, and options that the code declares (queue, retries, …) do not apply. With --wait the result is printed instead of the jid, as JSON. Exit code 1 if the job failed, was cancelled, or
    has not ended within --wait-timeout; 3 if the store does not respond.

    \b
    Examples:
      holdfast put shop.mail.welcome -q mail --arg 7 --arg lang=de
      holdfast put shop.report --data '[2026, {"month": 11}]' --wait
      holdfast put shop.Order --klass --data @order.json --tag vip
      jq -c '.orders[]' orders.json | holdfast put shop.Order --klass --many
    """
    if many and (waits or words or data is not None or options["jid"] is not None):
        raise UsageError("--many cannot be used with --wait, --arg, --data or --jid")
    options = given_options(options)
    with place.client() as client:
        code = NamedCode(name, is_class, client.settings.max_data)
        if many:
            return _put_many(client, queue, code, code.options(options), as_json)
        body = code.data(None if data is None else _text_of(data), words)
        if options["jid"] is not None:
            options["jid"] = NotedJid(options["jid"])
        jid = client.queues[queue].put(name, body, **code.options(options))
        if waits or wait_timeout is not None:
            return _wait(client, jid, wait_timeout, as_json)
    _print_jid(jid, as_json)
    return 0


def _text_of(data: str) -> str | bytes:
    """Return the JSON text that --data names. Raises UsageError, OSError."""
    if data == "-":
        text = sys.stdin.buffer.read(MAX_DATA_CAP + 1)
    elif data.startswith("@"):
        with Path(data[1:]).open("rb") as file:
            text = file.read(MAX_DATA_CAP + 1)
    else:
        return data
    if len(text) > MAX_DATA_CAP:
        raise UsageError(f"--data {data} has more than {MAX_DATA_CAP} bytes")
    return text


def _put_many(client: Client, queue: str, code: NamedCode, options: dict[str, Any], as_json: bool) -> int:
    """Put the lines of standard input; print a jid for each, and refusals on standard error. Returns the exit code."""
    refused = 0
    for step in steps_of(code, sys.stdin.buffer):
        for line in client.runner.run(put_step(client.shard, queue, code, step, options)):
            if line.refused is None:
                _print_jid(line.jid, as_json)
            else:
                refused += 1
                echo_text(f"line {line.number}: {one_line(str(line.refused))}", err=True)
    return 1 if refused else 0


def _wait(client: Client, jid: str, timeout: float | None, as_json: bool) -> int:
    """Wait for the end of a job, print its outcome, and return the exit code."""
    if not as_json:
        echo_text(f"job {one_line(jid)}", err=True)
    outcome = client.wait_for(jid, timeout)
    if as_json:
        print_json({"jid": str(jid), "status": outcome.status, "is_new": _is_new(jid), **_facts(outcome)})
        return 0 if outcome.status == "done" else 1
    try:
        hint = run_steps(without_workers(client)) if outcome.status == "open" else ""
        result = outcome.result_of(jid, client.settings.flags, hint)
    except TimeoutError as error:
        raise HoldfastError(str(error)) from None
    except JobFailed as error:
        raise HoldfastError(f"job {jid} failed in group {error}\n{error.remote_traceback}".rstrip()) from None
    if result is not None:
        click.echo(printable_json(result.decode("utf-8", "replace")))
    return 0


def _is_new(jid: str) -> bool | None:
    """Whether the put made the job: always, but where --jid or --unique-key names one that exists."""
    return jid.is_new if isinstance(jid, NotedJid) else True


def _facts(outcome: Outcome) -> dict[str, Any]:
    error = outcome.error
    if isinstance(error, JobFailed):
        return {"group": error.group, "message": error.message}
    if error is not None:
        return {"by": error.by, "at": error.at}
    return {"result": None if outcome.result is None else decode(outcome.result)}


def _print_jid(jid: str, as_json: bool) -> None:
    if as_json:
        print_json({"jid": str(jid), "is_new": _is_new(jid)})
    else:
        echo_text(jid)
