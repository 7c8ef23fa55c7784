"""What the demo prints: a live bar on a terminal, a few lines elsewhere, and the report."""

import json
import shlex
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from holdfast.text import counted, size

Step = tuple[str, str]
"""A jid and a queue."""


class Lost(NamedTuple):
    """A step that was running when its worker was killed; it began again `after` seconds (None: not yet)."""

    jid: str
    queue: str
    worker: str
    after: float | None


class Diary:
    """Reads the diary of a run as it grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._begun: Counter[Step] = Counter()
        self._running: dict[Step, str] = {}
        self._killed_at = 0.0
        self.lost_jobs: dict[Step, Lost] = {}

    def read(self) -> None:
        """Read the lines that were added; an incomplete line is read the next time."""
        if not self._path.exists():
            return
        with self._path.open("rb") as diary:
            diary.seek(self._offset)
            text = diary.read()
        whole, newline, _ = text.rpartition(b"\n")
        self._offset += len(whole) + len(newline)
        for line in whole.splitlines():
            self._take(json.loads(line))

    def _take(self, line: dict[str, Any]) -> None:
        step = (line["jid"], line["queue"])
        if line["what"] == "end":
            self._running.pop(step, None)
            return
        self._begun[step] += 1
        self._running[step] = line["worker"]
        lost = self.lost_jobs.get(step)
        if lost and lost.after is None and line["at"] > self._killed_at:
            self.lost_jobs[step] = lost._replace(after=line["at"] - self._killed_at)

    def held_by(self, worker: str) -> list[Step]:
        """Return the running steps of a worker's children."""
        return [step for step, name in self._running.items() if name.startswith(worker + "-")]

    def runs_at(self, jid: str) -> str:
        """Return the worker that runs a step of a job, empty if none does."""
        return next((name for step, name in self._running.items() if step[0] == jid), "")

    def lost(self, worker: str, killed_at: float) -> list[Lost]:
        """Note and return the running steps of a worker that was killed at `killed_at`."""
        self.read()
        self._killed_at = killed_at
        self.lost_jobs = {
            step: Lost(*step, self._running[step], None) for step in self.held_by(worker)
        }  # fmt: skip
        return list(self.lost_jobs.values())

    def returned(self) -> list[Lost]:
        """Return the lost steps that began again."""
        return [lost for lost in self.lost_jobs.values() if lost.after is not None]

    def twice(self) -> int:
        """Return how many steps began more than once."""
        return sum(1 for times in self._begun.values() if times > 1)


STATES = ("waiting", "running", "done", "failed")


class Screen:
    """Shows a run of `count` jobs on standard error; nothing if `quiet`."""

    def __init__(self, count: int, *, quiet: bool = False) -> None:
        self._count = count
        self._quiet = quiet
        self._shown: set[str] = set()
        self._tenth = 0
        console = Console(stderr=True)
        self._bar: Progress | None = None
        if console.is_terminal and not quiet:
            self._bar = Progress(
                BarColumn(bar_width=None),
                *(TextColumn(f"{state} {{task.fields[{state}]:>5}}") for state in STATES),
                TimeElapsedColumn(),
                console=console,
            )
            self._task = self._bar.add_task("", total=2 * count, waiting=0, running=0, done=0, failed=0)

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._bar:
            self._bar.stop()

    def line(self, sentence: str) -> None:
        """Print one line above the bar."""
        if self._quiet:
            return
        if self._bar:
            self._bar.console.print(escape(sentence), highlight=False)
        else:
            click.echo(sentence, err=True)

    def show(self, state: Mapping[str, int], returned: Sequence[Lost]) -> None:
        """Show the progress of the run, and lost steps that came back."""
        for lost in returned:
            if lost.jid not in self._shown:
                self._shown.add(lost.jid)
                self.line(f"  {lost.jid} is back in “{lost.queue}” after {lost.after:.1f} s")
        if self._bar:
            fields: dict[str, Any] = {name: state[name] for name in STATES}
            self._bar.update(self._task, completed=state["steps"], **fields)
        elif state["steps"] * 10 // (2 * self._count) > self._tenth:
            self._tenth = state["steps"] * 10 // (2 * self._count)
            self.line(", ".join(f"{name} {state[name]}" for name in STATES))

    def killed(self, name: str, pid: int, lost: Sequence[Lost], seconds: int) -> None:
        """Print that a worker was killed, and the steps that it was running."""
        held = counted(len(lost), "job")
        self.line(f"killed worker “{name}” (pid {pid}) and its children with -9, while it held {held}:")
        for step in lost:
            self.line(f"  {step.jid} in “{step.queue}” ({step.worker}), due back in {seconds} s")


def print_report(result: Mapping[str, Any]) -> None:
    """Print the report and the outcome of the jobs."""
    report = result["report"]
    console = Console() if sys.stdout.isatty() else Console(width=120)
    table = Table(title="The longest lines")
    for column, side in (("longest", "right"), ("lines", "right"), ("bytes", "right"), ("sha256", "left"), ("file", "left")):  # fmt: skip
        table.add_column(
            column, justify="right" if side == "right" else "left", no_wrap=column != "file", overflow="fold"
        )
    for row in report["longest"]:
        path = escape(row["path"])
        table.add_row(*(f"{row[name]:,}" for name in ("longest", "lines", "bytes")), row["sha256"][:12], path)
    console.print(table)
    click.echo(f"files      {report['files']}, {report['lines']:,} lines, {size(report['bytes'])}; "
               f"{report['same']} have the same content as another")  # fmt: skip
    click.echo(f"jobs       put {result['put']}, done {result['done']}, failed {result['failed']}")
    click.echo(f"lost       {counted(result['lost'], 'job')} with the killed worker, {result['returned']} came back; "
               f"{counted(result['twice'], 'step')} ran twice")  # fmt: skip
    click.echo(
        f"speed      {result['rate']:,.0f} files/s in {result['seconds']} s: two jobs a file, each read and noted in the diary of "
        f"the run; a process takes its next job when the disk has the end of the last; and the leases of the killed worker had to end"
    )
    click.echo(
        f"rate       {result['engine_rate']:,.0f} jobs/s that do nothing, with --pool process --workers 2: two at once, each of which "
        f"waits for the disk"
    )
    click.echo(
        f"           {result['thread_rate']:,.0f} jobs/s that do nothing, with --pool thread --workers 2: twenty at once, which share "
        f"calls and writes to the disk"
    )
    click.echo(f"data       {_data_of(result)}")
    for group, count in result["failures"].items():
        click.echo(f"failed     {count} in {group}", err=True)


def _data_of(result: Mapping[str, Any]) -> str:
    """Return what is left of the run, and where."""
    store, namespace = result["data"], result["namespace"]
    if result["kept"]:
        look = f"HOLDFAST_DIR={shlex.quote(store)} holdfast stats --namespace {namespace}"
        return f"kept: {result['run']} and the namespace {namespace} of the store in {store}; look at it with: {look}"
    return f"jobs and files of the run are removed; the embedded store stays in {store}"
