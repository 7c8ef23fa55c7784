"""The native door, with its clock stopped."""

import pytest

from holdfast.testing.clock import StoppedClock
from native_door import Door


@pytest.fixture
def door(clock: StoppedClock) -> Door:
    """Raw calls on the root of this test, on each engine in turn."""
    clock.advance(seconds=0)
    return Door(clock._client)
