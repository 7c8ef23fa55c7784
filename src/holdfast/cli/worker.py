"""`holdfast worker`: its flags. The code that runs a worker is imported when they have been read.

No import at module level may import the driver: --pool gevent must patch the standard library before.
"""

import logging
import os
import re
import select
import signal
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Final, cast

import click
import msgspec

from holdfast.cli.output import print_json
from holdfast.cli.place import inherited, own_namespace_option, url_of, url_origin
from holdfast.cli.program import ProgramCommand, split_each
from holdfast.client.opening import clients
from holdfast.code.importing import noting
from holdfast.errors import UsageError
from holdfast.logs import (
    DescriptorHandler,
    FinishedJobs,
    JsonFormatter,
    TextFormatter,
    jobs_log,
    logger,
    starts_log,
)
from holdfast.text import listed
from holdfast.worker import signals
from holdfast.worker.descendants import end_descendants
from holdfast.worker.greenlets import patch
from holdfast.worker.imported_clients import choose
from holdfast.worker.performing.outcome import met_unknown
from holdfast.worker.performing.surroundings import make_importable
from holdfast.worker.processes import die_with, prepare
from holdfast.worker.run import body_of, run_worker
from holdfast.worker.settings import FOLDER, LOG_FORMATS, POOLS, RESERVERS, SLOTS, Pool, WorkerSettings
from holdfast.worker.signals import Handlers, Stop
from holdfast.worker.startup import (
    StartupCode,
    call_setup,
    import_modules,
    load_middleware,
    put_declared,
    search_first,
)
from holdfast.worker.startup_check import StartupCheck, share_obstacle
from holdfast.worker.store_choice import StoreChoice
from holdfast.worker.supervisor.loader import Load
from holdfast.worker.supervisor.loading import Loading

# Where the log of a worker command is written, and its level.


def open_log(log_file: str, log_format: str, tracebacks: bool = True) -> None:
    """Log to standard error, and also to `log_file` if one is named: the lines of holdfast and of jobs.

    Raises UsageError.
    """
    formatter = JsonFormatter(tracebacks) if log_format == "json" else TextFormatter(tracebacks=tracebacks)
    handlers = [_standard_error()]
    if log_file:
        try:
            # It holds what jobs log: a new file is for this user alone.
            opened = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            handlers.append(DescriptorHandler(opened))
            os.close(opened)
        except OSError as error:
            raise UsageError(f"--logger {log_file}: {error.strerror}") from None
    for handler in handlers:
        handler.setFormatter(formatter)
        logging.root.addHandler(handler)
    if own := [each for each in handlers if isinstance(each, DescriptorHandler)]:
        FinishedJobs(own, formatter)


def _standard_error() -> logging.Handler:
    try:
        return DescriptorHandler(sys.stderr.fileno())
    except (OSError, ValueError, AttributeError):
        return logging.StreamHandler()  # a program replaced it


def set_level(verbose: bool, quiet: bool = False) -> None:
    """Set the level of the log: WARNING if `quiet`, DEBUG if `verbose` or VVERBOSE is set, else INFO.

    At INFO, the end of each job is logged, with VERBOSE its start too. The flags come before the variables. Raises
    UsageError.
    """
    if verbose and quiet:
        raise UsageError("--verbose and --quiet cannot be used together")
    level = logging.INFO
    if quiet:
        level = logging.WARNING
    elif verbose or os.environ.get("VVERBOSE"):
        level = logging.DEBUG
    for log in (logger, logging.root, jobs_log):
        log.setLevel(level)
    starts = level == logging.DEBUG or (level == logging.INFO and os.environ.get("VERBOSE"))
    starts_log.setLevel(level if starts else logging.WARNING)
    # It logs at DEBUG which selector it uses, each time a loop begins.
    logging.getLogger("asyncio").setLevel(max(level, logging.INFO))


# `holdfast worker --reload`: run the worker in a child, and restart it when Python files change. For
# development.
# The parent imports nothing of the user's code, so each child starts with the code as it is when it starts.

