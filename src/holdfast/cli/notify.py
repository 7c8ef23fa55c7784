"""`holdfast notify`: send notices of what happens to tracked jobs, and of failure groups that grow fast."""

import logging
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from time import monotonic
from typing import NamedTuple
from urllib.parse import urlsplit

import click

from holdfast.cli.connection import StorePlace, store_options
from holdfast.cli.examples import examples
from holdfast.cli.notices.delivery import CLOSING, Delivery
from holdfast.cli.notices.notice import SURGE, Notice, SurgePoller, notice_of
from holdfast.cli.notices.receivers import Receivers, receiver_options
from holdfast.cli.options import length
from holdfast.cli.output import json_option
from holdfast.cli.program import ProgramCommand
from holdfast.client.events import EVENTS
from holdfast.client.sync import Client
from holdfast.console.handles import Console
from holdfast.console.masking import Mask
from holdfast.errors import UsageError
from holdfast.logs import logger
from holdfast.settings import is_authority
from holdfast.text import duration

_SHORTEST_LOOK, _LONGEST_LOOK = 1.0, 3600.0


@examples(
    "holdfast notify",
    "holdfast notify --chat https://chat.example.org/hook --event failed --event surge --web https://jobs.example.org",
    "holdfast notify --mail-to ops@example.org --mail-from jobs@example.org --smtp smtp://jobs@mail.example.org",
)
@click.command(
    cls=ProgramCommand,
    path=("notify",),
    secret=("url", "webhook", "chat", "apprise", "smtp"),
    by_lines=("redact",),
)
@receiver_options
@click.option(
    "--event",
    "events",
    type=click.Choice([*EVENTS, SURGE]),
    multiple=True,
    help="Send notices of this event only; may be repeated [default: all].",
)
@click.option(
    "--every",
    type=length,
    metavar="LENGTH",
    default="30s",
    show_default=True,
    help="Interval between checks for surges: 1s to 1h.",
)
@click.option(
    "--web",
    default="",
    metavar="URL",
    help="URL of the web UI, for links to jobs and failure groups in notices [default: no links].",
)
@click.option(
    "--redact",
    multiple=True,
    metavar="RULE",
    help="Mask the matches of a pattern (re:…) in the names and texts of notices; may be repeated. Paths (*.password) are "
    "accepted, as by holdfast web, but mask nothing: notices contain no data of jobs.",
)
@store_options
@json_option
def notify(
    receivers: Receivers,
    events: Sequence[str],
    every: float,
    web: str,
    redact: Sequence[str],
    place: StorePlace,
    as_json: bool,
) -> None:
    """Send notices of the events of tracked jobs and of failure surges, until INT or TERM.

    Track a job with `holdfast jobs track JID`. A surge is a failure group that grows much faster than before: a notice is sent when it begins, and
    one when it is over. Events that happen while the store is unavailable are not sent. Each process of this command sends all
    notices, so run one for the same receivers.
    """
    chosen = events or [*EVENTS, SURGE]
    if not _SHORTEST_LOOK <= every <= _LONGEST_LOOK:
        raise UsageError(f"--every: expected 1s to 1h, got {duration(every)}")
    shown = _Shown(_checked_base(web), Mask(redact))
    starts = receivers.deliveries(as_json)
    with place.client() as client, _warnings():
        _send(client, chosen, every, shown, [start() for start in starts])


class _Shown(NamedTuple):
    """What notices have: links to the web UI at this URL ("": none), and names and texts with this mask."""

    web: str
    mask: Mask


def _checked_base(web: str) -> str:
    """Return the URL of the web UI without a slash at its end, "" for none. Raises UsageError."""
    if not web:
        return ""
    url = (web if "://" in web else f"http://{web}").rstrip("/")
    is_good = url.isascii() and url.isprintable() and not set(url) & set(' "<>?#@')
    with suppress(ValueError):
        split = urlsplit(url)
        if is_good and split.scheme in ("http", "https") and is_authority(split.netloc):
            return url
    raise UsageError(f"--web: expected a URL such as https://jobs.example.org/holdfast, got {web!r:.80}")


@contextmanager
def _warnings() -> Generator[None]:
    """Log warnings, such as that the subscription was lost."""
    before = logger.level
    logger.setLevel(before or logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(before)


def _send(
    client: Client, events: Sequence[str], every: float, shown: _Shown, deliveries: Sequence[Delivery]
) -> None:
    """Deliver until INT or TERM, or until a delivery is broken, such as by the reader of the output that closes it."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    give = [delivery.give for delivery in deliveries]
    try:
        with ExitStack() as stack:
            _listen(stack, client, [event for event in events if event != SURGE], shown, give)
            if SURGE in events:
                _watch(stack, client, every, shown, give)
            threading.Event().wait()
    except KeyboardInterrupt:
        pass
    finally:
        ends_at = monotonic() + CLOSING
        for delivery in deliveries:
            delivery.end(ends_at)
        for delivery in deliveries:
            delivery.close()
    for delivery in deliveries:
        if delivery.broken is not None:
            raise delivery.broken


def _listen(
    stack: ExitStack,
    client: Client,
    events: Sequence[str],
    shown: _Shown,
    give: Sequence[Callable[[Notice], None]],
) -> None:
    if not events:
        return
    for event in events:
        client.events.on(event, partial(_deliver, client, event, shown, give))
    stack.enter_context(client.events.thread())
    click.echo(f"listening to the tracked jobs of {client.settings.namespace}", err=True)


def _deliver(
    client: Client, event: str, shown: _Shown, give: Sequence[Callable[[Notice], None]], jid: str
) -> None:
    notice = notice_of(client, event, jid, shown.web, shown.mask)
    for each in give:
        each(notice)


def _watch(
    stack: ExitStack, client: Client, every: float, shown: _Shown, give: Sequence[Callable[[Notice], None]]
) -> None:
    poller = SurgePoller(Console(client), every, shown.web, shown.mask, give)
    stack.callback(poller.stop, 1.0)
    poller.start()
    click.echo(f"looking for failure surges of {client.settings.namespace} every {duration(every)}", err=True)
