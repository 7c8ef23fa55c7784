"""A plain import by name, which never loads anything again."""

from holdfast.code.importing import import_class

__all__ = ["import_class"]
