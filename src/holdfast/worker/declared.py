"""Recurring jobs that the loaded code declares with `@app.job(every=…)`: they are put when a worker has loaded it."""

import logging
from typing import Any

from holdfast.client.function_jobs import FunctionJob
from holdfast.client.sync import Client
from holdfast.code.registry import declared
from holdfast.errors import HoldfastError

log = logging.getLogger("holdfast")


def put_declared(client: Client) -> None:
    """Put a recurring job for each declaration; one that exists is updated, and the time of its next job stays.

    A declaration that cannot be put is logged: the worker takes jobs all the same.
    """
    for entry in declared():
        options: dict[str, Any] = dict(entry.every)
        job: FunctionJob[..., Any, Any] = FunctionJob(client, entry.function, entry, {})
        try:
            made = job.every(options.pop("interval"), **options).put()
        except HoldfastError as error:
            log.error("the recurring job of %s was not put: %s", entry.name, error)
        else:
            log.debug("recurring job %s of %s", made.jid, entry.name)
