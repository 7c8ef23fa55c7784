"""`holdfast jobs`: look at jobs, one by one."""

import click

from holdfast.cli.output import json_option, say_json, say_table
from holdfast.cli.place import store_options
from holdfast.client.sync import Client


@click.group()
def jobs() -> None:
    """Look at jobs."""


@jobs.command()
@click.argument("jid")
@store_options
@json_option
def why(jid: str, url: str | None, namespace: str, as_json: bool) -> int:
    """Say why a job runs or does not: what was looked at, what blocks it, and what would help.

    Exit code 1 when there is no such job, 3 when the store cannot be asked.
    """
    with Client(url, namespace=namespace) as client:
        found = client.jobs.explain(jid)
    if as_json:
        say_json(found.as_dict())
    else:
        click.echo(found.text)
        rows = [(check.check, check.verdict, check.text, check.fix) for check in found.checks]
        say_table(("looked at", "verdict", "found", "what would help"), rows)
    return 0 if found.exists else 1
