"""Settings of the commands that run for long: each is read from its flag, a variable, a file, or has its default.

The order is: flag, `HOLDFAST_<COMMAND>_<FLAG>`, the variables of older releases and systems, the file, the default.
"""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import click
from click.core import ParameterSource

from holdfast.cli.place import ORIGINS
from holdfast.code.allowed import is_ours
from holdfast.errors import UsageError
from holdfast.settings import unknown_option
from holdfast.text import one_line

FILE: Final = "holdfast.toml"
PROJECT: Final = "pyproject.toml"
_TABLE: Final = ("tool", "holdfast")
_NEVER: Final = frozenset({"config", "help", "status", "kill", "hash_password", "seed_data", "in_background"})
"""Flags that are not settings: with them the command does something other than run."""
_CODE: Final = frozenset({"setup", "middleware", "import", "path", "allow"})
"""Keys that name code to run; they are refused in a file in a directory that others may write."""
_PUSHES: Final = "push"
"""The tables of a file that name topics and web hooks, which `topics push` reads."""
_BEFORE_FILES: Final = {"url": "HOLDFAST_URL", "namespace": "HOLDFAST_NAMESPACE"}
_AT_LAST: Final = {"url": "REDIS_URL"}
"""Variables that clients read themselves: a command whose option does not name them leaves that to its client."""

_NUMBERS: Final = (click.types.IntParamType, click.types.FloatParamType)

PROGRAMS: Final = ("worker", "web", "notify", "topics serve", "topics push", "metrics serve")
"""The commands that have settings, as they are typed."""


class ProgramSetting(NamedTuple):
    """What was found for one setting: the value as it was written, and where."""

    value: Any
    origin: str


