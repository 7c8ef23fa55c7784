"""What keeps the store busy."""

from holdfast.profile import Profiler

__all__ = ["Profiler"]
