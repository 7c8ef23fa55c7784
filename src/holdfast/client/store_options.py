"""Options of clients: where a store is and how to reach it; and URLs made of them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypedDict
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlencode, urlsplit

from holdfast.errors import UsageError
from holdfast.settings import Durability, check_switch, check_url, check_whole


class Parts(TypedDict, total=False):
    """The parts of a URL, in place of one: `host` [localhost], `port` [6379], `db` [0], `username`,
    `password`, `ssl` (TLS) and `unix_socket_path`. With a URL, `db`, `username` and `password` add what it leaves out."""

    host: str
    port: int
    db: int
    username: str
    password: str
    ssl: bool
    unix_socket_path: str


class DriverOptions(TypedDict, total=False):
    """Options of redis-py that a client passes on; any other option of `redis.Redis` may be given, too.

    Retries, protocol, decoding and pool size apply to `client.database` only: the client retries calls itself, reads
    bytes, and opens as many connections as threads or tasks use at once.
    """

    socket_timeout: float
    socket_connect_timeout: float
    socket_keepalive: bool
    socket_keepalive_options: Mapping[int, int | bytes]
    socket_read_size: int
    health_check_interval: float
    client_name: str
    credential_provider: object
    redis_connect_func: Callable[..., object]
    max_connections: int
    decode_responses: bool
    encoding: str
    encoding_errors: str
    protocol: int
    retry: object
    retry_on_error: Sequence[type[Exception]]
    retry_on_timeout: bool
    ssl_keyfile: str
    ssl_certfile: str
    ssl_cert_reqs: object
    ssl_ca_certs: str
    ssl_ca_path: str
    ssl_ca_data: str
    ssl_check_hostname: bool
    ssl_password: str
    ssl_min_version: object
    ssl_ciphers: str


class OwnOptions(TypedDict, total=False):
    """Options of holdfast: `namespace`, `durability` (`memory`, `process`, `fsync`), `timeout` of one try and
    `deadline` of a call in seconds, `max_data` in bytes, `load_core`, `trust_store`, `strict_loop`,
    `ensure_minimum_version`; `Settings` describes them.

    `redis` is an existing connection, as the first argument may be. `on_lua_script_reload_callback` is
    called with (`client.database`, digest) when this client had to load the core into the store. `url_origin` is what errors
    name as the origin of the URL, such as a key of your settings.
    """

    namespace: str
    durability: Durability | None
    timeout: float
    deadline: float
    max_data: int
    load_core: bool
    trust_store: bool
    strict_loop: bool
    ensure_minimum_version: bool
    redis: object
    on_lua_script_reload_callback: Callable[[Any, str], object] | None
    url_origin: str


class StoreOptions(OwnOptions, Parts, DriverOptions, total=False):
    """All options of a client but `hostname`, which may be its second argument."""


class ClientOptions(StoreOptions, total=False):
    """All options of a client; `hostname` is the worker name."""

    hostname: str | None


PARTS: Final = tuple(Parts.__annotations__)
OWN: Final = (*OwnOptions.__annotations__, "hostname")


_WHO: Final = ("username", "password")
_WHERE: Final = ("host", "port", "ssl", "unix_socket_path")
_MAX_DB: Final = 2**31 - 1


def url_of_parts(parts: Mapping[str, Any]) -> str:
    """Return the URL of the parts; the default is localhost, port 6379 and database 0. Raises UsageError."""
    _check(parts)
    path = parts.get("unix_socket_path")
    if path is not None:
        for name in ("host", "port", "ssl"):
            if name in parts:
                raise UsageError(f"unix_socket_path and {name} both name the store: give one of them")
        base = f"unix://{quote(path)}"
    else:
        host = parts.get("host", "localhost")
        scheme = "rediss" if parts.get("ssl") else "redis"
        base = f"{scheme}://{f'[{host}]' if ':' in host else host}:{parts.get('port', 6379)}"
    return url_with(base, {name: parts[name] for name in (*_WHO, "db") if name in parts})


def url_with(url: str, parts: Mapping[str, object]) -> str:
    """Return `url` with the parts that it leaves out: `db`, `username`, `password`. Raises UsageError where both differ."""
    if not parts:
        return url
    _check(parts)
    for name in _WHERE:
        if name in parts:
            raise UsageError(f"url and {name} both name the store: give one of them")
    split = urlsplit(check_url(url))
    known = _parts_of(split)
    for name, value in parts.items():
        if known[name] not in (None, value):
            raise UsageError(f"url and {name} differ: give one of them")
        known[name] = value
    return _joined(split, known)


def _parts_of(split: SplitResult) -> dict[str, Any]:
    """Return `db`, `username` and `password` of a URL; None for those that it leaves out."""
    db: str | None = parse_qs(split.query).get("db", [None])[0]
    if db is None and split.scheme != "unix":
        db = split.path.strip("/") or None
    username, password = split.username or None, split.password
    return {
        "db": int(db) if db and db.isdecimal() else None,
        "username": unquote(username) if username else None,
        "password": unquote(password) if password else None,
    }


def _joined(split: SplitResult, parts: Mapping[str, Any]) -> str:
    who = quote(parts["username"] or "", safe="")
    if parts["password"] is not None:
        who += ":" + quote(parts["password"], safe="")
    place = split.netloc.rpartition("@")[2]
    query = {name: values for name, values in parse_qs(split.query).items() if name != "db"}
    path = split.path
    if parts["db"] is not None:
        if split.scheme == "unix":
            query["db"] = [str(parts["db"])]
        else:
            path = f"/{parts['db']}"
    words = urlencode(query, doseq=True)
    return f"{split.scheme}://{f'{who}@' if who else ''}{place}{path}{f'?{words}' if words else ''}"


def _check(parts: Mapping[str, Any]) -> None:
    for name in ("host", "unix_socket_path", *_WHO):
        value: object = parts.get(name, "a")
        if not isinstance(value, str) or not value:
            shown = "" if name == "password" else f", not {value!r:.80}"
            raise UsageError(f"{name} must be text{shown}")
    check_whole("port", parts.get("port", 6379), 1, 65_535)
    check_whole("db", parts.get("db", 0), 0, _MAX_DB)
    check_switch("ssl", parts.get("ssl", False))
    host: str = parts.get("host", "")
    if any(letter in host for letter in "/@?#[] "):
        raise UsageError("host must be the name or address of a machine")


def url_of_existing(connection: Any) -> str:
    """Return a URL for the place of a client of the driver, without options; for a sentinel, with the service's name as host."""
    pool = connection.connection_pool
    given: Mapping[str, object] = pool.connection_kwargs
    parts = {name: given[name] for name in (*_WHO, "db", "host", "port") if given.get(name)}
    if any(name.startswith("ssl_") for name in given):
        parts["ssl"] = True
    if given.get("path"):
        parts = {"unix_socket_path": given["path"], **{n: v for n, v in parts.items() if n not in _WHERE}}
    elif "host" not in parts and isinstance(getattr(pool, "service_name", None), str):
        parts["host"] = pool.service_name
    return url_of_parts(parts)


def place_of(url: str) -> tuple[str, int, int]:
    """Return host (or path), port (0 for a path) and database number: two URLs with the same are one place."""
    split = urlsplit(url)
    db = _parts_of(split)["db"] or 0
    if split.scheme == "unix":
        return unquote(split.path), 0, db
    return (split.hostname or "localhost").lower(), split.port or 6379, db
