"""Write the page of the Python API, `docs/reference/api.md`, from signatures and docstrings."""

import ast
import importlib
import inspect
import re
import textwrap
import typing
from collections.abc import Callable, Iterator
from functools import cached_property
from types import FunctionType
from typing import Any, Final, NamedTuple, cast

import msgspec

import holdfast
from holdfast.client import descriptors

GROUPS: Final = {
    "Clients": ("Client", "AsyncClient", "Config", "LuaPlugin"),
    "Jobs and queues": ("Job", "AsyncJob", "Queue", "AsyncQueue", "RecurringJob", "Throttle", "generate_jid"),
    "Results": ("Handle", "AsyncHandle", "gather", "as_completed"),
    "In the code of a job": ("current_job", "current_async_job", "retry", "Retry", "Failed", "Moved"),
    "Topics and events": ("Scheduler", "AsyncScheduler", "Events", "AsyncEvents"),
    "Logging": ("logger",),
}
"""The names of `holdfast`, by section; errors have a section of their own, and what is in none comes last."""

PARTS: Final = {
    "client.jobs": "holdfast.client.job_lookup.Jobs",
    "client.queues": "holdfast.client.handles.Queues",
    "client.workers": "holdfast.client.workers.WorkersOf",
    "client.recurring": "holdfast.client.recurring.Recurring",
    "client.throttles": "holdfast.client.throttles.Throttles",
    "client.topics[name]": "holdfast.client.topics.topic.Topic",
    "client.queue_patterns": "holdfast.client.patterns.QueuePatterns",
    "client.upkeep": "holdfast.client.upkeep.Upkeep",
    "client.audit": "holdfast.client.upkeep.AuditLog",
    "queue.jobs": "holdfast.client.tables.QueueJobs",
    "a function with @client.job": "holdfast.client.function_jobs.FunctionJob",
    "function.every(…)": "holdfast.client.function_jobs.Every",
    "topic.reserve()": "holdfast.client.topics.messages.Item",
    "holdfast.push.Push": "holdfast.client.topics.push.Push",
    "holdfast.push.Webhook": "holdfast.client.topics.push.Webhook",
    "holdfast.push.PushCounts": "holdfast.client.topics.push.PushCounts",
}
"""What is reached through the public names."""

OPTIONS: Final = (
    "holdfast.client.store_options.StoreOptions",
    "holdfast.code.job_options.JobOptions",
    "holdfast.code.job_options.PutChanges",
    "holdfast.code.put_options.PutOptions",
    "holdfast.client.jobs.attributes.RequeueOptions",
)
"""Mappings that methods take by name."""

HIDDEN: Final = (
    "before_call", "end_collecting", "ends_of", "kept_back", "learn", "of", "of_job", "plan_of", "put_together", "read", "run", "run_all",
    "shares_root_with", "sign_of_life",
)  # fmt: skip
"""What other parts of holdfast call."""

ATTRIBUTES: Final = (descriptors.CommandProperty, descriptors.PlanProperty)
_CORE: Final = re.compile(r"\s*Core: [^.]*?\.lua(?:, [\w./]*\.lua)*\.")
_WRAPPED: Final = re.compile(r"^(?:Command|Plan)\[(.*)\]$")
_INNER: Final = re.compile(r"\bUnpack\[(\w+)\]")
_VARIABLE: Final = re.compile(r"[A-Z]")
_DEFAULT: Final = re.compile(r"(: [^=:]+)=")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Member(NamedTuple):
    """A member of a class: its name, its signature and its docstring."""

    name: str
    text: str
    doc: str


def api() -> str:
    """Return the page."""
    known = {name for names in GROUPS.values() for name in names}
    rest = [name for name in holdfast.__all__ if name not in known and not _is_error(name)]
    groups = {**GROUPS, "More": tuple(rest)} if rest else GROUPS
    parts = [_HEAD, *(_group(title, names) for title, names in groups.items()), *_reached(), *_options()]
    raised = ", ".join(f"`{name}`" for name in holdfast.__all__ if _is_error(name))
    return "\n".join([*parts, f"## Errors\n\n{raised}. [What they mean](errors.md).\n"])


