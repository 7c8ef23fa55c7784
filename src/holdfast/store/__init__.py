"""The embedded store: one server per data directory, shared by whoever needs it, owned by its warden."""

from holdfast.store.asking import StoreStatus, status, stop
from holdfast.store.paths import default_directory
from holdfast.store.starting import StoreAddress, ensure

__all__ = ["StoreAddress", "StoreStatus", "default_directory", "ensure", "status", "stop"]
