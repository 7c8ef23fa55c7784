"""`holdfast jobs export` and `import`: jobs as lines of JSON."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import IO, Final

import click

from holdfast.cli.connection import Place, store_options
from holdfast.cli.examples import examples
from holdfast.cli.output import Advance, echo_text, json_option, print_json, progress
from holdfast.console.handles import Console
from holdfast.console.transfer import Import, JobLine, job_line
from holdfast.errors import HoldfastError, StoreFull, UsageError
from holdfast.printable import printable_json
from holdfast.text import counted

_PAGE: Final = 256
_SHOWN: Final = 20
"""How many refusals are printed."""


@examples(
    "holdfast jobs export state:failed queue:mail > failed.jsonl",
    "holdfast jobs export tag:vip | ssh other holdfast jobs import - --keep-jids",
)
@click.command("export")
@click.argument("words", metavar="[FILTER]", nargs=-1)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="At most N jobs [default: all].")
@store_options
def export_jobs(words: Sequence[str], limit: int | None, place: Place) -> int:
    """Print the jobs that FILTER matches, one line of JSON each, with everything that is needed to put them again.

    `jid`, `queue`, `klass`, `data`, `priority`, `retries`, `max_losses`, `tags`, `throttles`, `depends`, `due`, `expires`,
    `timeout`, `result_keep`, `backoff`; and for people `state`, `created`, `attempts` and `failure`. What has its default is left
    out. Times are seconds, moments since the epoch. Recurring jobs are not exported. Exit code 1 if a job cannot be, because
    its data is not JSON.
    """
    with place.console() as console:
        done, unreadable = _export(console, " ".join(words), limit or sys.maxsize)
    for jid in unreadable:
        echo_text(f"holdfast: {jid}: the data is not JSON, so it cannot be exported", err=True)
    echo_text(f"{counted(done, 'job')} exported", err=True)
    return 1 if unreadable else 0


def _export(console: Console, text: str, limit: int) -> tuple[int, list[str]]:
    cursor, done, unreadable, is_shown = "", 0, list[str](), sys.stdout.isatty()
    with progress("exporting", 0, is_alone=False) as step:
        while True:
            page = console.export(text, after=cursor, limit=min(_PAGE, limit - done))
            for line in page.lines:
                json = line.encode().decode()
                click.echo(printable_json(json) if is_shown else json)  # a file keeps the data byte for byte
            step(page.looked, page.candidates)
            done, cursor = done + len(page.lines), page.cursor
            unreadable += page.unreadable
            if not cursor or done >= limit:
                return done, unreadable


@examples("holdfast jobs import failed.jsonl", "zcat jobs.jsonl.gz | holdfast jobs import - --keep-jids")
@click.command("import")
@click.argument("file", type=click.File("rb"), metavar="FILE|-")
@click.option(
    "--keep-jids",
    is_flag=True,
    help="Put each under its own jid; one that exists with other content is refused.",
)
@store_options
@json_option
def import_jobs(file: IO[bytes], keep_jids: bool, place: Place, as_json: bool) -> int:
    """Put the jobs of an export, or any lines of JSON with `queue` and `klass`.

    Jobs get new jids, and dependencies among them are kept; with --keep-jids an import that was interrupted can be repeated. Each
    job waits, whatever its state was, until `due` if that is in the future. With --json: `put` and `refused` (the first 1,000, with
    `line` and `reason`) and `refused_count`. Exit code 1 if a line was refused.
    """
    with place.console(must_exist=False) as console:
        work = _Work(console, Import(keep_jids))
        try:
            work.run(file)
        except KeyboardInterrupt:
            echo_text(f"interrupted: {counted(work.put, 'job')} put", err=True)
            return 130
    if as_json:
        print_json({"put": work.put, "refused_count": work.refused, "refused": work.reasons})
    else:
        click.echo(f"{counted(work.put, 'job')} put, {work.refused:,} refused")
    return 1 if work.refused else 0


_MOST_REASONS: Final = 1000


class _Work:
    """An import under way."""

    def __init__(self, console: Console, lines: Import) -> None:
        self._console, self._lines = console, lines
        self._numbers: dict[str, int] = {}
        self.put = self.refused = 0
        self.reasons: list[dict[str, object]] = []

    def run(self, file: IO[bytes]) -> None:
        """Put all lines, those that depend on others last."""
        size = os.fstat(file.fileno()).st_size if file.seekable() else 0
        with progress("importing", size) as step:
            for batch in _batches(self._ready(file, step)):
                self._put(batch)
        try:
            for level in self._lines.later():
                for batch in _batches(level):
                    self._put(batch)
        except UsageError as error:
            self._refuse(0, error)

    def _ready(self, file: IO[bytes], step: Advance) -> Iterator[JobLine]:
        for number, text in zip(count(1), file, strict=False):
            step(len(text))
            if not text.strip():
                continue
            try:
                line = self._lines.take(job_line(text))
            except UsageError as error:
                self._refuse(number, error)
                continue
            if line is not None:
                self._numbers[line.jid] = number
                yield line

    def _put(self, batch: Sequence[JobLine]) -> None:
        for line, result in zip(batch, self._console.put_lines(batch), strict=True):
            number = self._numbers.pop(line.jid, 0)
            if isinstance(result, StoreFull):
                raise result
            if isinstance(result, HoldfastError):
                self._refuse(number, result, line.jid)
            else:
                self.put += 1

    def _refuse(self, number: int, error: HoldfastError, jid: str = "") -> None:
        self.refused += 1
        if len(self.reasons) < _MOST_REASONS:
            self.reasons.append({"line": number or None, "jid": jid or None, "reason": str(error)})
        if self.refused <= _SHOWN:
            where = f"line {number}" if number else jid or "the file"
            echo_text(f"holdfast: {where}: {error}", err=True)
        elif self.refused == _SHOWN + 1:
            echo_text("holdfast: … more lines are refused; --json prints the first 1,000", err=True)


def _batches(lines: Iterable[JobLine]) -> Iterator[list[JobLine]]:
    batch: list[JobLine] = []
    for line in lines:
        batch.append(line)
        if len(batch) == _PAGE:
            yield batch
            batch = []
    if batch:
        yield batch
