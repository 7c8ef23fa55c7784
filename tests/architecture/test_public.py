"""The names other people's programs may rely on, pinned."""

import tomllib
from pathlib import Path

import pytest

import holdfast
from holdfast import errors, middleware
from holdfast.core.library import VERSION

NAMES = {
    "AsyncClient", "AsyncEvents", "AsyncHandle", "AsyncJob", "AsyncQueue", "AsyncScheduler", "Client", "CodecError", "Config", "ConnectionLost",
    "CoreMismatch", "DependencyRefused", "Events", "Failed", "Handle", "HoldfastError", "InvalidTimeout", "Job",
    "JobExists", "JobCancelled", "JobFailed", "JobNotFound", "JobTimedOutError", "LeaseLost", "LostLockError", "LuaPlugin",
    "MiddlewareMisconfigured", "Moved", "NotAllowed", "OperationNotFound", "PerformTimeout", "Queue", "QueueFull", "TooManyQueues", "DataTooLarge",
    "QueueNotEmpty", "QueueNotEmptyError", "RecurringJob", "Refused", "ReqlessError", "Retry", "Scheduler", "StartFailed", "StoreBusy", "StoreFull",
    "StoreTimeout", "StoreUnsupported", "StoreUnavailable", "Throttle", "ThrottleNotFound", "TransportError",
    "UnknownEvent", "UnknownKlass", "UnknownName", "UnsupportedRedisVersionError", "UsageError", "WorkError", "WrongState",
    "as_completed", "create_app", "current_async_job", "current_job", "gather", "generate_jid", "logger", "retry",
}  # fmt: skip


def test_the_public_names_are_these() -> None:
    assert set(holdfast.__all__) - {"__version__"} == NAMES


def test_every_public_name_can_be_had() -> None:
    assert [name for name in holdfast.__all__ if not hasattr(holdfast, name)] == []


def test_a_name_of_the_release_before_works_with_a_warning_that_has_the_new_one() -> None:
    with pytest.warns(DeprecationWarning, match="StoreUnwell is called StoreUnavailable now"):
        assert holdfast.StoreUnwell is holdfast.StoreUnavailable
    with pytest.warns(DeprecationWarning, match="StoreUnavailable"):
        assert errors.StoreUnwell is holdfast.StoreUnavailable
    with pytest.raises(AttributeError, match="StoreWell"):
        _ = holdfast.StoreWell


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
