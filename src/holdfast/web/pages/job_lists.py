"""Lists of jobs that have pages of their own: completed ones, tracked ones, and those with a tag."""

from collections.abc import Mapping
from typing import Final

import msgspec

from holdfast.console.filters import term
from holdfast.console.read.job_lists import CompletedPage, TrackedPage
from holdfast.console.read.queries import Page
from holdfast.console.search.search import SearchPage
from holdfast.console.unknown import unknown
from holdfast.web.context import Context
from holdfast.web.pages.jobs import Facet, facets_of
from holdfast.web.views import ActionRoute, View


class ListQuery(msgspec.Struct, frozen=True):
    """Where a list continues, and how many rows to show."""

    after: str = ""
    limit: int = 25


class CompletedJobs(msgspec.Struct, frozen=True):
    """A page of completed jobs."""

    now_ms: int
    query: ListQuery
    found: CompletedPage


async def completed(ctx: Context, query: ListQuery) -> CompletedJobs:
    """Return a page of completed jobs with their results, the latest first."""
    ctx.now_ms = await ctx.console.now_ms()
    found = await ctx.console.completed(after=query.after, limit=query.limit)
    return CompletedJobs(ctx.now_ms, query, ctx.site.mask.within(found))


class TrackedQuery(msgspec.Struct, frozen=True):
    """Which state ("": all), where the list continues, and how many rows to show."""

    tab: str = ""
    after: str = ""
    limit: int = 25


class TrackedJobs(msgspec.Struct, frozen=True):
    """A page of tracked jobs."""

    now_ms: int
    query: TrackedQuery
    found: TrackedPage


async def tracked(ctx: Context, query: TrackedQuery) -> TrackedJobs:
    """Return a page of tracked jobs, with how many are in each state."""
    ctx.now_ms = await ctx.console.now_ms()
    tab = "" if query.tab == "all" else query.tab
    found = await ctx.console.tracked(tab, after=query.after, limit=query.limit)
    return TrackedJobs(ctx.now_ms, query, ctx.site.mask.within(found))


class TagsPage(msgspec.Struct, frozen=True):
    """A page of tags with the number of their jobs, the most used first, and the states of the first 64 of each."""

    now_ms: int
    query: ListQuery
    tags: Page[tuple[str, int]]
    states: Mapping[str, Mapping[str, int]]


async def tags(ctx: Context, query: ListQuery) -> TagsPage:
    """Return a page of tags with the number of their jobs."""
    ctx.now_ms = await ctx.console.now_ms()
    found = await ctx.console.tags(after=query.after, limit=query.limit)
    states = await ctx.console.tag_states(*(name for name, _ in found.rows))
    return TagsPage(ctx.now_ms, query, found, states)


class TagPage(msgspec.Struct, frozen=True):
    """The jobs with a tag: `total` in all, a page of them, and what the first 500 from here on have in common; `q` is their filter."""

    now_ms: int
    query: ListQuery
    name: str
    q: str
    total: int
    found: SearchPage
    facets: tuple[Facet, ...]
    window: int
    is_whole: bool


async def tag(ctx: Context, name: str, query: ListQuery) -> TagPage:
    """Return a page of the jobs with a tag. Raises UnknownName if there are none."""
    ctx.now_ms = await ctx.console.now_ms()
    q = term("tag", name)
    found = await ctx.console.jobs(q, after=query.after, limit=query.limit, wants="te")
    if not found.candidates:
        known = await ctx.console.tags(limit=500)
        raise unknown("tag", name, [one for one, _ in known.rows])
    facets, window, is_whole = await facets_of(ctx, q, found, query.limit)
    return TagPage(
        ctx.now_ms, query, name, q, found.candidates, ctx.site.mask.within(found), facets, window, is_whole
    )


VIEWS: Final = (
    View(
        path="/completed",
        template="completed.html",
        load=completed,
        query=ListQuery,
        summary="A page of completed jobs.",
    ),
    View(
        path="/tracked",
        template="tracked.html",
        load=tracked,
        query=TrackedQuery,
        summary="A page of tracked jobs.",
    ),
    View(path="/tags", template="tags.html", load=tags, query=ListQuery, summary="A page of tags."),
    View(path="/tags/{name}", template="tag.html", load=tag, query=ListQuery, summary="The jobs with a tag."),
)
ACTIONS: Final[tuple[ActionRoute, ...]] = ()
