"""Jobs and recurring jobs."""

from holdfast.client.handles import Job
from holdfast.client.recurring import RecurringJob as ClientRecurringJob
from holdfast.commands.recurring import RecurGet
from holdfast.compat.reqless.abstract import AbstractBaseJob as BaseJob


class RecurringJob(ClientRecurringJob):
    """A recurring job whose `next` is read from the store."""

    @property
    def next(self) -> float | None:
        """When the next job is due, in epoch seconds, read from the store; None if the template was deleted."""
        [facts] = self.run(RecurGet((self.jid,)))
        return facts.next_ms / 1000 if facts is not None and facts.next_ms else None


__all__ = ["BaseJob", "Job", "RecurringJob"]
