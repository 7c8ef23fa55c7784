"""About this installation: versions, the store, the doctor's findings, licences; a bundle for bug reports; the JSON API."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, cast

import msgspec

from holdfast.console.health.findings import Report
from holdfast.console.health.installation import Installation
from holdfast.console.operations.operations import Operation
from holdfast.console.plain import plain
from holdfast.errors import HoldfastError
from holdfast.text import one_line
from holdfast.web.context import Context
from holdfast.web.views import ActionRoute, NoQuery, View

_KEYS: Final = 10_000
"""The number of keys among which the doctor looks for leftovers: few, because a page has to be quick."""
_GROUPS: Final = 50


class AboutQuery(msgspec.Struct, frozen=True):
    """`doctor`: run all checks too."""

    doctor: bool = False


class AboutPage(msgspec.Struct, frozen=True):
    """The installation. `licences` are those of bundled files, by name; `report` is that of the doctor, if the query asks for it."""

    now_ms: int
    version: str
    installation: Installation
    licences: Mapping[str, str]
    report: Report | None


async def about(ctx: Context, query: AboutQuery) -> AboutPage:
    """Return what is known of the installation."""
    ctx.now_ms = await ctx.console.now_ms()
    report = await ctx.console.doctor(keys=_KEYS) if query.doctor else None
    found = await ctx.console.installation()
    return AboutPage(ctx.now_ms, ctx.version, found, ctx.site.files.texts(".LICENSE"), report)


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """What helps to find the cause of a problem. It has names and numbers, but no data, no messages and no results of jobs.

    A part that could not be read is a sentence with the reason.
    """

    made_ms: int
    version: str
    store: str
    namespace: str
    options: Mapping[str, Any]
    parts: Mapping[str, Any]

    @property
    def size(self) -> int:
        """How many bytes it has as JSON."""
        return len(msgspec.json.encode(plain(self)))


async def bundle(ctx: Context, _: NoQuery) -> Bundle:
    """Return a bundle for bug reports."""
    ctx.now_ms = await ctx.console.now_ms()
    console, options = ctx.console, ctx.site.options
    reads: Mapping[str, Callable[[], Awaitable[object]]] = {
        "installation": console.installation,
        "doctor": lambda: console.doctor(keys=_KEYS),
        "overview": console.overview,
        "workers": lambda: console.fleet(limit=100),
        "settings": console.settings,
        "failures": console.failures,
        "operations": console.operations,
    }
    parts: dict[str, Any] = {}
    for name, read in reads.items():
        try:
            parts[name] = _redacted(ctx, plain(_without_texts(await read())))
        except HoldfastError as error:
            parts[name] = one_line(str(error))
    return Bundle(
        made_ms=ctx.now_ms,
        version=ctx.version,
        store=ctx.store,
        namespace=ctx.namespace,
        options={
            "live": options.live,
            "read_only": options.read_only,
            "hosts": list(options.hosts),
            "trusted_proxies": list(options.trusted_proxies),
            "frame_ancestors": list(options.frame_ancestors),
            "rules of redaction": len(options.redact),
        },
        parts=parts,
    )


def _without_texts(found: object) -> object:
    """Return a result without texts of jobs: the values of operations, and why jobs refused them."""
    if isinstance(found, list):
        return [_without_texts(one) for one in cast("list[object]", found)[:_GROUPS]]
    if isinstance(found, Operation):
        return msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, value=""), refusals=())
    return found


def _redacted(ctx: Context, value: Any) -> Any:
    """Return plain values, masked by the rules of the application, names included."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {ctx.site.mask.text(name): _redacted(ctx, one) for name, one in members.items()}
    if isinstance(value, list):
        return [_redacted(ctx, one) for one in cast("list[object]", value)]
    return ctx.site.mask.text(value) if isinstance(value, str) else value


class ApiPage(msgspec.Struct, frozen=True):
    """The description of the JSON API: an OpenAPI document."""

    document: Mapping[str, Any]

    @property
    def server(self) -> str:
        """The path below which everything is."""
        return str(self.document["servers"][0]["url"])

    def operations(self, method: str) -> list[tuple[str, Mapping[str, Any]]]:
        """Return the path of each operation with a method, with its description."""
        return [(path, found[method]) for path, found in self.document["paths"].items() if method in found]

    def nouns(self) -> list[tuple[str, list[tuple[str, Mapping[str, Any]]]]]:
        """Return the actions, by noun."""
        found: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
        for path, one in self.operations("post"):
            found.setdefault(path.split("/")[1], []).append((path, one))
        return list(found.items())

    def fields(self, operation: Mapping[str, Any]) -> list[tuple[str, str, bool, Any]]:
        """Return the fields of an operation: name, type, whether it is required, and its default."""
        if "requestBody" not in operation:
            return [
                (one["name"], _type_of(one["schema"]), one["required"], one["schema"].get("default"))
                for one in operation["parameters"]
            ]
        name = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        schema = self.document["components"]["schemas"][name]
        required = schema.get("required", ())
        names = sorted(schema["properties"], key=lambda name: name not in required)
        fields = [(field, schema["properties"][field]) for field in names]
        return [(field, _type_of(one), field in required, one.get("default")) for field, one in fields]


def _type_of(schema: Mapping[str, Any]) -> str:
    """Return the type of a field in words."""
    if "enum" in schema:
        return "one of " + ", ".join(msgspec.json.encode(one).decode() for one in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_type_of(one) for one in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_type_of(schema.get('items', {}))}"
    return str(schema.get("type", "any"))


async def api(ctx: Context, _: NoQuery) -> ApiPage:
    """Return the description of the JSON API."""
    return ApiPage(ctx.description)


VIEWS: Final = (
    View(
        path="/about",
        template="about.html",
        load=about,
        query=AboutQuery,
        summary="Versions, the store, and the findings of the doctor.",
    ),
    View(
        path="/bundle",
        template="bundle.html",
        load=bundle,
        summary="A diagnostic bundle for bug reports, without data and messages of jobs.",
    ),
    View(path="/api", template="api.html", load=api, summary="The description of the JSON API."),
)
ACTIONS: Final[tuple[ActionRoute, ...]] = ()
