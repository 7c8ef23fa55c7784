"""What is sent: one event of a tracked job, and several notices in one."""

import re
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from time import time
from typing import Any, Final, TypeVar, cast
from urllib.parse import unquote

import msgspec

from holdfast.cli.output import echo_text
from holdfast.client.sync import Client
from holdfast.commands.failures import FailureGroup
from holdfast.console.handles import Console
from holdfast.console.health.attention import Attention
from holdfast.console.health.triage import follows, is_surge, surge_text
from holdfast.console.masking import Mask
from holdfast.console.page_paths import group_path, job_path
from holdfast.errors import HoldfastError
from holdfast.text import counted, one_line, printable

MOST_MESSAGE: Final = 4000
"""Characters of the message of a failure."""
MOST_LINE: Final = 500
"""Characters of a line without its link."""
MOST_SHORT: Final = 24
MOST_LISTED: Final = 5
"""Notices that a digest lists."""
_GENERATED: Final = re.compile(r"[0-9a-f]{32}")


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """Something that people should know: what happened, when (epoch seconds), and the URL of a page about it."""

    event: str
    when: float
    link: str = ""

    @property
    def title(self) -> str:
        """Return what happened, on one line."""
        raise NotImplementedError

    @property
    def head(self) -> str:
        """Return what happened with what is known beside it, on one line."""
        return self.title

    @property
    def line(self) -> str:
        """Return the head and the link, on one line."""
        return f"{self.head} {self.link}".rstrip()

    @property
    def message(self) -> str:
        """Return the lines below it, an empty string for none."""
        return ""

    def as_dict(self) -> dict[str, Any]:
        """Return all fields by name, and the line as `text`."""
        return {**msgspec.structs.asdict(self), "text": self.line}


class JobNotice(Notice, frozen=True, kw_only=True):
    """One event of a job, and the job as it was a moment later; None if it was gone."""

    jid: str
    what: str
    job: dict[str, Any] | None = None
    failure: dict[str, Any] | None = None

    @property
    def short_jid(self) -> str:
        """Return enough of the jid for people: of a generated one the end, because those of one minute begin alike."""
        if _GENERATED.fullmatch(self.jid):
            return self.jid[-8:]
        return cut(self.jid, MOST_SHORT)

    @property
    def title(self) -> str:
        """Return the short jid and what happened."""
        return cut(one_line(f"{self.short_jid} {self.what}"), MOST_LINE)

    @property
    def head(self) -> str:
        """Return the title, and the tags of the job."""
        tags = ", ".join(self.job["tags"]) if self.job else ""
        return cut(one_line(f"{self.title} [{tags}]"), MOST_LINE) if tags else self.title

    @property
    def message(self) -> str:
        """Return the message of the failure if the job has just failed, else an empty string."""
        return printable(self.failure["message"]) if self.failure else ""


class Digest(Notice, frozen=True, kw_only=True):
    """Several notices in one: how many of each event, and the first few. `when` is that of the first."""

    counts: dict[str, int]
    listed: Sequence[Notice]

    @property
    def total(self) -> int:
        """Return of how many notices this is the digest."""
        return sum(self.counts.values())

    @property
    def title(self) -> str:
        """Return how many notices it stands for, by event."""
        parts = ", ".join(f"{count:,} {event}" for event, count in self.counts.items())
        return f"{counted(self.total, 'notice')}: {parts}"

    @property
    def rest(self) -> str:
        """Return how many more there are than those that are listed, "" if these are all."""
        rest = self.total - len(self.listed)
        return "" if not rest else f"and {rest:,} more" if self.listed else "the text could not be delivered"

    @property
    def message(self) -> str:
        """Return the lines of the first few, and how many more there are."""
        return "\n".join(filter(None, (*(one.line for one in self.listed), self.rest)))

    def as_dict(self) -> dict[str, Any]:
        """Return all fields by name, and the title as `text`."""
        listed = [one.as_dict() for one in self.listed]
        return {**msgspec.structs.asdict(self), "listed": listed, "total": self.total, "text": self.line}


class Backlog:
    """Notices that could not be sent one by one: their number by event, and the first few. Its size is bounded."""

    def __init__(self) -> None:
        self._counts = Counter[str]()
        self._listed: list[Notice] = []
        self._since = 0.0

    def __len__(self) -> int:
        return self._counts.total()

    def add(self, notice: Notice, with_text: bool = True) -> None:
        """Add a notice, or all of a digest. Surges are listed before failures, these before what else happened to jobs."""
        digest = notice if isinstance(notice, Digest) else None
        self._since = min(self._since, notice.when) if self else notice.when
        self._counts.update(digest.counts if digest else {notice.event: 1})
        if with_text:
            found = [*self._listed, *(digest.listed if digest else [notice])]
            found.sort(key=lambda one: (_rank(one), one.when))
            self._listed = found[:MOST_LISTED]

    def take(self) -> Notice:
        """Return a digest of all, or the only notice that there is; nothing is left."""
        digest = Digest(event="digest", when=self._since, counts=dict(self._counts), listed=self._listed)
        self._counts, self._listed = Counter[str](), []
        return digest.listed[0] if digest.total == len(digest.listed) == 1 else digest


def _rank(notice: Notice) -> int:
    if not isinstance(notice, JobNotice):
        return 0
    return 1 if notice.event in ("failed", "stalled") else 2


def cut(text: str, most: int) -> str:
    """Return the first `most` characters; the last of them is "…" if there are more."""
    return text if len(text) <= most else text[: most - 1] + "…"


N = TypeVar("N", bound=Notice)


