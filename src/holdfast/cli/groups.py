"""Groups of commands."""

from typing import Any

import click

from holdfast.cli.place import options_before


class OrderedGroup(click.Group):
    """A group that lists its commands in the order in which they were added, and takes --url and --namespace for them."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.params += options_before()

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


class DefaultGroup(OrderedGroup):
    """A group that runs `list` if no sub-command is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)
