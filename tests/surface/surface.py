"""The public surface beside `docs/reference`: names of modules, the OpenAPI documents, and the sentences of refused input.

`python tests/surface/surface.py write` writes the files; `test_surface.py` compares them. A change of a line is a change for users: a commit
that has one explains it.
"""

import importlib
import inspect
import json
import pkgutil
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import click
import msgspec
from starlette.testclient import TestClient

import holdfast
from holdfast import Client
from holdfast.cli.main import holdfast as command_line
from holdfast.code.job_options import JobOptions, PutChanges
from holdfast.commands import COMMANDS
from holdfast.core.sources import rows_of
from holdfast.release import VERSION
from holdfast.testing.store import ScratchStore
from holdfast.text import one_line
from holdfast.web import create_app
from holdfast.web.gateway.verbs import verbs

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "docs" / "generators"))

import api_reference  # noqa: E402 (it is no part of the package)

MODULES = (
    "holdfast", "holdfast.errors", "holdfast.workers", "holdfast.reservers", "holdfast.queue_resolvers", "holdfast.middleware",
    "holdfast.push", "holdfast.gnomes", "holdfast.listener", "holdfast.client.signature", "holdfast.profile", "holdfast.web", "holdfast.testing",
    "holdfast.compat.reqless",
)  # fmt: skip
"""The modules that programs import by name."""


# Names.


def names(_: Client) -> Iterator[str]:
    """Each public name with its signature and the first line of its docstring."""
    compat = importlib.import_module("holdfast.compat.reqless")
    below = [f"{compat.__name__}.{one.name}" for one in pkgutil.iter_modules(compat.__path__)]
    for module in (*MODULES, *below, "holdfast.compat.reqless.workers.util"):
        loaded = importlib.import_module(module)
        for name in sorted(public(loaded)):
            yield from described(f"{module}.{name}", getattr(loaded, name))


def public(module: Any) -> Iterator[str]:
    named = getattr(module, "__all__", None) or getattr(module, "_LAZY", None)
    if named is not None:
        yield from named
        return
    for name, value in vars(module).items():
        if name[0] != "_" and not inspect.ismodule(value):
            home = getattr(value, "__module__", module.__name__) or ""
            if home.startswith("holdfast"):
                yield name


def described(name: str, thing: Any) -> Iterator[str]:
    """Return the lines of a name, and of the members of a class."""
    if inspect.ismodule(thing):
        yield f"{name}: module"
    elif inspect.isclass(thing):
        yield f"{name}{made_with(thing)}: {first_line(thing)}"
        for member in api_reference._members(thing):
            text = member.text.replace("`, `", f"\n{name}.")
            yield from f"{name}.{text}: {first_of(member.doc)}".splitlines()
    elif callable(thing):
        for signature in signatures(thing):
            yield f"{name}{signature}: {first_line(thing)}"
    else:
        yield f"{name}: {type(thing).__name__}"


def made_with(kind: type) -> str:
    with suppress(Exception):
        return api_reference._made_with(kind)
    return ""


def signatures(thing: Any) -> list[str]:
    with suppress(Exception):
        return api_reference._signatures(thing, skip=0)
    return [""]


def first_line(thing: Any) -> str:
    return first_of(inspect.getdoc(thing) or "")


def first_of(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split())


# Documents.


def documents(client: Client) -> Iterator[str]:
    """Return the OpenAPI documents of the gateway and of the web UI's API, a line for each fact."""
    with TestClient(create_app(client), base_url="http://localhost", client=("127.0.0.1", 50000)) as http:
        for path in ("/v1/openapi.json", "/api/v1/openapi.json"):
            for line in facts(http.get(path).json()):
                if not re.search(r" responses [45]\d\d ", line):  # the same for all
                    yield f"{path}{line.replace(VERSION, '(version)')}"


def facts(value: Any, path: str = "") -> Iterator[str]:
    """Return the leaves of a JSON document, by their paths."""
    if isinstance(value, dict) and value:
        for key in sorted(value):
            yield from facts(value[key], f"{path} {key}")
    elif isinstance(value, list) and value and not all(isinstance(one, str) for one in value):
        for index, one in enumerate(value):
            yield from facts(one, f"{path} {index}")
    else:
        yield f"{path}: {json.dumps(value, ensure_ascii=False)}"


