"""Tools for tests of programs that use holdfast: stores, workers that run in the test, a clock, real workers.

The pytest plugin (`holdfast.testing.plugin`) has fixtures for them. Each module is imported at its first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.testing.clock import StoppedClock as StoppedClock
    from holdfast.testing.puts import all_put as all_put
    from holdfast.testing.puts import assert_not_put as assert_not_put
    from holdfast.testing.puts import assert_put as assert_put
    from holdfast.testing.real import RealWorker as RealWorker
    from holdfast.testing.real import drain_worker_queues as drain_worker_queues
    from holdfast.testing.real import run_jobs as run_jobs
    from holdfast.testing.real import run_worker_concurrently_with as run_worker_concurrently_with
    from holdfast.testing.real import stop_worker_after as stop_worker_after
    from holdfast.testing.stand_in import StandIn as StandIn
    from holdfast.testing.steps import Performed as Performed
    from holdfast.testing.store import ScratchStore as ScratchStore
    from holdfast.testing.worker import AsyncLocalWorker as AsyncLocalWorker
    from holdfast.testing.worker import LocalWorker as LocalWorker

_HOMES = {
    "clock": ("StoppedClock",),
    "puts": ("all_put", "assert_not_put", "assert_put"),
    "real": (
        "RealWorker",
        "drain_worker_queues",
        "run_jobs",
        "run_worker_concurrently_with",
        "stop_worker_after",
    ),
    "stand_in": ("StandIn",),
    "store": ("ScratchStore",),
    "steps": ("Performed",),
    "worker": ("AsyncLocalWorker", "LocalWorker"),
}
_LAZY = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    home = _LAZY.get(name)
    if home is None:
        raise AttributeError(f"module 'holdfast.testing' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"holdfast.testing.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


__all__ = [
    "AsyncLocalWorker",
    "LocalWorker",
    "Performed",
    "RealWorker",
    "ScratchStore",
    "StandIn",
    "StoppedClock",
    "all_put",
    "assert_not_put",
    "assert_put",
    "drain_worker_queues",
    "run_jobs",
    "run_worker_concurrently_with",
    "stop_worker_after",
]
