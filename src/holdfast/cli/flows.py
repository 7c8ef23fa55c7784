"""`holdfast flows`: list, show, cancel, retry and prune flows."""

from collections.abc import Mapping, Sequence

import click

from holdfast.cli.connection import StorePlace, actor, store_options
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
from holdfast.client.sync import Client
from holdfast.commands.flows import (
    LARGE_GROUP,
    FlowClose,
    FlowFacts,
    FlowForget,
    FlowGet,
    FlowList,
    FlowStates,
    counts_of,
    summary_of,
)
from holdfast.commands.jobs import JobGet
from holdfast.commands.operations import Action
from holdfast.console.handles import Console
from holdfast.console.read.queries import Page
from holdfast.errors import JobNotFound, Refused
from holdfast.models import JobFacts
from holdfast.settings import check_name
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
    with place.client(must_exist=True) as client:

        def show() -> None:
            now = Console(client).now_ms()
            page = part.read(lambda after, limit: _page(client, after, limit))
            found = [(facts, _states(client, facts)) for facts in page.rows]
            if as_json:
                rows = [_plain(facts, states) for facts, states in found]
                print_json({"flows": rows, "next": page.next, "total": page.total})
                return
            cells = [_cells(facts, states, now) for facts, states in found]
            print_list(("jid", "last job", "state", "jobs", "ended", "put"), cells, empty=_EMPTY)
            print_rest(len(page.rows), page, "flow")

        repeat(watch, show)


def _page(client: Client, after: str, limit: int) -> Page[FlowFacts]:
    cursor, total, ids = client.run(FlowList(after, limit))
    found = client.run(FlowGet(ids)) if ids else []
    return Page(tuple(facts for facts in found if facts is not None), cursor, total)


def _states(client: Client, facts: FlowFacts) -> list[str]:
    """Return the states of the jobs that it was put with; of a flow that was forgotten meanwhile all are gone."""
    try:
        return client.run(FlowStates(facts.id, 0, facts.steps))
    except JobNotFound:
        return ["gone"] * facts.steps


def _ended(counts: Mapping[str, int]) -> int:
    return sum(counts.get(state, 0) for state in ("complete", "failed", "gone"))


def _plain(facts: FlowFacts, states: Sequence[str]) -> dict[str, object]:
    return {
        "jid": facts.id,
        "label": facts.label,
        "created": facts.created_ms / 1000,
        "state": summary_of(facts, states),
        "counts": counts_of(facts, states),
    }


def _cells(facts: FlowFacts, states: Sequence[str], now: int) -> Sequence[object]:
    put, counts = brief_ago(facts.created_ms, now), counts_of(facts, states)
    return facts.id, facts.label, summary_of(facts, states), sum(counts.values()), _ended(counts), put


def _found(client: Client, flow: str) -> FlowFacts:
    [facts] = client.run(FlowGet([check_name("flow", flow)]))
    if facts is None:
        raise JobNotFound(f"flow {flow} does not exist; `holdfast flows list` lists them", "HF_JOB_NOT_FOUND")
    return facts


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
        facts, now = _found(client, flow), Console(client).now_ms()
        states = _states(client, facts)
        jobs = [
            job
            for at in range(0, facts.steps, _PIECE)
            for job in client.run(JobGet(facts.jids[at : min(at + _PIECE, facts.steps)]))
        ]
    rows = [
        (jid, _name(job, facts), state, "" if job is None else ", ".join(job.dependencies))
        for jid, state, job in zip(facts.jids, states, jobs, strict=False)
    ]
    if as_json:
        names = ("jid", "klass", "state", "waits_for")
        print_json({**_plain(facts, states), "jobs": [dict(zip(names, row, strict=True)) for row in rows]})
        return
    print_facts(
        {
            "jid": facts.id,
            "state": summary_of(facts, states),
            "jobs": ", ".join(f"{count:,} {state}" for state, count in counts_of(facts, states).items()),
            "put": moment(facts.created_ms, now),
        }
    )
    print_list(("jid", "job", "state", "waits for"), rows, empty="")


def _name(job: JobFacts | None, facts: FlowFacts) -> str:
    """Return what a job is; of one that stands for a large group how many are in it."""
    if job is None:
        return ""
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
    with place.client(must_exist=True) as client:
        facts, states = _open(client, flow)
        jids = [
            jid for jid, state in zip(facts.jids, states, strict=False) if state not in ("complete", "gone")
        ]
        if jids:
            confirm(f"Cancel {counted(len(jids), 'job')} of flow {flow}?", yes)
        return _act(client, "cancel", jids[::-1], "cancelled", as_json)


@examples("holdfast flows retry nightly-28")
@flows.command()
@FLOW
@store_options
@json_option
def retry(flow: str, place: StorePlace, as_json: bool) -> int:
    """Retry the failed jobs of a flow; those that failed for others wait for these. Exit code 1 if one was refused. JSON: `retried`, `refused`."""
    with place.client(must_exist=True) as client:
        facts, states = _open(client, flow)
        jids = [jid for jid, state in zip(facts.jids, states, strict=False) if state == "failed"]
        return _act(client, "retry", jids, "retried", as_json)


def _open(client: Client, flow: str) -> tuple[FlowFacts, list[str]]:
    facts = _found(client, flow)
    states: list[str] = []
    while len(states) < facts.total:
        piece = client.run(FlowStates(flow, len(states)))
        if not piece:
            break
        states += piece
    return facts, states + ["gone"] * (facts.total - len(states))


def _act(client: Client, action: Action, jids: Sequence[str], done: str, as_json: bool) -> int:
    """Change jobs, and return the exit code."""
    console = Console(client, actor())
    results = [
        result
        for at in range(0, len(jids), _PIECE)
        for result in console.act(action, *jids[at : at + _PIECE])
    ]
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
    with place.client(must_exist=True) as client:
        closed = client.run(FlowClose(check_name("flow", flow)))
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
    with place.client(must_exist=True) as client:
        ended: list[str] = []
        cursor = ""
        while True:
            page = _page(client, cursor, _PIECE)
            ended += [facts.id for facts in page.rows if _is_over(facts, _states(client, facts))]
            cursor = page.next
            if not cursor:
                break
        if ended:
            confirm(f"Take {counted(len(ended), 'flow')} off the list?", yes)
        for at in range(0, len(ended), _PIECE):
            client.run(FlowForget(ended[at : at + _PIECE]))
    if as_json:
        print_json({"pruned": ended})
    else:
        echo_text(f"pruned {counted(len(ended), 'flow')}")


def _is_over(facts: FlowFacts, states: Sequence[str]) -> bool:
    return set(counts_of(facts, states)) <= {"complete", "gone"}
