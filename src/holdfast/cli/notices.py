"""What happens to a tracked job, in words: one line, the failure's message, and the same as data."""

import re
from time import time
from typing import Any, Final
from urllib.parse import quote

import msgspec

from holdfast.client.sync import Client
from holdfast.errors import HoldfastError
from holdfast.printable import one_line, printable

MOST_MESSAGE: Final = 4000
MOST_SHORT: Final = 24
_MINTED: Final = re.compile(r"[0-9a-f]{32}")


class Notice(msgspec.Struct, frozen=True):
    """One event of a job, and what was known of the job a moment later: nothing, if it was gone."""

    event: str
    jid: str
    when: float
    what: str
    link: str
    job: dict[str, Any] | None = None
    failure: dict[str, Any] | None = None

    @property
    def short_jid(self) -> str:
        """Enough of the jid for people: of a minted one the end, because those of one minute begin alike."""
        if _MINTED.fullmatch(self.jid):
            return self.jid[-8:]
        return self.jid if len(self.jid) <= MOST_SHORT else self.jid[: MOST_SHORT - 1] + "…"

    @property
    def title(self) -> str:
        """Short jid and what happened."""
        return one_line(f"{self.short_jid} {self.what}")

    @property
    def line(self) -> str:
        """Short jid, what happened, tags, link."""
        tags = ", ".join(self.job["tags"]) if self.job else ""
        return one_line(" ".join(filter(None, (self.title, f"[{tags}]" if tags else "", self.link))))

    @property
    def message(self) -> str:
        """What the job failed with, when it has just failed; else nothing."""
        return printable(self.failure["message"])[:MOST_MESSAGE] if self.failure else ""

    def as_dict(self) -> dict[str, Any]:
        """All of it by name, with the `text` that people are shown."""
        return {**msgspec.structs.asdict(self), "text": self.line}


def notice_of(client: Client, event: str, jid: str, web: str) -> Notice:
    """Put an event into words; asks the store for the job. `web` is where the pages are, "" for no link."""
    link = f"{web}/jobs/{quote(jid, safe='')}" if web else ""
    job = _job(client, jid)
    if job is None:
        return Notice(event, jid, time(), _BARE[event], link)
    failure = job.failure if event == "failed" and job.failure else None
    facts = {
        "klass": job.klass_name,
        "queue": job.facts.queue,
        "state": job.state,
        "worker": job.worker_name,
        "priority": job.priority,
        "tags": job.tags,
    }
    return Notice(event, jid, time(), _worded(event, facts, failure), link, facts, failure)


_BARE: Final = {
    "canceled": "canceled",
    "stalled": "stalled",
    "track": "is being tracked",
    "untrack": "no longer tracked",
    "completed": "completed",
    "popped": "popped",
    "put": "moved",
    "failed": "failed",
}


def _worded(event: str, job: dict[str, Any], failure: dict[str, Any] | None) -> str:
    bare = _BARE[event]
    if event == "completed" and job["state"] != "complete":
        return f"advanced to {job['queue']}"
    if event == "put":
        return f"{bare} to {job['queue']}"
    who = failure.get("worker") if failure else job["worker"]
    return f"{bare} by {who}" if event in ("popped", "failed") and who else bare


def _job(client: Client, jid: str) -> Any:
    try:
        found = client.jobs.get(jid)
    except HoldfastError:
        return None  # the short form will do
    return found[0] if found else None
