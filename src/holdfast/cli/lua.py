"""`holdfast lua`: print the Lua scripts of the core, for clients in other languages."""

import hashlib

import click

from holdfast.cli.output import json_option, print_json
from holdfast.core.texts import TEXTS

_HELP = "\b\n" + "".join(f"{name:<8} {text.purpose}\n" for name, text in TEXTS.items())


@click.command(
    help=f"""Print a Lua script of the core, for clients in other languages to load.

{_HELP}
With --json: its name, file name, SHA1 (for EVALSHA) and text.
"""
)
@click.argument("text", type=click.Choice(list(TEXTS)))
@json_option
def lua(text: str, as_json: bool) -> None:
    found = TEXTS[text]
    made = found.make()
    if as_json:
        sha1 = hashlib.sha1(made.encode(), usedforsecurity=False).hexdigest()
        print_json({"name": text, "file": found.file, "sha1": sha1, "text": made})
    else:
        click.echo(made, nl=False)
