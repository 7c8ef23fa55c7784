"""Notices about tracked jobs: their text, where they are sent, and delivery in threads of its own."""

import html
import json
import queue
import re
import shutil
import signal
import subprocess
import threading
from abc import ABC, abstractmethod
from http.client import HTTPException
from time import time
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import click
import msgspec

from holdfast import __version__
from holdfast.cli.output import echo_text
from holdfast.client.sync import Client
from holdfast.errors import HoldfastError, UsageError
from holdfast.printable import one_line, printable, printable_json
from holdfast.settings import is_host

MOST_MESSAGE: Final = 4000
MOST_SHORT: Final = 24
_GENERATED: Final = re.compile(r"[0-9a-f]{32}")


class Notice(msgspec.Struct, frozen=True):
    """One event of a job, and the job as it was a moment later; None if it was gone."""

    event: str
    jid: str
    when: float
    what: str
    link: str
    job: dict[str, Any] | None = None
    failure: dict[str, Any] | None = None

    @property
    def short_jid(self) -> str:
        """Return enough of the jid for people: of a generated one the end, because those of one minute begin alike."""
        if _GENERATED.fullmatch(self.jid):
            return self.jid[-8:]
        return self.jid if len(self.jid) <= MOST_SHORT else self.jid[: MOST_SHORT - 1] + "…"

    @property
    def title(self) -> str:
        """Return the short jid and what happened."""
        return one_line(f"{self.short_jid} {self.what}")

    @property
    def line(self) -> str:
        """Return the short jid, what happened, tags and link."""
        tags = ", ".join(self.job["tags"]) if self.job else ""
        return one_line(" ".join(filter(None, (self.title, f"[{tags}]" if tags else "", self.link))))

    @property
    def message(self) -> str:
        """Return the message of the failure if the job has just failed, else an empty string."""
        return printable(self.failure["message"])[:MOST_MESSAGE] if self.failure else ""

    def as_dict(self) -> dict[str, Any]:
        """Return all fields by name, and the line as `text`."""
        return {**msgspec.structs.asdict(self), "text": self.line}


def notice_of(client: Client, event: str, jid: str, web: str) -> Notice:
    """Return the notice of an event, with the job read from the store. `web` is the base URL of links, "" for none."""
    link = f"{web}/jobs/{quote(jid, safe='')}" if web else ""
    job = _job(client, jid)
    if job is None:
        return Notice(event, jid, time(), _TEXTS[event], link)
    failure = job.failure if event == "failed" and job.failure else None
    facts = {
        "klass": job.klass_name,
        "queue": job.facts.queue,
        "state": job.state,
        "worker": job.worker_name,
        "priority": job.priority,
        "tags": job.tags,
    }
    return Notice(event, jid, time(), _describe(event, facts, failure), link, facts, failure)


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


TIMEOUT: Final = 10.0  # seconds


class Undelivered(Exception):
    """A notice did not arrive. `is_lasting`: another try would not help."""

    def __init__(self, why: object, is_lasting: bool = False) -> None:
        super().__init__(str(why))
        self.is_lasting = is_lasting


class Sink(ABC):
    """A place where notices are sent; `name` is what messages call it, without secrets."""

    name: str

    @abstractmethod
    def deliver(self, notice: Notice) -> None:
        """Deliver one notice. Raises Undelivered."""


class Lines(Sink):
    """Standard output: a line for each notice, the message of a failure below it; or one JSON object a line."""

    name = "standard output"

    def __init__(self, as_json: bool = False) -> None:
        self._as_json = as_json

    def deliver(self, notice: Notice) -> None:
        if self._as_json:
            click.echo(printable_json(json.dumps(notice.as_dict(), ensure_ascii=False)))
            return
        below = "".join(f"\n    {line}" for line in notice.message.splitlines())
        click.echo(notice.line + below)


class _NoRedirects(HTTPRedirectHandler):
    """Follows no redirect, which would send the notice to another machine, as a GET without its body."""

    def redirect_request(
        self, req: Request, fp: object, code: int, msg: str, headers: object, newurl: str
    ) -> None:
        """Return None, which makes the redirect an error with its status."""


_open: Final = build_opener(_NoRedirects).open


def _base_of(url: str) -> str:
    """Return scheme and host of an HTTP URL, an empty string if it is none."""
    try:
        split = urlsplit(url)
        _ = split.port
    except ValueError:
        return ""
    valid = split.scheme in ("http", "https") and is_host(split.hostname or "")
    return f"{split.scheme}://{split.hostname}" if valid else ""