class ProgramCommand(click.Command):
    """A command that runs for long: its options may also be given by variables and by a file.

    `path` names its table in a file, and its variables: `("topics", "push")`. A variable that an option names by `envvar` is one of older releases or systems; `constants`
    maps such variables to the option and the value that they stand for if they are not empty. `secret` are the flags
    whose values are never shown, `by_lines` those whose values may have commas: their variables have a value on each line.
    """

    def __init__(
        self,
        *args: Any,
        path: tuple[str, ...],
        constants: Mapping[str, tuple[str, str]] | None = None,
        secret: Sequence[str] = (),
        by_lines: Sequence[str] = (),
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **attributes)
        self.path, self.constants, self.secret = path, dict(constants or {}), frozenset(secret)
        self.by_lines = frozenset(by_lines)
        self.older: dict[str, tuple[str, ...]] = {}
        for option in self.params:
            given = option.envvar or ()
            self.older[option.name or ""] = (given,) if isinstance(given, str) else tuple(given)
            option.envvar = None  # read here, after the variables of this release
        config = next((option for option in self.params if option.name == "config"), None)
        if config is None:
            config = click.Option(
                ["--config"],
                type=click.Path(path_type=Path, dir_okay=False),
                expose_value=False,
                help=f"TOML file with settings [default: {FILE} or {PROJECT} in the working directory].",
            )
            self.params.append(config)
        config.is_eager, config.callback, config.envvar = True, self._load, self.variable("config")

    # The settings of a command.

    def settings(self) -> dict[str, click.Parameter]:
        """Return the options that are settings, by their keys: `max-jobs` of `--max-jobs`."""
        return {
            key_of(option): option
            for option in self.params
            if isinstance(option, click.Option)
            and not option.hidden
            and option.name not in _NEVER
            and key_of(option).replace("-", "_") not in _NEVER
        }

    def variable(self, key: str) -> str:
        """Return the name of the variable of a setting: `HOLDFAST_WORKER_MAX_JOBS`."""
        return f"{self._prefix()}{key.replace('-', '_').upper()}"

    def older_variables(self, option: click.Parameter) -> list[str]:
        """Return the variables of older releases and systems for an option."""
        name = option.name or ""
        return [*self.older[name], *(each for each, (target, _) in self.constants.items() if target == name)]

    def _prefix(self) -> str:
        return f"HOLDFAST_{'_'.join(self.path).upper()}_"

    # The values that were set.

    def found(
        self, config: Path | None, environment: Mapping[str, str]
    ) -> tuple[Path | None, dict[str, ProgramSetting]]:
        """Return the file that is used, and what variables and it set, by key. Raises UsageError."""
        settings = self.settings()
        self._check_variables(environment, settings)
        found: dict[str, ProgramSetting] = {}
        path, document = _document(config)
        file = {} if path is None else self._in_file(path, document, settings)
        for key, option in settings.items():
            setting = (
                self._in_environment(key, option, environment)
                or _of_all_programs(_BEFORE_FILES, key, environment)
                or file.get(key)
                or _of_all_programs(_AT_LAST, key, environment)
            )
            if setting is not None:
                self._check(key, option, setting)
                found[key] = setting
        return path, found

    def _load(self, context: click.Context, parameter: click.Parameter, config: Path | None) -> Path | None:
        """Give the options what variables and the file set, and return the file that is used."""
        if context.resilient_parsing:
            return config
        settings = self.settings()
        path, found = self.found(config, os.environ)
        context.meta[ORIGINS] = {settings[key].name or "": each.origin for key, each in found.items()}
        context.default_map = {
            settings[key].name or "": each.value
            for key, each in found.items()
            if each.origin not in (_BEFORE_FILES.get(key), _AT_LAST.get(key))
            or each.origin in self.older_variables(settings[key])
        }
        return path

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. An error of a setting names what set it: a flag, a variable or a file."""
        try:
            return super().invoke(ctx)
        except UsageError as error:
            raise self._with_origin(ctx, error) from error

    def _with_origin(self, context: click.Context, error: UsageError) -> UsageError:
        """Return an error whose text begins with the name of a setting with what set it in place of the name."""
        first, blank, rest = str(error).partition(" ")
        origins: dict[str, str] = context.meta.get(ORIGINS, {})
        for option in self.params if type(error) is UsageError else ():
            name = option.name or ""
            if first not in (name, name.removesuffix("s"), *option.opts):
                continue
            source = context.get_parameter_source(name)
            origin = (
                f"--{key_of(option)}" if source is ParameterSource.COMMANDLINE else origins.get(name, first)
            )
            return UsageError(f"{origin}{blank}{rest}")
        return error

    def from_variables(self, context: click.Context, environment: Mapping[str, str]) -> dict[str, Any]:
        """Return the values that variables give now to the options that were not given as flags, by their names. Raises UsageError."""
        settings = self.settings()
        self._check_variables(environment, settings)
        found: dict[str, Any] = {}
        for key, option in settings.items():
            name = option.name or ""
            setting = self._in_environment(key, option, environment)
            if setting is None or context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
                continue
            self._check(key, option, setting)
            found[name] = option.process_value(context, setting.value)
        return found

    def _check_variables(self, environment: Mapping[str, str], settings: Mapping[str, Any]) -> None:
        known = {self.variable(key) for key in (*settings, "config")}
        for name in environment:
            if name.startswith(self._prefix()) and name not in known and not self._is_older(name):
                raise unknown_option(
                    f"holdfast {' '.join(self.path)}", one_line(name), tuple(known), "variable"
                )

    def _is_older(self, name: str) -> bool:
        return name in self.constants or any(name in names for names in self.older.values())

    def _in_environment(
        self, key: str, option: click.Parameter, environment: Mapping[str, str]
    ) -> ProgramSetting | None:
        variable = self.variable(key)
        if variable in environment:
            if not environment[variable].strip():
                raise UsageError(f"{variable} is empty: give it a value, or unset it")
            return ProgramSetting(self._parsed(key, option, environment[variable]), variable)
        for older in self.older_variables(option):
            if environment.get(older):  # an empty variable counts as not set
                value = self.constants.get(older, ("", environment[older]))[1]
                return ProgramSetting(self._parsed(key, option, value), older)
        return None

    def _parsed(self, key: str, option: click.Parameter, text: str) -> Any:
        """Return the text of a variable as a flag gives it; an option with `split_each` takes lists as they are."""
        if not option.multiple:
            return text.strip()
        if key in self.by_lines:
            return [line.strip() for line in text.splitlines() if line.strip()]
        return [text] if option.callback is split_each else split_list(text)

    def _check(self, key: str, option: click.Parameter, setting: ProgramSetting) -> None:
        context = click.Context(self)
        try:
            option.type_cast_value(context, setting.value)
        except click.BadParameter as error:
            reason = "the value cannot be read" if key in self.secret else one_line(error.message.rstrip("."))
            if isinstance(option.type, _NUMBERS):
                reason = _no_number(option, setting.value) or reason
            raise UsageError(f"{setting.origin}: {reason}") from None

    def _in_file(
        self, path: Path, document: Mapping[str, Any], settings: Mapping[str, click.Parameter]
    ) -> dict[str, ProgramSetting]:
        name = ".".join(self.path)
        found: object = document
        for word in self.path:
            found = _below(found, word)
        if not isinstance(found, dict):
            raise UsageError(f"{path}: expected a table [{name}], got {type(found).__name__}")
        table = cast("dict[str, Any]", found)
        for key, value in table.items():
            if key not in settings:
                raise unknown_option(f"{path}, [{name}]", one_line(key), tuple(settings), "setting")
            where = f"{path}, [{name}] {key}"
            if key in _CODE and not is_ours(path.resolve().parent):
                raise UsageError(
                    f"{where}: a file may name code only if no other user can write to its directory; give --{key}"
                )
            _check_type(where, settings[key], value)
        return {
            key: ProgramSetting(_as_given(settings[key], value), f"{path}, [{name}] {key}")
            for key, value in table.items()
        }


def _of_all_programs(
    variables: Mapping[str, str], key: str, environment: Mapping[str, str]
) -> ProgramSetting | None:
    name = variables.get(key, "")
    return ProgramSetting(environment[name], name) if environment.get(name) else None


def key_of(option: click.Parameter) -> str:
    """Return the key of an option: its first long name without the dashes."""
    return next((name[2:] for name in option.opts if name.startswith("--")), option.name or "")


def split_list(text: str) -> list[str]:
    r"""Return the texts between the commas, without spaces around them; `\,` is a comma in a text."""
    parts = text.replace("\\,", "\0").split(",")
    return [part.replace("\0", ",").strip(" ") for part in parts if part.strip()]


def split_each(context: click.Context, parameter: click.Parameter, given: Sequence[str]) -> tuple[str, ...]:
    """Return all names in values that may be lists with commas; the callback of an option that takes such values."""
    return tuple(name for text in given for name in split_list(text))


def _below(table: object, name: str) -> object:
    """Return the table under a name, {} if there is none; a value that is not a table is returned as it is."""
    return cast("dict[str, Any]", table).get(name, {}) if isinstance(table, dict) else table


def _as_given(option: click.Parameter, value: Any) -> Any:
    """Return a value of a file as a flag gives it: an option's type may read texts only, and splits at commas that are not marked."""
    if isinstance(value, list):
        return [_as_given(option, each) for each in cast("list[object]", value)]
    if option.callback is split_each:
        return str(value).replace(",", "\\,")
    return value if isinstance(value, bool) else str(value)


