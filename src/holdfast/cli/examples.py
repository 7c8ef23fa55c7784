"""How the help of a command shows examples."""

from collections.abc import Callable
from typing import TypeVar

import click

C = TypeVar("C", bound=click.Command)


def examples(*lines: str) -> Callable[[C], C]:
    """Show command lines at the end of a command's help; a line is a command, or its explanation behind `#`."""

    def add(command: C) -> C:
        command.epilog = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
        return command

    return add