class Webhook(Sink):
    """A URL that each notice is posted to as JSON. Raises UsageError for anything but an HTTP URL."""

    def __init__(self, url: str, flag: str = "--webhook") -> None:
        base = _base_of(url)
        if not base:
            raise UsageError(f"{flag} must be a URL such as https://host/path")  # its text may be a secret
        self._url = url
        self.name = base  # the rest is often a secret

    def deliver(self, notice: Notice) -> None:
        body = json.dumps(self.payload(notice)).encode()
        headers = {"Content-Type": "application/json", "User-Agent": f"holdfast/{__version__}"}
        try:
            with _open(Request(self._url, body, headers, method="POST"), timeout=TIMEOUT):
                pass
        except HTTPError as error:
            error.close()
            is_lasting = 300 <= error.code < 500 and error.code not in (408, 425, 429)
            what = ", a redirect, which is not followed" if error.code < 400 else ""
            raise Undelivered(f"HTTP status {error.code}{what}", is_lasting) from None
        except (OSError, HTTPException, ValueError) as error:
            raise Undelivered(getattr(error, "reason", error)) from None

    def payload(self, notice: Notice) -> dict[str, Any]:
        """Return what is posted."""
        return notice.as_dict()


class Chat(Webhook):
    """A URL that takes messages as Slack and Mattermost do: `{"text": …}`."""

    def __init__(self, url: str) -> None:
        super().__init__(url, "--chat")

    def payload(self, notice: Notice) -> dict[str, Any]:
        """Return what is posted: the line, and the message of a failure in a block of its own."""
        message = notice.message.replace("```", "'''").strip()
        block = f"\n```{message}```" if message else ""
        # A zero-width space keeps `@channel` in the text of a job from notifying everybody.
        return {"text": re.sub(r"@(?=\w)", "@\u200b", html.escape(notice.line + block, quote=False))}


class Desktop(Sink):
    """Notifications of the desktop, by `notify-send`. Raises UsageError if there is no such program."""

    name = "notify-send"

    def __init__(self) -> None:
        found = shutil.which(self.name)
        if found is None:
            raise UsageError("--desktop needs the program notify-send, of the package libnotify")
        self._program = found

    def deliver(self, notice: Notice) -> None:
        below = html.escape("\n".join(filter(None, (notice.line, notice.message[:500]))), quote=False)
        words = [self._program, "--app-name", "holdfast", "--", notice.title, below]
        try:
            subprocess.run(words, timeout=TIMEOUT, check=True, capture_output=True)
        except (OSError, subprocess.SubprocessError) as error:
            raise Undelivered(error) from None


MOST_WAITING: Final = 1000
PAUSES: Final = (0.5, 2.0)
"""Seconds before the second and the third try of one notice."""
LONGEST_END: Final = 10.0
"""Seconds for waiting notices when the program ends."""


class Delivery:
    """A thread that delivers to one sink, in order. The first loss is printed, and their number once the sink works again.

    `broken` is the error of the output that ended the thread; the main thread is then interrupted.
    """

    def __init__(self, sink: Sink) -> None:
        self.broken: OSError | None = None
        self._sink = sink
        self._waiting: queue.Queue[Notice | None] = queue.Queue(MOST_WAITING)
        self._ends = threading.Event()
        self._lost = 0
        self._thread = threading.Thread(target=self._run, name=f"holdfast notify {sink.name}", daemon=True)
        self._thread.start()

    def give(self, notice: Notice) -> None:
        """Queue a notice; it is lost if a thousand wait already."""
        try:
            self._waiting.put_nowait(notice)
        except queue.Full:
            self._lose("it does not keep up")

    def close(self) -> None:
        """Deliver the waiting notices, for at most ten seconds."""
        self._ends.set()
        try:
            self._waiting.put(None, timeout=LONGEST_END)
        except queue.Full:
            return
        self._thread.join(LONGEST_END)

    def _run(self) -> None:
        try:
            while (notice := self._waiting.get()) is not None:
                self._deliver(notice)
        except OSError as error:  # the reader of the output has closed it
            self.broken = error
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def _deliver(self, notice: Notice) -> None:
        for pause in (*PAUSES, None):
            try:
                self._sink.deliver(notice)
            except Undelivered as error:
                if pause is None or error.is_lasting or self._ends.wait(pause):
                    self._lose(str(error))
                    return
            else:
                self._arrived()
                return

    def _lose(self, why: str) -> None:
        self._lost += 1
        if self._lost == 1:
            echo_text(f"{self._sink.name}: a notice is lost: {why}", err=True)

    def _arrived(self) -> None:
        if self._lost:
            click.echo(f"{self._sink.name}: works again; {self._lost} notices were lost", err=True)
            self._lost = 0
