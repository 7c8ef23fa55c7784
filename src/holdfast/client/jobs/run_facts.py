"""What the code of a job can ask while it runs: how often it was tried, until when it may run, whether it still should."""

from typing import Any

from holdfast.models import JobFacts


class RunFacts:
    """A job as its own code sees it; `holdfast.current_job()` answers it."""

    facts: JobFacts
    run_of: Any
    """The run of which this is the job; only where a worker performs it."""
    _sandbox: str | None = None

    @property
    def attempt(self) -> int:
        """The number of this try, 1 for the first."""
        return self.facts.attempts

    @property
    def deadline(self) -> float | None:
        """Epoch seconds, by the store's clock, until which this run may go on; None without `timeout`.

        No heartbeat moves it, as it does `expires_at`: then the lease is taken away.
        """
        limit = self.facts.options.get("limit")
        if not limit:
            return None
        # A popped job came without the moment of its pop: its lease began then.
        begun = self.facts.popped_ms or self.facts.expires_ms - self.facts.lease_ms
        return (begun + int(limit)) / 1000

    @property
    def cancelled(self) -> bool:
        """Whether the lease is known to be lost: the job was cancelled, moved, or its time is over; what it does is dropped.

        Known from the worker's heartbeats, every third of a lease or sooner. A job that hangs in a process or coroutine is
        stopped then; one in a thread has to look.
        """
        run = getattr(self, "run_of", None)
        return run is not None and bool(run.lost())

    @property
    def sandbox(self) -> str | None:
        """The directory that a worker keeps for this job while it runs, empty at its start; None elsewhere. Raises OSError.

        It may be assigned, which changes nothing else.
        """
        run = getattr(self, "run_of", None)
        if self._sandbox is None and run is not None and run.sandbox is not None:
            self._sandbox = run.sandbox()
        return self._sandbox

    @sandbox.setter
    def sandbox(self, path: str | None) -> None:
        self._sandbox = path