def _no_number(option: click.Parameter, value: object) -> str:
    """Return why a value is not a number, "" if it is one."""
    what = "a whole number" if isinstance(option.type, click.types.IntParamType) else "a number"
    try:
        found = float(str(value))
    except ValueError:
        return f"expected {what}, got {value!r:.80}"
    return (
        ""
        if what == "a number" or str(value).strip().lstrip("-").isdecimal()
        else f"expected {what}, got {found:g}"
    )


def _check_type(where: str, option: click.Parameter, value: Any) -> None:
    """Raise UsageError for a value of another type than the setting has."""
    if option.multiple:
        if not isinstance(value, list) or not all(
            isinstance(each, str) for each in cast("list[object]", value)
        ):
            raise UsageError(f'{where}: expected a list of texts such as ["a", "b"], got {value!r:.80}')
    elif getattr(option, "is_flag", False):
        if not isinstance(value, bool):
            raise UsageError(f"{where}: expected true or false, got {value!r:.80}")
    elif isinstance(value, bool) or not isinstance(value, str | int | float):
        what = "a number" if isinstance(option.type, _NUMBERS) else "a text or a number"
        raise UsageError(f"{where}: expected {what}, got {value!r:.80}")
    elif isinstance(option.type, _NUMBERS) and isinstance(value, str):
        raise UsageError(f"{where}: expected a number, got {value!r:.80}")


def _read(path: Path, optional: bool = False) -> dict[str, Any]:
    """Return what a file has for holdfast, {} if it has nothing or, with `optional`, does not exist. Raises UsageError."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        if optional:
            return {}
        raise UsageError(f"--config {path}: {error.strerror}") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if path.name == PROJECT and "holdfast" not in text:
        return {}
    import tomllib  # most programs have no file

    try:
        document: object = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: {error}") from None
    for word in _TABLE if path.name == PROJECT else ():
        document = _below(document, word)
    return cast("dict[str, Any]", document) if isinstance(document, dict) else {}


def _document(config: Path | None) -> tuple[Path | None, dict[str, Any]]:
    """Return the file that is used, and what it has for holdfast; None for no file. Raises UsageError."""
    if config is not None:
        return config, _checked(config, _read(config))
    found = [(path, document) for path in map(Path, (FILE, PROJECT)) if (document := _read(path, True))]
    if len(found) > 1:
        raise UsageError(f"both {FILE} and {PROJECT} have settings: keep one, or name one with --config")
    for path, document in found:
        return path, _checked(path, document)
    return None, {}


def _checked(path: Path, document: dict[str, Any]) -> dict[str, Any]:
    """Return what a file has, once it is known to be this user's and to have no unknown tables. Raises UsageError."""
    if not is_ours(path):
        raise UsageError(
            f"{path} is ignored: other users can write it ({stat.filemode(path.stat().st_mode)}); chmod o-w {path}"
        )
    known = {words.split()[0]: 0 for words in PROGRAMS} | {_PUSHES: 0}
    for name in document:
        if name not in known:
            raise unknown_option(str(path), one_line(name), tuple(known), "table")
    below = [words.partition(" ")[2] for words in PROGRAMS if words.startswith("topics ")]
    topics: object = document.get("topics", {})
    for name in cast("dict[str, Any]", topics) if isinstance(topics, dict) else ():
        if name not in below:
            raise unknown_option(f"{path}, [topics]", one_line(name), tuple(below), "table")
    return document


def programs() -> Iterator[ProgramCommand]:
    """Load the commands that have settings."""
    from holdfast.cli.main import holdfast

    for words in PROGRAMS:
        command: click.Command | None = holdfast
        for word in words.split():
            assert isinstance(command, click.Group)
            command = command.get_command(click.Context(command), word)
        assert isinstance(command, ProgramCommand)
        yield command
