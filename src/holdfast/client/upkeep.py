"""Methods for operators: settings, maintenance and the audit log, for both clients."""

from holdfast.client.descriptors import AsyncMethods, ClientPart, CommandMethod, SyncMethods
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
from holdfast.commands.base import map_reply
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


class AuditVerbs(ClientPart):
    """Who did what to what: about the newest ten thousand lines."""

    @CommandMethod
    def add(self, what: str, target: str = "", detail: str = "", who: str = "") -> Command[str]:
        """Write a line; return its id. `detail` has up to 4096 bytes. Core: nouns/operation/audit.lua."""
        names = check_name("who", who) if who else self._client.worker_name, check_name("what", what)
        return Audit(*names, check_name("target", target) if target else "", check_text("detail", detail))

    @CommandMethod
    def newest(self, count: int = 25, before: str = "") -> Command[list[AuditLine]]:
        """Up to 128 lines, newest first; with `before`, only lines older than the line of this id.

        Core: nouns/operation/audit.lua.
        """
        return AuditList(
            check_name("before", before) if before else "", check_whole("count", count, 0, MOST_LINES)
        )


class UpkeepVerbs(ClientPart):
    """Settings beside the configuration keys, and maintenance that other calls do as well."""

    @CommandMethod
    def settings(self) -> Command[dict[str, int]]:
        """`stats-days` (how long statistics are kept), `keep-data` (1: changed data of attempts are kept),
        `max-history-bytes` (of a job), `max-queues`, `max-data` (of a job that is put, in bytes) and `unknown-for`.
        Core: nouns/setting/settings.lua.
        """
        return SettingsGet()

    @CommandMethod
    def set(self, name: str, value: int | None) -> Command[int]:
        """Set one of them; None for its default. Raises Refused for a value out of bounds. Core: nouns/setting/settings.lua."""
        number = None if value is None else check_whole("value", value, 0, MAX_WHOLE)
        return SettingSet(check_name("name", name), number)

    @CommandMethod
    def sweep(self) -> Command[int]:
        """Delete completed jobs that are too old, as later completions would, and unique keys of jobs that are gone; return
        how many of both this call deleted.

        Core: verbs/configure.lua.
        """
        return Sweep()

    @CommandMethod
    def tick(self, *queues: str) -> Command[int]:
        """Record the minute of up to 128 queues, as pops do; return how many. Core: verbs/stats.lua."""
        if not 1 <= len(queues) <= MOST_LINES:
            raise UsageError(f"tick takes 1 to {MOST_LINES} queues in one call, not {len(queues)}")
        return Tick([check_queue("queue", queue) for queue in check_list("queues", queues)])

    @CommandMethod
    def watch(self, seconds: float = 10) -> Command[float]:
        """Have changes published on `<root>e:c` for `seconds`, a minute at most; return the end as epoch seconds.

        A message names what changed: `queues`, `queue:<name>`, `job:<jid>`, `failed`, … Core: verbs/watch.lua.
        """
        return map_reply(
            Watch(check_milliseconds("seconds", seconds, 0.001, 60)), lambda until_ms: until_ms / 1000
        )


class Upkeep(UpkeepVerbs, SyncMethods):
    """The upkeep of a sync client."""


class AsyncUpkeep(UpkeepVerbs, AsyncMethods):
    """The upkeep of an async client."""


class AuditLog(AuditVerbs, SyncMethods):
    """The audit log of a sync client."""


class AsyncAuditLog(AuditVerbs, AsyncMethods):
    """The audit log of an async client."""
