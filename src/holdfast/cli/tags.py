"""`holdfast tags`: list the tags of jobs."""

import click

from holdfast.cli.connection import StorePlace, store_options
from holdfast.cli.examples import examples
from holdfast.cli.options import OptionPart, list_options, print_list, print_rest
from holdfast.cli.output import json_option, print_json, repeat, watch_option


@examples("holdfast tags", "holdfast tags --limit 10 --json", "holdfast jobs list tag:vip")
@click.command()
@list_options()
@watch_option
@store_options
@json_option
def tags(part: OptionPart, watch: float | None, place: StorePlace, as_json: bool) -> None:
    """List the tags of jobs, most used first.

    JSON: `tags`, each with `tag` and `jobs`, and `next` (for --after, "" at the end).
    """
    with place.console() as console:

        def show() -> None:
            page = part.read(lambda after, limit: console.tags(after=after, limit=limit))
            if as_json:
                rows = [{"tag": tag, "jobs": count} for tag, count in page.rows]
                print_json({"tags": rows, "next": page.next})
                return
            print_list(
                ("tag", "jobs"),
                page.rows,
                whole=(),
                empty="No job has a tag. To add one:\n  holdfast jobs edit JID --tag TAG",
            )
            print_rest(len(page.rows), page, "tag")

        repeat(watch, show)