_HEAD: Final = """# Python API

Written by `make docs` from the code: every name of `holdfast`, and what is reached through it. The methods of the async classes are
those of the sync ones, awaited; only what differs is listed.
"""


def _is_error(name: str) -> bool:
    found = getattr(holdfast, name)
    return inspect.isclass(found) and issubclass(found, BaseException)


def _group(title: str, names: tuple[str, ...]) -> str:
    return f"## {title}\n\n" + "\n".join(_entry(name, getattr(holdfast, name)) for name in names)


def _reached() -> Iterator[str]:
    yield "## Reached through these\n"
    for shown, where in PARTS.items():
        yield _entry(shown, _load(where))


def _options() -> Iterator[str]:
    yield "## Options\n"
    for where in OPTIONS:
        kind = _load(where)
        fields = "\n".join(_fields(kind))
        yield f"### {kind.__name__}\n\n{_doc(kind)}\n\n```python\n{fields}\n```\n"


def _fields(kind: Any) -> Iterator[str]:
    tree = _tree(kind)
    for base in map(ast.unparse, tree.bases):
        if base not in ("TypedDict", "msgspec.Struct") and not base.startswith("Generic["):
            yield from _fields(_load(f"{kind.__module__}.{base}"))
    for node in tree.body:
        if isinstance(node, ast.AnnAssign):
            default = f" = {ast.unparse(node.value)}" if node.value else ""
            kind, doc = _annotated(node.annotation)
            yield f"{doc}{ast.unparse(node.target)}: {_plain(kind)}{default}"


def _annotated(annotation: ast.expr) -> tuple[ast.expr, str]:
    """Return a type without its metadata, and the sentence about an option among these."""
    if not isinstance(annotation, ast.Subscript) or ast.unparse(annotation.value) != "Annotated":
        return annotation, ""
    kind, option = cast("ast.Tuple", annotation.slice).elts
    texts = [
        part.value
        for part in ast.walk(option)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]
    return kind, f"# {max(texts, key=len)}\n"


def _load(where: str) -> Any:
    module, _, name = where.rpartition(".")
    return getattr(importlib.import_module(module), name)


def _entry(name: str, thing: Any) -> str:
    if inspect.isclass(thing):
        return _class(name, thing)
    if not callable(thing):
        return (
            f"### {name}\n\nThe logger of the library, a `{type(thing).__module__}.{type(thing).__name__}`.\n"
        )
    signatures = "\n".join(f"{name}{line}" for line in _signatures(thing, skip=0))
    return f"### {name}\n\n```python\n{signatures}\n```\n\n{_doc(thing)}\n"


def _class(name: str, kind: type) -> str:
    members = list(_members(kind))
    if kind.__name__.startswith("Async"):
        sync = {member.name for member in _members(getattr(holdfast, kind.__name__.removeprefix("Async")))}
        members = [member for member in members if member.name not in sync]
    is_made_by_users = name.rpartition(".")[2] == kind.__name__
    made = f"```python\n{name}{_made_with(kind)}\n```\n\n" if is_made_by_users else ""
    lines = "\n".join(_item(member) for member in members)
    return f"### {name}\n\n{made}{_doc(kind)}\n\n{lines}".rstrip() + "\n"


def _item(member: Member) -> str:
    first, _, more = member.doc.partition("\n\n")
    text = f"* `{member.text}`" + (f": {' '.join(first.split())}" if first else "")
    return text + "".join(f"\n\n  {' '.join(part.split())}" for part in more.split("\n\n") if part)


def _made_with(kind: Any) -> str:
    """Return the arguments with which an object of a class is made."""
    if issubclass(kind, msgspec.Struct):
        return f"({', '.join(_fields(kind))})"
    made = inspect.getattr_static(kind, "__init__", None)
    return _signature(made, skip=1).removesuffix(" -> None") if isinstance(made, FunctionType) else ""


