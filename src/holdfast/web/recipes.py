"""What a page does as a command line, as a call of the API, and as Python, to be copied."""

import json
from collections.abc import Mapping
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.client.reasons import argument

if TYPE_CHECKING:
    from holdfast.web.context import Context


class Recipe(msgspec.Struct, frozen=True):
    """One action on a job: its name, and how to do it elsewhere."""

    label: str
    cli: str
    curl: str
    python: str


_PYTHON: Final = (
    "from holdfast import Client\n"
    "from holdfast.console.handles import Console\n\n"
    "console = Console(Client({where}))\n"
    "console.act({action!r}, {jid!r}{value})"
)


def recipe(ctx: "Context", action: str, jid: str, value: str = "") -> Recipe:
    """Return how to do an action on one job; `value` is that of the action."""
    words = [value, jid] if action == "move" else [jid]
    body: dict[str, Any] = {"jid": [jid], **({"value": value} if value else {})}
    return Recipe(
        action,
        f"holdfast jobs {action}{ctx.console.flags} {argument(*words)}",
        curl(ctx, f"/jobs/{action}", body),
        _PYTHON.format(
            where=f"namespace={ctx.namespace!r}" if ctx.namespace != "default" else "",
            action=action,
            jid=jid,
            value=f", value={value!r}" if value else "",
        ),
    )


def curl(ctx: "Context", path: str, body: Mapping[str, Any]) -> str:
    """Return the command line of a POST to the API of this application."""
    base = str(ctx.request.base_url).rstrip("/")
    return (
        f"curl -X POST {quote(f'{base}/api/v1{path}')} -H 'Content-Type: application/json' "
        f'-H "Authorization: Bearer $TOKEN" -d {quote(json.dumps(body))}'
    )
