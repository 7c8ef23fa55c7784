"""The names of the released `reqless` package over holdfast: `from holdfast.compat import reqless`.

Modules, classes and arguments are those of that package, data is JSON text, and every refusal is a `ReqlessError`. The
implementation is holdfast: its own namespaces, the store's clock, leases with tokens. Defects of the released package are
not copied (docs/guide/reqless.md).
"""

from holdfast import retry
from holdfast.client.handles import Queues
from holdfast.client.throttles import Throttles
from holdfast.client.workers import WorkersOf as Workers
from holdfast.compat.reqless import (
    abstract,
    config,
    events,
    exceptions,
    future,
    importer,
    job,
    listener,
    models,
    proctitle,
    profile,
    queue,
    queue_patterns,
    queue_resolvers,
    throttle,
    util,
)
from holdfast.compat.reqless.abstract import AbstractJobData, AbstractJobProcessor
from holdfast.compat.reqless.client import Client, Jobs
from holdfast.compat.reqless.config import Config
from holdfast.compat.reqless.events import Events
from holdfast.compat.reqless.exceptions import ReqlessError
from holdfast.compat.reqless.job import Job, RecurringJob
from holdfast.compat.reqless.logger import logger
from holdfast.compat.reqless.queue import Queue
from holdfast.compat.reqless.queue_patterns import QueuePatterns
from holdfast.compat.reqless.throttle import Throttle

__all__ = [
    "AbstractJobData",
    "AbstractJobProcessor",
    "Client",
    "Config",
    "Events",
    "Job",
    "Jobs",
    "Queue",
    "QueuePatterns",
    "Queues",
    "RecurringJob",
    "ReqlessError",
    "Throttle",
    "Throttles",
    "Workers",
    "abstract",
    "config",
    "events",
    "exceptions",
    "future",
    "importer",
    "job",
    "listener",
    "logger",
    "models",
    "proctitle",
    "profile",
    "queue",
    "queue_patterns",
    "queue_resolvers",
    "retry",
    "throttle",
    "util",
]
