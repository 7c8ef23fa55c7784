"""`holdfast worker`: its flags. The code that runs a worker is imported when they have been read.

No import at module level may import the driver or asyncio: --pool gevent must patch the standard library before.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

import click

from holdfast.cli.place import inherited, own_namespace_option, url_origin
from holdfast.cli.program import ProgramCommand, split_each
from holdfast.cli.worker_log import open_log, set_level
from holdfast.errors import UsageError
from holdfast.worker.greenlets import patch
from holdfast.worker.settings import LOG_FORMATS, POOLS, RESERVERS, SLOTS, WorkerSettings
from holdfast.worker.startup import StartupCode

_SLOTS_HELP: Final = ", ".join(f"{slots} for {pool}" for pool, slots in SLOTS.items())
_DEFAULTS: Final = WorkerSettings(("q",))
_UNITS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def _bytes(text: str) -> int:
    """Return the number of bytes in a text such as "512M"; each unit is 1024 times the one before."""
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,6})?)\s*([kmgt]?)(?:i?b)?", text.strip(), re.IGNORECASE)
    if found is None:
        raise click.BadParameter(f"expected a size such as 512M or 1G, got {text!r}")
    return int(float(found[1]) * 1024 ** _UNITS[found[2].lower()])


class Reserver(click.Choice[str]):
    """The name of a reserver, also as older systems write it: `RoundRobin`, `ShuffledRoundRobin`."""

    def normalize_choice(self, choice: object, ctx: click.Context | None) -> str:
        return re.sub("[-_ ]", "", str(choice)).lower()


@click.command(
    cls=ProgramCommand,
    path=("worker",),
    constants={"RUN_AS_SINGLE_PROCESS": ("pool", "serial")},
    secret=("url",),
)
@click.option(
    "-q",
    "--queue",
    "queues",
    multiple=True,
    callback=split_each,
    envvar=["QUEUES", "QUEUE"],
    help="Queue to take jobs from, or a pattern (mail-*, !mail-bulk, @key); may be repeated, or a list with commas (a comma in a "
    "name: \\,) [default: QUEUES or QUEUE].",
)
@click.option(
    "--reserver",
    type=Reserver(RESERVERS),
    envvar="JOB_RESERVER",
    help=f"Order in which queues are tried [default: JOB_RESERVER, or {_DEFAULTS.reserver}].",
)
@click.option(
    "--pool",
    type=click.Choice(POOLS),
    help="How jobs run. process: child processes with one job at a time; fork: a new process for each job; asyncio, "
    "thread, gevent: child processes with many jobs at once; serial: one job at a time in this process "
    f"[default: {_DEFAULTS.pool}, or serial if RUN_AS_SINGLE_PROCESS is set].",
)
@click.option(
    "-w", "--workers", default=0, show_default=True, help="Number of child processes; 0: one for each core."
)
@click.option(
    "--concurrency", default=0, help=f"Number of slots for jobs in each process [default: {_SLOTS_HELP}]."
)
@click.option(
    "-g",
    "--greenlets",
    default=0,
    metavar="N",
    help="Shorthand for --pool gevent --concurrency N; 0: off [default: 0].",
)
@click.option(
    "-i",
    "--interval",
    type=float,
    envvar="INTERVAL",
    help="Maximum seconds between two polls of an idle worker; a new job wakes it sooner "
    f"[default: INTERVAL, or {_DEFAULTS.interval}].",
)
@click.option(
    "-n", "--name", default="", help="Name of the worker; each child appends its number [default: host-pid]."
)
@click.option(
    "--app-version",
    metavar="TEXT",
    envvar="HOLDFAST_APP_VERSION",
    default="",
    help="Version of your program, kept with the recurring jobs that its code declares [default: HOLDFAST_APP_VERSION, or none].",
)
@click.option(
    "-r",
    "--resume",
    is_flag=True,
    help="Continue the jobs that a dead worker of this --name held [default: off].",
)
@click.option("--drain", is_flag=True, help="Exit when the queues are empty [default: off].")
@click.option(
    "-p",
    "--path",
    "paths",
    multiple=True,
    help="Directory to import jobs from; may be repeated [default: none].",
)
@click.option(
    "-m",
    "--import",
    "imports",
    multiple=True,
    help="Module to import at the start; may be repeated [default: none].",
)
@click.option(
    "--allow", multiple=True, help="Prefix of names of jobs that may run; may be repeated [default: none]."
)
@click.option(
    "-d",
    "--workdir",
    default="",
    help="Directory to change to after the imports; each child then works in a sandbox below it [default: the current "
    "directory].",
)
@click.option(
    "--sandbox",
    is_flag=True,
    help="Run every job in its child's sandbox, below --workdir or the directory for temporary files [default: only "
    "class jobs of the pools process and fork].",
)
@click.option(
    "--setup",
    envvar="HOLDFAST_SETUP",
    default="",
    help="module:callable to call first; it may set environment variables [default: HOLDFAST_SETUP, or "
    "none].",
)
@click.option(
    "--middleware",
    multiple=True,
    help="module:object to wrap around each job; may be repeated, the first is outermost [default: none].",
)
@click.option(
    "--auto-complete", is_flag=True, help="Complete class jobs when their method returns [default: off]."
)
@click.option(
    "--url",
    "--host",
    "url",
    callback=inherited,
    help="URL or host name of the store [default: HOLDFAST_URL, that of the clients of imported code, REDIS_URL, or the "
    "embedded store].",
)
@click.option("--port", type=click.IntRange(1, 65535), help="Port, if --host is a host name [default: 6379].")
@own_namespace_option
@click.option(
    "--max-jobs", default=0, show_default=True, help="Replace a child after this number of jobs; 0: never."
)
@click.option(
    "--max-memory",
    type=_bytes,
    metavar="SIZE",
    default="0",
    show_default=True,
    help="Replace a child that uses more memory than this, such as 512M or 1G; 0: never.",
)
@click.option(
    "--shutdown-timeout",
    type=float,
    envvar="HOLDFAST_SHUTDOWN_TIMEOUT",
    help="Seconds that running jobs have to finish after TERM or INT, before they are stopped and requeued "
    f"[default: HOLDFAST_SHUTDOWN_TIMEOUT, or {_DEFAULTS.shutdown_timeout}].",
)
@click.option(
    "--term-timeout",
    type=float,
    default=_DEFAULTS.term_timeout,
    show_default=True,
    help="Seconds that a stopped job has to unwind before its process is killed.",
)
@click.option(
    "--stuck-timeout",
    type=float,
    envvar="HOLDFAST_STUCK_TIMEOUT",
    help="Seconds after which a child process that a job blocks is killed; 0: never "
    f"[default: HOLDFAST_STUCK_TIMEOUT, or {_DEFAULTS.stuck_timeout:g}].",
)
@click.option(
    "--max-startup-interval",
    type=float,
    default=_DEFAULTS.max_startup_interval,
    show_default=True,
    help="Maximum seconds of the random pause of each child before its first job; replacements do not pause.",
)
@click.option(
    "--health-port", default=0, show_default=True, help="Serve GET /live and /ready on this port; 0: off."
)
@click.option(
    "--health-host",
    default=_DEFAULTS.health_host,
    show_default=True,
    help="Address to listen on for --health-port; 0.0.0.0 or :: for all, as in a container.",
)
@click.option(
    "--metrics-port", default=0, show_default=True, help="Serve Prometheus metrics on this port; 0: off."
)
@click.option(
    "--metrics-host",
    default=_DEFAULTS.metrics_host,
    show_default=True,
    help="Address to listen on for --metrics-port.",
)
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Log at DEBUG, as with VVERBOSE [default: INFO, which logs the end of each job, and with VERBOSE also its start].",
)
@click.option("--quiet", is_flag=True, help="Log warnings and errors only [default: off].")
@click.option("-l", "--logger", "log_file", default="", help="Log to this file too [default: none].")
@click.option(
    "--log-format",
    type=click.Choice(LOG_FORMATS),
    default=_DEFAULTS.log_format,
    show_default=True,
    help="Format of log lines: text, or one JSON object per line.",
)
@click.option(
    "--no-log-tracebacks",
    "hides_tracebacks",
    is_flag=True,
    help="Log exceptions by their type and text only [default: with their tracebacks].",
)
@click.option(
    "--debugger",
    is_flag=True,
    help="Open a debugging console in a child that gets USR2 [default: only at a terminal].",
)
@click.option(
    "--reload",
    "reloads",
    is_flag=True,
    help="Restart when code below --path or the working directory changes; for development [default: off].",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line at the start and one at the end.")
@click.pass_context
def worker(context: click.Context, /, reloads: bool, **flags: Any) -> int:
    """Run jobs of the named queues until stopped by a signal.

    Send signals to this process (the parent), which passes them on to its children. TERM and INT stop the worker: running
    jobs have --shutdown-timeout seconds to finish, then they are requeued at no cost. QUIT stops it after the running jobs,
    however long they take. USR1 kills and replaces the children. USR2 pauses the worker, CONT resumes it. HUP loads
    the code again, then replaces the children one after the other, each after its jobs. With --pool serial there are no children: USR1 and HUP log the stack.

    Only these jobs may run: functions marked with @client.job, modules named by --import, modules below --path, modules and
    packages directly in the working directory, and names with an --allow prefix.
    """
    program = cast("ProgramCommand", context.command)
    flags["url_origin"] = url_origin(context) or "--url"
    flags["variables"] = lambda: program.from_variables(context, os.environ)
    if flags["greenlets"]:
        flags |= _greenlets(flags)
    open_log(flags["log_file"], flags["log_format"], not flags["hides_tracebacks"])
    set_level(flags["verbose"], flags["quiet"])
    if reloads:
        from holdfast.cli.worker_reload import reloading

        code = reloading(
            StartupCode(
                str(Path.cwd()),
                tuple(map(os.path.abspath, flags["paths"])),
                flags["setup"],
                flags["middleware"],
                flags["imports"],
                flags["pool"] or "",
            )
        )
        if code is not None:
            return code
    if flags["pool"] == "gevent":
        patch()
    from holdfast.cli.worker_start import start
    from holdfast.worker.signals import before_and_after_work

    with before_and_after_work():
        return start(flags)


def _greenlets(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags that -g stands for. Raises UsageError."""
    for name, meaning in (("pool", "gevent"), ("concurrency", flags["greenlets"])):
        if flags[name] not in (None, 0, meaning):
            raise UsageError(
                f"--greenlets {flags['greenlets']} and --{name} {flags[name]} cannot be used together"
            )
    return {"pool": "gevent", "concurrency": flags["greenlets"]}
