"""`holdfast notify`: tells people what happens to tracked jobs."""

import signal
import threading
from collections.abc import Callable, Sequence
from functools import partial

import click

from holdfast.cli.notices import Chat, Delivery, Desktop, Lines, Notice, Sink, Webhook, notice_of
from holdfast.cli.output import json_option
from holdfast.cli.place import store_options
from holdfast.client.events import EVENTS
from holdfast.client.sync import Client


@click.command()
@click.option(
    "--webhook", "webhooks", multiple=True, help="URL that takes each as JSON; repeat it [default: none]."
)
@click.option(
    "--chat", "chats", multiple=True, help='URL of a chat that takes {"text": …}; repeat it [default: none].'
)
@click.option("--desktop", is_flag=True, help="Show them on the desktop, by notify-send [default: off].")
@click.option("--stdout", is_flag=True, help="Print them as well [default: if they go nowhere else].")
@click.option(
    "--event",
    "events",
    type=click.Choice(EVENTS),
    multiple=True,
    help="Only these; repeat it [default: all].",
)
@click.option(
    "--web", default="http://localhost:5678", show_default=True, help="Where links to jobs lead; '' for none."
)
@store_options
@json_option
def notify(
    webhooks: Sequence[str],
    chats: Sequence[str],
    desktop: bool,
    stdout: bool,
    events: Sequence[str],
    web: str,
    url: str | None,
    namespace: str,
    as_json: bool,
) -> None:
    """Send notices of tracked jobs as events happen, until INT.

    A job is tracked by client.track(jid). What happens while the store is unavailable is not sent. --json prints JSON.
    """
    sinks: list[Sink] = [*map(Webhook, webhooks), *map(Chat, chats), *([Desktop()] if desktop else [])]
    if stdout or as_json or not sinks:
        sinks.append(Lines(as_json))
    if web and "://" not in web:
        web = f"http://{web}"
    with Client(url, namespace=namespace) as client:
        _listen(client, events or EVENTS, web.rstrip("/"), sinks)


def _listen(client: Client, events: Sequence[str], web: str, sinks: Sequence[Sink]) -> None:
    """Deliver until INT or TERM, or until nobody reads the output."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    deliveries = [Delivery(sink) for sink in sinks]
    for event in events:
        client.events.on(
            event, partial(_tell, client, event, web, [delivery.give for delivery in deliveries])
        )
    try:
        with client.events.thread():
            click.echo(f"listening to the tracked jobs of {client.settings.namespace}", err=True)
            threading.Event().wait()
    except KeyboardInterrupt:
        pass
    finally:
        for delivery in deliveries:
            delivery.close()
    for delivery in deliveries:
        if delivery.broken is not None:
            raise delivery.broken


def _tell(client: Client, event: str, web: str, give: Sequence[Callable[[Notice], None]], jid: str) -> None:
    notice = notice_of(client, event, jid, web)
    for each in give:
        each(notice)
