"""A profiler of the calls to the store."""

from holdfast.profile import Profiler

__all__ = ["Profiler"]
