"""The names other people's programs may rely on, pinned."""

import tomllib
from pathlib import Path

import holdfast
from holdfast import middleware
from holdfast.core.library import VERSION

NAMES = {
    "AsyncClient", "AsyncEvents", "AsyncHandle", "AsyncJob", "AsyncQueue", "AsyncScheduler", "Client", "CodecError", "Config", "ConnectionLost",
    "CoreMismatch", "CrossShard", "DependencyRefused", "Events", "Failed", "Fenced", "Handle", "HoldfastError", "InvalidTimeout", "Job",
    "JobExists", "JobCancelled", "JobFailed", "JobNotFound", "JobTimedOutError", "LeaseLost", "LostLockError", "LuaPlugin",
    "MiddlewareMisconfigured", "Moved", "NotAllowed", "NotDurable", "PerformTimeout", "Queue", "QueueFull", "TooManyQueues", "DataTooLarge",
    "QueueNotEmpty", "QueueNotEmptyError", "RecurringJob", "Refused", "ReqlessError", "Retry", "Scheduler", "StartFailed", "StoreBusy", "StoreFull",
    "StoreTimeout", "StoreUnsupported", "StoreUnwell", "Throttle", "ThrottleNotFound", "TransportError",
    "UnknownEvent", "UnknownKlass", "UnsupportedRedisVersionError", "UsageError", "WorkError", "WorkerCrashed", "WrongState",
    "as_completed", "current_job", "gather", "generate_jid", "logger", "retry",
}  # fmt: skip


def test_the_public_names_are_these() -> None:
    assert set(holdfast.__all__) - {"__version__"} == NAMES


def test_every_public_name_can_be_had() -> None:
    assert [name for name in holdfast.__all__ if not hasattr(holdfast, name)] == []


MIDDLEWARE = {
    "ByKlass", "ByQueue", "FailureFormatter", "InvalidTimeout", "InvalidTimeoutError", "JobMetrics",
    "JobTimedOutError", "MemoryUsageMonitor", "MiddlewareMisconfigured", "MiddlewareMisconfiguredError", "RedisReconnect", "RequeueExceptions", "RetryExceptions", "Sentry",
    "SupportsMiddleware", "Timeout", "exponential", "failure_formatter", "use_failure_formatter",
}  # fmt: skip


def test_the_public_names_of_middleware_are_these() -> None:
    assert set(middleware.__all__) == MIDDLEWARE
    assert [name for name in middleware.__all__ if not hasattr(middleware, name)] == []


def test_the_package_and_the_core_have_one_release_number() -> None:
    """Of two programs with cores of one number, neither knows that the other's is newer."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert (project["version"], VERSION.removesuffix(".dev")) == (holdfast.__version__, holdfast.__version__)
