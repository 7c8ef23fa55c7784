"""What the rules look at: the modules of the package, what each imports, and the Lua files."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "holdfast"
LUA = PACKAGE / "core" / "lua"


@dataclass
class Module:
    """One Python file. It is parsed when a test looks inside: to collect the tests takes its name alone."""

    name: str
    path: Path
    known: "dict[str, Module]" = field(repr=False, compare=False)

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text())

    @cached_property
    def imports(self) -> dict[str, bool]:
        """The modules that it names; whether each is imported inside of functions only."""
        found: dict[str, bool] = {}
        for name, inside in _imports_in(self, self.tree, inside=False):
            found[name] = found.get(name, True) and inside
        return found

    @property
    def lines(self) -> int:
        return len(self.path.read_text().splitlines())

    @property
    def part(self) -> str:
        """The first word below the package: `wire` for `holdfast.wire.sync`, '' for the package itself."""
        return self.name.partition(".")[2].partition(".")[0]


@cache
def modules() -> dict[str, Module]:
    found: dict[str, Module] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        words = path.relative_to(PACKAGE.parent).with_suffix("").parts
        name = ".".join(words[:-1] if words[-1] == "__init__" else words)
        found[name] = Module(name, path, found)
    return found


def _imports_in(module: Module, node: ast.AST, inside: bool) -> Iterator[tuple[str, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((alias.name, inside) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            base = _absolute(module, child)
            for alias in child.names:
                deeper = f"{base}.{alias.name}"
                yield (deeper if deeper in module.known else base), inside
        else:
            is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from _imports_in(module, child, inside or is_function)


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    words = module.name.split(".")
    if module.path.name != "__init__.py":
        words = words[:-1]
    words = words[: len(words) - node.level + 1]
    return ".".join([*words, *([node.module] if node.module else [])])


def lua_files() -> list[Path]:
    return sorted(LUA.rglob("*.lua"))


def lua_strings(text: str) -> list[tuple[int, str]]:
    """Every string literal outside comments, with its line, read character by character."""
    found: list[tuple[int, str]] = []
    line, place = 1, 0
    while place < len(text):
        letter = text[place]
        if text.startswith("--[[", place):
            end = text.index("]]", place)
            line += text.count("\n", place, end)
            place = end
        elif text.startswith("--", place):
            place = text.find("\n", place) if "\n" in text[place:] else len(text)
            continue
        elif letter in "\"'":
            end = place + 1
            while text[end] != letter:
                end += 2 if text[end] == "\\" else 1
            found.append((line, text[place + 1 : end]))
            place = end
        line += letter == "\n"
        place += 1
    return found


def cycle_in(edges: dict[str, list[str]]) -> list[str]:
    """The first circle found, as the names along it; [] if there is none."""
    done: set[str] = set()

    def visit(name: str, way: list[str]) -> list[str]:
        if name in way:
            return [*way[way.index(name) :], name]
        if name in done:
            return []
        for below in edges.get(name, []):
            circle = visit(below, [*way, name])
            if circle:
                return circle
        done.add(name)
        return []

    for name in edges:
        circle = visit(name, [])
        if circle:
            return circle
    return []
