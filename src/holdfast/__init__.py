"""Background jobs on Valkey or Redis that do not get dropped."""

__version__ = "0.1.0"
