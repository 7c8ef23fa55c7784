"""How a job is taken out of whatever state it is in and put into a queue again."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypedDict, Unpack

from holdfast.client.jobs.callbacks import settling
from holdfast.client.jobs.facts import JobView, most_data
from holdfast.client.putting.options import check_priority
from holdfast.codecs import encode_data
from holdfast.commands import Command
from holdfast.commands.jobs import Move
from holdfast.commands.wishes import MAX_DEPENDS, MAX_TAGS, MAX_THROTTLES
from holdfast.settings import (
    MAX_RETRIES,
    check_milliseconds,
    check_name,
    check_names,
    check_queue,
    check_whole,
    unknown_option,
)


class RequeueOptions(TypedDict, total=False):
    """What a job may be given anew when it is requeued; what is left out, or None, stays as it was.

    `delay` is in seconds, `data` JSON text or any JSON value; `tags`, `throttles` and `depends` (jids) are lists. Empty
    `tags` and `throttles` mean none; empty `depends` keep what the job waits for, which `undepend` lets go.
    """

    delay: float | None
    data: object
    priority: int | None
    tags: Iterable[str] | None
    retries: int | None
    depends: Iterable[str] | None
    throttles: Iterable[str] | None


_OPTIONS: Final = tuple(RequeueOptions.__annotations__)


class Moving:
    """How a job is told to begin a new life under its own jid."""

    _sent_data: Any
    _ended: Callable[[Command[Any]], Command[Any]]

    @settling("requeue")
    def move(self, queue: object, delay: float = 0, depends: Iterable[str] | None = None) -> Command[str]:
        """Take the job out of whatever state it is in and put it into `queue`, a queue or its name; answers its jid.

        It is ready after `delay` seconds, and when the jobs in `depends` are complete. Its holder loses the lease; retries
        are renewed; klass, data, throttles as they are in this object, and the rest in the store, stay. Raises
        JobNotFound, DependencyRefused. Core: verbs/move.lua.
        """
        return self._ended(_moved(self, queue, {"delay": delay, "depends": depends}))

    @settling("requeue")
    def requeue(self, queue: object, **options: Unpack[RequeueOptions]) -> Command[str]:
        """As `move`, with other options where they are given: delay, data, priority, tags, retries, depends, throttles.

        Raises UsageError, JobNotFound for a job that was cancelled, which is not made again. Core: verbs/move.lua.
        """
        for option in options:
            if option not in _OPTIONS:
                raise unknown_option("requeue", option, _OPTIONS)
        return self._ended(_moved(self, queue, options))


def _moved(job: Any, queue: object, options: Mapping[str, Any]) -> Move:
    given = {name: value for name, value in options.items() if value is not None}
    data, retries, throttles = given.get("data"), given.get("retries"), given.get("throttles")
    if throttles is None and JobView.throttles.differs(job):
        throttles = job.throttles
    return Move(
        check_queue("queue", queue),
        job.jid,
        check_milliseconds("delay", given.get("delay", 0)),
        job._sent_data if data is None else encode_data(data, most_data(job._client)),
        check_priority(given["priority"]) if "priority" in given else None,
        check_name("klass", job.klass_name) if JobView.klass_name.differs(job) else "",
        None if retries is None else check_whole("retries", retries, 0, MAX_RETRIES),
        check_names("tags", given["tags"], MAX_TAGS) if "tags" in given else None,
        None if throttles is None else check_names("throttles", throttles, MAX_THROTTLES),
        check_names("depends", given.get("depends", ()), MAX_DEPENDS),
    )
