"""The first page: what needs attention, how much there is of everything, the busiest queues, the latest failures."""

from typing import Final

from holdfast.console.overview import Overview
from holdfast.web.context import Context
from holdfast.web.views import ActionRoute, NoQuery, View


async def overview(ctx: Context, _: NoQuery) -> Overview:
    """Return the overview."""
    found = await ctx.console.overview()
    ctx.now_ms = found.now_ms
    return found


VIEWS: Final = (
    View(
        path="/",
        template="overview.html",
        load=overview,
        summary="What needs attention, and how much there is of everything.",
    ),
)
ACTIONS: Final[tuple[ActionRoute, ...]] = ()
