"""What all requests of one application share: its client, options, templates, live numbers and background work."""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from holdfast.client.aio import AsyncClient
from holdfast.console.masking import Mask
from holdfast.release import VERSION
from holdfast.settings import shown_url
from holdfast.web.api import openapi
from holdfast.web.files import Files
from holdfast.web.live import Hub
from holdfast.web.operations import Operations
from holdfast.web.options import Options
from holdfast.web.searching import Searches
from holdfast.web.views import Table

if TYPE_CHECKING:  # the JSON API does without templates
    from holdfast.web.rendering import Pages


class Site:
    """The shared state of one application; nothing is shared between two applications."""

    def __init__(self, client: AsyncClient, options: Options, table: Table) -> None:
        self.client, self.options, self.table = client, options, table
        self.version = VERSION
        self.application = "holdfast"
        self.store = shown_url(client.store_url) if client.store_url else "the embedded store"
        self.files = Files()
        self.mask = Mask(options.redact)
        self.hub = Hub(client)
        self.operations = Operations(self.hub)
        self.searches = Searches()

    @cached_property
    def description(self) -> Mapping[str, Any]:
        """The OpenAPI document of the application, without `servers`."""
        return openapi(self.table, self.version)

    @cached_property
    def pages(self) -> "Pages":
        """The templates."""
        from holdfast.web.rendering import Pages

        return Pages()

    async def close(self) -> None:
        """End the background work. Operations go on elsewhere, or when somebody resumes them."""
        await self.hub.close()
        await self.operations.close()
