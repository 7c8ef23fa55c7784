"""The frozen settings of a client, and the checks of arguments."""

import re
import socket
from collections.abc import Iterable, Mapping
from datetime import timedelta
from ipaddress import ip_address
from math import isfinite
from shlex import quote
from typing import Any, Final, Literal, Protocol, TypeVar, cast, get_args
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

from holdfast.bounds import MAX_BATCH as MAX_BATCH
from holdfast.bounds import MAX_DELAY as MAX_DELAY
from holdfast.bounds import MAX_WHOLE as MAX_WHOLE
from holdfast.bounds import NAME_PATTERN, Count, Name, limits, most
from holdfast.codecs import MAX_DATA, MAX_DATA_CAP
from holdfast.errors import UsageError

F = TypeVar("F")

Durability = Literal["memory", "process", "fsync"]

Duration = float | timedelta
"""A number of seconds, or a timedelta."""


class HasJid(Protocol):
    """A job, or a handle of one."""

    @property
    def jid(self) -> str: ...


DEFAULT_RETRIES: Final = 5
DEFAULT_LOSSES: Final = 3
"""How many lost attempts a function job may have."""
DEFAULT_BACKLOG: Final = 1
"""How many missed jobs a new recurrence of `every`, the web UI or the shell puts later."""
DEFAULT_HEARTBEAT: Final = 30
SHORTEST: Final = 0.001
"""Seconds: times are kept in milliseconds."""

_NAME, _LONGEST_NAME = re.compile(NAME_PATTERN), most(Name)
_NAMESPACE = re.compile(r"[^\s:{}\x00-\x1f\x7f]{1,100}")
_DATABASE = re.compile(r"rediss?://[^/?#]*/([^?#]*[^/?#])")
_SCHEMES = ("redis://", "rediss://", "unix://")
_PLACE = re.compile(r"(\[[0-9A-Fa-f:.%]*\]|[^\[\]@:/?#]*)(:[0-9]*)?(/[0-9]*)?/?")
checked_names: set[str] = set()
"""Names that `check_name` has accepted."""


class Settings(msgspec.Struct, frozen=True, gc=False):
    """How a client uses its store; times in seconds, sizes in bytes.

    A put inside a running event loop is given up after `loop_deadline` already, unless `deadline` was given.
    `flags` is what a `holdfast` command line needs to reach the same store and namespace, `redis_cli` the command that reaches the store,
    `store` names it in errors, with what named its URL.
    `durability` is how safe a write is when its call returns: `memory` (in the store's memory), `process` (in its
    append-only file: a crash of the store while the disk is slow, or a power loss, may lose about two seconds), `fsync` (on
    disk). `timeout` limits one try, `deadline` a call with all its repeats. `load_core` allows this client to load or
    replace the library; `trust_store` accepts a durability level that cannot be verified because CONFIG is forbidden.
    `strict_loop` makes the use of a Client inside a running event loop an error. Without `ensure_minimum_version`, stores
    that are too old are accepted, at the caller's own risk.
    """

    url: str
    namespace: str = "default"
    durability: Durability = "memory"
    timeout: float = 5.0
    deadline: float = 30.0
    loop_deadline: float = 5.0
    max_data: int = MAX_DATA
    load_core: bool = True
    trust_store: bool = False
    worker_name: str = ""
    strict_loop: bool = False
    ensure_minimum_version: bool = True
    flags: str = ""
    redis_cli: str = "redis-cli"
    store: str = "the store"

    def __repr__(self) -> str:
        """The fields, without command lines and without secrets of the URL."""
        hidden = ("url", "flags", "redis_cli", "store")
        fields = [name for name in self.__struct_fields__ if name not in hidden]
        return f"Settings({', '.join([f'url={shown_url(self.url)!r}', *(f'{name}={getattr(self, name)!r}' for name in fields)])})"

    def checked(self) -> "Settings":
        """Return these settings if all of them are valid. Raises UsageError."""
        check_url(self.url)
        check_namespace(self.namespace)
        if self.durability not in get_args(Durability):
            raise unknown_option("durability", str(self.durability), get_args(Durability), "level")
        check_seconds("timeout", self.timeout, 0.01, 3600.0)
        check_seconds("deadline", self.deadline, 0.0, 86_400.0)
        check_whole("max_data", self.max_data, 1, MAX_DATA_CAP)
        for name in ("load_core", "trust_store", "strict_loop", "ensure_minimum_version"):
            check_switch(name, getattr(self, name))
        if self.worker_name:
            check_name("hostname", self.worker_name)
        return self


def default_worker_name() -> str:
    """Return the host name, as a worker name."""
    return socket.gethostname() or "localhost"


