"""`holdfast jobs`: find, show and change jobs."""

import click
import msgspec

from holdfast.cli import job_actions
from holdfast.cli.connection import Place, store_options
from holdfast.cli.examples import examples
from holdfast.cli.groups import OrderedGroup
from holdfast.cli.job_list import list_jobs
from holdfast.cli.job_show import log, result, show
from holdfast.cli.job_transfer import export_jobs, import_jobs
from holdfast.cli.output import FiniteRange, echo_text, json_option, print_json
from holdfast.cli.tables import echo_wrapped, print_findings
from holdfast.client.stacks import PATIENCE
from holdfast.errors import HoldfastError


@click.group(cls=OrderedGroup)
def jobs() -> None:
    """Find, show and change jobs."""


@examples("holdfast jobs stack JID")
@click.command()
@click.argument("jid")
@click.option(
    "--timeout",
    type=FiniteRange(0.01, 3600),
    default=PATIENCE,
    show_default=True,
    help="Seconds to wait for the worker.",
)
@store_options
@json_option
def stack(jid: str, timeout: float, place: Place, as_json: bool) -> int:
    """Show the stack of a running job, innermost frame last.

    Its worker takes the stack; code that blocks its process is shown too. Exit code 1 if there is no such job, if it is not
    running, or if its worker does not respond; 3 if the store does not respond.
    """
    with place.client(must_exist=True) as client:
        try:
            found = client.jobs.stack(jid, timeout)
        except TimeoutError as error:
            raise HoldfastError(str(error)) from error
    if as_json:
        print_json(msgspec.to_builtins(found))
    else:
        echo_text(f"job {found.jid}, worker {found.worker}, process {found.pid}")
        if found.note:
            echo_text(found.note)
        echo_text(found.stack)
    return 0


@examples("holdfast jobs why JID")
@click.command()
@click.argument("jid")
@store_options
@json_option
def why(jid: str, place: Place, as_json: bool) -> int:
    """Show why a job is running or not: the checks, what blocks it, and how to resolve that.

    Exit code 1 if there is no such job, 3 if the store does not respond.
    """
    with place.client(must_exist=True) as client:
        found = client.jobs.explain(jid)
    if as_json:
        print_json(found.as_dict())
    else:
        echo_wrapped(found.text)
        rows = [(check.check, check.verdict, check.text, check.fix) for check in found.checks]
        print_findings(("check", "verdict", "finding", "remedy"), rows)
        for line in found.facts.get("log", ()):
            echo_text(line)
    return 0 if found.exists else 1


for _command in (list_jobs, show, why, stack, log, result, *job_actions.COMMANDS, export_jobs, import_jobs):
    jobs.add_command(_command)
