"""`holdfast topics`: show, put, take and delete delayed messages."""

import importlib
import logging
import signal
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click
import msgspec
import platformdirs

from holdfast.cli.completion import names_of
from holdfast.cli.connection import StorePlace, store_options
from holdfast.cli.examples import examples
from holdfast.cli.groups import OrderedGroup
from holdfast.cli.options import (
    HOST,
    HOSTS,
    PREFIX,
    PROXY,
    PROXY_SECRET,
    USERS,
    OptionPart,
    length,
    list_options,
    print_list,
    print_rest,
)
from holdfast.cli.output import (
    FiniteRange,
    confirm,
    echo_text,
    json_option,
    print_facts,
    print_json,
    repeat,
    watch_option,
    yes_option,
)
from holdfast.cli.program import ProgramCommand
from holdfast.cli.worker_log import open_log, set_level
from holdfast.client.signature import read_secret
from holdfast.commands.topics import MAX_MOVED, Message, TopicCounts
from holdfast.console.handles import Console
from holdfast.errors import UsageError, missing_extra
from holdfast.text import brief_ago, counted, moment

# Arguments and options that the commands of `holdfast topics` share.

TOPIC: Final = click.argument("topic", shell_complete=names_of("topics"))
IDS: Final = click.argument("ids", metavar="ID…", nargs=-1, required=True)
MANY: Final = click.option(
    "--limit", "-n", type=click.IntRange(1, 512), default=1, show_default=True, help="Number of messages."
)
DELAY: Final = click.option(
    "--delay", type=length, metavar="LENGTH", help="Time after which it is ready, such as 2h [default: now]."
)
DELAY_BACK: Final = click.option(
    "--delay", type=length, metavar="LENGTH", help="Queue it again, ready after this time, such as 10m."
)
AT: Final = click.option(
    "--at",
    type=FiniteRange(0),
    metavar="SECONDS",
    help="Time at which it is ready, in seconds since the epoch.",
)


# `holdfast topics push`: deliver the messages of topics to web hooks until a signal.


class _Table(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """A table `[[push]]` of the file; the flags are the defaults for what it leaves out."""

    topic: str
    webhook: str
    ttr: float | None = None
    timeout: float | None = None
    concurrency: int | None = None
    secret_file: str | None = None


class _File(msgspec.Struct, frozen=True):
    push: tuple[_Table, ...] = ()


@examples(
    "holdfast topics push --topic reminders --webhook https://shop.example.org/reminders",
    "holdfast topics push --topic reminders --webhook http://localhost:9191/receive --concurrency 20 --secret-file hook.secret",
    "holdfast topics push --config push.toml",
)
@click.command(cls=ProgramCommand, path=("topics", "push"), secret=("url", "webhook"))
@click.option(
    "--topic", "topics", multiple=True, help="Topic to deliver; may be repeated, each with its --webhook."
)
@click.option(
    "--webhook", "urls", multiple=True, metavar="URL", help="URL to post the messages of the topic to."
)
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    help="TOML file with settings, and with topics and web hooks in tables [[push]] instead of --topic.",
)
@click.option(
    "--ttr",
    type=length,
    default="60s",
    show_default=True,
    metavar="LENGTH",
    help="Time until a message that was not accepted is delivered again.",
)
@click.option(
    "--timeout",
    type=length,
    default="10s",
    show_default=True,
    metavar="LENGTH",
    help="Time limit of one delivery, from connecting to the status of the response.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="Number of simultaneous deliveries of a topic.",
)
@click.option(
    "--secret-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File with the secret that signs deliveries, 16 bytes or more [default: no signature].",
)
@store_options
@json_option
def push(
    topics: Sequence[str],
    urls: Sequence[str],
    config: Path | None,
    place: StorePlace,
    as_json: bool,
    **flags: Any,
) -> None:
    """Post the messages of topics to web hooks when they are ready, until INT or TERM.

    A message is sent as JSON with `topic`, `id` and `contents`. A status of 200 to 299 deletes it; after any other, or without a
    response, it is delivered again when its ttr is over. At a signal, deliveries in progress are finished, and no more are
    started; a second signal interrupts them. JSON: `delivered`, `failed` and `late`, at the end.
    """
    import asyncio  # other commands of topics do without

    try:
        importlib.import_module("aiohttp")  # a missing package is reported before anything else
    except ImportError as error:
        raise UsageError(missing_extra("topics push", "push", error)) from None
    tables = _tables(topics, urls, config)
    base = config.parent if config is not None else Path()
    webhooks = [_webhook(table, flags, base) for table in tables]
    open_log("", "text")
    set_level(verbose=False)
    with place.client():
        pass  # the store responds
    counts = asyncio.run(_push(place, webhooks))
    if as_json:
        print_json(msgspec.to_builtins(counts))
        return
    click.echo(
        f"delivered {counted(counts.delivered, 'message')}, {counts.failed:,} failed, {counts.late:,} late"
    )


def _tables(topics: Sequence[str], urls: Sequence[str], config: Path | None) -> Sequence[_Table]:
    tables = () if config is None else _read(config)
    if tables:
        if topics or urls:
            raise UsageError(f"{config} names topics in [[push]]: give either them, or --topic and --webhook")
        return tables
    if not topics and not urls:
        where = "" if config is None else f", and {config} names none in [[push]]"
        raise UsageError(
            f"no topic to push: give --topic and --webhook, or --config FILE with [[push]]{where}"
        )
    if len(topics) != len(urls):
        raise UsageError(
            f"each --topic requires its --webhook, in the same order: got {len(topics)} and {len(urls)}"
        )
    return [_Table(topic, url) for topic, url in zip(topics, urls, strict=True)]


