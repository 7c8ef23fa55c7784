"""What pages and actions are: one table of views and one of actions, from which HTML, JSON and OpenAPI are made."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, get_args, get_origin
from urllib.parse import parse_qsl

import msgspec
from starlette.datastructures import ImmutableMultiDict
from starlette.requests import Request

from holdfast.errors import UsageError
from holdfast.text import one_line
from holdfast.web.users import Role

if TYPE_CHECKING:
    from starlette.responses import Response


S = TypeVar("S", bound=msgspec.Struct)


class NoQuery(msgspec.Struct, frozen=True):
    """The query of a page that has none."""


class View(msgspec.Struct, frozen=True, kw_only=True):
    """A page and its JSON twin.

    `path` is that of the page, `twin` that of the twin below `/api/v1`; `{name}` in it is a name of any characters, as the last
    segment. `load` is called with the context, the name if there is one, and the query; it returns what the template and the JSON show,
    with the status of the response as its `http_status` if that is not 200, or a response, such as a file.
    """

    path: str
    template: str
    load: "Callable[..., Awaitable[msgspec.Struct | Response]]"
    summary: str
    query: type[msgspec.Struct] = NoQuery
    role: Role = "viewer"

    @property
    def twin(self) -> str:
        """The path of the JSON twin below `/api/v1`; that of the first page has a name there."""
        return "/overview" if self.path == "/" else self.path

    @property
    def name(self) -> str:
        """The template without its ending: the name of the view in OpenAPI, and of the page in the navigation."""
        return self.template.removesuffix(".html")


class Refusal(msgspec.Struct, frozen=True):
    """Something that an action did not change, and why."""

    name: str
    why: str


class Repeal(msgspec.Struct, frozen=True):
    """The action that undoes one: its noun and verb, and its fields."""

    noun: str
    verb: str
    fields: Mapping[str, Any]


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What an action did, in a sentence and as values.

    `keys` name what changed, as the live stream does: pages that show it load it again. `gone` are jobs that left the list that
    showed them. `operation` is the id of an operation that continues in the background. `place` is the page to show next.
    """

    text: str
    changed: int = 1
    refused: tuple[Refusal, ...] = ()
    keys: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    operation: str = ""
    undo: Repeal | None = None
    place: str = ""
    result: Any = None


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a person is asked before an action: a dialog. With `fields` and `confirm` set, the action is run.

    `word` has to be typed. `details` are lines below the text: what would change, and what would be refused. `diff` are
    two JSON values to compare, `inputs` what is asked for: label, name and value of each field; `choices` are boxes to tick: label
    and name. `examples` are jobs, named by `listed`. Without a `button` it only shows some values.
    """

    title: str
    text: str
    button: str = ""
    values: tuple[Any, ...] = ()
    details: tuple[str, ...] = ()
    examples: tuple[Any, ...] = ()
    diff: tuple[Any, ...] = ()
    word: str = ""
    inputs: tuple[tuple[str, str, str], ...] = ()
    choices: tuple[tuple[str, str], ...] = ()
    listed: str = ""


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """The base of the fields of an action. `confirm` answers a question; programs need not be asked."""

    confirm: str = ""
    reason: str = ""


class TagsBody(msgspec.Struct, frozen=True):
    """What an action changes, as it is now, and its entity tag."""

    tag: str
    value: Any


class Again(msgspec.Struct, frozen=True):
    """A page that shows a form with what was typed in it: its path, its template, and what that shows."""

    place: str
    template: str
    page: msgspec.Struct


class ActionRoute(msgspec.Struct, frozen=True, kw_only=True):
    """An action: `POST /act/<noun>/<verb>` with a form, `POST /api/v1/<noun>/<verb>` with JSON.

    `run` is called with the context and the body, and returns what was done, or a question that has to be answered before.
    `tagged` returns what it changes, for requests with If-Match: then `ctx.matched` has the value. `place` is the field of a form
    whose value names the place where an error is shown. `again` is called with the context and a form: where there are no scripts, a form that is
    refused is shown again by that page. With a `part`, a template, the action changes nothing: forms get the page, and those that a script sends that part of it.
    """

    noun: str
    verb: str
    body: type[Body]
    run: Callable[..., Awaitable[Done | Question]]
    summary: str
    role: Role = "operator"
    tagged: Callable[..., Awaitable[TagsBody]] | None = None
    place: str = ""
    again: Callable[..., Awaitable[Again]] | None = None
    part: str = ""


class Table(msgspec.Struct, frozen=True):
    """The views and actions of the application."""

    views: tuple[View, ...]
    actions: Mapping[tuple[str, str], ActionRoute]


def table(views: Iterable[View], actions: Iterable[ActionRoute]) -> Table:
    """Return the table of some views and actions."""
    return Table(tuple(views), {(one.noun, one.verb): one for one in actions})


def is_list(kind: type[msgspec.Struct], name: str) -> bool:
    """Return whether a field of a query or body takes more than one value."""
    [field] = [one for one in msgspec.structs.fields(kind) if one.name == name]
    return get_origin(field.type) in (list, tuple)


MOST_FIELDS: Final = 5000


async def read_form(request: Request) -> ImmutableMultiDict[str, str]:
    """Return the fields of a form that a page or a program sent URL-encoded. Raises UsageError."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    text = await request.body()
    if text and kind != "application/x-www-form-urlencoded":
        raise UsageError(f"expected a form, as application/x-www-form-urlencoded, got {kind!r:.80}")
    try:
        fields = parse_qsl(text.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError as error:  # not UTF-8, or too many
        raise UsageError(f"the form cannot be read: {error}") from None
    return ImmutableMultiDict(fields)


def _is_number(kind: type[msgspec.Struct], name: str) -> bool:
    """Return whether a field takes a number or a flag, but no text."""
    [field] = [one for one in msgspec.structs.fields(kind) if one.name == name]
    return set(get_args(field.type) or (field.type,)) <= {int, float, bool, NoneType}


def from_form(kind: type[S], given: ImmutableMultiDict[str, Any]) -> S:
    """Return a query string or form as its struct. Raises UsageError; fields that it does not know are ignored.

    An empty field for a number counts as missing.
    """
    values: dict[str, object] = {}
    for name in kind.__struct_fields__:
        if name not in given or (given[name] == "" and _is_number(kind, name)):
            continue
        values[name] = given.getlist(name) if is_list(kind, name) else given[name]
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(f"{error}") from None


_ALSO: Final[Mapping[str, str]] = {
    "ids": "id", "jids": "jid", "parents": "parent", "queues": "name", "tags": "tag", "throttles": "throttle", "workers": "name",
}  # fmt: skip
"""Words of the gateway, and the fields of this API that mean the same; its lists have the plural."""


def from_json(kind: type[S], text: bytes) -> S:
    """Return the body of a request as its struct, in the words of this API or of the gateway. Raises UsageError.

    A name may stand for a list of one name.
    """
    try:
        given: object = msgspec.json.decode(text or b"{}")
        values = _in_words(kind, cast("dict[str, object]", given)) if isinstance(given, dict) else given
        return msgspec.convert(values, kind)
    except RecursionError:
        raise UsageError("the body is nested too deep") from None
    except (msgspec.MsgspecError, ValueError) as error:  # also text that is not UTF-8
        raise UsageError(one_line(str(error))) from None


def _in_words(kind: type[msgspec.Struct], given: Mapping[str, object]) -> dict[str, object]:
    values: dict[str, object] = {}
    for name, value in given.items():
        known = _ALSO.get(name, name)
        is_own = name in kind.__struct_fields__ and (is_list(kind, name) or not isinstance(value, list))
        name = name if is_own or known not in kind.__struct_fields__ else known
        if name in values:
            raise UsageError(f"{name} is given twice, as {name} and in the words of /v1")
        is_one = isinstance(value, str) and name in kind.__struct_fields__ and is_list(kind, name)
        values[name] = [value] if is_one else value
    return values
