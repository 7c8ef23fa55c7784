"""Throttles: limits on how many jobs run at once."""

from holdfast.client.throttles import Throttle

__all__ = ["Throttle"]
