"""Make HTML of what loaders return: whole pages, and the regions of pages that update themselves."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from holdfast.code.put_options import OPTIONS
from holdfast.core.library import shown_core
from holdfast.errors import UsageError
from holdfast.settings import DEFAULT_BACKLOG
from holdfast.web import charts, formatting
from holdfast.web.pages.recurring_form import present_calendar, zone_names

_FOLDER: Final = Path(__file__).parent / "templates"


class Pages:
    """The templates. Each is given `ctx`, `page`, and as `ui` the macros of `_macros.html`, also where it renders a region alone."""

    def __init__(self, *more_folders: Path) -> None:
        self._environment = Environment(
            loader=FileSystemLoader([_FOLDER, *more_folders]),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=["jinja2.ext.do"],
        )
        self._environment.filters.update({**formatting.FILTERS, **charts.FILTERS})
        more: Mapping[str, Any] = {
            "default_backlog": DEFAULT_BACKLOG,
            "shown_core": shown_core,
            "put_options": OPTIONS,
            "graph_node": charts.GraphNode,
            "zone_names": zone_names,
            "present_calendar": present_calendar,
        }
        self._environment.globals.update({**formatting.GLOBALS, **more})

    def page(self, template: str, ctx: object, page: object, **more: object) -> str:
        """Return a whole page."""
        return self._environment.get_template(template).render(self._names(ctx, page, more))

    def region(self, template: str, region: str, ctx: object, page: object) -> str:
        """Return one region of a page: the block of that name. Raises UsageError if the page has none."""
        found = self._environment.get_template(template)
        if region not in found.blocks:
            raise UsageError(f"fragment: this page has no region {region!r:.80}")
        context = found.new_context(self._names(ctx, page, {}))
        return "".join(found.blocks[region](context))

    def _names(self, ctx: object, page: object, more: Mapping[str, object]) -> dict[str, Any]:
        ui = self._environment.get_template("_macros.html").make_module({"ctx": ctx})
        return {"ctx": ctx, "page": page, "ui": ui, **more}
