"""`holdfast flows`: list, show, cancel, retry and prune flows."""

from collections.abc import Sequence

import click

from holdfast.cli.connection import StorePlace, store_options
from holdfast.cli.examples import examples
from holdfast.cli.groups import DefaultGroup
from holdfast.cli.options import OptionPart, list_options, print_list, print_rest
from holdfast.cli.output import (
    confirm,
    echo_text,
    json_option,
    print_facts,
    print_json,
    repeat,
    watch_option,
    yes_option,
)
from holdfast.commands.flows import LARGE_GROUP, FlowFacts
from holdfast.commands.job_rows import JobRow
from holdfast.commands.jobs import JobGet
from holdfast.console.handles import Console
from holdfast.console.read.flows import FlowDetail, FlowLine
from holdfast.errors import Refused
from holdfast.text import brief_ago, counted, moment

_EMPTY = "There are no flows. A program puts them: see docs/guide/flows.md"
_PIECE = 100
FLOW = click.argument("flow", metavar="JID")


@click.group(cls=DefaultGroup)
def flows() -> None:
    """List, show, cancel and retry flows: jobs that were put together and wait for each other."""


@examples("holdfast flows list", "holdfast flows list --watch 5")
@flows.command("list")
@list_options()
@watch_option
@store_options
@json_option
def list_flows(part: OptionPart, watch: float | None, place: StorePlace, as_json: bool) -> None:
    """List flows, the newest first. The store keeps 10,000 of them for 7 days.

    JSON: `flows`, each with `jid`, `label`, `created`, `state` and `counts`; `next` (for --after, "" at the end) and `total`.
    """
    with place.console() as console:

        def show() -> None:
            now = console.now_ms()
            page = part.read(lambda after, limit: console.flows(after=after, limit=limit))
            if as_json:
                rows = [_plain(line) for line in page.rows]
                print_json({"flows": rows, "next": page.next, "total": page.total})
                return
            cells = [_cells(line, now) for line in page.rows]
            print_list(("jid", "last job", "state", "jobs", "ended", "put"), cells, empty=_EMPTY)
            print_rest(len(page.rows), page, "flow")

        repeat(watch, show)


def _plain(line: FlowLine | FlowDetail) -> dict[str, object]:
    facts = line.facts
    return {
        "jid": facts.id,
        "label": facts.label,
        "created": facts.created_ms / 1000,
        "state": line.state,
        "counts": line.counts,
    }


def _cells(line: FlowLine, now: int) -> Sequence[object]:
    facts = line.facts
    return facts.id, facts.label, line.state, line.total, line.ended, brief_ago(facts.created_ms, now)


@examples("holdfast flows show nightly-28")
@flows.command()
@FLOW
@store_options
@json_option
def show(flow: str, place: StorePlace, as_json: bool) -> None:
    """Show a flow and the jobs that it was put with, with what each waits for. Exit code 1 if it does not exist.

    Job 0 of a flow with a group of more than 512 jobs stands for these.
    """
    with place.client(must_exist=True) as client:
        console = Console(client)
        found, now = console.flow(flow), console.now_ms()
        jids = [job.jid for job in found.jobs]
        kept = [
            one for at in range(0, len(jids), _PIECE) for one in client.run(JobGet(jids[at : at + _PIECE]))
        ]
    rows = [
        (job.jid, _name(job, found.facts), job.state, "" if facts is None else ", ".join(facts.dependencies))
        for job, facts in zip(found.jobs, kept, strict=True)
    ]
    if as_json:
        names = ("jid", "klass", "state", "waits_for")
        print_json({**_plain(found), "jobs": [dict(zip(names, row, strict=True)) for row in rows]})
        return
    print_facts(
        {
            "jid": found.facts.id,
            "state": found.state,
            "jobs": ", ".join(f"{count:,} {state}" for state, count in found.counts.items()),
            "put": moment(found.facts.created_ms, now),
        }
    )
    print_list(("jid", "job", "state", "waits for"), rows, empty="")


def _name(job: JobRow, facts: FlowFacts) -> str:
    """Return what a job is; of one that stands for a large group how many are in it."""
    if job.klass != LARGE_GROUP or facts.members is None:
        return job.klass
    return f"group of {counted(facts.members.total, 'call')}{', open' if facts.members.is_open else ''}"


@examples("holdfast flows cancel nightly-28")
@flows.command()
@FLOW
@yes_option
@store_options
@json_option
def cancel(flow: str, yes: bool, place: StorePlace, as_json: bool) -> int:
    """Cancel the jobs of a flow that are not complete, the last ones first. Exit code 1 if one was refused. JSON: `cancelled`, `refused`."""
    with place.console() as console:
        jids = console.changed_by_flow(flow, "cancel")
        if jids:
            confirm(f"Cancel {counted(len(jids), 'job')} of flow {flow}?", yes)
        return _report(console.change_flow(flow, "cancel"), "cancelled", as_json)


@examples("holdfast flows retry nightly-28")
@flows.command()
@FLOW
@store_options
@json_option
def retry(flow: str, place: StorePlace, as_json: bool) -> int:
    """Retry the failed jobs of a flow; those that failed for others wait for these. Exit code 1 if one was refused. JSON: `retried`, `refused`."""
    with place.console() as console:
        return _report(console.change_flow(flow, "retry"), "retried", as_json)


def _report(results: Sequence[tuple[str, bool | Refused]], done: str, as_json: bool) -> int:
    """Print what was changed, and return the exit code."""
    refused = {jid: str(result) for jid, result in results if isinstance(result, Refused)}
    changed = sum(result is True for _, result in results)
    if as_json:
        print_json({done: changed, "refused": refused})
    else:
        echo_text(f"{done} {counted(changed, 'job')}")
        for jid, why in refused.items():
            echo_text(f"holdfast: {jid}: {why}", err=True)
    return 1 if refused else 0


@examples("holdfast flows close nightly-28")
@flows.command()
@FLOW
@store_options
@json_option
def close(flow: str, place: StorePlace, as_json: bool) -> None:
    """Add no more calls to the group of an open flow: what follows starts once all have ended. JSON: `closed`, false if it was before."""
    with place.console() as console:
        closed = console.close_flow(flow)
    if as_json:
        print_json({"closed": closed})
    else:
        echo_text(f"flow {flow} is closed" if closed else f"flow {flow} was closed before")


@examples("holdfast flows prune --yes")
@flows.command()
@yes_option
@store_options
@json_option
def prune(yes: bool, place: StorePlace, as_json: bool) -> None:
    """Take flows whose jobs have all ended without a failure off the list; their jobs stay as they are. JSON: `pruned`."""
    with place.console() as console:
        ended = console.ended_flows()
        if ended:
            confirm(f"Take {counted(len(ended), 'flow')} off the list?", yes)
        for at in range(0, len(ended), _PIECE):
            console.forget_flows(*ended[at : at + _PIECE])
    if as_json:
        print_json({"pruned": ended})
    else:
        echo_text(f"pruned {counted(len(ended), 'flow')}")