def check_name(what: str, name: object) -> str:
    """Return `name` if it is 1 to 200 bytes of text without control characters. Raises UsageError."""
    if type(name) is str and name in checked_names:
        return name
    if not isinstance(name, str):
        raise UsageError(f"{what} must be text, not {type(name).__name__}")
    try:
        size = len(name.encode())
    except UnicodeError:
        raise UsageError(f"{what} {name!r} cannot be written as UTF-8") from None
    if not 1 <= size <= _LONGEST_NAME:
        raise UsageError(f"{what} must have 1 to {_LONGEST_NAME} bytes, not {size:,}")
    if not _NAME.fullmatch(name):
        raise UsageError(f"{what} {name!r} contains control characters")
    if len(checked_names) < 10_000:
        checked_names.add(name)
    return name


def check_queue(what: str, queue: object) -> str:
    """Return the name of a queue, given as an object or by name. Raises UsageError."""
    return check_name(what, getattr(queue, "name", queue) if hasattr(queue, "worker_name") else queue)


def check_names(what: str, given: object, limit: Any) -> list[str]:
    """Return a list of up to `limit` names (a number, or a type of `bounds`), each once, in the order given. Raises UsageError."""
    longest = limit if isinstance(limit, int) else most(limit)
    names: dict[str, None] = {}
    for name in check_list(what, given):
        names[check_name(what, name)] = None
        if len(names) > longest:
            raise UsageError(f"{what}: at most {longest} names, not more")
    return list(names)


def check_each(what: str, given: Iterable[str], most: int | None = None) -> list[str]:
    """Return the names given to one call, at most `most` of them. Raises UsageError."""
    names = [check_name(what, name) for name in given]
    if most is not None and len(names) > most:
        raise UsageError(f"at most {most} {what}s in one call, not {len(names)}")
    return names


def check_jids(what: str, given: object, limit: Any) -> list[str]:
    """Return the jids of up to `limit` jobs, as `check_names` takes it, each once, given as jids, jobs or handles. Raises UsageError."""
    return check_names(what, map(jid_of, check_list(what, given)), limit)


def jid_of(job: object) -> Any:
    """Return the jid of a job or a handle; anything else as it is."""
    return getattr(job, "jid", job)


def check_list(what: str, given: object) -> Iterable[Any]:
    """Return `given` if it is iterable, and neither text nor a mapping. Raises UsageError."""
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise UsageError(f"{what} must be a list, not {given!r:.80}")
    items: Iterable[object] = cast("Any", given)
    return items


def check_callable(what: str, given: F) -> F:
    """Return `given` if it can be called. Raises UsageError."""
    if not callable(given):
        raise UsageError(f"{what} must be callable, not {given!r:.80}")
    return given


def check_text(what: str, text: object) -> str:
    """Return `text` so that it can be encoded as UTF-8: surrogates, as in odd file names, are escaped. Raises UsageError."""
    if not isinstance(text, str):
        raise UsageError(f"{what} must be text, not {type(text).__name__}")
    return text.encode("utf-8", "backslashreplace").decode()


OWN_THROTTLE = "ql:q:"
"""The prefix of the throttle of a queue; the name of the queue follows."""


def check_throttle(name: object) -> str:
    """Return `name` if it may name a throttle: any name, or `ql:q:` and the name of a queue. Raises UsageError."""
    if isinstance(name, str) and name.startswith(OWN_THROTTLE):
        return OWN_THROTTLE + check_name("queue of a throttle", name.removeprefix(OWN_THROTTLE))
    return check_name("throttle", name)


def check_namespace(name: str) -> str:
    """Return `name` if it may be a namespace. Raises UsageError."""
    check_name("namespace", name)
    if not _NAMESPACE.fullmatch(name):
        raise UsageError(f"namespace {name!r} must be one word without blanks, colons and braces")
    if name == "ql":
        raise UsageError(
            "namespace 'ql' belongs to reqless clients, and this release does not support it yet"
        )
    return name


def check_url(url: str) -> str:
    """Return `url` if it looks like a store's. Raises UsageError."""
    if not url.startswith(_SCHEMES):
        raise UsageError(
            f"{shown_url(url)!r} is not a store URL: use redis://host:port/db, rediss://… for TLS, or unix:///path/to/socket"
        )
    database = _DATABASE.match(url)
    if database and not database[1].isdecimal():
        raise UsageError("after its host, the store URL has a database number, such as /0, and nothing else")
    try:
        split = urlsplit(url)
        valid = split.scheme == "unix" or is_host(unquote(split.hostname or "localhost"))
        _ = split.port
    except ValueError:
        valid = False
    if not valid:
        raise UsageError(f"the store URL {shown_url(url)!r} has no valid host and port")
    return url


_LABEL: Final = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")
_AUTHORITY: Final = re.compile(r"(?:\[([^\[\]]+)\]|([^:\[\]]+))(?::(\d{1,5}))?", re.ASCII)


def is_host(name: str) -> bool:
    """Return whether `name` can be the name or address of a machine."""
    try:
        if ":" in name:
            return bool(ip_address(name))
        labels = name.encode("idna").decode().removesuffix(".").split(".")
    except ValueError:  # such as an empty part between two dots
        return False
    return all(_LABEL.fullmatch(label) for label in labels)


