"""What those who look after an installation ask for: settings, chores, and the audit log; in both colours."""

from typing import Any

from holdfast.client.descriptors import AsyncHandle, CommandMethod, SyncHandle
from holdfast.commands import Command
from holdfast.commands.admin import (
    Audit,
    AuditLine,
    AuditList,
    SettingSet,
    SettingsGet,
    Sweep,
    Watch,
)
from holdfast.commands.base import then
from holdfast.commands.views import Tick
from holdfast.errors import UsageError
from holdfast.settings import (
    MAX_WHOLE,
    check_list,
    check_milliseconds,
    check_name,
    check_queue,
    check_text,
    check_whole,
)

MOST_LINES = 128


class AuditVerbs:
    """Who did what to what: the newest ten thousand lines or a few more."""

    _client: Any

    def __init__(self, client: Any) -> None:
        self._client = client

    @CommandMethod
    def add(self, what: str, target: str = "", detail: str = "", who: str = "") -> Command[str]:
        """Write a line; answers its id. `detail` has up to 4096 bytes. Core: nouns/audit.lua."""
        names = check_name("who", who) if who else self._client.worker_name, check_name("what", what)
        return Audit(*names, check_name("target", target) if target else "", check_text("detail", detail))

    @CommandMethod
    def newest(self, count: int = 25, before: str = "") -> Command[list[AuditLine]]:
        """Up to 128 lines, newest first; `before`: only those older than the line of this id.

        Core: nouns/audit.lua.
        """
        return AuditList(
            check_name("before", before) if before else "", check_whole("count", count, 0, MOST_LINES)
        )


class UpkeepVerbs:
    """Settings that are no configuration keys, and chores that calls do by themselves as they come along."""

    _client: Any

    def __init__(self, client: Any) -> None:
        self._client = client

    @CommandMethod
    def settings(self) -> Command[dict[str, int]]:
        """`stats-days` (statistics are kept so long), `keep-data` (1: what attempts began with is kept where it changed),
        `max-history-bytes` (of a job), `max-queues`, `max-data` (bytes with which a job is put) and `unknown-for`.
        Core: nouns/settings.lua.
        """
        return SettingsGet()

    @CommandMethod
    def set(self, name: str, value: int | None) -> Command[int]:
        """Write one of them; None for its default. Raises Refused for a value out of bounds. Core: nouns/settings.lua."""
        number = None if value is None else check_whole("value", value, 0, MAX_WHOLE)
        return SettingSet(check_name("name", name), number)

    @CommandMethod
    def sweep(self) -> Command[int]:
        """Drop completed jobs that are too old, as later completions would; answers how many this call dropped.

        Core: verbs/configure.lua.
        """
        return Sweep()

    @CommandMethod
    def tick(self, *queues: str) -> Command[int]:
        """Note the minute of up to 128 queues, which otherwise pops do; answers how many. Core: verbs/stats.lua."""
        if not 1 <= len(queues) <= MOST_LINES:
            raise UsageError(f"tick takes 1 to {MOST_LINES} queues in one call, not {len(queues)}")
        return Tick([check_queue("queue", queue) for queue in check_list("queues", queues)])

    @CommandMethod
    def watch(self, seconds: float = 10) -> Command[float]:
        """Have changes published on `<root>e:c` for so many seconds, a minute at most; answers until when, as epoch seconds.

        A message names what changed: `queues`, `queue:<name>`, `job:<jid>`, `failed`, … Core: verbs/watch.lua.
        """
        return then(
            Watch(check_milliseconds("seconds", seconds, 0.001, 60)), lambda until_ms: until_ms / 1000
        )


class Upkeep(UpkeepVerbs, SyncHandle):
    """The upkeep of a blocking client."""


class AsyncUpkeep(UpkeepVerbs, AsyncHandle):
    """The upkeep of an async client."""


class AuditLog(AuditVerbs, SyncHandle):
    """The audit log of a blocking client."""


class AsyncAuditLog(AuditVerbs, AsyncHandle):
    """The audit log of an async client."""