# Sentences.

BAD: Mapping[str, Any] = {
    "None": None, "''": "", "'x'": "x", "a control character": "a\x01", "201 letters": "y" * 201, "-1": -1, "10^30": 10**30, "1.5": 1.5,
    "True": True, "[]": [], "{}": {}, "[1]": [1], "600 names": [str(n) for n in range(600)], "nan": float("nan"),
}  # fmt: skip
"""What is given where something else is expected."""


def refusal(act: Callable[[], Any]) -> str:
    """Return the sentence with which an act is refused, "ok" if it is not."""
    try:
        act()
    except holdfast.HoldfastError as error:
        return f"{type(error).__name__}: {one_line(str(error))}"
    return "ok"


def grouped(where: str, said: Mapping[str, str]) -> Iterator[str]:
    """Return a line for each sentence, with the values that are refused by it."""
    values: dict[str, list[str]] = {}
    for value, sentence in said.items():
        if sentence != "ok":
            values.setdefault(sentence[:240], []).append(value)
    for sentence, names in values.items():
        yield f"{where} {', '.join(names)}: {sentence}"


def of_options(client: Client) -> Iterator[str]:
    """Options of puts, recurring jobs, their changes and function jobs, each with each bad value."""
    queue = client.queues["options"]
    queue.recur("k", {}, 60, jid="template")
    template = client.recurring["template"]

    def function_job(**options: Any) -> None:
        client.job(**options)(shown)

    def one_put(**options: Any) -> None:
        client.job(shown).options(**options).put()

    acts: dict[str, tuple[Callable[..., Any], Any]] = {
        "put": (lambda **given: queue.put("k", {}, **given), api_reference._load("holdfast.code.put_options.PutOptions")),
        "recur": (
            lambda **given: queue.recur("k", {}, **{"interval": 60, **given}),
            dict.fromkeys(
                ("interval", "offset", "priority", "retries", "backlog", "jid", "keeps_time", "max_losses", "tags", "throttles", "backoff",
                 "expires", "timeout", "result_keep")
            ),
        ),
        "update": (template.update, api_reference._load("holdfast.client.recur_options.Changes")),
        "@client.job": (function_job, JobOptions),
        "options": (one_put, PutChanges),
    }  # fmt: skip
    for where, (act, kind) in acts.items():
        known = [*(kind if isinstance(kind, dict) else kind.__annotations__), "unheard_of", "delya"]
        for option in sorted(known):
            said = {
                name: refusal(lambda a=act, o=option, v=value: a(**{o: v})) for name, value in BAD.items()
            }
            yield from grouped(f"{where}({option}=…)", said)


def shown() -> None:
    """A function that is a job."""


def of_methods(client: Client) -> Iterator[str]:
    """Arguments of the methods of a client's parts, each with each bad value, the other ones as they should be."""
    client.queues["mail"].put("Klass", {}, jid="here")
    client.queues["mail"].recur("Klass", {}, 3600, jid="again")
    parts: dict[str, Any] = {
        "client": client, "client.queues": client.queues, "client.jobs": client.jobs, "client.workers": client.workers,
        "client.recurring": client.recurring, "client.throttles": client.throttles, "client.config": client.config,
        "client.queue_patterns": client.queue_patterns, "client.upkeep": client.upkeep, "client.audit": client.audit,
        "queue": client.queues["mail"], "queue.jobs": client.queues["mail"].jobs, "job": client.jobs["here"],
        "recurring": client.recurring["again"], "throttle": client.throttles["printer"], "topic": client.topics["reminders"],
    }  # fmt: skip
    for where, part in parts.items():
        for member in sorted(dir(type(part))):
            if member[0] == "_" or member in LEFT_OUT or member in api_reference.HIDDEN:
                continue
            yield from of_method(f"{where}.{member}", part, member)


