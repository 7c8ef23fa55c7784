"""The checks of the settings of a worker. All raise UsageError."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from holdfast.errors import UsageError
from holdfast.settings import check_host, check_name, check_seconds, check_whole

MOST_SLOTS: Final = 512
MOST_PORT: Final = 65535

_SECONDS: Final = {
    "interval": (0.05, 3600.0),
    "term_timeout": (0.0, 3600.0),
    "shutdown_timeout": (0.0, 86400.0),
    "stuck_timeout": (0.0, 86400.0),
    "max_startup_interval": (0.0, 3600.0),
}
_WHOLE: Final = {
    "workers": 1000,
    "concurrency": MOST_SLOTS,
    "max_jobs": 1 << 53,
    "max_memory": 1 << 53,
    "health_port": MOST_PORT,
    "metrics_port": MOST_PORT,
}


def check_queues(queues: Sequence[str]) -> None:
    """Check the queues and patterns of a worker."""
    if not queues:
        raise UsageError("a worker needs at least one queue")
    for queue in queues:
        check_name("queue", queue)
    if len(set(queues)) < len(queues):
        raise UsageError("a queue is named twice")
    if all(queue.startswith("!") for queue in queues):
        raise UsageError("a worker needs a queue that is added: patterns that begin with ! only take away")


def check_choice(what: str, given: str, choices: tuple[str, ...]) -> None:
    """Check that a setting is one of `choices`."""
    if given not in choices:
        raise UsageError(f"there is no {what} {given!r}; choose one of {', '.join(choices)}")


def check_numbers(settings: Any) -> None:
    """Check the numbers of a worker's settings, and the hosts of its ports."""
    for name, most in _WHOLE.items():
        check_whole(name, getattr(settings, name), 0, most)
    for name, (least, longest) in _SECONDS.items():
        check_seconds(name, getattr(settings, name), least, longest)
    check_host("health_host", settings.health_host)
    check_host("metrics_host", settings.metrics_host)


def check_modules(modules: Iterable[str]) -> None:
    """Check that `imports` has names of modules, and not of files or of objects in modules."""
    for module in modules:
        if Path(module).is_file() or module.endswith(".py"):
            raise UsageError(f"imports names modules, such as {Path(module).stem}, and {module} is a file")
        name, colon, _ = module.partition(":")
        if colon:
            raise UsageError(
                f"imports names modules, such as {name}, and {module} names an object in one: write {name}"
            )
