"""Commands: one frozen class for each verb of the core."""

import importlib
from collections.abc import Mapping
from functools import cache
from typing import Final

from holdfast.commands.base import Command, CommandBase, Reply, Word

COMMANDS: Mapping[str, type[CommandBase]]
"""Verb name → class, of all modules below. Made at the first use, because clients import only the classes they need."""

_MODULES: Final = (
    "jobs",
    "leases",
    "outcomes",
    "queues",
    "admin",
    "attributes",
    "base",
    "views",
    "operations",
    "failures",
    "options",
    "dependencies",
    "flows",
    "recurring",
    "workers",
    "topics",
)


@cache
def _commands() -> Mapping[str, type[CommandBase]]:
    modules = [importlib.import_module(f"holdfast.commands.{name}") for name in _MODULES]
    return {verb: kind for module in modules for verb, kind in module.VERBS.items()}


def __getattr__(name: str) -> object:
    if name == "COMMANDS":
        return _commands()
    raise AttributeError(f"module 'holdfast.commands' has no attribute {name!r}")


__all__ = ["COMMANDS", "Command", "CommandBase", "Reply", "Word"]
