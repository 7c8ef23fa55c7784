"""The parts of the application, and which part a path belongs to. Each can be served alone."""

from collections.abc import Mapping
from typing import Final, Literal

from starlette.types import Scope

Part = Literal["pages", "api", "gateway", "topics"]
PARTS: Final[tuple[Part, ...]] = ("pages", "api", "gateway", "topics")
"""The pages for people, the same as JSON, the verbs for programs of any language, the topic endpoints."""

_BY_SEGMENT: Final[Mapping[str, Part]] = {
    "api": "api",
    "v1": "gateway",
    **dict.fromkeys(("schedule", "cancel", "reserve", "pull", "release", "requeue", "ready"), "topics"),
}  # fmt: skip
"""The parts of paths with more than one segment, by the first one."""


def place_of(scope: Scope) -> str:
    """Return the path of a request below the place where the application is mounted."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and path.startswith(root) else path


def part_of(place: str) -> Part:
    """Return the part that a path belongs to."""
    first, slash, _ = place[1:].partition("/")
    return _BY_SEGMENT.get(first, "pages") if slash else "pages"
