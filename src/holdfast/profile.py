"""A profiler of the calls to the store: `with Profiler(client): …`."""

from holdfast.client.profile import Profiler, Timing

__all__ = ["Profiler", "Timing"]
