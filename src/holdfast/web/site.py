"""What all requests of one application share: its client, options, templates, live numbers and background work."""

import asyncio
from collections.abc import Mapping
from functools import cached_property
from importlib.metadata import version
from typing import Any, Final

from holdfast.client.aio import AsyncClient
from holdfast.client.sync import Client
from holdfast.errors import UsageError
from holdfast.settings import shown_url
from holdfast.web.api import openapi
from holdfast.web.files import Files
from holdfast.web.live import Hub
from holdfast.web.masking import Mask
from holdfast.web.operations import Operations
from holdfast.web.options import Options
from holdfast.web.rendering import Pages
from holdfast.web.views import Table

_PATIENCE: Final[Mapping[str, float]] = {"timeout": 1.5, "deadline": 1.0}
"""Seconds of one try, and in which a call that failed is tried again: a page waits less than 4 s for a store that does not respond."""


class Site:
    """The shared state of one application; nothing is shared between two applications."""

    def __init__(self, client: AsyncClient, options: Options, table: Table) -> None:
        self.client, self.options, self.table = client, options, table
        self.version = version("holdfast")
        self.application = "holdfast"
        self.store = shown_url(client.store_url) if client.store_url else "the embedded store"
        self.files, self.pages = Files(), Pages()
        self.mask = Mask(options.redact)
        self.hub = Hub(client)
        self.operations = Operations(self.hub)

    @cached_property
    def description(self) -> Mapping[str, Any]:
        """The OpenAPI document of the application, without `servers`."""
        return openapi(self.table, self.version)

    async def close(self) -> None:
        """End the background work and the connections. Operations go on elsewhere, or when somebody resumes them."""
        await self.hub.close()
        await self.operations.close()
        await self.client.close()
        await asyncio.sleep(0)  # connections that were hung up are closed in the next iteration of the loop


def client_of(given: object) -> AsyncClient:
    """Return the client of the application: of the same store and namespace as a client, of a URL, or of the environment.

    It has connections and a deadline of its own. Raises UsageError.
    """
    if given is None or isinstance(given, str):
        return AsyncClient(given, timeout=_PATIENCE["timeout"], deadline=_PATIENCE["deadline"])
    if not isinstance(given, (Client, AsyncClient)):
        raise UsageError(f"create_app: expected a client, a URL or nothing, got {type(given).__name__}")
    opening = given._opening  # pyright: ignore[reportPrivateUsage]
    options: Any = {name: value for name, value in opening.options.items() if name != "redis"}
    options |= {"namespace": given.settings.namespace, **_PATIENCE}
    return AsyncClient(given.store_url, **options)
