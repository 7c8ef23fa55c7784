"""Delivery of notices to one sink in a thread of its own: in order, within a limit, and counted where that is not possible."""

import re
import signal
import threading
from collections import deque
from time import monotonic
from typing import Final, NamedTuple

from holdfast.cli.notices.notice import Backlog, Digest, Notice
from holdfast.cli.notices.sinks import Sink, Undelivered
from holdfast.cli.output import echo_text
from holdfast.errors import UsageError
from holdfast.text import counted

MOST_WAITING: Final = 1000
PAUSES: Final = (0.5, 2.0)
"""Seconds before the second and the third try of one notice."""
RESTS: Final = (5.0, 15.0, 60.0, 300.0)
"""Seconds of the pauses after failed deliveries to a sink, each longer than the one before."""
CLOSING: Final = 8.0
"""Seconds for waiting notices when the program ends; less than the ten after which containers are killed."""
_UNITS: Final = {"s": 1.0, "min": 60.0, "h": 3600.0}
_MOST_LIMIT: Final = 10_000


class RateLimit(NamedTuple):
    """At most `most` messages in any `seconds`."""

    most: int
    seconds: float


def parse_limit(text: str) -> RateLimit | None:
    """Return the limit that `N/min`, `N/s` or `N/h` names; None for `none`. Raises UsageError."""
    found = re.fullmatch(r"([0-9]{1,6})/(s|min|h)", text)
    if text == "none":
        return None
    if found is None or not 1 <= int(found[1]) <= _MOST_LIMIT:
        raise UsageError(f"--limit: expected a limit such as 30/min, 5/s or 100/h, or none, got {text!r:.40}")
    return RateLimit(int(found[1]), _UNITS[found[2]])


class Delivery:
    """A thread that delivers to one sink.

    Notices above the limit, above a thousand waiting ones, and those that did not arrive are counted; one digest of all of
    them is sent as soon as the sink takes messages. `broken` is the error of the output that ended the thread; the main thread is then interrupted.
    """

    def __init__(self, sink: Sink, limit: RateLimit | None = None) -> None:
        self.broken: Exception | None = None
        self._sink, self._limit = sink, limit
        self._waiting: deque[Notice] = deque()
        self._backlog = Backlog()
        self._sent: deque[float] = deque(maxlen=limit.most if limit else 0)
        self._changed = threading.Condition()
        self._ending = threading.Event()
        self._ends_at = self._rests_until = 0.0
        self._failures = self._under_way = 0
        self._gives_up = False
        self._thread = threading.Thread(target=self._run, name=f"holdfast notify {sink.name}", daemon=True)
        self._thread.start()

    def give(self, notice: Notice) -> None:
        """Queue a notice."""
        with self._changed:
            if len(self._waiting) >= MOST_WAITING:
                self._gather()
            self._waiting.append(notice)
            self._changed.notify()

    def end(self, ends_at: float) -> None:
        """Begin to end: deliver what waits until `ends_at` (by `monotonic`), what is above the limit as one digest."""
        with self._changed:
            self._ends_at = ends_at
            self._ending.set()
            self._changed.notify()

    def close(self) -> None:
        """Wait until the thread has ended, or for the time that `end` set. What is left is counted on standard error."""
        self._thread.join(max(self._ends_at - monotonic(), 0.0))
        with self._changed:
            left = len(self._waiting) + len(self._backlog) + self._under_way
        if left and self.broken is None:
            echo_text(f"{self._sink.name}: {counted(left, 'notice')} not delivered", err=True)

    @property
    def is_alive(self) -> bool:
        """Whether the thread still delivers something."""
        return self._thread.is_alive()

    def _run(self) -> None:
        try:
            while (notice := self._next()) is not None:
                self._deliver(notice)
        except Exception as error:  # for example because the reader of the output has closed it
            self.broken = error
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def _next(self) -> Notice | None:
        """Wait for the next notice or digest that may be sent; None at the end."""
        with self._changed:
            while True:
                wait, is_ending = self._wait(), self._ending.is_set()
                is_late = is_ending and monotonic() > self._ends_at - CLOSING / 2
                if self._backlog or wait > 0 or is_late:
                    self._gather()
                has_some = bool(self._waiting or self._backlog)
                if is_ending and (self._gives_up or not has_some):
                    return None
                if has_some and (is_ending or wait <= 0):
                    break
                self._changed.wait(wait if self._backlog else None)
            notice = self._backlog.take() if self._backlog else self._waiting.popleft()
            self._under_way = notice.total if isinstance(notice, Digest) else 1
            return notice

    def _wait(self) -> float:
        """Return the seconds until the sink takes another message."""
        now, until = monotonic(), self._rests_until
        if self._limit and len(self._sent) == self._limit.most:
            until = max(until, self._sent[0] + self._limit.seconds)
        return until - now

    def _gather(self) -> None:
        while self._waiting:
            self._backlog.add(self._waiting.popleft())

    def _deliver(self, notice: Notice) -> None:
        self._sent.append(monotonic())
        error = self._try(notice)
        with self._changed:
            self._under_way = 0
            if error is None:
                works_again, self._failures = self._failures > 0, 0
            else:
                works_again = False
                self._backlog.add(notice, with_text=not error.is_lasting)
                rest = RESTS[min(self._failures, len(RESTS) - 1)]
                self._rests_until = monotonic() + max(rest, error.after)
                self._failures += 1
                self._gives_up = self._ending.is_set()
        if error is not None and self._failures == 1:
            echo_text(f"{self._sink.name}: not delivered, trying again later: {error}", err=True)
        if works_again:
            echo_text(f"{self._sink.name}: delivered again", err=True)

    def _try(self, notice: Notice) -> Undelivered | None:
        """Deliver with up to three tries. Returns the last error if all failed."""
        for pause in (*PAUSES, None):
            try:
                self._sink.deliver(notice)
                return None
            except Undelivered as error:
                if pause is None or error.is_lasting or error.after > pause or self._ending.wait(pause):
                    return error
        return None
