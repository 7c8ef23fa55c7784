"""Prints how large the house is: `python tests/architecture/figures.py`.

Files, files that only one other imports, lines of code (no blank lines, comments, docstrings, imports), sizes of
functions, uses of `Any`, and the frames of our own code that a sync put and a steady asyncio job pass through. Nothing is asserted.
"""

import ast
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Callable
from statistics import median, quantiles
from types import FrameType
from typing import Any

from source_tree import PACKAGE, Module, lua_files, modules

_SILENT = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)


def docstring_lines(tree: ast.Module) -> set[int]:
    """The lines of all docstrings, those of attributes too, and of all imports."""
    found: set[int] = set()
    for node in ast.walk(tree):
        is_text = (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        )
        if is_text or isinstance(node, ast.Import | ast.ImportFrom):
            found |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return found


def code_lines(module: Module) -> int:
    text = module.path.read_text()
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    used = {
        line
        for token in tokens
        if token.type not in _SILENT
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(used - docstring_lines(module.tree))


def lua_lines() -> int:
    lines = (line.strip() for path in lua_files() for line in path.read_text().splitlines())
    return sum(bool(line) and not line.startswith("--") for line in lines)


def importers(found: dict[str, Module]) -> Counter[str]:
    """By how many other files each file is imported. A package's own `__init__` counts as one."""
    counts: Counter[str] = Counter()
    for module in found.values():
        counts.update({name for name in module.imports if name in found and name != module.name})
    return counts


def function_sizes(found: dict[str, Module]) -> list[int]:
    sizes: list[int] = []
    for module in found.values():
        silent = docstring_lines(module.tree)
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = {line for part in node.body for line in range(part.lineno, (part.end_lineno or 0) + 1)}
                sizes.append(len(body - silent))
    return sizes


def uses_of_any(found: dict[str, Module]) -> int:
    return sum(
        isinstance(node, ast.Name) and node.id == "Any"
        for module in found.values()
        for node in ast.walk(module.tree)
    ) + sum(
        node.value.count("Any")
        for module in found.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "Any]" in node.value
    )


class Walk:
    """Counts the frames of our own files, and those files, while it is entered."""

    def __init__(self) -> None:
        self.frames = 0
        self.files: set[str] = set()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(str(PACKAGE)):
            self.frames += 1
            self.files.add(name)

    def of(self, action: Callable[[], object]) -> str:
        sys.setprofile(self)
        try:
            action()
        finally:
            sys.setprofile(None)
        return str(self)

    def __str__(self) -> str:
        return f"{self.frames} frames in {len(self.files)} files"


def put_walk() -> str:
    """A put of a sync client that has put before."""
    import holdfast
    from holdfast.testing import ScratchStore

    with ScratchStore("valkey") as store, holdfast.Client(store.url) as client:
        queue = client.queues["walk"]
        for _ in range(3):
            queue.put("job", {})
        return Walk().of(lambda: queue.put("job", {}))


def asyncio_walk() -> str:
    """A job of an asyncio worker with one slot and a full queue, from the reply that grants it to the call that reports it."""
    import holdfast
    from holdfast.testing import ScratchStore
    from holdfast.wire.aio import AsyncLink
    from holdfast.workers import AsyncioWorker

    walk, send, calls = Walk(), AsyncLink.send, 0

    async def counted(link: Any, step: Any) -> Any:
        nonlocal calls
        sys.setprofile(None)
        replies = await send(link, step)
        calls += 1
        if calls == 20:
            sys.setprofile(walk)
        return replies

    async def nothing() -> None:
        """A job that costs nothing itself."""

    with ScratchStore("valkey") as store, holdfast.Client(store.url) as client:
        job = client.job(name="walk", queue="walk")(nothing)
        for _ in range(40):
            job.put()
        AsyncLink.send = counted  # type: ignore[method-assign]
        try:
            AsyncioWorker(["walk"], client, concurrency=1, max_jobs=40).run()
        finally:
            AsyncLink.send = send  # type: ignore[method-assign]
    return str(walk)


def main() -> None:
    found = modules()
    counts = importers(found)
    sizes = function_sizes(found)
    rows: dict[str, Any] = {
        "Python files": len(found),
        "imported by only one other": sum(counts[name] == 1 for name in found),
        "lines of Python code": sum(map(code_lines, found.values())),
        "Lua files": len(lua_files()),
        "lines of Lua code": lua_lines(),
        "functions": len(sizes),
        "lines of a function, median": median(sizes),
        "lines of a function, 90th percentile": quantiles(sizes, n=10)[-1],
        "uses of Any": uses_of_any(found),
    }
    for name, value in rows.items():
        print(f"{name:40} {value}")
    print(f"{'a sync put':40} {put_walk()}")
    print(f"{'a steady asyncio job':40} {asyncio_walk()}")


if __name__ == "__main__":
    main()