def is_authority(text: str) -> bool:
    """Return whether `text` can be the host of a URL, with a port or without one: `host:80`, `[::1]:80`."""
    found = _AUTHORITY.fullmatch(text)
    if found is None or int(found[3] or 1) not in range(1, 65536):
        return False
    return is_host(found[1]) and ":" in found[1] if found[1] else is_host(found[2])


def check_host(what: str, name: object) -> str:
    """Return `name` if it can be the name or address of a machine. Raises UsageError."""
    if not is_host(check_name(what, name)):
        raise UsageError(f"{what} must be the name or address of a machine, not {name!r}")
    return str(name)


def redis_cli_of(url: str) -> str:
    """Return the command line of redis-cli that reaches a store; for a password it asks."""
    split = urlsplit(url)
    if split.scheme == "unix":
        return f"redis-cli -s {quote(unquote(split.path))}"
    words = ["redis-cli", "-h", quote(split.hostname or "localhost"), "-p", str(split.port or 6379)]
    if split.scheme == "rediss":
        words.append("--tls")
    if split.username:
        words += ["--user", quote(unquote(split.username))]
    return " ".join([*words, "--askpass"] if split.password else words)


def shown_url(url: str) -> str:
    """Return a URL for display and logs: without password, with no option but `db`; "…" for anything but a store URL."""
    if not url.startswith(_SCHEMES):
        return "…"
    scheme, _, rest = url.partition("://")
    place, _, query = rest.partition("#")[0].partition("?")
    credentials, at, place = place.rpartition("@")
    user = credentials.partition(":")[0] if ":" in credentials else ""
    if scheme != "unix" and not _PLACE.fullmatch(place):
        place = "…"
    db = [value for value in parse_qs(query).get("db", []) if value.isdecimal()][:1]
    return f"{scheme}://{f'{user}:…@' if at else ''}{place}" + (f"?db={db[0]}" if db else "")


def check_whole(what: str, value: object, low: int, high: int) -> int:
    """Return `value` if it is a whole number from `low` to `high`. Raises UsageError."""
    if type(value) is not int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise UsageError(f"{what} must be a whole number, not {value!r}")
        value = int(value)
    if not low <= value <= high:
        raise UsageError(f"{what} must be from {low} to {high}, not {value}")
    return value


def check_bounded(what: str, value: object, kind: Any) -> int:
    """Return `value` if it is a whole number within the bounds of a type of `bounds`. Raises UsageError."""
    return check_whole(what, value, *limits(kind))


def check_switch(what: str, value: object) -> bool:
    """Return `value` if it is True or False. Raises UsageError."""
    if not isinstance(value, bool):
        raise UsageError(f"{what} must be True or False, not {value!r:.80}")
    return value


def check_page(
    offset: object, count: object, names: tuple[str, str] = ("offset", "count")
) -> tuple[int, int]:
    """Return offset and count if they are valid; `names` are the names of the arguments. Raises UsageError."""
    return check_whole(names[0], offset, 0, MAX_WHOLE), check_bounded(names[1], count, Count)


def check_seconds(what: str, value: object, low: float = 0.0, high: float = MAX_DELAY) -> float:
    """Return `value`, seconds or a timedelta, in seconds, if it is finite and from `low` to `high`. Raises UsageError."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    is_finite = isinstance(value, int) or (isinstance(value, float) and isfinite(value))
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not is_finite:
        raise UsageError(f"{what} must be a finite number of seconds or a timedelta, not {value!r}")
    if not low <= value <= high:  # whole numbers of any length too
        from holdfast.text import bound  # needed only for errors

        least = f"{low:g}" if low > -1_000_000 else bound(low)
        raise UsageError(f"{what} must be from {least} to {bound(high)}, not {value!r:.80}")
    return value


def check_timeout(timeout: object) -> float | None:
    """Return a timeout in seconds, None for ever; it may be negative. Raises UsageError."""
    return None if timeout is None else check_seconds("timeout", timeout, -MAX_DELAY)


def check_milliseconds(what: str, value: object, low: float = 0.0, high: float = MAX_DELAY) -> int:
    """Return `value` seconds as whole milliseconds. Raises UsageError as `check_seconds`."""
    if value == 0 and low == 0 and type(value) is int:
        return 0
    return round(check_seconds(what, value, low, high) * 1000)


def unknown_option(
    where: str,
    given: str,
    known: tuple[str, ...],
    what: str = "option",
    *,
    others: tuple[str, ...] = (),
    whose: str = "",
) -> UsageError:
    """Return the error for an unknown option, with the nearest existing one.

    If none is near it lists the `known` ones; `others`, of which there are many, are described by `whose`.
    """
    from difflib import get_close_matches  # needed only for errors

    close = get_close_matches(str(given), (*known, *others), 1)
    rest = f" and {whose}" if others else ""
    advice = f"did you mean {close[0]!r}?" if close else f"it knows {', '.join(known) or 'none'}{rest}"
    return UsageError(f"{where} has no {what} {given!r}; {advice}")
