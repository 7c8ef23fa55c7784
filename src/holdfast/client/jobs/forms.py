"""A job in other forms: as a mapping, as options for a put, its history by time."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from holdfast.client.colours import PlanAsked
from holdfast.codecs import encode_data
from holdfast.commands.recurring import RecurGet
from holdfast.errors import UsageError
from holdfast.models import text
from holdfast.settings import unknown_option
from holdfast.wire.plans import Ask, Plan

_SHOWN: Final = (
    "jid", "spawned_from_jid", "expires_at", "state", "queue_name", "history", "worker_name", "failure", "klass_name",
    "tracked", "dependencies", "dependents", "original_retries", "retries_left", "data", "priority", "tags", "throttles",
)  # fmt: skip
_NO_TIMES: Final = frozenset(("attempt", "token"))
_OPTIONS: Final[Mapping[str, Any]] = {
    "data": {}, "delay": 0, "priority": 0, "tags": [], "retries": 5, "depends": [], "throttles": [],
}  # fmt: skip


class JobForms:
    """What programs written for the older systems ask a job for."""

    _client: Any
    history: Any
    throttles: Any
    spawned_from_jid: Any

    @property
    def raw_queue_history(self) -> list[dict[str, Any]]:
        """The same as `history`."""
        history: list[dict[str, Any]] = self.history
        return history

    @property
    def queue_history(self) -> list[dict[str, Any]]:
        """A copy of `history` in which every number is an aware UTC datetime, but for `attempt` and `token`."""
        return [{name: _moment(name, value) for name, value in entry.items()} for entry in self.history]

    @property
    def initially_put_at(self) -> datetime | None:
        """When the job was put first; None if its history does not tell."""
        told = [entry.get("when") for entry in self.history if entry.get("what") == "put"]
        moments = [when for when in told if isinstance(when, (int, float))]
        return datetime.fromtimestamp(min(moments), UTC) if moments else None

    @PlanAsked
    def spawned_from(self, ask: Ask) -> Plan[Any]:
        """The recurring job that put this one; None if there is none, or none any more. Core: verbs/recur.lua."""
        jid = self.spawned_from_jid
        if not jid:
            return None
        found = yield from ask(RecurGet((jid,)))
        return self._client.recurring.handle(found[0])

    @property
    def throttle_objects(self) -> list[Any]:
        """The throttles of the job as handles, in their order."""
        return [self._client.throttles[name] for name in self.throttles]

    def to_hash(self) -> dict[str, Any]:
        """All that is known of the job, by the names of its attributes."""
        job: Any = self
        # Data that are not UTF-8 are shown too.
        return {name: text(job.raw_data) if name == "data" else getattr(job, name) for name in _SHOWN}

    def enqueue_opts(self) -> dict[str, Any]:
        """The options with which `put` makes such a job again: retries, max_losses if it has such a budget, priority, depends, tags, throttles, data."""
        job: Any = self
        losses = job.facts.max_losses
        return {
            **({} if losses is None else {"max_losses": losses}),
            "retries": job.original_retries,
            "priority": job.priority,
            "depends": list(job.dependencies),
            "tags": list(job.tags),
            "throttles": list(job.throttles),
            "data": job.data,
        }

    @staticmethod
    def build_opts_array(opts: Mapping[str, Any] | None = None) -> list[Any]:
        """The words that the older core expects: data as JSON text, delay, then priority, tags, retries, depends and
        throttles as pairs, lists as JSON text. Raises UsageError for other options.
        """
        if opts is not None and not isinstance(opts, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"opts must be a mapping, not {opts!r:.80}")
        given = opts or {}
        for option in given:
            if option not in _OPTIONS:
                raise unknown_option("build_opts_array", option, tuple(_OPTIONS))
        all_ = {**_OPTIONS, **given}
        words: list[Any] = [encode_data(all_["data"]).decode(), all_["delay"]]
        for name in ("priority", "tags", "retries", "depends", "throttles"):
            value = all_[name]
            words += (name, encode_data(list(value)).decode() if isinstance(_OPTIONS[name], list) else value)
        return words

    def reconnect_to_redis(self) -> Any:
        """Drop the client's idle connections; the next call opens a new one. After a fork that happens by itself."""
        return self._client.close()


def _moment(name: str, value: object) -> object:
    if name in _NO_TIMES or isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    try:
        return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        return value
