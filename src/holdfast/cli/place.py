"""The namespace option, and the URL of a host name and port; imports nothing that talks to a store."""

from typing import Final

import click
from click.core import ParameterSource

from holdfast.errors import UsageError

DEFAULT: Final = "default"
ORIGINS: Final = "holdfast.origins"
"""The key in the metadata of a command's context: the variable or file that set each option that no flag set, by name."""


def _remember(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    """Keep an option that was given before the name of a command, for that command."""
    if value is not None:
        context.meta[f"holdfast.{parameter.name}"] = value


def inherited(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Return the value given after the name of the command, else the one given before it."""
    is_given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
    before: str | None = context.meta.get(f"holdfast.{parameter.name}")
    return value if is_given or before is None else before


def options_before() -> list[click.Parameter]:
    """Return the options that may stand before or after the name of a command."""
    return [
        click.Option(
            ["--url", "--redis", "url"], expose_value=False, callback=_remember, help="URL of the store."
        ),
        click.Option(["--namespace"], expose_value=False, callback=_remember, help="Namespace of the jobs."),
    ]


def url_origin(context: click.Context) -> str:
    """Return what gave a command its URL: a flag, or the variable or file that set it."""
    if context.get_parameter_source("url") is ParameterSource.COMMANDLINE or context.meta.get("holdfast.url"):
        return "--url"
    origins: dict[str, str] = context.meta.get(ORIGINS, {})
    return origins.get("url", "")


own_namespace_option: Final = click.option(
    "--namespace",
    callback=inherited,
    help="Namespace of the jobs [default: HOLDFAST_NAMESPACE, that of the clients of imported code, or default].",
)
"""The option of a command that determines the namespace itself: None if it was not given."""

namespace_option: Final = click.option(
    "--namespace",
    callback=inherited,
    envvar="HOLDFAST_NAMESPACE",
    default=DEFAULT,
    help="Namespace of the jobs [default: HOLDFAST_NAMESPACE, or default].",
)


def url_of(place: str | None, port: int | None) -> str | None:
    """Return the URL for a URL or host name and a port; None for neither. Raises UsageError."""
    if place is not None and "://" in place:
        if port is not None:
            raise UsageError("--port goes with a host name: a URL contains the port")
        return place
    if place is None and port is None:
        return None
    from holdfast.client.store_options import url_of_parts

    host, _, number = (place or "localhost").rpartition(":")
    if place is None or not host or ":" in host or not number.isdecimal():
        return url_of_parts({"host": place or "localhost", "port": 6379 if port is None else port})
    if port is not None:
        raise UsageError(f"--host {place} and --port {port} both give the port")
    return url_of_parts({"host": host, "port": int(number)})
