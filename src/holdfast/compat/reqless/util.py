"""A plain import by name, without reloads."""

from holdfast.code.importing import import_class

__all__ = ["import_class"]
