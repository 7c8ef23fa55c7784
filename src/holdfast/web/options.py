"""What `create_app` may be given, checked."""

from collections.abc import Sequence
from typing import Final, Literal, TypedDict

import msgspec

from holdfast.errors import UsageError
from holdfast.settings import check_namespace, unknown_option
from holdfast.web.parts import PARTS, Part

Live = Literal["stream", "poll", "off"]
LIVE: Final = ("stream", "poll", "off")


class AppOptions(TypedDict, total=False):
    """The options of `create_app`; `Options` describes them."""

    auth: object
    login_url: str
    read_only: bool
    redact: Sequence[str]
    environment: str
    accent: str
    live: Live
    undo_seconds: float
    hosts: Sequence[str]
    trusted_proxies: Sequence[str]
    frame_ancestors: Sequence[str]
    parts: Sequence[Part]
    namespaces: Sequence[str]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the web application.

    `auth`: see `holdfast.web.auth`. `login_url`: where a page sends people for whom an `auth` that is a function returns None, with
    `?next=` and the path that they wanted; JSON, the live stream and actions get 401 with `login_url`. `read_only`: nothing can be changed. `redact`: paths in the data of jobs (`*.password`) and,
    behind `re:`, patterns of text that are masked. `environment` is shown beside the name, `accent` is its colour (`#0b6b5d`).
    `live`: how pages update themselves. `undo_seconds`: the seconds after which jobs that
    a page cancels are cancelled; until then that can be undone (0: at once). `hosts`: the names under which the application may be reached, others are refused;
    none: any name, where users have to log in. `trusted_proxies`: addresses whose `X-Forwarded-Proto` and
    `X-Forwarded-Prefix` (a path that the reverse proxy removes) count.
    `frame_ancestors`: origins that may show the pages in a frame. `parts`: what is served, all by default; what is not is 404.
    `namespaces`: those that requests to the gateway and the topic endpoints may name, beside that of the client.
    """

    auth: object = None
    login_url: str = ""
    read_only: bool = False
    redact: tuple[str, ...] = ()
    environment: str = ""
    accent: str = ""
    live: Live = "stream"
    undo_seconds: float = 10.0
    hosts: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    frame_ancestors: tuple[str, ...] = ()
    parts: tuple[Part, ...] = PARTS
    namespaces: tuple[str, ...] = ()


def checked_options(given: AppOptions) -> Options:
    """Return the options. Raises UsageError for an unknown one, or a value of the wrong type."""
    for name in given:
        if name not in Options.__struct_fields__:
            raise unknown_option("create_app", name, Options.__struct_fields__)
    auth = given.get("auth")
    rest = {name: value for name, value in given.items() if name != "auth"}
    try:
        found = msgspec.convert(rest, Options)
    except msgspec.ValidationError as error:
        raise UsageError(f"create_app: {error}") from None
    for name in found.namespaces:
        check_namespace(name)
    if not found.parts:
        raise UsageError(f"create_app: parts: expected some of {', '.join(PARTS)}")
    return msgspec.structs.replace(found, auth=auth)
