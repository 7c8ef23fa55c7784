"""Importing job classes by name, again when their file changed."""

from holdfast.code.importing import Importer

__all__ = ["Importer"]
