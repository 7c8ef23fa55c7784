"""The one logger, which is holdfast's: silent until the program configures logging."""

from holdfast import logger

__all__ = ["logger"]
