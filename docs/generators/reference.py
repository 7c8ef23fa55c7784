"""Write the generated pages of the reference: `python docs/generators/reference.py DIRECTORY`."""

import inspect
import sys
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
from api_reference import api

from holdfast import errors
from holdfast.cli.main import holdfast
from holdfast.cli.program import PROGRAMS, programs
from holdfast.cli.settings import default_of
from holdfast.commands import COMMANDS, CommandBase
from holdfast.core.sources import rows_of
from holdfast.ids import mint_jid

_SETTINGS_HEAD = """# Settings of programs

Written by `make docs` from the commands. A setting comes from its flag, else from its variable, else from a variable of an older release or system,
else from a file, else it has its default. `HOLDFAST_URL` and `HOLDFAST_NAMESPACE` come before a file, `REDIS_URL` behind it. Lists in variables have commas
(`\\,` is a comma in a value; the rules of `redact` stand on a line each). The file is named by `--config`, or is
`holdfast.toml` or `pyproject.toml` in the working directory, if no other user may write it. In `pyproject.toml` the tables begin with
`tool.holdfast.`, as in `[tool.holdfast.worker]`. `holdfast settings` shows what applies, and where it comes from.
"""
_ADDS = "refused when the store is full"


def command_line() -> str:
    """Return the help of every command, each as a section."""
    return "\n".join(
        [
            "# The command line\n\nWritten by `make docs` from the program's own help.\n",
            *_helps(holdfast, "holdfast"),
        ]
    )


def _helps(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent, terminal_width=100, max_content_width=100)
    yield f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            if found:
                yield from _helps(found, below, context)


def verbs() -> str:
    """Return the page of the verbs: words, flags, arguments, reply and description of each."""
    parts = [
        "# The verbs\n\nWritten by `make docs` from the core and its commands. `FCALL hf1_<verb> 1 <root> …` with these "
        "words; `protocol.md` describes the protocol. The arguments are those of the command class in Python, which "
        "checks nothing by itself: the core refuses what is out of bounds.\n"
    ]
    for row in rows_of("doors.native"):
        command = COMMANDS[row.verb]
        flags = ", ".join(f"`{flag}`" for flag in row.flags) or _ADDS
        parts.append(f"## {row.verb}\n\n`{row.words or '(no words)'}` · {flags}\n")
        parts.append(_head(command) + f"{inspect.getdoc(command) or ''}\n")
    return "\n".join(parts)


def _head(command: type[CommandBase]) -> str:
    """Return the arguments of a command class as a table, and what its reply is read as."""
    hints = typing.get_type_hints(command, include_extras=True)
    fields = msgspec.structs.fields(command)
    rows = "".join(
        f"| `{field.name}` | {_kind(hints[field.name])} | {_default(field)} |\n" for field in fields
    )
    table = f"| argument | what it is | default |\n| --- | --- | --- |\n{rows}\n" if rows else ""
    reply = typing.get_type_hints(command.read).get("return")
    return table + f"Reply, as read: {_kind(reply)}.\n\n"


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.default_factory is mint_jid:
        return "generated"
    if field.default is not msgspec.NODEFAULT:
        return f"`{field.default!r}`"
    return "" if field.default_factory is msgspec.NODEFAULT else "empty"


def _kind(hint: Any) -> str:
    """Return a type with its bounds in words."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _bounded(args[0], next(one for one in args if isinstance(one, msgspec.Meta)))
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_kind(one) for one in args)
    if origin is typing.Literal:
        return ", ".join(f"`{one}`" for one in args)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"mapping of {_kind(args[0])} to {_kind(args[1])}"
    if origin is tuple and args[-1:] != (...,):
        return "(" + ", ".join(map(_kind, args)) + ")"
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return f"list of ({_kind(args[0])})"
    return _PLAIN.get(hint) or f"`{getattr(hint, '__name__', hint)}`"


_PLAIN: Mapping[Any, str] = {
    int: "whole number", float: "number", str: "text", bytes: "bytes", bool: "true or false", type(None): "none", Any: "any value",
}  # fmt: skip


def _bounded(kind: Any, meta: msgspec.Meta) -> str:
    most = f"{meta.max_length:,}" if meta.max_length is not None else ""
    if kind is str:
        return f"text, {meta.min_length or 0} to {most} characters"
    if most:
        return f"{_kind(kind)}, at most {most}"
    return f"{_kind(kind)}, {meta.ge:,} to {meta.le:,}"


def mistakes() -> str:
    """Return the page of the errors, as a tree."""
    return "# Errors\n\nWritten by `make docs` from `holdfast.errors`.\n\n" + "".join(
        _tree(errors.HoldfastError, 0)
    )


def _tree(kind: type[BaseException], depth: int) -> Iterator[str]:
    first = (inspect.getdoc(kind) or "").split("\n\n")[0].replace("\n", " ")
    yield f"{'  ' * depth}* `{kind.__name__}`: {first}\n"
    for below in kind.__subclasses__():
        if below.__module__ == errors.__name__:  # only errors that callers can catch
            yield from _tree(below, depth + 1)


def program_settings() -> str:
    """Return the page of the settings of the commands that run for long."""
    parts = [_SETTINGS_HEAD]
    for words, program in zip(PROGRAMS, programs(), strict=True):
        parts.append(
            f"## {words}\n\nTable `[{'.'.join(program.path)}]`.\n\n| flag and key | variable | older variables | default |"
        )
        parts.append("| --- | --- | --- | --- |")
        for key, option in program.settings().items():
            older = ", ".join(f"`{name}`" for name in program.older_variables(option))
            default = default_of(program, option).replace("|", "\\|")
            parts.append(f"| `{key}` | `{program.variable(key)}` | {older} | {default} |")
        parts.append("")
    return "\n".join(parts)


def pages() -> Mapping[str, str]:
    """Return the text of each page by file name."""
    return {
        "api.md": api(),
        "cli.md": command_line(),
        "verbs.md": verbs(),
        "errors.md": mistakes(),
        "settings.md": program_settings(),
    }


def main(directory: Path) -> None:
    """Write the pages."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (directory / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
