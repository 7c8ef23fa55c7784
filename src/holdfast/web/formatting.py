"""How values are written on pages."""

from collections.abc import Callable, Mapping
from typing import Any, Final

FILTERS: Final[Mapping[str, Callable[..., Any]]] = {}
GLOBALS: Final[Mapping[str, Any]] = {}
