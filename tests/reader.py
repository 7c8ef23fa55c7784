"""Follow a page of the documentation as a person would: write its files, run its commands, type its code.

* ```python (or ```ini) after a paragraph that ends in "`name.py`:" is a file; "Add to `name.py`:" appends to it;
* other ```python is typed statement by statement; a comment after `print(…)` is what it prints;
* ```pycon is typed; what stands below a prompt is what it shows;
* ```console runs its commands: `$ holdfast worker …` until the page ends, the others to their end (`$ export NAME=VALUE` holds for all
  that follow); what stands below a command is what it prints.

`…` and `...` stand for any text. Other blocks are not run. Run with `python -c`, so that `__main__` is nobody's file, as at a prompt:

    python -c "import sys; sys.path.append('tests'); from reader import follow; follow('docs/start.md')"
"""

import ast
import doctest
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import traceback
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from waiting import until

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`([\w./-]+\.(?:py|ini))`[^`]*:$")
PRINTED = re.compile(r"\bprint\(.*\)  # (.*)$")
CONTINUED = re.compile(r"# (.*)$")
CHECKER = doctest.OutputChecker()
LOOSELY = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
SECONDS = 60


class Block(NamedTuple):
    kind: str
    text: str
    line: int
    file: str = ""
    is_added: bool = False


def blocks_of(page: str) -> list[Block]:
    """Return the fenced blocks of a page in their order."""
    return [_block(found, page) for found in FENCE.finditer(page)]


def _block(found: re.Match[str], page: str) -> Block:
    kind, text = found.groups()
    before = page[: found.start()]
    paragraph = before.rstrip().rpartition("\n\n")[2].replace("\n", " ")
    file = FILE.search(paragraph) if kind in ("python", "ini") else None
    added = bool(re.search(r"\b[Aa]dd\b", paragraph))
    return Block(kind, text, before.count("\n") + 1, file[1] if file else "", added)


class Shown(StringIO):
    """What the typing thread prints; what handlers print in threads of their own is left aside."""

    def write(self, text: str) -> int:
        return super().write(text) if threading.current_thread() is threading.main_thread() else len(text)


class Reader:
    """Somebody at a prompt, in the working directory, with one page open."""

    def __init__(self, page: Path, names: dict[str, Any]) -> None:
        self.page = page
        self.names = names
        self.workers: list[Any] = []

    def follow(self) -> None:
        """Do what the page does."""
        try:
            for block in blocks_of(self.page.read_text(encoding="utf-8")):
                if block.file:
                    self.write(block)
                elif block.kind in ("python", "pycon", "console"):
                    getattr(self, block.kind)(block)
        finally:
            self.stop_workers()

    def write(self, block: Block) -> None:
        """Write a file, or add to it; workers with --reload have restarted afterwards."""
        file = Path(block.file)
        file.parent.mkdir(parents=True, exist_ok=True)
        before = self.starts()
        with file.open("a" if block.is_added else "w", encoding="utf-8") as out:
            out.write(("\n\n" if block.is_added else "") + block.text)
        reloading = sum("--reload" in worker.args for worker in self.workers)
        until(lambda: self.starts() >= before + reloading, "the worker has restarted", SECONDS)

    def starts(self) -> int:
        """How often the workers of this page have started."""
        return sum(self.log(number).read_text().count("working for") for number in range(len(self.workers)))

    def python(self, block: Block) -> None:
        """Type statements."""
        lines = block.text.splitlines()
        for statement in ast.parse(block.text).body:
            code = compile(ast.Module([statement], []), f"<{self.page.name}>", "exec")
            self.check(block.line + statement.lineno, printed(lines, statement), self.typed(block, code))

    def pycon(self, block: Block) -> None:
        """Type what stands at prompts."""
        for example in doctest.DocTestParser().get_examples(block.text):
            wanted, line = example.want, block.line + 1 + example.lineno
            code = compile(example.source, f"<{self.page.name}>", "single")
            self.check(line, wanted, self.typed(block, code, example.exc_msg))

    def typed(self, block: Block, code: Any, raises: str | None = None) -> str:
        """Run code; return what it shows. An error that is not shown on the page ends the reading."""
        with redirect_stdout(Shown()) as shown:
            try:
                exec(code, self.names)
            except Exception as error:
                if raises is None:
                    traceback.print_exc()
                    self.give_up(block.line, f"{type(error).__name__}: {error}")
                head, last = (
                    "Traceback (most recent call last):\n  …\n",
                    traceback.format_exception_only(error),
                )
                return head + "".join(last)
        return shown.getvalue()

    def console(self, block: Block) -> None:
        """Run commands: workers beside, others to their end."""
        for found in re.finditer(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE):
            command, wanted = found.groups()
            line = block.line + 1 + block.text[: found.start()].count("\n")
            if command.startswith("export "):
                name, _, value = command.removeprefix("export ").partition("=")
                os.environ[name] = value
            elif command.startswith("holdfast worker ") and "--drain" not in command:
                self.start_worker(command)
            else:
                self.check(line, wanted, self.ran(line, command), is_exact=bool(wanted.strip()))

    def start_worker(self, command: str) -> None:
        """Open another terminal."""
        with self.log(len(self.workers)).open("wb") as log:
            self.workers.append(subprocess.Popen(shlex.split(command), stdout=log, stderr=log))

    def log(self, number: int) -> Path:
        """Where a worker writes."""
        return Path(f"worker-{number}.log")

    def ran(self, line: int, command: str) -> str:
        """Run a command; return what it prints."""
        ended = subprocess.run(
            ["sh", "-c", command], capture_output=True, text=True, timeout=SECONDS, check=False
        )
        if ended.returncode:
            self.give_up(line, f"{command} exited with {ended.returncode}: {ended.stdout}{ended.stderr}")
        return ended.stdout

    def check(self, line: int, wanted: str, shown: str, is_exact: bool = True) -> None:
        """Compare what the page shows with what is shown."""
        if is_exact and not CHECKER.check_output(
            wanted.replace("…", "..."), shown.replace("…", "..."), LOOSELY
        ):
            self.give_up(line, f"the page shows {wanted!r}, but it is {shown!r}")

    def give_up(self, line: int, why: str) -> NoReturn:
        """End the reading."""
        logs = "".join(
            f"\n{log}:\n{log.read_text()[-3000:]}" for log in map(self.log, range(len(self.workers)))
        )
        raise SystemExit(f"{self.page}:{line}: {why}{logs}")

    def stop_workers(self) -> None:
        """Press Ctrl-C in the other terminals, once something stands there."""
        for number, worker in enumerate(self.workers):
            until(lambda number=number: self.log(number).stat().st_size > 0, "the worker has started")
            worker.send_signal(signal.SIGINT)
        for worker in self.workers:
            if worker.wait(SECONDS):
                self.give_up(0, f"{worker.args} exited with {worker.returncode}")


def printed(lines: list[str], statement: ast.stmt) -> str:
    """Return what the comments after the prints of a statement say that they print."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return "…"
    last = statement.end_lineno or statement.lineno
    said = [found[1] for line in lines[statement.lineno - 1 : last] if (found := PRINTED.search(line))]
    for line in lines[last:] if said else ():
        if not (found := CONTINUED.match(line)):
            break
        said.append(found[1])
    return "\n".join(said) + "\n" if said else "…"


def follow(page: str) -> None:
    """Follow a page in the working directory, with `holdfast`, `python` and `pytest` on the path."""
    places = Path("bin").absolute()
    places.mkdir(exist_ok=True)
    for name, module in {"holdfast": "-m holdfast.cli.main", "python": "", "pytest": "-m pytest"}.items():
        program = places / name
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {module} "$@"\n')
        program.chmod(0o755)
    os.environ["PATH"] = f"{places}{os.pathsep}{os.environ['PATH']}"
    Reader(Path(page), sys.modules["__main__"].__dict__).follow()
