"""Which store and namespace a command works on: its options, and the client that they describe."""

import getpass
import os
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

import click
from click.core import ParameterSource

from holdfast.cli.output import FiniteRange
from holdfast.cli.place import DEFAULT, inherited, namespace_option, url_origin
from holdfast.cli.program import ProgramCommand
from holdfast.client.store_options import ClientOptions
from holdfast.client.sync import Client
from holdfast.console.handles import Console
from holdfast.errors import ConnectionLost, HoldfastError, StoreTimeout
from holdfast.text import one_line
from holdfast.wire.plans import Plan
from holdfast.wire.repeat import RetryTimer, send_until_done

if TYPE_CHECKING:
    from holdfast.client.aio import AsyncClient

F = TypeVar("F", bound=Callable[..., Any])

WAIT: Final = 3.0
"""Seconds that a command waits for a store that does not respond."""
REFUSED: Final = 1.0
"""Seconds that it tries to connect where nothing listens."""
_ONE_TRY: Final = 5.0
_URL_HELP: Final = "URL of the store [default: HOLDFAST_URL, REDIS_URL, or the embedded store]."


class StorePlace(NamedTuple):
    """Where a command finds its jobs, as its options name it, and for how many seconds it waits for the store.

    `url_origin` is what named the URL. A connection that is refused is tried for `refused` seconds only.
    """

    url: str | None
    namespace: str
    wait: float
    url_origin: str = ""
    refused: float = inf
    wait_flag: str = "--wait"

    @contextmanager
    def client(self, *, must_exist: bool = False) -> Generator[Client]:
        """Open a client of a store that responds; with `must_exist`, of a namespace that was used before.

        Raises UsageError, TransportError, HoldfastError. The default namespace counts as used.
        """
        with self.unchecked() as client:
            exists = look(client, self)
            if must_exist and not exists and self.namespace != DEFAULT:
                raise HoldfastError(
                    f"there is no namespace {self.namespace!r} in {client.settings.store}: check --namespace and HOLDFAST_NAMESPACE"
                )
            yield client

    @contextmanager
    def console(self, *, must_exist: bool = True) -> Generator[Console]:
        """Open the console of a namespace, with `must_exist` one that was used before; it is audited as `user@host`.

        Raises UsageError, TransportError, HoldfastError.
        """
        with self.client(must_exist=must_exist) as client:
            yield Console(client, actor())

    def unchecked(self) -> Client:
        """Make the client, whether the store responds or not. Raises UsageError."""
        return Client(self.url, **self._options())

    def async_client(self) -> "AsyncClient":
        """Make an async client, whether the store responds or not. Raises UsageError."""
        from holdfast.client.aio import AsyncClient

        return AsyncClient(self.url, **self._options())

    def _options(self) -> ClientOptions:
        timeout = min(self.wait, _ONE_TRY)
        options = ClientOptions(namespace=self.namespace, deadline=self.wait, timeout=timeout)
        if self.url is not None and self.url_origin:
            options["url_origin"] = self.url_origin
        return options


def place_of(url: str | None, namespace: str, wait: float) -> StorePlace:
    """Return the place of these options of the command that runs; a program, and who gives --wait, is patient in any case."""
    context = click.get_current_context()
    is_given = context.get_parameter_source("wait") is not ParameterSource.DEFAULT
    [flag] = [option.opts[0] for option in context.command.params if option.name == "wait"]
    refused = inf if is_given or isinstance(context.command, ProgramCommand) else REFUSED
    return StorePlace(url, namespace, wait, url_origin(context), refused, flag)


def actor() -> str:
    """Return who acts, for the audit log: the user and the machine."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user without a name, in a container
        user = str(os.getuid())
    return one_line(f"{user}@{socket.gethostname()}")[:100]


def look(client: Client, place: StorePlace) -> bool:
    """Wait until the store responds, and return whether the client's namespace was used before. Raises TransportError."""
    timer = RetryTimer(
        place.wait, client.shard.clock, store=client.settings.store, refused=min(place.wait, place.refused)
    )
    try:
        return client.runner.run(_has_root(client, timer))
    except (ConnectionLost, StoreTimeout) as error:
        raise type(error)(
            f"{error}; {place.wait_flag} SECONDS waits longer", may_have_happened=False
        ) from error


def _has_root(client: Client, timer: RetryTimer) -> Plan[bool]:
    [reply] = yield from send_until_done([("EXISTS", client.root)], timer)
    return bool(reply != 0)  # the first call meets an error again, and explains it


def store_options(command: F) -> F:
    """Give a command `--url` (or `--redis`), `--namespace` and `--wait`, passed on together as `place`."""
    return with_place(wait_option("--wait")(command))


def wait_option(*names: str) -> Callable[[F], F]:
    """Make the option for how long to wait for the store; the first of `names` is shown first."""
    return click.option(
        *names,
        "wait",
        type=FiniteRange(0.01, 86_400),
        default=WAIT,
        show_default=True,
        metavar="SECONDS",
        help="Seconds to wait for a store that does not respond; without it, a refused connection is retried for 1 s.",
    )


def with_place(command: F) -> F:
    """Give a command that has an option for `wait` the other options of a Place."""

    @wraps(command)
    def placed(*args: Any, url: str | None, namespace: str, wait: float, **others: Any) -> Any:
        return command(*args, place=place_of(url, namespace, wait), **others)

    return cast(
        "F",
        click.option("--url", "--redis", "url", callback=inherited, help=_URL_HELP)(namespace_option(placed)),
    )
