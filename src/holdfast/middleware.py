"""Middleware for jobs: the base that job classes need, and the middleware that holdfast contains."""

from holdfast.code.failure import ByKlass, ByQueue, FailureFormatter, failure_formatter, use_failure_formatter
from holdfast.code.middleware import SupportsMiddleware
from holdfast.errors import (
    InvalidTimeout,
    InvalidTimeoutError,
    JobTimedOutError,
    MiddlewareMisconfigured,
    MiddlewareMisconfiguredError,
)
from holdfast.worker.middleware.exceptions import RequeueExceptions, RetryExceptions, exponential
from holdfast.worker.middleware.limits import MemoryUsageMonitor, Timeout
from holdfast.worker.middleware.reporting import JobMetrics, RedisReconnect, Sentry

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
