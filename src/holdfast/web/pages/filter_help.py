"""The language of the job filter: its fields with their meaning, and names in this namespace, for suggestions."""

from collections.abc import Mapping
from typing import Final

import msgspec

from holdfast.console.search.filter_values import FIELDS, SYNONYMS, Exact
from holdfast.web.context import Context
from holdfast.web.views import ActionRoute, View

_MOST: Final = 100
_ENDINGS: Final = {"time": "<", "data": "."}
"""What mostly follows the name of a field of a kind, if no colon does."""


class FilterQuery(msgspec.Struct, frozen=True):
    """There is nothing to choose."""


class FilterField(msgspec.Struct, frozen=True):
    """A field: `kind` is text, flag, number, time or data; `ending` is what mostly follows its name."""

    name: str
    kind: str
    meaning: str
    ending: str


class FilterHelp(msgspec.Struct, frozen=True):
    """The fields, other names of some, and for some their first hundred values as a filter has them."""

    now_ms: int
    fields: tuple[FilterField, ...]
    synonyms: Mapping[str, str]
    values: Mapping[str, tuple[str, ...]]


async def filter_help(ctx: Context, query: FilterQuery) -> FilterHelp:
    """Return the language of filters with the names of queues, tags, failure groups and workers."""
    console = ctx.console
    ctx.now_ms = await console.now_ms()
    names = {
        "queue": [one.name for one in (await console.queues(limit=_MOST)).rows],
        "tag": [name for name, _ in (await console.tags(limit=_MOST)).rows],
        "group": [one.name for one in await console.failures()][:_MOST],
        "worker": [one.name for one in (await console.workers(limit=_MOST)).rows],
    }
    choices = {name: field.choices for name, field in FIELDS.items() if field.choices}
    return FilterHelp(
        ctx.now_ms,
        tuple(
            FilterField(name, field.kind, field.meaning, _ENDINGS.get(field.kind, ":"))
            for name, field in FIELDS.items()
        ),
        SYNONYMS,
        choices | {field: tuple([str(Exact(name)) for name in found]) for field, found in names.items()},
    )


VIEWS: Final = (
    View(
        path="/filter",
        template="filter.html",
        load=filter_help,
        query=FilterQuery,
        summary="The fields of the filter of jobs, with names to choose from.",
    ),
)
ACTIONS: Final[tuple[ActionRoute, ...]] = ()
