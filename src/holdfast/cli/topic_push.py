"""`holdfast topics push`: deliver the messages of topics to web hooks until a signal."""

import importlib
import logging
import signal
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from holdfast.cli.connection import Place, store_options
from holdfast.cli.examples import examples
from holdfast.cli.options import length
from holdfast.cli.output import echo_text, json_option, print_json
from holdfast.cli.program import Program
from holdfast.cli.worker_log import open_log, set_level
from holdfast.client.signature import read_secret
from holdfast.errors import UsageError, missing_extra
from holdfast.text import counted


class _Table(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """A table `[[push]]` of the file; what it leaves out is as the flags say."""

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
@click.command(cls=Program, path=("topics", "push"), secret=("url", "webhook"))
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
    help="Time until a message that was not accepted comes back.",
)
@click.option(
    "--timeout",
    type=length,
    default="10s",
    show_default=True,
    metavar="LENGTH",
    help="Time for one delivery, from connecting to the status of the response.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="Number of deliveries of a topic at once.",
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
    place: Place,
    as_json: bool,
    **flags: Any,
) -> None:
    """Post the messages of topics to web hooks as they become ready, until INT or TERM.

    A message is sent as JSON with `topic`, `id` and `contents`. A status of 200 to 299 deletes it; after any other, or without a
    response, it comes back when its ttr is over. At a signal no more are taken, and deliveries under way are waited for; a
    second signal breaks them off. JSON: `delivered`, `failed` and `late`, at the end.
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
        f"delivered {counted(counts.delivered, 'message')}, {counts.failed} failed, {counts.late} late"
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
            f"each --topic needs its --webhook, in the same order: got {len(topics)} and {len(urls)}"
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


async def _push(place: Place, webhooks: Sequence[Any]) -> Any:
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
                sentence = "topic %s: the timeout of %g s is not below the ttr of %g s: messages may be sent again meanwhile"
                logging.getLogger("holdfast").warning(sentence, webhook.topic, webhook.timeout, webhook.ttr)
        await pushing.run()
    return pushing.counts
