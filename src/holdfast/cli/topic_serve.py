"""`holdfast topics serve`: the topic endpoints for programs of any language."""

from typing import Any

import click
import platformdirs

from holdfast.cli.connection import Place, store_options
from holdfast.cli.examples import examples
from holdfast.cli.options import HOST, HOSTS, PREFIX, PROXY, PROXY_SECRET, USERS
from holdfast.cli.program import Program


@examples(
    "holdfast topics serve --auth none",
    "holdfast topics serve --bind 0.0.0.0 --auth bearer --users users.txt",
)
@click.command(cls=Program, path=("topics", "serve"), secret=("url",))
@click.option(
    "--auth",
    type=click.Choice(("none", "basic", "bearer", "proxy")),
    required=True,
    help="How programs are known. none: everybody on this machine; basic: names and passwords of --users; bearer: tokens of "
    "--users; proxy: a server in front, see --proxy.",
)
@click.option("-p", "--port", type=click.IntRange(1, 65535), default=7171, show_default=True, help="Port.")
@HOST
@USERS
@PROXY
@PROXY_SECRET
@HOSTS
@PREFIX
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
