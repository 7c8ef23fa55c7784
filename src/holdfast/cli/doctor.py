"""`holdfast doctor`: check a store and a namespace."""

import click

from holdfast.cli.connection import StorePlace, look, store_options
from holdfast.cli.examples import examples
from holdfast.cli.output import echo_text, json_option, print_json
from holdfast.cli.tables import print_findings
from holdfast.console.health.doctor import MOST_KEYS, examine
from holdfast.text import counted


@examples("holdfast doctor", "holdfast doctor --json")
@click.command()
@click.option(
    "--keys",
    type=click.IntRange(0),
    default=MOST_KEYS,
    show_default=True,
    help="Number of keys of the store to search for leftovers; 0: none.",
)
@store_options
@json_option
def doctor(keys: int, place: StorePlace, as_json: bool) -> int:
    """Check the store and the namespace, and print what is wrong or unusual, and what to do about it.

    It changes nothing. Checks that its user may not run are shown as such. The checks: store version, core, persistence,
    eviction, memory, replication, clock, latency, slow log; queues, worker versions, leases, silent workers, idle queues,
    pauses, dependencies, throttles, recurrences, paused recurrences, preemptions, failures, and keys of unknown queues. Exit code 0
    if all is fine or noted, 1 for a warning or worse, 3 if the store does not respond.
    """
    with place.unchecked() as client:
        look(client, place)
        report = client.runner.run(examine(client.shard, place.wait, keys))
    if as_json:
        print_json(report.as_dict())
    else:
        rows = [(one.check, one.verdict, one.text, one.remedy) for one in report.findings]
        print_findings(("check", "verdict", "finding", "what to do"), rows)
        echo_text(", ".join(
            (f"{report.count('ok')} ok", counted(report.count("note"), "note"), counted(report.count("warn"), "warning"),
             f"{report.count('bad')} bad")
        ))  # fmt: skip
    return 1 if report.verdict in ("warn", "bad") else 0
