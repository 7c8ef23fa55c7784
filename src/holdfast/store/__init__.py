"""The embedded store: one server for each data directory, shared by all programs that use it, owned by its warden."""

from holdfast.store.paths import default_directory
from holdfast.store.starting import StoreAddress, StoreStatus, ensure, status, stop

__all__ = ["StoreAddress", "StoreStatus", "default_directory", "ensure", "status", "stop"]
