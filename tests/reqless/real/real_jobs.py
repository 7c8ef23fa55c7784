"""Jobs that the packages' own workers perform."""

import json
from typing import Any


def _tell(job: Any, how: str) -> None:
    store = getattr(job.client, "database", None) or job.client.redis
    store.rpush("told", f"{job.jid} {how}")


class Sum:
    """Adds numbers up, in two steps."""

    @staticmethod
    def process(job: Any) -> None:
        job.data = json.dumps({"sum": sum(json.loads(job.data)["numbers"])})
        job.complete()
        _tell(job, "completed")


class Stumbles:
    """Succeeds when it is tried for the second time."""

    @staticmethod
    def process(job: Any) -> None:
        if job.retries_left == job.original_retries:
            job.retry()
            _tell(job, "retried")
        else:
            job.complete()
            _tell(job, "completed")


class Falls:
    """Fails."""

    @staticmethod
    def process(job: Any) -> None:
        _tell(job, "started")
        raise ValueError("fell")