log = logging.getLogger("holdfast")

LOOK: Final = 0.4  # seconds between two scans
MOST_FILES: Final = 20_000
_EXCLUDED: Final = ("__pycache__", "node_modules", "site-packages", "dist-packages", FOLDER)

Files = Mapping[str, tuple[int, int]]
"""The modification time and size of each file."""


class Watch:
    """The Python files below some directories, except hidden files, environments, installed packages and sandboxes."""

    def __init__(self, directories: Iterable[str]) -> None:
        self._directories = list(dict.fromkeys(directories))
        self._known = self._last = self._scan()
        self._scan_at = 0.0
        if len(self._known) == MOST_FILES:
            log.warning("only the first %d Python files below %s are watched", MOST_FILES, self._directories)

    def changed(self) -> list[str]:
        """Return the files that changed since the last call, once two scans in a row found the same.

        Scans at most every 0.4 seconds, and for at most a tenth of the time.
        """
        began = monotonic()
        if began < self._scan_at:
            return []
        files = self._scan()
        self._scan_at = began + max(LOOK, 10 * (monotonic() - began))
        is_settled, self._last = files == self._last, files
        if files == self._known or not is_settled:
            return []
        before, self._known = self._known, files
        return sorted(path for path in {*files, *before} if files.get(path) != before.get(path))

    def _scan(self) -> Files:
        found: dict[str, tuple[int, int]] = {}
        for path in _python_files(self._directories):
            try:
                status = path.stat()
            except OSError:
                continue  # just removed, or a broken link
            found[str(path)] = status.st_mtime_ns, status.st_size
            if len(found) == MOST_FILES:
                break
        return found


def mistake_in(paths: Iterable[str]) -> str:
    """Return the first syntax error in some files, empty if there is none; missing files are skipped."""
    for path in paths:
        try:
            with warnings.catch_warnings(action="ignore"):
                compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None) or 1
            return f"{os.path.relpath(path)}, line {line}: {getattr(error, 'msg', error)}"
        except OSError:
            continue
    return ""


def _python_files(directories: Iterable[str]) -> Iterator[Path]:
    for directory in directories:
        for parent, folders, names in os.walk(directory):
            folders[:] = sorted(name for name in folders if _is_watched(parent, name))
            yield from (Path(parent, name) for name in names if name.endswith(".py"))


def _is_watched(parent: str, name: str) -> bool:
    return (
        not name.startswith(".") and name not in _EXCLUDED and not Path(parent, name, "pyvenv.cfg").exists()
    )


SHUTDOWN_TIMEOUT: Final = 10.0  # seconds that running jobs have before they are requeued
_TICK: Final = 0.2
_USAGE_ERROR: Final = 2
_ENDS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)


def reloading(code: StartupCode) -> int | None:
    """Run a worker in a child, and restart it when a Python file below its root or paths changes.

    The running worker is replaced only after a separate process has loaded the changed `code`.

    Returns None in each child, which then continues as the worker; in the parent, the exit code of the last child.
    Signals to the parent are passed on; TERM, INT and QUIT end both, and no child outlives the parent. Call it from a
    process with one thread.
    """
    prepare()
    share_obstacle()
    parent = _Parent(Watch((code.root, *code.paths)), code)
    with Handlers(dict.fromkeys(signals.ALL, _ignore), parent.stop.wake_fd):
        status = parent.run()
    parent.stop.close()
    if status is None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.ALL)  # blocked since before the fork
    return status