LEFT_OUT = frozenset(
    ("close", "batch", "job", "listen", "wait", "result", "result_of", "wait_for", "new_redis_connection", "database", "redis", "run", "run_many",
     "stack", "stacks", "trusted", "process", "perform", "subscribe", "callback", "on", "redis_cli", "work", "messages", "reserve", "clear",
     "unfail_all")
)  # fmt: skip
"""Methods that wait, or that take other programs' objects."""
GOOD: Mapping[str, Any] = {
    "name": "n1", "names": ["n1"], "jid": "here", "jids": ["here"], "queue": "mail", "group": "g", "tag": "t", "tags": ["t"], "klass": "Klass",
    "data": {}, "interval": 60, "key": "heartbeat", "value": 60, "message": "m", "count": 1, "maximum": 1, "priority": 1, "patterns": {"x": ["y"]}, "set": "failed",
}  # fmt: skip


def of_method(where: str, part: Any, member: str) -> Iterator[str]:
    if is_attribute(part, member):
        return
    try:
        method = getattr(part, member)
    except Exception:  # an attribute whose value cannot be had here
        return
    if not callable(method):
        return
    thing = inspect.getattr_static(type(part), member)
    made = getattr(thing, "make", thing)
    try:
        parameters = list(inspect.signature(made).parameters.values())[1:]
    except (TypeError, ValueError):
        return
    plain = [
        one
        for one in parameters
        if one.name != "ask"  # a plan gets it from its method
        and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    ]
    needed = {one.name: GOOD.get(one.name, "n1") for one in plain if one.default is one.empty}
    for one in plain:
        said: dict[str, str] = {}
        for name, value in BAD.items():
            given = {**needed, one.name: value}
            args = [
                given.pop(each.name)
                for each in plain
                if each.kind is each.POSITIONAL_ONLY and each.name in given
            ]
            with suppress(TypeError):
                said[name] = refusal(lambda m=method, a=args, g=given: m(*a, **g))
        yield from grouped(f"{where}({one.name}=…)", said)


def is_attribute(part: Any, member: str) -> bool:
    thing = inspect.getattr_static(type(part), member)
    return (not hasattr(thing, "make") and not inspect.isroutine(thing)) or isinstance(
        thing, (property, *api_reference.ATTRIBUTES)
    )


LINE = "(line)"
"""Stands for the first word of a request id, another one in each call: a call that is repeated returns what it returned."""
WORDS = ("", "x", "-1", "99999999999999999999", "a\x01", "y" * 201)


def of_core(client: Client) -> Iterator[str]:
    """Words of the verbs: too few, and each with each bad value, where it was refused."""
    root = client.root
    for row in rows_of("doors.native"):
        if row.verb in ("clock", "call", "audited"):  # they take the words of others
            continue
        good = good_words(row.verb)
        for count in range(len(good)):
            yield f"hf1_{row.verb} with {count} words: {reply(client, root, row.verb, good[:count])}"
        for index in range(len(good)):
            sentences: dict[str, str] = {}
            for word in WORDS:
                sentence = reply(client, root, row.verb, [*good[:index], word, *good[index + 1 :]])
                sentences[repr(word[:4])] = re.sub(r'got "[^"]*"$', "got …", sentence)
            yield from grouped(f"hf1_{row.verb} word {index + 1}", sentences)


def good_words(verb: str) -> list[Any]:
    kind: Any = COMMANDS[verb]
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        if field.required:
            values[field.name] = example_of(field.type, field.name)
    command = kind(**values)
    words = list(command.words())
    if command.request_id_at >= 0:
        words[command.request_id_at : command.request_id_at] = [LINE, 1]
    return words


def example_of(kind: Any, name: str) -> Any:
    text = str(kind)
    if "Lease" in text or "Held" in text:
        from holdfast.commands.leases import Done, Lease

        lease = Lease("here", 1, "w")
        if "Done" in text:
            return [Done("here", 1)] if "Sequence" in text else Done("here", 1)
        return [lease] if "Sequence" in text else lease
    if "Sequence" in text or "list" in text or "tuple" in text:
        return ()
    if "Mapping" in text or "dict" in text:
        return {}
    if "bytes" in text:
        return b"{}"
    if "bool" in text:
        return False
    if "int" in text or "float" in text:
        return 1
    if "Literal" in text:
        return kind.__args__[0]
    return GOOD.get(name, "n1") if "str" in text else None


