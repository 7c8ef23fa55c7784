"""What stands around the performing of jobs: the base that job classes need, and the middleware that ships."""

from holdfast.code.failure import ByKlass, ByQueue, FailureFormatter, failure_formatter, use_failure_formatter
from holdfast.code.middleware import SupportsMiddleware
from holdfast.errors import (
    InvalidTimeout,
    InvalidTimeoutError,
    JobTimedOutError,
    MiddlewareMisconfigured,
    MiddlewareMisconfiguredError,
)
from holdfast.work.middleware.memory import MemoryUsageMonitor
from holdfast.work.middleware.metrics import JobMetrics
from holdfast.work.middleware.reconnecting import RedisReconnect
from holdfast.work.middleware.reporting import Sentry
from holdfast.work.middleware.requeueing import RequeueExceptions
from holdfast.work.middleware.retrying import RetryExceptions, exponential
from holdfast.work.middleware.timing import Timeout

__all__ = [
    "ByKlass",
    "ByQueue",
    "FailureFormatter",
    "InvalidTimeout",
    "InvalidTimeoutError",
    "JobMetrics",
    "JobTimedOutError",
    "MemoryUsageMonitor",
    "MiddlewareMisconfigured",
    "MiddlewareMisconfiguredError",
    "RedisReconnect",
    "RequeueExceptions",
    "RetryExceptions",
    "Sentry",
    "SupportsMiddleware",
    "Timeout",
    "exponential",
    "failure_formatter",
    "use_failure_formatter",
]
