"""The options of worker classes, in the words of Python and of Ruby, and what they mean as settings."""

from collections.abc import Mapping
from typing import Any, Final

from holdfast.errors import UsageError
from holdfast.settings import unknown_option
from holdfast.work.classes.logs import LOG_OPTIONS

AS_THEY_ARE: Final = (
    "auto_complete", "drain", "max_jobs", "max_memory", "term_timeout", "shutdown_timeout", "stuck_timeout", "max_startup_interval",
    "sighup_handler", "debugger", "health_port", "health_host", "metrics_port", "metrics_host", "concurrency", "workers",
)  # fmt: skip
LISTS: Final = ("paths", "imports", "allow")
OTHERS: Final = (
    "name", "workdir", "middleware", "klass", "num_workers", "greenlets", "sandbox", "sandbox_path",
    "run_as_single_process", "queue_resolver",
)  # fmt: skip
KNOWN: Final = (*AS_THEY_ARE, *LISTS, *OTHERS, *LOG_OPTIONS)


def check_options(kind: str, options: Mapping[str, Any]) -> None:
    """Raise UsageError for an option that workers do not have."""
    for option in options:
        if option not in KNOWN:
            raise unknown_option(kind, option, KNOWN)
    if options.get("num_workers") is not None and options.get("workers"):
        raise UsageError("workers and num_workers are the same: give one of them")


def as_settings(options: Mapping[str, Any], has_reserver: bool) -> dict[str, Any]:
    """The fields of WorkerSettings that these options say. A worker with a reserver has one process unless told."""
    told = {name: options[name] for name in AS_THEY_ARE if options.get(name) is not None}
    for name in LISTS:
        told[name] = tuple(map(str, options.get(name) or ()))
    told["root"] = options.get("workdir") or "."
    told["workdir"] = options.get("workdir") or ""
    workers = next(
        (given for given in map(options.get, ("num_workers", "workers")) if given is not None), None
    )
    told["workers"] = int(has_reserver) if workers is None else workers
    if options.get("greenlets") is not None:
        told["concurrency"] = options["greenlets"]
    return told
