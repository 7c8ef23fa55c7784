"""The errors that programs catch. `ReqlessError` is the root of all of holdfast's."""

from holdfast.errors import LostLockError, ReqlessError

__all__ = ["LostLockError", "ReqlessError"]
