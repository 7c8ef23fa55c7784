"""A door as a script: a text that the store runs anew for every call."""

from holdfast.core.script.cells import missed, script

__all__ = ["missed", "script"]