def masked(notice: N, mask: Mask) -> N:
    """Return a notice with masked names and texts. A link that contains something to be masked is left out."""
    if not mask:
        return notice
    changed = {
        name: _masked(getattr(notice, name), mask)
        for name in notice.__struct_fields__
        if name not in ("event", "when", "link")
    }
    target = unquote(notice.link)
    return msgspec.structs.replace(notice, **changed, link=notice.link if mask.text(target) == target else "")


def _masked(value: Any, mask: Mask) -> Any:
    if isinstance(value, str):
        return mask.text(value)
    if isinstance(value, dict):
        return {name: _masked(one, mask) for name, one in cast("dict[str, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [_masked(one, mask) for one in cast("Sequence[object]", value)]
    return value


def notice_of(client: Client, event: str, jid: str, web: str, mask: Mask) -> JobNotice:
    """Return the notice of an event, masked, with the job read from the store. `web` is the URL of the web UI, "" for no link."""
    link = web + job_path(jid) if web else ""
    job = _job(client, jid)
    if job is None:
        return masked(JobNotice(event=event, jid=jid, when=time(), what=_TEXTS[event], link=link), mask)
    facts = {
        "klass": job.klass_name,
        "queue": job.facts.queue,
        "state": job.state,
        "worker": job.worker_name,
        "priority": job.priority,
        "tags": job.tags,
    }
    failure = dict(job.failure) if event == "failed" and job.failure else None
    if failure:
        # Masked before it is cut: a pattern may not match a text of which only the first part is left.
        failure["message"] = cut(mask.text(failure["message"]), MOST_MESSAGE)
    what = _describe(event, facts, failure)
    found = JobNotice(event=event, jid=jid, when=time(), what=what, link=link, job=facts, failure=failure)
    return masked(found, mask)


_TEXTS: Final = {
    "canceled": "canceled",
    "stalled": "stalled",
    "track": "is being tracked",
    "untrack": "no longer tracked",
    "completed": "completed",
    "popped": "popped",
    "put": "moved",
    "failed": "failed",
}


def _describe(event: str, job: dict[str, Any], failure: dict[str, Any] | None) -> str:
    text = _TEXTS[event]
    if event == "completed" and job["state"] != "complete":
        return f"advanced to {job['queue']}"
    if event == "put":
        return f"{text} to {job['queue']}"
    who = failure.get("worker") if failure else job["worker"]
    return f"{text} by {who}" if event in ("popped", "failed") and who else text


def _job(client: Client, jid: str) -> Any:
    try:
        found = client.jobs.get(jid)
    except HoldfastError:
        return None  # a notice without the facts of the job
    return found[0] if found else None


# Failure groups that begin or stop to grow fast, by the rule of the attention list.

SURGE: Final = "surge"
"""The event of a surge, as `--event` has it."""
OVER: Final = "surge-over"


class SurgeNotice(Notice, frozen=True, kw_only=True):
    """A failure group that grows fast, or no longer does: its number of jobs, and how many failed in the present hour."""

    group: str
    what: str
    count: int
    hour: int

    @property
    def title(self) -> str:
        """Return the group and its figures."""
        return cut(one_line(Attention("urgent", SURGE, self.group, self.what).sentence), MOST_LINE)


class SurgeWatch:
    """Finds surges by comparing the failure groups with those of the last look."""

    def __init__(self, web: str = "") -> None:
        self._web = web
        self._surging: set[str] = set()

    def look(self, groups: Sequence[FailureGroup]) -> list[SurgeNotice]:
        """Return notices of surges that have begun, and of those that are over.

        An hour begins with no failures, so a surge is over after a whole hour without one, or when its group is gone.
        """
        found: list[SurgeNotice] = []
        known = {group.name: group for group in groups}
        for name in sorted(self._surging):
            group = known.get(name)
            if group is None or not (is_surge(group.trend) or is_surge(group.trend[:-1])):
                self._surging.remove(name)
                found.append(self._notice(OVER, name, group))
        for group in groups:
            if is_surge(group.trend) and not follows(group) and group.name not in self._surging:
                self._surging.add(group.name)
                found.append(self._notice(SURGE, group.name, group))
        return found

    def _notice(self, event: str, name: str, group: FailureGroup | None) -> SurgeNotice:
        link = self._web + group_path(name) if self._web and group else ""
        if group is None:
            text, count, hour = "no failed jobs are left", 0, 0
        else:
            text, count, hour = surge_text(group), group.count, group.trend[-1]
        what = text if event == SURGE else f"the surge is over: {text}"
        return SurgeNotice(event=event, when=time(), link=link, group=name, what=what, count=count, hour=hour)


class SurgePoller:
    """A thread that reads the failure groups at a fixed interval (seconds), until `stop`. Outages of the store are printed once."""

    def __init__(
        self, console: Console, every: float, web: str, mask: Mask, give: Sequence[Callable[[Notice], None]]
    ) -> None:
        self._console, self._every, self._mask, self._give = console, every, mask, give
        self._watch = SurgeWatch(web)
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="holdfast notify surges", daemon=True)
        self._is_out = False

    def start(self) -> None:
        """Look at once, then again and again."""
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """End the thread, and wait until it has ended, at most this many seconds."""
        self._ends.set()
        self._thread.join(seconds)

    def _run(self) -> None:
        while not self._ends.is_set():
            self._look()
            self._ends.wait(self._every)

    def _look(self) -> None:
        try:
            groups = self._console.failures()
        except HoldfastError as error:
            if not self._is_out:
                echo_text(f"failure groups cannot be read: {error}; trying again", err=True)
            self._is_out = True
            return
        if self._is_out:
            echo_text("failure groups can be read again", err=True)
        self._is_out = False
        for notice in self._watch.look(groups):
            for give in self._give:
                give(masked(notice, self._mask))