def _read(config: Path) -> Sequence[_Table]:
    try:
        found = msgspec.convert(tomllib.loads(config.read_text(encoding="utf-8")), _File).push
    except OSError as error:
        raise UsageError(f"--config {config}: {error.strerror}") from None
    except (msgspec.ValidationError, ValueError) as error:  # not TOML, not UTF-8
        raise UsageError(f"--config {config}: {error}") from None
    return found


def _webhook(table: _Table, flags: dict[str, Any], base: Path) -> Any:
    from holdfast.push import Webhook

    given = {name: getattr(table, name) for name in ("ttr", "timeout", "concurrency")}
    chosen = {name: flags[name] if value is None else value for name, value in given.items()}
    file = flags["secret_file"] if table.secret_file is None else base / table.secret_file
    secret = b"" if file is None else _secret(file)
    return Webhook(topic=table.topic, url=table.webhook, secret=secret, **chosen)


def _secret(file: Path) -> bytes:
    try:
        return read_secret(file)
    except OSError as error:
        raise UsageError(f"secret file {file}: {error.strerror}") from None


async def _push(place: StorePlace, webhooks: Sequence[Any]) -> Any:
    import asyncio

    from holdfast.push import Push

    loop = asyncio.get_running_loop()
    async with place.async_client() as client:
        pushing = Push(client, webhooks)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, pushing.stop)
        for webhook in webhooks:
            echo_text(f"pushing topic {webhook.topic} to {webhook.origin}", err=True)
            if webhook.timeout >= webhook.ttr:
                sentence = "topic %s: the timeout of %g s is not below the ttr of %g s: messages may be delivered twice"
                logging.getLogger("holdfast").warning(sentence, webhook.topic, webhook.timeout, webhook.ttr)
        await pushing.run()
    return pushing.counts


# `holdfast topics serve`: the topic endpoints for programs of any language.


@examples(
    "holdfast topics serve --auth none",
    "holdfast topics serve --bind 0.0.0.0 --auth bearer --users users.txt",
)
@click.command(cls=ProgramCommand, path=("topics", "serve"), secret=("url",))
@click.option(
    "--auth",
    type=click.Choice(("none", "basic", "bearer", "proxy")),
    required=True,
    help="How programs authenticate. none: every program on this machine; basic: names and passwords of --users; bearer: "
    "tokens of --users; proxy: a reverse proxy, see --proxy.",
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
def serve(ctx: click.Context, /, place: StorePlace, port: int, **options: Any) -> None:
    """Serve the topic endpoints until INT or TERM: POST /schedule/TOPIC, /cancel, /reserve, /pull, /release, /requeue, GET /ready.

    The same as holdfast web -F --only topics. Requires the extra `web`.
    """
    from holdfast.cli.web import web

    folder = platformdirs.user_state_path("holdfast", appauthor=False) / f"topics-{port}"
    store = {"url": place.url, "namespace": place.namespace, "wait": place.wait}
    ctx.invoke(web, foreground=True, parts=("topics",), port=port, app_dir=folder, **store, **options)


# `holdfast topics` for consumers: reserve and pull messages, end reservations, queue messages again, count
# ready ones.

DEADLINE: Final = click.option(
    "--deadline",
    type=FiniteRange(0),
    metavar="SECONDS",
    help="End the reservation only if it has this deadline, in seconds since the epoch [default: any].",
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
    help="Duration of the reservations.",
)
@store_options
@json_option
def reserve(topic: str, limit: int, ttr: float, place: StorePlace, as_json: bool) -> int:
    """Reserve the earliest ready messages: no other program gets them until the deadline.

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
def pull(topic: str, limit: int, place: StorePlace, as_json: bool) -> int:
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
def done(topic: str, ids: Sequence[str], deadline: float | None, place: StorePlace, as_json: bool) -> int:
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
    place: StorePlace,
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
    place: StorePlace,
    as_json: bool,
) -> int:
    """End reservations: as done, or with --delay or --at as give-back.

    Exit code 1 if one of them is not reserved. JSON: for each id whether it was.
    """
    return _release(place, topic, ids, as_json, delay=delay, at=at, deadline=deadline)


def _release(
    place: StorePlace,
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
def requeue(topic: str, limit: int, place: StorePlace, as_json: bool) -> None:
    """Queue messages whose reservation has ended again, ready at once. Subscribers do this automatically.

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
def ready(topic: str, place: StorePlace, as_json: bool) -> None:
    """Print how many messages are ready now.

    JSON: `topic`, `ready`, `queued` (ready and not yet ready) and `reserved`.
    """
    with place.console() as console:
        found = console.topic_counts(topic)
    if as_json:
        print_json({"topic": topic, "ready": found.ready, "queued": found.queued, "reserved": found.reserved})
    else:
        click.echo(found.ready)


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
def list_topics(part: OptionPart, watch: float | None, place: StorePlace, as_json: bool) -> None:
    """List the topics that hold messages, by their first message.

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
def show(topic: str, limit: int, watch: float | None, place: StorePlace, as_json: bool) -> None:
    """Show a topic and its first messages: queued ones by ready time, reserved ones by deadline.

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
def get(topic: str, id: str, place: StorePlace, as_json: bool) -> int:
    """Show one message: its state, the time when it is ready or its reservation ends, and its body.

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
    topic: str, id: str, body: str, delay: float | None, at: float | None, place: StorePlace, as_json: bool
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
def delete(topic: str, ids: Sequence[str], yes: bool, place: StorePlace, as_json: bool) -> int:
    """Delete messages, queued or reserved. Asks for confirmation.

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
