"""`holdfast settings`: what the commands that run for long are set to, and where each value comes from."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import click

from holdfast.cli.examples import examples
from holdfast.cli.options import print_list
from holdfast.cli.output import json_option, print_json
from holdfast.cli.program import PROGRAMS, ProgramCommand, ProgramSetting, programs
from holdfast.settings import shown_url, unknown_option


class Row(NamedTuple):
    """One setting of one command: its value for display, and where that comes from."""

    command: str
    setting: str
    value: str
    origin: str


def _command(context: click.Context, parameter: click.Parameter, words: Sequence[str]) -> str | None:
    """Return the command that some words name, as they are typed or quoted; `metrics` is short for `metrics serve`."""
    if not words:
        return None
    name = " ".join(" ".join(words).split())
    found = [program for program in PROGRAMS if program == name or program.split()[0] == name]
    if len(found) != 1:
        raise unknown_option("holdfast settings", name, tuple(found or PROGRAMS), "command")
    return found[0]


def _complete(context: click.Context, parameter: click.Parameter, begin: str) -> list[str]:
    before = [*cast("Sequence[str]", context.params.get("command") or ()), begin]
    at = len(before) - 1
    rows = [program.split() for program in PROGRAMS]
    return sorted(
        {row[at] for row in rows if row[:at] == before[:at] and len(row) > at and row[at].startswith(begin)}
    )


@examples(
    "holdfast settings",
    "holdfast settings worker",
    "holdfast settings topics push",
    "holdfast settings web --config /etc/holdfast.toml --json",
)
@click.command()
@click.argument("command", nargs=-1, callback=_command, shell_complete=_complete)
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    help="TOML file with settings, as for the commands themselves.",
)
@click.option("--set", "only_set", is_flag=True, help="Leave out settings with their default.")
@json_option
def settings(command: str | None, config: Path | None, only_set: bool, as_json: bool) -> None:
    """Show the settings of worker, web, notify, topics serve, topics push and metrics serve, and their origins.

    A setting comes from its flag, else the variable HOLDFAST_COMMAND_FLAG, a variable of an older release, the file, or the default.
    The file is holdfast.toml, with a table for each command such as [worker], or pyproject.toml, with [tool.holdfast.worker]. Flags are
    not known to this command. `holdfast config` has the settings kept in the store. JSON: `settings`, each with `command`, `setting`,
    `variable`, `value` and `origin`.
    """
    rows = [
        (program, row)
        for words, program in zip(PROGRAMS, programs(), strict=True)
        if command in (None, words)
        for row in _rows(words, program, config)
        if not only_set or row.origin != "default"
    ]
    if as_json:
        print_json(
            {
                "settings": [
                    {**row._asdict(), "variable": program.variable(row.setting)} for program, row in rows
                ]
            }
        )
        return
    print_list(
        Row._fields, [row for _, row in rows], whole=("setting",), empty="All settings have their defaults."
    )


def _rows(words: str, program: ProgramCommand, config: Path | None) -> list[Row]:
    _, found = program.found(config, os.environ)
    return [_row(words, program, key, option, found) for key, option in program.settings().items()]


def _row(
    words: str,
    program: ProgramCommand,
    key: str,
    option: click.Parameter,
    found: Mapping[str, ProgramSetting],
) -> Row:
    if key not in found:
        return Row(words, key, default_of(program, option), "default")
    value = _shown(found[key].value)
    if key == "url":
        value = shown_url(value)
    elif key in program.secret:
        value = "set"
    return Row(words, key, value, found[key].origin)


def default_of(program: ProgramCommand, option: click.Parameter) -> str:
    """Return the default of an option as its help has it, without the variables that come before it; "" for none."""
    found = re.search(
        r"\[default: ([^]]*)\]", (option.help or "") if isinstance(option, click.Option) else ""
    )
    if found is None:
        return _shown(option.get_default(click.Context(program)))
    text = found[1]
    for name in (*program.older_variables(option), "HOLDFAST_URL", "REDIS_URL"):
        text = re.sub(rf"^(or )?{name}(, or |, | or |$)|, or [a-z]+ if {name} is set$", "", text)
    return text


def _shown(value: Any) -> str:
    if value is None or repr(value) == "Sentinel.UNSET":
        return ""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, cast("list[object]", value)))
    return str(value)
