"""Background jobs on Valkey or Redis that are not lost."""

import importlib
from typing import TYPE_CHECKING, Any

from holdfast.errors import (
    CodecError,
    ConnectionLost,
    CoreMismatch,
    DataTooLarge,
    DependencyRefused,
    FlowClosed,
    HoldfastError,
    InvalidTimeout,
    JobCancelled,
    JobExists,
    JobFailed,
    JobNotFound,
    JobTimedOutError,
    LeaseLost,
    LostLockError,
    MiddlewareMisconfigured,
    NotAllowed,
    NotUnique,
    OperationNotFound,
    PerformTimeout,
    QueueFull,
    QueueNotEmpty,
    QueueNotEmptyError,
    Refused,
    ReqlessError,
    StartFailed,
    StoreBusy,
    StoreFull,
    StoreTimeout,
    StoreUnavailable,
    StoreUnsupported,
    ThrottleNotFound,
    TooManyQueues,
    TransportError,
    UnknownEvent,
    UnknownKlass,
    UnknownName,
    UnsupportedRedisVersionError,
    UsageError,
    WorkError,
    WrongState,
)
from holdfast.errors import renamed as _renamed
from holdfast.ids import mint_jid as generate_jid
from holdfast.logs import logger
from holdfast.release import VERSION

if TYPE_CHECKING:
    from holdfast.client.aio import AsyncClient
    from holdfast.client.calls import Call, FlowFailure, FlowOutcome, Group, chain, group, join
    from holdfast.client.completion import as_completed, gather
    from holdfast.client.config import Config
    from holdfast.client.events import AsyncEvents, Events
    from holdfast.client.flow_results import Results
    from holdfast.client.flows import AsyncFlowHandle, FlowHandle
    from holdfast.client.handles import AsyncJob, AsyncQueue, Job, Queue, current_async_job, current_job
    from holdfast.client.plugin import LuaPlugin
    from holdfast.client.put_handles import AsyncHandle, Handle
    from holdfast.client.recurring import RecurringJob
    from holdfast.client.sync import Client
    from holdfast.client.throttles import Throttle
    from holdfast.client.topics.scheduler import AsyncScheduler, Scheduler
    from holdfast.code.outcomes import Failed, Moved, Retry, Skip
    from holdfast.code.retrying import retry
    from holdfast.web import create_app

__version__ = VERSION

# Imported at the first use: the driver alone takes longer to import than this package.
_LAZY = {
    "AsyncClient": "holdfast.client.aio",
    "AsyncEvents": "holdfast.client.events",
    "AsyncFlowHandle": "holdfast.client.flows",
    "FlowHandle": "holdfast.client.flows",
    "Results": "holdfast.client.flow_results",
    "Call": "holdfast.client.calls",
    "FlowFailure": "holdfast.client.calls",
    "Group": "holdfast.client.calls",
    "FlowOutcome": "holdfast.client.calls",
    "chain": "holdfast.client.calls",
    "group": "holdfast.client.calls",
    "join": "holdfast.client.calls",
    "AsyncJob": "holdfast.client.handles",
    "AsyncScheduler": "holdfast.client.topics.scheduler",
    "AsyncQueue": "holdfast.client.handles",
    "Client": "holdfast.client.sync",
    "AsyncHandle": "holdfast.client.put_handles",
    "Config": "holdfast.client.config",
    "Events": "holdfast.client.events",
    "Handle": "holdfast.client.put_handles",
    "LuaPlugin": "holdfast.client.plugin",
    "Job": "holdfast.client.handles",
    "Queue": "holdfast.client.handles",
    "RecurringJob": "holdfast.client.recurring",
    "Scheduler": "holdfast.client.topics.scheduler",
    "Throttle": "holdfast.client.throttles",
    "Failed": "holdfast.code.outcomes",
    "Moved": "holdfast.code.outcomes",
    "Retry": "holdfast.code.outcomes",
    "Skip": "holdfast.code.outcomes",
    "as_completed": "holdfast.client.completion",
    "create_app": "holdfast.web",
    "current_async_job": "holdfast.client.handles",
    "current_job": "holdfast.client.handles",
    "retry": "holdfast.code.retrying",
    "gather": "holdfast.client.completion",
}


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        return _renamed(name)
    found = getattr(importlib.import_module(module), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


__all__ = [
    "AsyncClient",
    "AsyncEvents",
    "AsyncFlowHandle",
    "AsyncHandle",
    "AsyncJob",
    "AsyncQueue",
    "AsyncScheduler",
    "Call",
    "Client",
    "CodecError",
    "Config",
    "ConnectionLost",
    "CoreMismatch",
    "DataTooLarge",
    "DependencyRefused",
    "Events",
    "Failed",
    "FlowClosed",
    "FlowFailure",
    "FlowHandle",
    "FlowOutcome",
    "Group",
    "Handle",
    "HoldfastError",
    "InvalidTimeout",
    "Job",
    "JobCancelled",
    "JobExists",
    "JobFailed",
    "JobNotFound",
    "JobTimedOutError",
    "LeaseLost",
    "LostLockError",
    "LuaPlugin",
    "MiddlewareMisconfigured",
    "Moved",
    "NotAllowed",
    "NotUnique",
    "OperationNotFound",
    "PerformTimeout",
    "Queue",
    "QueueFull",
    "QueueNotEmpty",
    "QueueNotEmptyError",
    "RecurringJob",
    "Refused",
    "ReqlessError",
    "Results",
    "Retry",
    "Scheduler",
    "Skip",
    "StartFailed",
    "StoreBusy",
    "StoreFull",
    "StoreTimeout",
    "StoreUnavailable",
    "StoreUnsupported",
    "Throttle",
    "ThrottleNotFound",
    "TooManyQueues",
    "TransportError",
    "UnknownEvent",
    "UnknownKlass",
    "UnknownName",
    "UnsupportedRedisVersionError",
    "UsageError",
    "WorkError",
    "WrongState",
    "as_completed",
    "chain",
    "create_app",
    "current_async_job",
    "current_job",
    "gather",
    "generate_jid",
    "group",
    "join",
    "logger",
    "retry",
]
