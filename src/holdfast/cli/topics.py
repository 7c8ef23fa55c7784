"""`holdfast topics`: show, put, take and delete delayed messages."""

from collections.abc import Sequence
from typing import Any, Final

import click

from holdfast.cli.connection import Place, store_options
from holdfast.cli.examples import examples
from holdfast.cli.groups import OrderedGroup
from holdfast.cli.options import Part, list_options, print_list, print_rest
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
from holdfast.cli.topic_arguments import AT, DELAY, IDS, TOPIC
from holdfast.cli.topic_push import push
from holdfast.cli.topic_serve import serve
from holdfast.cli.topic_take import done, give_back, pull, ready, release, requeue, reserve
from holdfast.commands.topics import Message, TopicCounts
from holdfast.console.handles import Console
from holdfast.text import brief_ago, counted, moment

_EMPTY: Final = "No topic holds messages. To put one:\n  holdfast topics put TOPIC ID BODY"


@click.group(cls=OrderedGroup)
def topics() -> None:
    """Show, put, take, deliver and delete delayed messages."""


@examples("holdfast topics list", "holdfast topics list --watch")
@topics.command("list")
@list_options()
@watch_option
@store_options
@json_option
def list_topics(part: Part, watch: float | None, place: Place, as_json: bool) -> None:
    """List the topics that hold messages, in order of their first.

    JSON: `topics`, each with `name`, `queued`, `ready`, `reserved`, `first_ready` and `first_deadline` (null for none), and `next`
    (for --after, "" at the end).
    """
    with place.console() as console:

        def show() -> None:
            now = console.now_ms()
            page = part.read(lambda after, limit: console.topics(after=after, limit=min(limit, 128)))
            if as_json:
                print_json({"topics": [_counts(row) for row in page.rows], "next": page.next})
                return
            rows = [
                (row.name, row.queued, row.ready, row.reserved, brief_ago(max(row.first_ready_ms, 0), now))
                for row in page.rows
            ]
            print_list(("topic", "queued", "ready", "reserved", "first ready"), rows, whole=(), empty=_EMPTY)
            print_rest(len(page.rows), page, "topic")

        repeat(watch, show)


def _counts(row: TopicCounts) -> dict[str, Any]:
    return {
        "name": row.name,
        "queued": row.queued,
        "ready": row.ready,
        "reserved": row.reserved,
        "first_ready": row.first_ready_ms / 1000 if row.first_ready_ms >= 0 else None,
        "first_deadline": row.first_deadline_ms / 1000 if row.first_deadline_ms >= 0 else None,
    }


@examples("holdfast topics show reminders", "holdfast topics show reminders --limit 100 --json")
@topics.command()
@TOPIC
@click.option(
    "--limit",
    "-n",
    type=click.IntRange(1, 512),
    default=25,
    show_default=True,
    help="Number of messages of each state.",
)
@watch_option
@store_options
@json_option
def show(topic: str, limit: int, watch: float | None, place: Place, as_json: bool) -> None:
    """Show a topic and its first messages: queued ones by when they are ready, reserved ones by deadline.

    Exit code 1 if it holds no messages. JSON: the counts as in list, and `messages`, each with `id`, `state`, `when` and `body`.
    """
    with place.console() as console:
        repeat(watch, lambda: _show(console, topic, limit, as_json))


def _show(console: Console, topic: str, limit: int, as_json: bool) -> None:
    found, now = console.topic(topic, limit), console.now_ms()
    messages = [*found.queued, *found.reserved]
    if as_json:
        print_json({**_counts(found.counts), "messages": [_message(one) for one in messages]})
        return
    counts = found.counts
    print_facts(
        {
            "topic": topic,
            "queued": f"{counts.queued:,} ({counts.ready:,} ready)",
            "reserved": f"{counts.reserved:,}",
        }
    )
    click.echo()
    rows = [(one.id, one.state, brief_ago(one.when_ms, now), one.body[:1000]) for one in messages]
    print_list(("id", "state", "when", "body"), rows, whole=("state", "when"))
    left = counts.queued + counts.reserved - len(rows)
    if left > 0:
        click.echo(f"and {counted(left, 'more message')}; --limit shows more", err=True)


def _message(one: Message) -> dict[str, Any]:
    return {
        "id": one.id,
        "state": one.state,
        "when": one.when_ms / 1000 if one.when_ms else None,
        "body": one.body,
    }


@examples("holdfast topics get reminders order-17")
@topics.command()
@TOPIC
@click.argument("id")
@store_options
@json_option
def get(topic: str, id: str, place: Place, as_json: bool) -> int:
    """Show one message: its state, when it is ready or its reservation ends, and its body.

    Exit code 1 if the topic has no message of that id. JSON: `id`, `state`, `when` and `body`.
    """
    with place.console() as console:
        found, now = console.message(topic, id), console.now_ms()
    if found is None:
        echo_text(f'holdfast: topic {topic} has no message "{id}"', err=True)
        return 1
    if as_json:
        print_json(_message(found))
        return 0
    when = "ready" if found.state == "queued" else "reserved until"
    print_facts({"id": id, "state": found.state, when: moment(found.when_ms, now), "body": found.body})
    return 0


@examples(
    """holdfast topics put reminders order-17 '{"order": 17}' --delay 2h""",
    "holdfast topics put reminders order-18 hello",
)
@topics.command()
@TOPIC
@click.argument("id")
@click.argument("body")
@DELAY
@AT
@store_options
@json_option
def put(
    topic: str, id: str, body: str, delay: float | None, at: float | None, place: Place, as_json: bool
) -> int:
    """Put a message under an id of your choice; BODY is sent as it is.

    Exit code 1, without a change, if the topic has a message of that id. JSON: `id` and `added`.
    """
    with place.client() as client:
        added = Console(client).put_message(topic, id, body, delay, at=at)
    if as_json:
        print_json({"id": id, "added": added})
    elif added:
        echo_text(f"put {id} into {topic}")
    else:
        echo_text(f'holdfast: topic {topic} has a message "{id}" already', err=True)
    return 0 if added else 1


@examples("holdfast topics delete reminders order-17")
@topics.command()
@TOPIC
@IDS
@yes_option
@store_options
@json_option
def delete(topic: str, ids: Sequence[str], yes: bool, place: Place, as_json: bool) -> int:
    """Delete messages, queued or reserved. It asks before.

    Exit code 1 if one of them does not exist. JSON: for each id whether it existed.
    """
    names = list(dict.fromkeys(ids))
    with place.console() as console:
        confirm(f"Delete {counted(len(names), 'message')} of {topic}?", yes)
        existed = dict(zip(names, console.delete_messages(topic, *names), strict=True))
    if as_json:
        print_json(existed)
    else:
        for id, was_there in existed.items():
            if was_there:
                echo_text(f"deleted {id}")
            else:
                echo_text(f'holdfast: topic {topic} has no message "{id}"', err=True)
    return 0 if all(existed.values()) else 1


for _command in (reserve, pull, done, give_back, release, requeue, ready, push, serve):
    topics.add_command(_command)