class _Parent:
    """Watches the files and the child."""

    def __init__(self, watch: Watch, code: StartupCode) -> None:
        self.stop = Stop()
        self._check = StartupCheck(code, "the old worker keeps running")
        self._watch = watch
        self._pid = 0
        self._code = 0
        self._starts = 0
        self._is_ending = False
        self._wants_new = True
        self._hurry_at = 0.0

    def run(self) -> int | None:
        """Return the exit code of the last worker; None in each child."""
        while True:
            if self._wants_new and not self._pid and not self._is_ending and self._is_child():
                return None
            select.select([self.stop], [], [], _TICK)
            for number in self.stop.read():
                self._on_signal(number)
            if self._pid:
                self._reap()
            if not self._pid and (self._is_ending or self._has_ended()):
                self._check.end()
                return max(self._code, 0)
            if self._check.result():
                self._replace()
            changed = self._watch.changed()
            if changed:
                self._on_change(changed)
            self._hurry()

    def _is_child(self) -> bool:
        """Fork a worker, and return True in the child."""
        self._wants_new = False
        self._starts += 1
        # Until the child has its own handlers, a signal to it would run those of the parent.
        signal.pthread_sigmask(signal.SIG_BLOCK, signals.ALL)
        parent = os.getpid()
        self._pid = os.fork()
        if not self._pid:
            die_with(parent)
            sys.dont_write_bytecode = (
                True  # after two edits within a second, Python would use the bytecode of the first
            )
            return True
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.ALL)
        return False

    def _reap(self) -> None:
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if not pid:
            return
        self._pid, self._code = 0, os.waitstatus_to_exitcode(status)
        if not (self._is_ending or self._wants_new or self._has_ended()):
            log.error("the worker exited with status %d; it restarts when code changes", self._code)

    def _has_ended(self) -> bool:
        """Return whether the worker is not started again: it drained its queues, or its first start was a usage error."""
        return not self._wants_new and (self._code == 0 or (self._code == _USAGE_ERROR and self._starts == 1))

    def _on_change(self, changed: list[str]) -> None:
        mistake = mistake_in(changed)
        if mistake:
            log.warning("code changed, but it cannot be loaded: %s; the old worker keeps running", mistake)
            return
        log.info("code changed (%s)", listed([os.path.relpath(path) for path in changed], 3))
        if not (self._pid and self._check.start()):
            self._replace()

    def _replace(self) -> None:
        log.info("the worker restarts after the running jobs")
        self._wants_new = True
        self._hurry_at = monotonic() + SHUTDOWN_TIMEOUT
        self._send(signal.SIGQUIT)

    def _hurry(self) -> None:
        if self._wants_new and self._pid and monotonic() >= self._hurry_at:
            log.info("running jobs did not finish within %g s; they are requeued", SHUTDOWN_TIMEOUT)
            self._hurry_at = monotonic() + SHUTDOWN_TIMEOUT
            self._send(signal.SIGTERM)

    def _on_signal(self, number: int) -> None:
        if number in _ENDS:
            self._is_ending = True
        if number not in (0, signal.SIGCHLD):
            self._send(signal.Signals(number))

    def _send(self, number: signal.Signals) -> None:
        if self._pid:
            os.kill(self._pid, number)


def _ignore(number: int, frame: object) -> None:
    """Do nothing: the signal is written to the descriptor that `run` waits for."""


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


# Start the worker that flags and environment describe: the setup hook, the settings, the imports, the log.

NO_QUEUE = "no queue given: name at least one with --queue, or set HOLDFAST_WORKER_QUEUE, QUEUE or QUEUES"


UNKNOWN_CODE: Final = 3
"""Exit status of a worker that drained its queues and met jobs whose code it does not know."""


def start(flags: Mapping[str, Any]) -> int:
    """Run the worker that the flags and the environment describe, and return its exit status. Raises UsageError, StartFailed.

    `flags` maps names of flags to values; one that was not given may be None. `variables` returns the values that the environment
    gives to those.
    """
    load = partial(_load, flags, str(Path.cwd()), tuple(str(Path(path).resolve()) for path in flags["paths"]))
    with ExitStack() as stack:
        loading = _loading(flags, load)
        if loading is None:
            settings, store = load()
        else:
            settings, store = stack.enter_context(loading).first()
            if settings.pool == "serial":  # the setup hook has chosen it
                settings, store = load()
            else:
                _follow(flags)
        _print_start(settings, store, flags["as_json"])
        run_worker(settings, store, loading=loading)
    end_descendants()
    status = UNKNOWN_CODE if settings.drain and met_unknown() else 0
    if status:
        log.error("jobs whose code this worker does not have failed; the worker exits with status %d", status)
    if flags["as_json"]:
        print_json({"event": "ended", "pid": os.getpid()})
    _leave_threads(status)
    return status


