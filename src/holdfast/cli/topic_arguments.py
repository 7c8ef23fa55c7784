"""Arguments and options that the commands of `holdfast topics` share."""

from typing import Final

import click

from holdfast.cli.completion import names_of
from holdfast.cli.options import length
from holdfast.cli.output import FiniteRange

TOPIC: Final = click.argument("topic", shell_complete=names_of("topics"))
IDS: Final = click.argument("ids", metavar="ID…", nargs=-1, required=True)
MANY: Final = click.option(
    "--limit", "-n", type=click.IntRange(1, 512), default=1, show_default=True, help="Number of messages."
)
DELAY: Final = click.option(
    "--delay", type=length, metavar="LENGTH", help="Ready after this time, such as 2h [default: now]."
)
DELAY_BACK: Final = click.option(
    "--delay", type=length, metavar="LENGTH", help="Queue it again, ready after this time, such as 10m."
)
AT: Final = click.option(
    "--at",
    type=FiniteRange(0),
    metavar="SECONDS",
    help="Ready at this time, in seconds since the epoch.",
)
