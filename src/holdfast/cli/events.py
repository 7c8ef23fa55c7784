"""`holdfast events`: follow what happens in a namespace."""

import queue
import select
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic, time
from typing import Final, TypeVar

import click

from holdfast.cli.connection import Place, store_options
from holdfast.cli.output import FiniteRange, echo_text, json_option, print_json
from holdfast.client.listener import InThread, Listener, Message
from holdfast.client.sync import Client
from holdfast.console.read.events import (
    WATCHED_FOR,
    Change,
    EventLine,
    Wanted,
    change_of,
    channels_of,
    lines_of,
    watch,
)
from holdfast.errors import HoldfastError, StoreUnsupported, TransportError
from holdfast.text import counted

T = TypeVar("T")

_MOST_WAITING: Final = 10_000
_TICK: Final = 0.2
"""Seconds for which changes are collected: they are looked up in one call, and repeated ones are one line."""
_RENEWED: Final = WATCHED_FOR / 3


@click.command()
@click.option(
    "-q",
    "--queue",
    "queues",
    multiple=True,
    metavar="NAME",
    help="Only events of this queue and its jobs; * stands for any text; may be repeated [default: all].",
)
@click.option("--jid", "jids", multiple=True, help="Only events of this job; may be repeated [default: all].")
@click.option("--tracked", is_flag=True, help="Only events of tracked jobs [default: off].")
@click.option("-f", "--follow", is_flag=True, help="Follow until INT: the default without --count and --for.")
@click.option("-n", "--count", type=click.IntRange(1), help="End after this number of lines.")
@click.option("--for", "seconds", type=FiniteRange(0.01, 1e6), metavar="SECONDS", help="End after this time.")
@store_options
@json_option
def events(
    queues: Sequence[str],
    jids: Sequence[str],
    tracked: bool,
    follow: bool,
    count: int | None,
    seconds: float | None,
    place: Place,
    as_json: bool,
) -> int:
    """Follow the events of a namespace: one line for each job, queue, worker or other thing that changes.

    Without --tracked, the store publishes every change while this command runs. A line shows the job or queue as it is a
    moment later; changes of the same thing within 0.2 s are one line, and new jobs are shown by their queue. Events that happen while the store is unavailable
    are lost. Exit code 1 if --for ends before there were --count lines, 3 if the store does not respond.

    \b
    Examples:
      holdfast events --queue 'mail-*'
      holdfast events --jid 01a209e1e71570009ec7d9f7de302c32 --json
      holdfast events --tracked --count 1 --for 30
    """
    if follow and (count or seconds):
        raise click.UsageError("--follow goes without --count and --for")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with place.client(must_exist=True) as client:
        following = Following(client, tracked, Wanted(queues, jids), as_json)
        try:
            following.run(count, monotonic() + seconds if seconds else None)
        except KeyboardInterrupt:
            return 0
    return 1 if count and following.shown < count else 0


class Following:
    """The events of a client, printed as they come."""

    def __init__(self, client: Client, tracked: bool, wanted: Wanted, as_json: bool) -> None:
        self._client = client
        self._channels = channels_of(client.shard, tracked)
        self._wanted = wanted
        self._print: Callable[[EventLine], None] = _print_line_json if as_json else _print_line
        self._watches = not tracked
        self._watch_again = 0.0
        self._is_out = False
        self._received: queue.Queue[tuple[float, Change]] = queue.Queue(_MOST_WAITING)
        self._missed = 0
        self.shown = 0

    def run(self, count: int | None, end: float | None) -> None:
        """Print until there were `count` lines, or until `end` on the monotonic clock, or until the output is closed."""
        listener = Listener(self._client, list(self._channels))
        background = InThread(listener, partial(listener.for_each, self._take, _ignore))
        background.start()
        try:
            self._renew()
            click.echo(f"following the events of {self._client.settings.namespace}", err=True)
            while not _is_over(end) and not (count and self.shown >= count):
                self._renew()
                self._show(self._collect(end), count)
                if _is_closed():
                    raise BrokenPipeError
        finally:
            background.stop()

    def _take(self, message: Message) -> None:
        """Receive a message, in the thread of the listener; changes that nobody takes in time are counted."""
        change = change_of(self._channels[message["channel"]], message["data"])
        if not self._wanted.has(change):
            return
        try:
            self._received.put_nowait((time(), change))
        except queue.Full:
            self._missed += 1

    def _collect(self, end: float | None) -> list[tuple[float, Change]]:
        """Return what was received in one tick, which begins with the first change; nothing after a second."""
        found: list[tuple[float, Change]] = []
        until = min(monotonic() + 1.0, end or monotonic() + 1.0)
        while (left := until - monotonic()) > 0:
            try:
                found.append(self._received.get(timeout=left))
            except queue.Empty:
                break
            if len(found) == 1:
                until = min(monotonic() + _TICK, end or monotonic() + _TICK)
        return found

    def _show(self, changes: list[tuple[float, Change]], count: int | None) -> None:
        missed, self._missed = self._missed, 0
        if missed:
            click.echo(f"{counted(missed, 'change')} came too fast and are not shown", err=True)
        if not changes:
            return
        lines = self._try(
            lambda: self._client.runner.run(lines_of(self._client.shard, changes, self._wanted))
        )
        for line in lines or ():
            if count and self.shown >= count:
                return
            self._print(line)
            self.shown += 1

    def _renew(self) -> None:
        """Let the store publish changes for another minute."""
        if self._watches and monotonic() >= self._watch_again:
            self._watch_again = monotonic() + _RENEWED
            try:
                done = self._try(lambda: self._client.runner.run(watch(self._client.shard)))
            except StoreUnsupported as error:
                raise HoldfastError(
                    f"{error}; `holdfast events --tracked` needs no right to write"
                ) from error
            if done is None:
                self._watch_again = monotonic() + 1.0

    def _try(self, call: Callable[[], T]) -> T | None:
        """Return the result of a call, None while the store does not respond, which is printed once."""
        try:
            result = call()
        except TransportError as error:
            if not self._is_out:
                echo_text(f"{error}; trying again", err=True)
            self._is_out = True
            return None
        if self._is_out:
            click.echo("the store responds again; what happened meanwhile is not shown", err=True)
        self._is_out = False
        return result


def _print_line(line: EventLine) -> None:
    echo_text(line.text)


def _print_line_json(line: EventLine) -> None:
    print_json(line.as_dict())


def _ignore(message: Message) -> None:
    """Ignore a message that could not be read: nothing of ours raises there."""


def _is_over(end: float | None) -> bool:
    return end is not None and monotonic() >= end


def _is_closed() -> bool:
    """Return whether nobody reads the output any more: a pipe whose reader has ended, or a closed terminal."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return bool(poll.poll(0))
