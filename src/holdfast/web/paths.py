"""URLs of pages: names as segments of a path, and query strings."""

from collections.abc import Mapping
from urllib.parse import urlencode

from holdfast.console.page_paths import name_of, segment

__all__ = ["name_of", "segment", "with_query"]


def with_query(path: str, query: Mapping[str, object]) -> str:
    """Return a path with a query string of what is neither None nor empty."""
    given = {name: value for name, value in query.items() if value not in (None, "", False)}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path
