"""The native door, with its clock stopped."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.commands.admin import ConfigSet
from holdfast.testing.clock import StoppedClock
from native_door import Door


@pytest.fixture
def door(clock: StoppedClock) -> Door:
    """Raw calls on the root of this test, on each engine in turn."""
    clock.advance(seconds=0)
    return Door(clock._client)


@pytest.fixture
def long_leases(core: Callable[[Any], Any]) -> None:
    """Leases of 60 s and a grace period of 10 s, with which many stories count."""
    core(ConfigSet("heartbeat", "60"))
    core(ConfigSet("grace-period", "10"))