def _members(kind: type) -> Iterator[Member]:
    """Yield the public members of a class by name, those of its bases too."""
    for name in sorted(dir(kind)):
        home = next((base for base in kind.__mro__ if name in vars(base)), object)
        if name[0] != "_" and name not in HIDDEN and home.__module__.startswith("holdfast."):
            member = _member(name, vars(home)[name])
            if member is not None:
                yield member


def _member(name: str, thing: Any) -> Member | None:
    if isinstance(thing, descriptors.Registrar):
        return Member(name, f"{name}(callback)", _doc(thing))
    made = getattr(thing, "make", None)
    if made is not None and not isinstance(thing, (*ATTRIBUTES, descriptors.SettableFact)):
        # The function of a plan has one argument less than what it was made of, so it does not wrap that.
        is_plan = isinstance(thing, FunctionType) and not hasattr(thing, "__wrapped__")
        return _method(name, made, 2 if is_plan else 1)
    read = _read_by(thing)
    if read is not None:
        kind = _returned(read)
        return Member(name, f"{name}: {kind}" if kind else name, _doc(read))
    function = cast("object", getattr(thing, "__func__", thing))  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(function, FunctionType):
        return _method(name, function, 0 if isinstance(thing, staticmethod) else 1)
    return None


def _method(name: str, function: Callable[..., Any], skip: int) -> Member:
    doc = _doc(function)
    first, *more = _signatures(function, skip)
    return Member(name, f"`, `{name}".join([f"{name}{first}", *more]), doc)


def _read_by(thing: Any) -> Callable[..., Any] | None:
    """Return the function that reads an attribute; None for other members."""
    if isinstance(thing, ATTRIBUTES):
        return thing.make
    if isinstance(thing, property):
        return thing.fget
    if isinstance(thing, cached_property):
        return cast("Callable[..., Any]", thing.func)
    return getattr(thing, "read", None) if not callable(thing) else None


def _signatures(function: Any, skip: int) -> list[str]:
    """Return the signatures of a function without its first `skip` parameters, one for each overload."""
    return [_signature(each, skip) for each in typing.get_overloads(function) or [function]]


def _signature(function: Any, skip: int) -> str:
    node = _tree(inspect.unwrap(function))
    assert isinstance(node, _Function)
    args = node.args
    for given in (args.posonlyargs, args.args):
        taken, skip = min(skip, len(given)), skip - min(skip, len(given))
        del given[:taken]
    for arg in [*args.posonlyargs, *args.args, *args.kwonlyargs, *filter(None, (args.vararg, args.kwarg))]:
        if arg.annotation is not None:
            arg.annotation = ast.Name(_plain(arg.annotation))
    text = _DEFAULT.sub(r"\1 = ", ast.unparse(args)).replace("NOTHING", "…")
    returned = _returned(function)
    return f"({text}) -> {returned}" if returned else f"({text})"


def _returned(function: Any) -> str:
    node = _tree(inspect.unwrap(function))
    assert isinstance(node, _Function | ast.Lambda)
    if isinstance(node, ast.Lambda) or node.returns is None:
        return ""
    text = _plain(node.returns)
    wrapped = _WRAPPED.match(text)
    text = (wrapped[1] if wrapped else text).removesuffix("_co")
    return "" if _VARIABLE.fullmatch(text) else text


def _plain(annotation: ast.expr) -> str:
    """Return an annotation without quotes, with options by the name of their mapping."""
    text = ast.unparse(annotation)
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        text = annotation.value
    return _INNER.sub(r"\1", re.sub(r"'([\w\[\], .|]+)'", r"\1", text))


def _tree(thing: Any) -> Any:
    source = textwrap.dedent(inspect.getsource(thing))
    return next(node for node in ast.walk(ast.parse(source)) if isinstance(node, _Function | ast.ClassDef))


def _doc(thing: Any) -> str:
    text = _CORE.sub("", inspect.getdoc(thing) or "")
    return text.strip()
