"""What a client can be given beside its URL, for checkers and for `settle`."""

from collections.abc import Callable
from typing import Any, Final, TypedDict

from holdfast.settings import Durability


class Parts(TypedDict, total=False):
    """The parts of a URL, for those who have no URL: `host` [localhost], `port` [6379], `db` [0], `username`,
    `password`, `ssl` (TLS) and `unix_socket_path`. With a URL, `db`, `username` and `password` say what it leaves out."""

    host: str
    port: int
    db: int
    username: str
    password: str
    ssl: bool
    unix_socket_path: str


class DriverOptions(TypedDict, total=False):
    """Options of redis-py that a client passes on; any other of `redis.Redis` may be given, too.

    Retries, protocol, decoding and pool size hold for `client.database` only: the client repeats calls itself, reads
    bytes, and opens as many connections as threads or tasks use at once.
    """

    socket_timeout: float
    socket_connect_timeout: float
    socket_keepalive: bool
    socket_keepalive_options: Any
    socket_read_size: int
    health_check_interval: float
    client_name: str
    credential_provider: Any
    redis_connect_func: Any
    max_connections: int
    decode_responses: bool
    encoding: str
    encoding_errors: str
    protocol: int
    retry: Any
    retry_on_error: Any
    retry_on_timeout: bool
    ssl_keyfile: str
    ssl_certfile: str
    ssl_cert_reqs: Any
    ssl_ca_certs: str
    ssl_ca_path: str
    ssl_ca_data: str
    ssl_check_hostname: bool
    ssl_password: str
    ssl_min_version: Any
    ssl_ciphers: str


class OwnOptions(TypedDict, total=False):
    """Options of holdfast: `namespace`, `durability` (`memory`, `process`, `fsync`), `timeout` of one try and
    `deadline` of a call in seconds, `max_data` in bytes, `load_core`, `trust_store`, `strict_loop`,
    `ensure_minimum_version`; `Settings` says what they mean.

    `redis` is a connection that is there already, as the first argument may be. `on_lua_script_reload_callback` is
    called with (`client.database`, digest) when this client had to load the core into the store.
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
    redis: Any
    on_lua_script_reload_callback: Callable[[Any, str], object] | None


class StoreOptions(OwnOptions, Parts, DriverOptions, total=False):
    """All options of a client but `hostname`, which may be its second argument."""


class ClientOptions(StoreOptions, total=False):
    """All options of a client; `hostname` is the worker name."""

    hostname: str | None


PARTS: Final = tuple(Parts.__annotations__)
OWN: Final = (*OwnOptions.__annotations__, "hostname")
