"""How jobs come into a queue, once or again and again, said once for both colours."""

from collections.abc import Iterable, Mapping
from typing import Any, Unpack

from holdfast.client.colours import Verb
from holdfast.client.putting.options import NOTHING, MoreOptions, make_put, name_of
from holdfast.client.recur_options import RecurMore, make_recur
from holdfast.commands import Command


class QueuePutting:
    """What a queue can be told to take in."""

    _client: Any
    name: str

    @Verb
    def put(
        self,
        klass: object,
        data: object = NOTHING,
        priority: int | None = None,
        tags: Iterable[str] | None = None,
        delay: float | None = None,
        retries: int | None = None,
        jid: str | None = None,
        depends: Iterable[str] | None = None,
        throttles: Iterable[str] | None = None,
        **more: Unpack[MoreOptions],
    ) -> Command[str]:
        """Put a job into this queue; answers its jid.

        `klass` is a class, module, function or dotted name; `data` any JSON value, or text that is JSON, `{}` when
        left out. `priority` (0; higher first), `delay` in seconds, `retries` (5), `jid` to choose one: an existing job of
        that jid is moved here, with all this in place of what it had. `only_new=True` leaves an existing job alone. More
        is in `PutOptions`: tags, throttles, depends, backoff, expires, timeout, result_keep. What is not given, or
        None, comes from `default_job_options(data)` of the class, if it has one. Raises UsageError, JobExists, QueueFull,
        DependencyRefused, StoreFull. Core: verbs/put.lua.
        """
        said = _said(more, priority, tags, delay, retries, jid, depends, throttles)
        return make_put(self._client.settings, self.name, klass, data, said)

    @Verb
    def requeue(
        self,
        klass: object,
        data: object = NOTHING,
        priority: int | None = None,
        tags: Iterable[str] | None = None,
        delay: float | None = None,
        retries: int | None = None,
        jid: str | None = None,
        depends: Iterable[str] | None = None,
        throttles: Iterable[str] | None = None,
        **more: Unpack[MoreOptions],
    ) -> Command[str]:
        """Put a job that exists, of whatever state, into this queue; answers its jid. As `put`, but for `only_new`.

        Raises UsageError, JobNotFound for a jid that no job has. Core: verbs/put.lua.
        """
        said = _said(more, priority, tags, delay, retries, jid, depends, throttles)
        return make_put(self._client.settings, self.name, klass, data, said, must_exist=True)

    @Verb
    def recur(
        self,
        klass: object,
        data: object = NOTHING,
        interval: float | None = None,
        offset: float | None = None,
        priority: int | None = None,
        tags: Iterable[str] | None = None,
        retries: int | None = None,
        jid: str | None = None,
        throttles: Iterable[str] | None = None,
        backlog: int | None = None,
        **more: Unpack[RecurMore],
    ) -> Command[str]:
        """Put a job into this queue every `interval` seconds; answers the jid of the template.

        The first is due `offset` seconds from now (0; negative to make up past ones). Its jobs are `<jid>-1`, `<jid>-2`, …,
        each put at the moment it is due, however late that is noticed; at most `backlog` missed ones are made up, 0 for
        all. A template of the same `jid` is replaced, its count goes on. What is not given, or None, comes from
        `default_job_options(data)` of the class, if it has one; else `priority` is 0, `retries` 5. Raises UsageError.
        Core: verbs/recur.lua.
        """
        said = {
            "interval": interval, "offset": offset, "priority": priority, "tags": tags, "retries": retries, "jid": jid,
            "throttles": throttles, "backlog": backlog, **more,
        }  # fmt: skip
        return make_recur(self._client.settings, self.name, klass, data, said)

    @staticmethod
    def class_string(klass: object) -> str:
        """The name under which jobs of a class, module or function are stored; text stays as it is.

        Raises UsageError for what no other program could import.
        """
        return name_of(klass)


def _said(
    more: Mapping[str, Any],
    priority: int | None,
    tags: Iterable[str] | None,
    delay: float | None,
    retries: int | None,
    jid: str | None,
    depends: Iterable[str] | None,
    throttles: Iterable[str] | None,
) -> Mapping[str, Any] | None:
    rest = tags is None and depends is None and throttles is None
    if rest and priority is None and delay is None and retries is None and jid is None:
        return more or None
    return {
        "priority": priority, "tags": tags, "delay": delay, "retries": retries, "jid": jid, "depends": depends,
        "throttles": throttles, **more,
    }  # fmt: skip
