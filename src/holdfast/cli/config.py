"""`holdfast config`: read and write the settings that are kept in the store."""

import json
import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import IO, Any, Final, cast

import click
import msgspec

from holdfast.cli.completion import names_of
from holdfast.cli.connection import StorePlace, actor, store_options
from holdfast.cli.examples import examples
from holdfast.cli.groups import OrderedGroup
from holdfast.cli.options import NEGATIVE, print_list
from holdfast.cli.output import echo_text, json_option, print_json
from holdfast.client.config import OF_THE_ROOT
from holdfast.console.handles import Console
from holdfast.errors import UsageError
from holdfast.logs import logger
from holdfast.settings import check_name
from holdfast.text import printable_json

_LONGEST: Final = 1 << 20


@click.group(cls=OrderedGroup)
def config() -> None:
    """Read and write the settings of a namespace."""
    click.get_current_context().with_resource(_warnings())


@contextmanager
def _warnings() -> Generator[None]:
    """Log warnings, such as that a name is nearly that of a setting."""
    before = logger.level
    logger.setLevel(before or logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(before)


@examples("holdfast config list", "holdfast config list --json")
@config.command("list")
@store_options
@json_option
def list_settings(place: StorePlace, as_json: bool) -> None:
    """List every setting with its value, default and meaning, and those that users defined.

    `set` is shown where the value is not the default. JSON: `settings`, each with `name`, `value`, `default`, `unit`, `meaning` and
    `is_set`, and `others`, the values by name.
    """
    with place.client() as client:
        found = Console(client).settings()
    if as_json:
        known = [
            {**msgspec.structs.asdict(one), "value": _shown(one.value), "default": _shown(one.default)}
            for one in found.known
        ]
        print_json({"settings": known, "others": {name: _shown(raw) for name, raw in found.others.items()}})
        return
    rows = [
        (one.name, one.value, "set" if one.is_set else "", one.default, one.unit, one.meaning)
        for one in found.known
    ]
    rows += [(name, value, "set", "", "", "") for name, value in found.others.items()]
    print_list(
        ("name", "value", "", "default", "unit", "meaning"), rows, whole=("name",), drops=(), wraps=True
    )


@examples("holdfast config dump > settings.json")
@config.command()
@store_options
@json_option
def dump(place: StorePlace, as_json: bool) -> None:
    """Print all settings as JSON, including defaults; with --json on one line.

    `holdfast config load` reads the output.
    """
    with place.client() as client:
        found = {key: _shown(raw) for key, raw in sorted(client.config.all.items())}
    click.echo(printable_json(json.dumps(found, ensure_ascii=False, indent=None if as_json else 2)))


@examples(
    "holdfast config load settings.json", "holdfast config dump | holdfast config load - --namespace other"
)
@config.command()
@click.argument("file", type=click.File(encoding="utf-8"))
@click.option("--clear", is_flag=True, help="Reset settings that are not in the file to their defaults.")
@store_options
@json_option
def load(file: IO[str], clear: bool, place: StorePlace, as_json: bool) -> None:
    """Write the settings in a JSON file; - is standard input.

    The whole file is checked before the first setting is written.
    """
    settings = _read(file)
    with place.client() as client:
        absent = sorted(key for key in client.config.all if key not in settings) if clear else []
        client.config.update(settings)
        cleared = [key for key in absent if client.config.unset(key)]
    if as_json:
        print_json({"set": sorted(settings), "cleared": cleared})
        return
    click.echo(f"set {len(settings)}" + (f", cleared {len(cleared)}" if clear else ""))


@examples("holdfast config get heartbeat")
@config.command()
@click.argument("key", shell_complete=names_of("settings"))
@store_options
@json_option
def get(key: str, place: StorePlace, as_json: bool) -> int:
    """Print one setting. Exit code 1 if it is not set and has no default."""
    with place.client() as client:
        raw = client.config.all.get(check_name("key", key))
        if raw is None and key in OF_THE_ROOT:
            raw = next((one.value for one in Console(client).settings().known if one.name == key), None)
    if as_json:
        print_json({"key": key, "value": None if raw is None else _shown(raw)})
    elif raw is not None:
        echo_text(raw)
    else:
        click.echo(f"{key} is not set", err=True)
    return 1 if raw is None else 0


@examples("holdfast config set heartbeat 60")
@config.command(name="set", context_settings=NEGATIVE)
@click.argument("key", shell_complete=names_of("settings"))
@click.argument("value")
@store_options
@json_option
def set_(key: str, value: str, place: StorePlace, as_json: bool) -> None:
    """Write one setting."""
    with place.client() as client:
        Console(client, actor()).configure(key, value)
    _print(as_json, f"{key} is {value}", {"key": key, "value": _shown(value)})


@examples("holdfast config unset heartbeat")
@config.command()
@click.argument("key", shell_complete=names_of("settings"))
@store_options
@json_option
def unset(key: str, place: StorePlace, as_json: bool) -> None:
    """Reset one setting to its default."""
    with place.client() as client:
        was_set = bool(Console(client, actor()).configure(key, None))
    _print(as_json, f"{key} was {'set' if was_set else 'not set'}", {"key": key, "was_set": was_set})


def _print(as_json: bool, text: str, facts: dict[str, Any]) -> None:
    if as_json:
        print_json(facts)
    else:
        echo_text(text)


def _shown(raw: str) -> object:
    """Return a number if it is written with the same text, else the text."""
    for kind in (int, float):
        try:
            if str(kind(raw)) == raw and raw not in ("inf", "-inf", "nan"):
                return kind(raw)
        except ValueError:
            pass
    return raw


def _read(file: IO[str]) -> dict[str, Any]:
    """Return the settings in a file. Raises UsageError."""
    name = getattr(file, "name", "the input")
    try:
        text = file.read(_LONGEST + 1)
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not text: {error}") from None
    if len(text) > _LONGEST:
        raise UsageError(f"{name} has more than {_LONGEST} characters")
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise UsageError(f"{name} must hold a JSON object of keys and values")
    settings: dict[str, Any] = cast("Any", found)
    for key, value in settings.items():
        check_name("key", key)
        if not isinstance(value, str | int | float):
            raise UsageError(
                f"{name}: the value of {key} must be text or a number, not {json.dumps(value):.80}"
            )
    return settings
