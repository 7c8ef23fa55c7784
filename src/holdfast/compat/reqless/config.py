"""The settings kept in the store."""

from holdfast.client.config import Config

__all__ = ["Config"]
