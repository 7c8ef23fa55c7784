"""Importing job classes by name, with a reload after their file was changed."""

from holdfast.code.importing import Importer

__all__ = ["Importer"]
