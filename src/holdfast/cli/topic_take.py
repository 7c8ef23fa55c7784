"""`holdfast topics` for consumers: reserve and pull messages, end reservations, queue messages again, count ready ones."""

from collections.abc import Sequence
from typing import Final

import click

from holdfast.cli.connection import Place, store_options
from holdfast.cli.examples import examples
from holdfast.cli.options import length
from holdfast.cli.output import FiniteRange, echo_text, json_option, print_json
from holdfast.cli.topic_arguments import AT, DELAY_BACK, IDS, MANY, TOPIC
from holdfast.commands.topics import MAX_MOVED, Message
from holdfast.text import counted

DEADLINE: Final = click.option(
    "--deadline",
    type=FiniteRange(0),
    metavar="SECONDS",
    help="End only a reservation with this deadline, in seconds since the epoch [default: any].",
)


@examples("holdfast topics reserve reminders", "holdfast topics reserve reminders --limit 10 --ttr 5m --json")
@click.command()
@TOPIC
@MANY
@click.option(
    "--ttr",
    type=length,
    default="60s",
    show_default=True,
    metavar="LENGTH",
    help="Time until the reservations end.",
)
@store_options
@json_option
def reserve(topic: str, limit: int, ttr: float, place: Place, as_json: bool) -> int:
    """Reserve the earliest ready messages: nobody else gets them until the deadline.

    End a reservation with done or give-back; a message whose deadline has passed is queued again by requeue, or by any
    subscriber. Text: id, tab, deadline, tab, body. Exit code 1 if none is ready. JSON: a list of `id`, `deadline` and `body`.
    """
    with place.console() as console:
        found = console.reserve_messages(topic, limit, ttr=ttr)
    return _print_taken(topic, found, as_json)


@examples("holdfast topics pull reminders", "holdfast topics pull reminders --limit 10 --json")
@click.command()
@TOPIC
@MANY
@store_options
@json_option
def pull(topic: str, limit: int, place: Place, as_json: bool) -> int:
    """Take the earliest ready messages: they are printed and deleted.

    Text: id, tab, body. Exit code 1 if none is ready. JSON: a list of `id` and `body`.
    """
    with place.console() as console:
        found = console.pull_messages(topic, limit)
    return _print_taken(topic, found, as_json)


def _print_taken(topic: str, found: Sequence[Message], as_json: bool) -> int:
    rows = [
        {"id": one.id, **({"deadline": one.deadline} if one.deadline else {}), "body": one.body}
        for one in found
    ]
    if as_json:
        print_json(rows)
    else:
        for row in rows:
            echo_text("\t".join(map(str, row.values())))
        if not rows:
            echo_text(f"holdfast: no message of {topic} is ready", err=True)
    return 0 if rows else 1


@examples("holdfast topics done reminders order-17")
@click.command()
@TOPIC
@IDS
@DEADLINE
@store_options
@json_option
def done(topic: str, ids: Sequence[str], deadline: float | None, place: Place, as_json: bool) -> int:
    """Delete reserved messages that were handled.

    Exit code 1 if one of them is not reserved. JSON: for each id whether it was.
    """
    return _release(place, topic, ids, as_json, deadline=deadline)


@examples(
    "holdfast topics give-back reminders order-17",
    "holdfast topics give-back reminders order-17 --delay 10m",
)
@click.command("give-back")
@TOPIC
@IDS
@DELAY_BACK
@AT
@DEADLINE
@store_options
@json_option
def give_back(
    topic: str,
    ids: Sequence[str],
    delay: float | None,
    at: float | None,
    deadline: float | None,
    place: Place,
    as_json: bool,
) -> int:
    """Queue reserved messages again, ready now or later.

    Exit code 1 if one of them is not reserved. JSON: for each id whether it was.
    """
    if delay is None and at is None:
        delay = 0.0
    return _release(place, topic, ids, as_json, delay=delay, at=at, deadline=deadline)


@examples(
    "holdfast topics release reminders order-17", "holdfast topics release reminders order-17 --delay 10m"
)
@click.command()
@TOPIC
@IDS
@DELAY_BACK
@AT
@DEADLINE
@store_options
@json_option
def release(
    topic: str,
    ids: Sequence[str],
    delay: float | None,
    at: float | None,
    deadline: float | None,
    place: Place,
    as_json: bool,
) -> int:
    """End reservations: as done, or with --delay or --at as give-back.

    Exit code 1 if one of them is not reserved. JSON: for each id whether it was.
    """
    return _release(place, topic, ids, as_json, delay=delay, at=at, deadline=deadline)


def _release(
    place: Place,
    topic: str,
    ids: Sequence[str],
    as_json: bool,
    delay: float | None = None,
    at: float | None = None,
    deadline: float | None = None,
) -> int:
    names = list(dict.fromkeys(ids))
    with place.console() as console:
        released = console.release_messages(topic, *names, delay=delay, at=at, deadline=deadline)
    is_done, found = delay is None and at is None, dict(zip(names, released, strict=True))
    if as_json:
        print_json(found)
    else:
        for id, was_reserved in found.items():
            if was_reserved:
                echo_text(f"deleted {id}" if is_done else f"queued {id} again")
            else:
                how = "not reserved" if deadline is None else "not reserved until then"
                echo_text(f'holdfast: message "{id}" of topic {topic} is {how}', err=True)
    return 0 if all(released) else 1


@examples("holdfast topics requeue reminders", "holdfast topics requeue reminders --limit 100 --json")
@click.command()
@TOPIC
@click.option(
    "--limit",
    "-n",
    type=click.IntRange(1, 1_000_000),
    default=MAX_MOVED,
    show_default=True,
    help="Number of messages.",
)
@store_options
@json_option
def requeue(topic: str, limit: int, place: Place, as_json: bool) -> None:
    """Queue messages again whose reservation has ended; they are ready at once. Subscribers do this by themselves.

    JSON: `requeued`, the number of messages.
    """
    with place.console() as console:
        count = console.requeue_messages(topic, limit)
    if as_json:
        print_json({"requeued": count})
    else:
        echo_text(f"queued {counted(count, 'message')} of {topic} again")


@examples("holdfast topics ready reminders")
@click.command()
@TOPIC
@store_options
@json_option
def ready(topic: str, place: Place, as_json: bool) -> None:
    """Print how many messages are ready now.

    JSON: `topic`, `ready`, `queued` (ready and not yet ready) and `reserved`.
    """
    with place.console() as console:
        found = console.topic_counts(topic)
    if as_json:
        print_json({"topic": topic, "ready": found.ready, "queued": found.queued, "reserved": found.reserved})
    else:
        click.echo(found.ready)
