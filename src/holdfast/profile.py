"""Which calls keep the store busy, and with what: `with Profiler(client): …`."""

from holdfast.client.profile import Profiler, Timing

__all__ = ["Profiler", "Timing"]
