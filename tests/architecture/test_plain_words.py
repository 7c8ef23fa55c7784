"""Help, log lines, errors, and the names of modules and classes keep to words that a stranger knows."""

import ast
import re
from collections.abc import Iterator

import pytest
from source_tree import PACKAGE, Module, modules

WORDS = frozenset(
    [
        "tell",
        "told",
        "say",
        "said",
        "says",
        "hear",
        "heard",
        "answer",
        "answers",
        "knock",
        "knocks",
        "bury",
        "buried",
        "owe",
        "owes",
        "debt",
        "debts",
        "mouth",
        "ear",
        "ride",
        "prod",
        "deafen",
        "errand",
        "farewell",
        "colour",
        "colours",
        "wish",
        "wishes",
        "wear",
        "wears",
        "worn",
        "spell",
        "spells",
        "ring",
        "rings",
        "rang",
        "rung",
        "bell",
        "seat",
        "seats",
        "slate",
        "news",
        "aside",
        "tending",
        "ties",
        "newcomer",
        "burden",
        "accent",
        "unwell",
        "ask",
    ]
)
"""Words that made the first version hard to read, where they stand in the place of a plain one."""

PHRASES = (
    "ask after|goes on|go on with|come to work|so many|at most so much|who lives|is away|in hand|put right"
)
IN_TEXT = re.compile(rf"\b({'|'.join(sorted(WORDS - {'ask'}))})\b|{PHRASES}", re.IGNORECASE)

ALLOWED = {
    "Answer": "the answer to a question for a stack; a verb of the core has that name",
    "WorkerAnswer": "the verb of the core",
    "WorkerAsk": "the verb of the core",
}
"""Names that stay, and why."""

KEPT = {"unwell": "a state of an embedded store, as its directory and `store status --json` spell it"}
"""Texts that stay, and why."""

LOGS = ("debug", "info", "warning", "error", "exception", "log", "echo", "echo_text")
MODULES = list(modules().values())


def texts(module: Module) -> Iterator[tuple[int, str]]:
    """The help texts of commands, and what is logged, printed or raised."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef) and any(
            "command" in ast.dump(one) for one in node.decorator_list
        ):
            yield node.lineno, ast.get_docstring(node) or ""
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        parts = list(node.args) if called in LOGS or called[:1].isupper() else []
        parts += [keyword.value for keyword in node.keywords if keyword.arg == "help"]
        for part in parts:
            for piece in ast.walk(part):
                if isinstance(piece, ast.Constant) and isinstance(piece.value, str):
                    yield node.lineno, piece.value


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_what_people_read_has_none_of_the_dropped_words(module: Module) -> None:
    found = [
        (line, hit[0], text[:80])
        for line, text in texts(module)
        for hit in IN_TEXT.finditer(text)
        if text not in KEPT
    ]
    assert found == []


def names(module: Module) -> Iterator[str]:
    yield module.name.rpartition(".")[2]
    yield from (node.name for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef))


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_no_module_and_no_class_is_called_by_a_dropped_word(module: Module) -> None:
    found = [
        name
        for name in names(module)
        if name not in ALLOWED and {word.lower() for word in re.findall(r"[A-Z]?[a-z]+", name)} & WORDS
    ]
    assert found == []


_OWN_PLURAL = re.compile(
    r"""['"]s['"] if|else ['"]s['"]|['"]s['"] \*|['"] ?(\w+)['"] if [^"']* else ['"] ?\1s['"]"""
)
_OWN_UNIT = re.compile(r"""['"][kM]B['"]|\} [kM]B|\.removesuffix\(['"]\.0['"]\)""")


def test_only_one_module_writes_plurals_sizes_and_durations() -> None:
    """The others call `holdfast.text`: a second form of the same would differ from it one day."""
    files = [module.path for name, module in modules().items() if name != "holdfast.text"]
    files += sorted((PACKAGE / "web" / "templates").glob("*.html"))
    found = [
        f"{path.name}: {match[0]}"
        for path in files
        for match in re.finditer(f"{_OWN_PLURAL.pattern}|{_OWN_UNIT.pattern}", path.read_text())
    ]
    assert found == []
