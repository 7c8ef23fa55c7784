"""`holdfast notify`: send notices of what happens to tracked jobs."""

import signal
import threading
from collections.abc import Callable, Sequence
from functools import partial

import click

from holdfast.cli.connection import Place, store_options
from holdfast.cli.examples import examples
from holdfast.cli.notices import Chat, Delivery, Desktop, Lines, Notice, Sink, Webhook, notice_of
from holdfast.cli.output import json_option
from holdfast.client.events import EVENTS
from holdfast.client.sync import Client


@examples("holdfast notify", "holdfast notify --chat https://chat.example.org/hook --event failed")
@click.command()
@click.option(
    "--webhook",
    "webhooks",
    multiple=True,
    help="URL to post each notice to as JSON; may be repeated [default: none].",
)
@click.option(
    "--chat",
    "chats",
    multiple=True,
    help='URL of a chat that takes {"text": …}, such as Slack; may be repeated [default: none].',
)
@click.option("--desktop", is_flag=True, help="Show notices on the desktop with notify-send [default: off].")
@click.option(
    "--stdout", is_flag=True, help="Print notices too [default: only if they are sent nowhere else]."
)
@click.option(
    "--event",
    "events",
    type=click.Choice(EVENTS),
    multiple=True,
    help="Send notices of this event only; may be repeated [default: all].",
)
@click.option(
    "--web",
    default="",
    help="Base URL of your own pages about jobs: add the link URL/jobs/JID to each notice [default: no links].",
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
    place: Place,
    as_json: bool,
) -> None:
    """Send notices of the events of tracked jobs, until INT.

    Track a job with client.track(jid). Events that happen while the store is unavailable are not sent.
    """
    sinks: list[Sink] = [*map(Webhook, webhooks), *map(Chat, chats), *([Desktop()] if desktop else [])]
    if stdout or as_json or not sinks:
        sinks.append(Lines(as_json))
    if web and "://" not in web:
        web = f"http://{web}"
    with place.client() as client:
        _listen(client, events or EVENTS, web.rstrip("/"), sinks)


def _listen(client: Client, events: Sequence[str], web: str, sinks: Sequence[Sink]) -> None:
    """Deliver until INT or TERM, or until the reader of the output closes it."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    deliveries = [Delivery(sink) for sink in sinks]
    for event in events:
        client.events.on(
            event, partial(_deliver, client, event, web, [delivery.give for delivery in deliveries])
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


def _deliver(
    client: Client, event: str, web: str, give: Sequence[Callable[[Notice], None]], jid: str
) -> None:
    notice = notice_of(client, event, jid, web)
    for each in give:
        each(notice)
