"""The names other people's programs may rely on, pinned."""

import re
from importlib.metadata import version
from pathlib import Path

import pytest

import holdfast
from holdfast import errors, middleware
from holdfast.core.library import library

NAMES = {
    "AsyncClient", "AsyncEvents", "AsyncHandle", "AsyncJob", "AsyncQueue", "AsyncScheduler", "Client", "CodecError", "Config", "ConnectionLost",
    "CoreMismatch", "DependencyRefused", "Events", "Failed", "Handle", "HoldfastError", "InvalidTimeout", "Job",
    "JobExists", "JobCancelled", "JobFailed", "JobNotFound", "JobTimedOutError", "LeaseLost", "LostLockError", "LuaPlugin",
    "MiddlewareMisconfigured", "Moved", "NotAllowed", "NotUnique", "OperationNotFound", "PerformTimeout", "Queue", "QueueFull", "TooManyQueues", "DataTooLarge",
    "QueueNotEmpty", "QueueNotEmptyError", "RecurringJob", "Refused", "ReqlessError", "Retry", "Scheduler", "StartFailed", "StoreBusy", "StoreFull",
    "StoreTimeout", "StoreUnsupported", "StoreUnavailable", "Throttle", "ThrottleNotFound", "TransportError",
    "UnknownEvent", "UnknownKlass", "UnknownName", "UnsupportedRedisVersionError", "UsageError", "WorkError", "WrongState",
    "AsyncFlowHandle", "Call", "FlowClosed", "FlowFailure", "FlowHandle", "FlowOutcome", "Group", "Results", "Skip",
    "as_completed", "chain", "create_app", "current_async_job", "current_job", "gather", "generate_jid", "group", "join", "logger", "retry",
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


TEXTS = {".html", ".js", ".md", ".py", ".service", ".yaml", ".yml", ".toml", ".sh", ".mjs", ".go"}
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
    assert library().version in (f"{holdfast.__version__}.dev", holdfast.__version__)
    assert version("holdfast-jobs") == holdfast.__version__


def test_no_text_installs_another_project() -> None:
    """`holdfast` on the package index is somebody else's; ours is holdfast-jobs, and not published yet."""
    root = Path(__file__).parents[2]
    texts = [
        path
        for path in (
            root / "README.md",
            *sorted((root / "docs").rglob("*")),
            *sorted((root / "src").rglob("*")),
        )
        if path.suffix in TEXTS or path.name == "Dockerfile"
    ]
    wrong = re.compile(
        r"pip3? install[^\n|]*\bholdfast\b(?![_-]jobs)|\bholdfast\[[a-z]|^holdfast\b *[=<>~]=|requirements\.txt",
        re.MULTILINE,
    )
    found = [
        f"{path.relative_to(root)}: {hit[0]}" for path in texts for hit in wrong.finditer(path.read_text())
    ]
    assert len(texts) > 300
    assert found == []
