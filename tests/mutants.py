"""Mutants: how many small changes of the core, and of the Python that keeps calls and leases, the tests find.

`make mutants` draws them by a fixed seed, makes each in a copy of the package, and runs the tests of that part with `-x`. What is
done is kept in `.holdfast/mutants.jsonl`, so that it can be ended and started again. Survivors are printed at the end.
"""

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from holdfast.core.sources import in_order

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = ROOT / "src" / "holdfast"
DONE: Final = ROOT / ".holdfast" / "mutants.jsonl"
TIMEOUT_S: Final = 20
_SWAPS: Final = {
    "==": "~=", "~=": "==", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "+": "-", "-": "+", "and": "or", "or": "and",
    "true": "false", "false": "true", "True": "False", "False": "True", "not": "",
}  # fmt: skip
_WORDS: Final = re.compile(
    r"(?<![\w.])(?:and|or|not|true|false|True|False|\d+)(?![\w.])|[=~!<>]=|(?<= )[<>+-](?= )"
)
_TEXT: Final = re.compile(
    r"(\"\"\".*?\"\"\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|--[^\n]*|#[^\n]*)", re.DOTALL
)


_ASSEMBLED: Final = {
    PACKAGE / "core" / "lua" / f"{name.replace('.', '/')}.lua" for name in in_order("doors.native")
}
"""The files of the native library; the doors of the older protocols are tested by recorded replies."""


class Part(NamedTuple):
    """Files of the package, how many mutants are drawn of them, and the tests that have to find these."""

    files: str
    count: int
    tests: tuple[str, ...]


PARTS: Final = {
    "core": Part("core/lua/**/*.lua", 200, ("tests/properties/test_core_against_model.py", "tests/lua")),
    "wire": Part("wire/*.py", 40, ("tests/wire",)),
    "leases": Part(
        "worker/leases/*.py",
        20,
        ("tests/worker/test_parts.py", "tests/worker/test_guard.py", "tests/worker/test_leases.py"),
    ),
}


class Mutant(NamedTuple):
    """One change: in a file of the package, at a position, of a word into another."""

    part: str
    path: str
    at: int
    old: str
    new: str

    def make_in(self, copy: Path) -> None:
        """Change the file in a copy of the package, whose files may be links to the original."""
        target = copy / self.path
        text = (PACKAGE / self.path).read_text()
        target.unlink()
        target.write_text(text[: self.at] + self.new + text[self.at + len(self.old) :])

    @property
    def place(self) -> str:
        """Where it is, for people."""
        text = (PACKAGE / self.path).read_text()
        number = text.count("\n", 0, self.at) + 1
        return f"{self.path}:{number}: {self.old} -> {self.new or '(nothing)'}: {text.splitlines()[number - 1].strip()}"


def mutants_of(name: str) -> Iterator[Mutant]:
    """Every change that could be made in the files of a part."""
    for path in sorted(PACKAGE.glob(PARTS[name].files)):
        if path.suffix == ".lua" and path not in _ASSEMBLED:
            continue
        text = path.read_text()
        code = _TEXT.sub(lambda found: " " * len(found.group()), text)
        for found in _WORDS.finditer(code):
            old = found.group()
            new = str(int(old) + 1) if old.isdigit() else _SWAPS[old]
            yield Mutant(name, str(path.relative_to(PACKAGE)), found.start(), old, new)


def drawn(seed: int) -> list[Mutant]:
    """The mutants of all parts, always the same for a seed."""
    dice = random.Random(seed)
    return [one for name, part in PARTS.items() for one in dice.sample(list(mutants_of(name)), part.count)]


def outcome(mutant: Mutant) -> str:
    """Make a mutant in a copy and run its tests: `killed`, `survived`, or `out of time`."""
    with tempfile.TemporaryDirectory(dir=DONE.parent) as folder:
        copy = Path(folder) / "holdfast"
        shutil.copytree(PACKAGE, copy, copy_function=os.link, ignore=shutil.ignore_patterns("__pycache__"))
        mutant.make_in(copy)
        words = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            "--hypothesis-seed=15",
            "-n",
            "0",
        ]
        environment = {**os.environ, "PYTHONPATH": folder, "HOLDFAST_TESTS": "everyday"}
        with subprocess.Popen(
            [*words, *PARTS[mutant.part].tests], cwd=ROOT, env=environment, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ) as run:  # fmt: skip
            try:
                return "survived" if run.wait(TIMEOUT_S) == 0 else "killed"
            except subprocess.TimeoutExpired:
                os.killpg(run.pid, 9)
                return "out of time"


def main() -> None:
    """Try the mutants that have not been tried yet, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=15)
    parser.add_argument("--most", type=int, default=10_000, help="how many to try now")
    options = parser.parse_args()
    DONE.parent.mkdir(parents=True, exist_ok=True)
    kept = [json.loads(line) for line in DONE.read_text().splitlines()] if DONE.exists() else []
    done: dict[tuple[Any, ...], str] = {tuple(row[:-1]): row[-1] for row in kept}
    left = [one for one in drawn(options.seed) if tuple(one) not in done][: options.most]
    with DONE.open("a") as file:
        for one in left:
            done[tuple(one)] = outcome(one)
            file.write(json.dumps([*one, done[tuple(one)]]) + "\n")
            file.flush()
    wanted = [one for one in drawn(options.seed) if tuple(one) in done]
    for one in wanted:
        if done[tuple(one)] == "survived":
            print(f"survived: {one.place}")
    for (part, how), count in sorted(Counter((one.part, done[tuple(one)]) for one in wanted).items()):
        print(f"{part}: {count} {how}")


if __name__ == "__main__":
    main()
