"""Writes the reference page of the command line: `python -m holdfast.cli.reference FILE`."""

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from holdfast.cli.main import holdfast


def pages(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[str]:
    """The help of a command and of all below it, each as a section."""
    context = click.Context(command, info_name=name, parent=parent, terminal_width=100, max_content_width=100)
    yield f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            if found:
                yield from pages(found, below, context)


def main(path: Path) -> None:
    """Write the page."""
    text = "\n".join(
        [
            "# The command line\n\nWritten by `make docs` from the program's own help.\n",
            *pages(holdfast, "holdfast"),
        ]
    )
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