def json_example(kind: Any) -> Any:
    text = str(kind)
    for name, example in (("list", []), ("dict", {}), ("Raw", {}), ("bool", False), ("int", 1), ("float", 1)):
        if name in text:
            return example
    return kind.__args__[0] if "Literal" in text else "n1"


def reply(client: Client, root: str, verb: str, words: list[Any]) -> str:
    words = [f"line{uuid4().hex}" if word == LINE else word for word in words]
    try:
        client.database.fcall(f"hf1_{verb}", 1, root, *words)
    except Exception as error:
        return masked(str(error), client)
    return "ok"


def masked(text: str, client: Client) -> str:
    text = text.replace(client.root, "(root)")
    text = re.sub(r" ?script: (\S+, )?on \S+\.?", "", text)
    text = re.sub(r"user_function:\d+: ", "", text)
    text = re.sub(r"\b01[0-9a-f]{30}\b", "(jid)", text)
    return one_line(re.sub(r"\b1[78]\d{11}\b", "(token)", text))


def of_gateway(client: Client) -> Iterator[str]:
    """Fields of requests, each with each bad value, where they were refused."""
    with TestClient(
        create_app(client),
        base_url="http://localhost",
        client=("127.0.0.1", 50000),
        raise_server_exceptions=False,
    ) as http:
        for verb in verbs().values():
            good = {
                field.name: GOOD.get(field.name, json_example(field.type))
                for field in msgspec.structs.fields(verb.request)
                if field.required
            }
            for field in (*verb.request.__struct_fields__, "unheard_of"):
                if field == "wait":
                    continue
                said: dict[str, str] = {}
                for name, value in BAD.items():
                    if name != "nan":
                        found = http.post(f"/v1/{verb.name}", json={**good, field: value})
                        is_bad = found.status_code in (400, 413, 422)
                        said[name] = f"{found.status_code} {found.json()['title']}" if is_bad else "ok"
                yield from grouped(f"POST /v1/{verb.name} {field}", said)


def of_shell(_: Client) -> Iterator[str]:
    """Options of commands, each with each bad word, where they were refused."""
    found: Counter[str] = Counter()
    for path, command in commands_below(command_line, "holdfast"):
        context = click.Context(command, info_name=path)
        for parameter in command.params:
            if getattr(parameter, "is_flag", False):
                continue
            for word in WORDS[:4]:
                given: Any = (word,) if parameter.multiple or parameter.nargs == -1 else word
                try:
                    parameter.type_cast_value(context, given)
                except click.ClickException as error:
                    found[f"{one_line(error.format_message())}"] += 1
                except Exception:
                    continue
    for sentence in sorted(found):
        yield f"{sentence} ({found[sentence]} commands)"


def commands_below(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=path)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from commands_below(below, f"{path} {name}")
    else:
        yield path, command


# The files.


def files(client: Client) -> dict[str, list[str]]:
    """Return the lines of each file."""
    return {name: [masked(line, client) for line in make(client)] for name, make in FILES.items()}


FILES: Mapping[str, Callable[[Client], Iterator[str]]] = {
    "names.txt": names,
    "openapi.txt": documents,
    "sentences-options.txt": of_options,
    "sentences-methods.txt": of_methods,
    "sentences-core.txt": of_core,
    "sentences-gateway.txt": of_gateway,
    "sentences-shell.txt": of_shell,
}


def main() -> None:
    with ExitStack() as stack:
        store = stack.enter_context(ScratchStore("valkey"))
        client = stack.enter_context(Client(store.url, namespace="test-surface", hostname="w"))
        for name, lines in files(client).items():
            (HERE / name).write_text("\n".join(lines) + "\n")
            print(f"{name:24} {len(lines):6} lines")


if __name__ == "__main__" and sys.argv[1:] == ["write"]:
    main()
