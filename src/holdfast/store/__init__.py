"""The embedded store: one server per data directory, shared by whoever needs it, owned by its warden."""

from holdfast.store.paths import default_directory
from holdfast.store.starting import StoreAddress, StoreStatus, ensure, status, stop

__all__ = ["StoreAddress", "StoreStatus", "default_directory", "ensure", "status", "stop"]