def _load(flags: Mapping[str, Any], root: str, paths: tuple[str, ...]) -> tuple[WorkerSettings, StoreChoice]:
    """Load the code, and return the settings and the store. Raises UsageError, StartFailed."""
    os.chdir(root)
    before = clients()
    search_first((*paths, root))
    with noting():
        # Before anything else: a worker whose code cannot be imported must not take jobs.
        if flags["setup"]:
            call_setup(flags["setup"])
            flags = {**flags, **flags["variables"]()}  # which the hook may have set
            set_level(flags["verbose"], flags["quiet"])
        settings = settings_of(flags, root)
        url = url_of(flags["url"], flags["port"])
        make_importable(settings)
        import_modules(settings.imports)
    store = choose(url, flags["namespace"], before, flags["url_origin"])
    from holdfast.code.registry import declared  # loads asyncio, which gevent patches first

    if declared():
        with store.beating_client(settings.worker_name(0)) as client:
            put_declared(client)
    if flags["workdir"]:
        _enter(flags["workdir"])
    return settings, store


def _follow(flags: Mapping[str, Any]) -> None:
    """Do in the supervisor what loading the code did elsewhere."""
    set_level(flags["verbose"], flags["quiet"])
    if flags["workdir"]:
        _enter(flags["workdir"])


def _loading(flags: Mapping[str, Any], load: Load) -> Loading | None:
    """Return what loads the code outside of this process; None if there is nothing to load, or no child."""
    pool: Pool = flags["pool"] or "process"
    if pool == "serial" or not (flags["setup"] or flags["middleware"] or flags["imports"]):
        return None
    names = ("workers", "concurrency", "name", "metrics_port")
    shape = WorkerSettings(("q",), pool, **{name: flags[name] for name in names}).checked()
    return Loading(load, body_of, shape)


def _leave_threads(status: int) -> None:
    """Exit the process if jobs left threads running: Python would wait for them without limit."""
    main = threading.main_thread()
    left = [thread.name for thread in threading.enumerate() if thread is not main and not thread.daemon]
    if left:
        log.warning(
            "jobs left threads running: %s; the worker exits without waiting for them", ", ".join(left)
        )
        logging.shutdown()
        sys.stdout.flush()
        os._exit(status)


def settings_of(flags: Mapping[str, Any], root: str) -> WorkerSettings:
    """Return the settings that the flags name. Raises UsageError, StartFailed."""
    names = [field.name for field in msgspec.structs.fields(WorkerSettings)]
    given: dict[str, Any] = {name: flags[name] for name in names if flags.get(name) not in (None, ())}
    found = given
    if not found.get("queues"):
        raise click.UsageError(NO_QUEUE)
    if found.get("interval") == 0 and flags["drain"]:
        del found["interval"]  # a draining worker never waits for jobs
    found["middleware"] = tuple(map(load_middleware, flags["middleware"]))
    found["middleware_names"] = flags["middleware"]
    return WorkerSettings(**found, root=root).checked()


def _enter(workdir: str) -> None:
    try:
        os.chdir(workdir)
    except OSError as error:
        raise UsageError(f"--workdir {workdir}: {error.strerror}; name a directory that exists") from None


def _print_start(settings: WorkerSettings, store: StoreChoice, as_json: bool) -> None:
    namespace = store.options.get("namespace", "default")
    if as_json:
        facts = {
            name: getattr(settings, name) for name in ("queues", "pool", "workers", "concurrency", "reserver")
        }
        print_json(
            {"event": "working", "pid": os.getpid(), **facts, "namespace": namespace, "store": store.shown()}
        )
    log.info(
        "working for %s: pool %s, %d × %d, namespace %s, %s",
        listed(settings.queues),
        settings.pool,
        settings.workers,
        settings.concurrency,
        namespace,
        store.shown(),
    )
