"""`holdfast worker`: its flags. What they set going is imported when they have been read.

Nothing above the flags imports what talks to a store: the pool of greenlets must change the standard library first.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from holdfast.cli.place import PLACE_HELP, namespace_option
from holdfast.cli.worker_log import open_log, set_level
from holdfast.errors import UsageError
from holdfast.work.greenlets import patch
from holdfast.work.settings import LOG_FORMATS, POOLS, RESERVERS, SEATS, WorkerSettings
from holdfast.work.startup import StartupCode

_SEATS_HELP: Final = ", ".join(f"{seats} for {pool}" for pool, seats in SEATS.items())
_DEFAULTS: Final = WorkerSettings(("q",))
_UNITS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def _bytes(context: click.Context, parameter: click.Parameter, text: str) -> int:
    """A number of bytes from a text with an optional unit, each 1024 times the one before."""
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,6})?)\s*([kmgt]?)(?:i?b)?", text.strip(), re.IGNORECASE)
    if found is None:
        raise click.BadParameter(f"{text!r} is no size, such as 512M or 1G", context, parameter)
    return int(float(found[1]) * 1024 ** _UNITS[found[2].lower()])


@click.command()
@click.option(
    "-q",
    "--queue",
    "queues",
    multiple=True,
    help="A queue to work for, or a pattern (mail-*, !mail-bulk, @key); repeat it [default: QUEUES or QUEUE].",
)
@click.option(
    "--reserver",
    type=click.Choice(RESERVERS),
    help=f"Which queue goes first [default: JOB_RESERVER, or {_DEFAULTS.reserver}].",
)
@click.option(
    "--pool",
    type=click.Choice(POOLS),
    help="How jobs are performed: process: children, one job at a time each; fork: a child for each job; asyncio, "
    "thread, gevent: children with many jobs at once; serial: one at a time in this process "
    f"[default: {_DEFAULTS.pool}, or serial if RUN_AS_SINGLE_PROCESS is set].",
)
@click.option("-w", "--workers", default=0, show_default=True, help="Child processes; 0: one a core.")
@click.option("--concurrency", default=0, help=f"Jobs at once in each process [default: {_SEATS_HELP}].")
@click.option(
    "-g",
    "--greenlets",
    default=0,
    metavar="N",
    help="Short for --pool gevent --concurrency N; 0: not [default: 0].",
)
@click.option(
    "-i",
    "--interval",
    type=float,
    help="The longest time in seconds that an idle worker goes without looking; the store wakes it sooner "
    f"[default: INTERVAL, or {_DEFAULTS.interval}].",
)
@click.option("-n", "--name", default="", help="Worker name; children add their number [default: host-pid].")
@click.option(
    "-r", "--resume", is_flag=True, help="Go on with what a worker of this --name held [default: off]."
)
@click.option("--drain", is_flag=True, help="End when the queues are empty [default: off].")
@click.option(
    "-p", "--path", "paths", multiple=True, help="Directory to import jobs from; repeat it [default: none]."
)
@click.option(
    "-m", "--import", "imports", multiple=True, help="Module to import first; repeat it [default: none]."
)
@click.option("--allow", multiple=True, help="Prefix of klass names that may run; repeat it [default: none].")
@click.option(
    "-d",
    "--workdir",
    default="",
    help="Directory to enter after imports; each child works in a sandbox below it [default: stay here].",
)
@click.option(
    "--sandbox",
    is_flag=True,
    help="Each child works in its sandbox, below --workdir or the directory for temporary files [default: class jobs "
    "of the pools process and fork do].",
)
@click.option(
    "--setup",
    envvar="HOLDFAST_SETUP",
    default="",
    help="module:callable to call before anything else; it may set the variables [default: HOLDFAST_SETUP, or none].",
)
@click.option(
    "--middleware",
    multiple=True,
    help="module:object to go around each job; repeat it, the first is outermost [default: none].",
)
@click.option(
    "--auto-complete", is_flag=True, help="Complete class jobs whose method returns [default: off]."
)
@click.option("--url", "--host", "url", help=f"A URL or a bare host. {PLACE_HELP}")
@click.option("--port", type=click.IntRange(1, 65535), help="The port of a bare --host [default: 6379].")
@namespace_option
@click.option(
    "--max-jobs", default=0, show_default=True, help="Replace a child after so many jobs; 0: never."
)
@click.option(
    "--max-memory",
    callback=_bytes,
    metavar="SIZE",
    default="0",
    show_default=True,
    help="Replace a child that has grown beyond it, such as 512M or 1G; 0: never.",
)
@click.option(
    "--shutdown-timeout",
    type=float,
    envvar="HOLDFAST_SHUTDOWN_TIMEOUT",
    help="Seconds that jobs have to finish at TERM or INT, before they are broken off "
    f"[default: HOLDFAST_SHUTDOWN_TIMEOUT, or {_DEFAULTS.shutdown_timeout}].",
)
@click.option(
    "--term-timeout",
    type=float,
    default=_DEFAULTS.term_timeout,
    show_default=True,
    help="Seconds that jobs have to unwind once they are broken off, before their processes are killed.",
)
@click.option(
    "--stuck-timeout",
    type=float,
    envvar="HOLDFAST_STUCK_TIMEOUT",
    help="Seconds after which a process that a job keeps from doing anything else is killed; 0: never "
    f"[default: HOLDFAST_STUCK_TIMEOUT, or {_DEFAULTS.stuck_timeout:g}].",
)
@click.option(
    "--max-startup-interval",
    type=float,
    default=_DEFAULTS.max_startup_interval,
    show_default=True,
    help="Each child waits a random time up to so many seconds before its first job; replacements do not.",
)
@click.option(
    "--health-port", default=0, show_default=True, help="Answer GET /live and /ready here; 0: nowhere."
)
@click.option("--metrics-port", default=0, show_default=True, help="Tell Prometheus here; 0: nowhere.")
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Say everything [default: starts, ends and warnings; of each job too with VERBOSE; all with VVERBOSE].",
)
@click.option("-l", "--logger", "log_file", default="", help="Also log to this file [default: none].")
@click.option(
    "--log-format",
    type=click.Choice(LOG_FORMATS),
    default=_DEFAULTS.log_format,
    show_default=True,
    help="Lines to read, or one JSON object a line.",
)
@click.option(
    "--debugger", is_flag=True, help="Open a console in a child at USR2 [default: if it has a terminal]."
)
@click.option(
    "--reload",
    "reloads",
    is_flag=True,
    help="Start anew when code below --path or the working directory changes; for development [default: off].",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print a JSON line when it begins, and one when it has ended."
)
def worker(reloads: bool, **told: Any) -> int:
    """Perform jobs of the named queues until told to stop.

    Send signals to this command, not to its children. TERM and INT stop it: jobs have --shutdown-timeout seconds to
    finish, the rest is requeued. QUIT stops it after the jobs under way, however long they take. USR1 kills and replaces
    the children, USR2 pauses, CONT goes on, HUP replaces the children one after the other. With --pool serial, USR1 and HUP
    log where it is.

    Only marked functions (@client.job), modules named by --import, modules below --path or the working
    directory, and names under --allow are run.
    """
    if told["greenlets"]:
        told |= _greenlets(told)
    open_log(told["log_file"], told["log_format"])
    set_level(told["verbose"])
    if reloads:
        from holdfast.cli.worker_reload import reloading

        code = reloading(
            StartupCode(
                str(Path.cwd()),
                tuple(map(os.path.abspath, told["paths"])),
                told["setup"],
                told["middleware"],
                told["imports"],
                told["pool"] or "",
            )
        )
        if code is not None:
            return code
    if told["pool"] == "gevent":
        patch()
    from holdfast.cli.worker_start import start
    from holdfast.work.signals import before_and_after_work

    with before_and_after_work():
        return start(told)


def _greenlets(told: Mapping[str, Any]) -> dict[str, Any]:
    """What -g is short for. Raises UsageError."""
    for flag, says in (("pool", "gevent"), ("concurrency", told["greenlets"])):
        if told[flag] not in (None, 0, says):
            raise UsageError(
                f"--greenlets {told['greenlets']} and --{flag} {told[flag]} contradict each other"
            )
    return {"pool": "gevent", "concurrency": told["greenlets"]}
