"""`holdfast topics serve`: the topic endpoints for programs of any language."""

from pathlib import Path
from typing import Any

import click
import platformdirs

from holdfast.cli.connection import Place, store_options
from holdfast.cli.examples import examples


@examples(
    "holdfast topics serve --auth none",
    "holdfast topics serve --bind 0.0.0.0 --auth bearer --users users.txt",
)
@click.command()
@click.option(
    "--auth",
    type=click.Choice(("none", "basic", "bearer", "proxy")),
    required=True,
    help="How programs are known. none: everybody on this machine; basic: names and passwords of --users; bearer: tokens of "
    "--users; proxy: a server in front, see --proxy.",
)
@click.option("-p", "--port", type=click.IntRange(1, 65535), default=7171, show_default=True, help="Port.")
@click.option(
    "-o",
    "--bind",
    "--host",
    "host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Address to listen on.",
)
@click.option(
    "--users",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File of users: lines of name:role:secret[:date[:limits]].",
)
@click.option(
    "--proxy",
    multiple=True,
    metavar="ADDRESS",
    help="Address of a server in front whose headers are believed; may be repeated.",
)
@click.option(
    "--allowed-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Host name under which it may be reached; may be repeated [default: any].",
)
@click.option("--prefix", default="", metavar="PATH", help="Path below which everything lies, such as /jobs.")
@store_options
@click.pass_context
def serve(ctx: click.Context, /, place: Place, port: int, **options: Any) -> None:
    """Serve the topic endpoints until INT or TERM: POST /schedule/TOPIC, /cancel, /reserve, /pull, /release, /requeue, GET /ready.

    The same as holdfast web -F --only topics. It needs the extra `web`.
    """
    from holdfast.cli.web import web

    folder = platformdirs.user_state_path("holdfast", appauthor=False) / f"topics-{port}"
    store = {"url": place.url, "namespace": place.namespace, "wait": place.wait}
    ctx.invoke(web, foreground=True, parts=("topics",), port=port, app_dir=folder, **store, **options)
