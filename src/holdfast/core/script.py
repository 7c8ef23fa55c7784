"""An older door as one script: a text that the store runs anew for every call.

Running whole modules would make every function of theirs, and a call uses a third of them. So each name that a module
binds is a *cell*, which is made when it is first used: `job.read(…)` becomes `C[7](…)`, and a miss in `C` runs the
seventh branch of a function. Constants are written where they are used, and so is what the door puts into `at` for
good; what the door never uses is left out. A call costs the same however many commands there are.

Modules are split, not compiled. Their style makes that possible: a statement of a module begins in the first column,
`late.bind` holds assignments only, and no local of a function has the name of something that the module binds.
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from holdfast.core.sources import CoreBroken, in_order, source

__all__ = ["script"]

_TOKEN = re.compile(
    r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|--[^\n]*|[A-Za-z_]\w*|\d[\w.]*|\.\.+|[=~<>]=|\s+|."""
)
_OPEN = frozenset(("(", "{", "[", "function", "if", "do", "repeat"))
_CLOSE = frozenset((")", "}", "]", "end", "until"))
_STATEMENT = re.compile(r"^(?=[a-zM])(?!end)", re.MULTILINE)
_COMMENT = re.compile(r"^--.*", re.MULTILINE)
_REQUIRE = re.compile(r'local (\w+) = require\("([\w.]+)"\)')
_FUNCTION = re.compile(r"(?:local )?function ([\w.]+)(\(.*)", re.DOTALL)
_BINDING = re.compile(r'(?:local )?((?:[\w.]+|M\["[\w.]+"\])(?:, [\w.]+)*)(?: =\s+(.*))?', re.DOTALL)
_LATE = re.compile(r"late\.bind\(function\(\)(.*)end\)", re.DOTALL)
_LATE_NAMES = re.compile(r"\s((?:\w+, )*\w+) = ")
_DECLARED = re.compile(
    r"\blocal (?!function)([\w, ]+)|\bfunction[ \w.]*\(([\w, ]*)|\bfor ([\w, ]+?) (?:=|in) "
)
_FIELD = re.compile(r"(\w+) = ([\w.]+)")
_OPERATOR = re.compile(r'[-+*/^() ]|\d[\w.]*|"[^"]*"|true|false')

HOISTED = ("redis.call", "struct.pack", "struct.unpack", "string.sub", "cjson.encode", "math.floor")
"""Names of the store that most calls use: looked up once a call."""


_CELL = re.compile(r"C\[(\d+)\]")
FILL = True


class Cell(NamedTuple):
    """Something that a module binds: a `name`, an `M.name`, or "M", the module itself."""

    module: str
    name: str


def _tokens(text: str) -> list[str]:
    """The words and signs of a text without its comments; what separates them is one blank or one newline."""
    found = (token for token in _TOKEN.findall(text) if not token.startswith("--"))
    return ["\n" if "\n" in token else " " if token.isspace() else token for token in found]


def _listed(text: str) -> list[str]:
    """The expressions of a list."""
    parts, depth = [""], 0
    for token in _tokens(text):
        depth += (token in _OPEN) - (token in _CLOSE)
        if token == "," and not depth:
            parts.append("")
        else:
            parts[-1] += token
    return [part.strip() for part in parts]


class Module:
    """One file: what its names stand for."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.aliases = {"M": name}
        self.natives: dict[str, str] = {}
        """Names of the store, by the local that holds each."""
        self.bound: dict[str, str] = {}
        """The text of whatever else is bound."""
        self.last = ""
        """The expression that the module returns."""
        for statement in _STATEMENT.split(source(name))[1:]:
            self._add(_COMMENT.sub("", statement).strip())
        for native in self.natives:
            self.bound.pop(native)
        self.changing = {name for name in self.bound if self._is_assigned(name)}
        self._check()

    def _add(self, statement: str) -> None:
        if statement.startswith("return "):
            self.last = statement.removeprefix("return ")
        elif required := _REQUIRE.fullmatch(statement):
            self.aliases[required[1]] = required[2]
        elif late := _LATE.fullmatch(statement):
            _, *found = _LATE_NAMES.split(late[1])
            for names, paths in zip(found[::2], found[1::2], strict=True):
                self.natives |= zip(_listed(names), _listed(paths), strict=True)
        elif function := _FUNCTION.fullmatch(statement):
            self.bound[function[1]] = "function" + function[2]
        elif binding := _BINDING.fullmatch(statement):
            self._bind(_listed(binding[1]), binding[2])
        else:
            raise CoreBroken(f"{self.name}: no statement of a module that can be split: {statement[:60]}")

    def _bind(self, names: list[str], values: str | None) -> None:
        if names == ["M"]:
            return
        keys = [re.sub(r'\["(.*)"\]', r".\1", name) for name in names]
        self.bound |= zip(keys, _listed(values) if values else ["nil"] * len(keys), strict=True)

    def _is_assigned(self, name: str) -> bool:
        target = re.compile(rf"\b{re.escape(name)}(?:, [\w.]+)* = ")
        return any(target.search(text) for text in self.bound.values())

    def _check(self) -> None:
        for text in self.bound.values():
            for found in _DECLARED.finditer(text):
                for name in _listed(found[1] or found[2] or found[3] or ""):
                    if name in self.bound or name in self.aliases or name in self.natives:
                        raise CoreBroken(f"{self.name}: a local has the name of the module's own {name}")


class Script:
    """The cells that a door needs, numbered in the order in which they are found."""

    def __init__(self, door: str) -> None:
        self.modules = {name: Module(name) for name in in_order(door)}
        self.numbers: dict[Cell, int] = {}
        home = self.modules[door]
        self.forms: dict[str, Cell] = {}
        for key, value in _FIELD.findall(home.bound["AT"]):
            cell = self._cell(home, value.partition(".")[0])
            if cell:
                self.forms[key] = (
                    cell if "." not in value else Cell(cell.module, "M." + value.partition(".")[2])
                )
        """What the door puts into `at` for good, by the field."""
        home.bound["AT"] = _FIELD.sub(
            lambda field: "" if field[1] in self.forms else field[0], home.bound["AT"]
        )
        home.bound["AT"] = re.sub(r"(?<=[{,])(?:\s*,)+", "", home.bound["AT"])
        self.run = self._text(home, home.last)
        self.texts: list[str] = []
        """What fills each cell, by its number."""
        while len(self.texts) <= len(self.numbers):
            self.texts.append(self._made(list(self.numbers)[len(self.texts) - 1]) if self.texts else "")
        uses = [set(map(int, _CELL.findall(text))) - {number} for number, text in enumerate(self.texts)]
        counts = Counter(used for one in uses for used in one)
        self.own = [
            [used for used in dict.fromkeys(_probable(text)) if counts[used] == 1 and used != number]
            for number, text in enumerate(self.texts)
        ]
        """The cells that only one other uses, which are made with it."""
        made_along = {used for own in self.own for used in own}
        self.branches = {
            number: self._branch(number) for number in range(1, len(self.texts)) if number not in made_along
        }
        usual = self.texts[self.numbers[Cell(door, "find")]]
        for number in map(int, re.findall(r"return C\[(\d+)\]", usual)):
            if FILL and number in self.branches:
                self.branches[number] = self._filled(number) + self.branches[number]
        self.order = sorted(
            self.branches, key=lambda number: number / counts[number] if counts[number] else number
        )
        """The cells, those that are probably used by many calls first."""

    def _branch(self, number: int, name: str = "made") -> str:
        """Statements that make what goes into a cell."""
        text, along = self.texts[number], ""
        for own in self.own[number]:
            along += f"local c{own}\n{self._branch(own, f'c{own}')}"
            text = text.replace(f"C[{own}]", f"c{own}")
        return f"{along}{name} = {text}\n"

    def _filled(self, number: int) -> str:
        """Statements that make what a function probably uses, which is cheaper than a miss for each."""
        found, left = [number], [number]
        while left:
            for used in _probable(self.branches[left.pop()]):
                if used not in found:
                    found.append(used)
                    left.append(used)
        return "".join(f"do\n{self.branches[one]}C[{one}] = made\nend\n" for one in found[1:])

    def _cell(self, module: Module, name: str) -> Cell | None:
        """What a name stands for, if the module binds it."""
        if name in module.aliases:
            return Cell(module.aliases[name], "M")
        return Cell(module.name, name) if name in module.bound else None

    def _made(self, cell: Cell) -> str:
        """What fills a cell. A module that is used as a value finds its members when they are used."""
        module = self.modules[cell.module]
        if cell.name != "M":
            return self._text(module, module.bound[cell.name])
        tests = (
            f'if key == "{name[2:]}" then made = {self._written(Cell(cell.module, name))} else'
            for name in module.bound
            if name.startswith("M.")
        )
        find = f"function(M, key) local made {''.join(tests)} return end M[key] = made return made end"
        return f"setmetatable({{}}, {{ __index = {find} }})"

    def _text(self, module: Module, text: str) -> str:
        """A piece of a module, in which each name that the module binds is what it stands for."""
        return "".join(self._words(module, _tokens(text)))

    def _words(self, module: Module, tokens: list[str]) -> Iterator[str]:
        inside, before, place = [""], "", 0
        while place < len(tokens):
            token, used = tokens[place], 1
            is_key = (
                inside[-1] == "{" and before in ("{", ",") and tokens[place + 1 : place + 3] == [" ", "="]
            )
            if before not in (".", ":") and not is_key:
                token, used = self._known(module, tokens, place)
            inside += [token] if token in _OPEN else []
            del inside[len(inside) - (token in _CLOSE) :]
            before = before if token.isspace() else token
            place += used
            yield token

    def _known(self, module: Module, tokens: list[str], place: int) -> tuple[str, int]:
        """What stands for the name at a place, and how many tokens that replaces."""
        token, after, is_form = tokens[place], place + 1, False
        if token in module.natives:
            path = module.natives[token]
            return (path.replace(".", "_") if path in HOISTED else path), 1
        cell = self._cell(module, token)
        if token == "at" and tokens[after : after + 1] == ["."] and tokens[after + 1] in self.forms:
            cell, after, is_form = self.forms[tokens[after + 1]], after + 2, True
        if cell is None:
            return token, 1
        if is_form and cell.name == "M.FIXED":
            key = _key(tokens, after)
            constant = self._field(cell, key) if key else None
            return (constant, after + 2 - place) if constant else (token, 1)
        if cell.name == "M" and (key := _key(tokens, after)):
            cell, after = Cell(cell.module, f"M.{key}"), after + (2 if tokens[after] == "." else 3)
            if is_form and cell.name not in self.modules[cell.module].bound:
                return "NONE", after - place
        field = _key(tokens, after)
        constant = self._field(cell, field) if field else None
        return (constant, after + 2 - place) if constant else (self._written(cell), after - place)

    def _origin(self, cell: Cell) -> Cell:
        """What a cell is another name for."""
        module = self.modules[cell.module]
        if cell.name != "M" and cell.name not in module.bound:
            raise CoreBroken(f"{cell.module} has no {cell.name}")
        if cell.name == "M" or cell.name in module.changing:
            return cell
        first, _, key = module.bound[cell.name].partition(".")
        other = self._cell(module, first)
        if other is None or (key and (other.name != "M" or not key.isidentifier())):
            return cell
        return self._origin(Cell(other.module, f"M.{key}") if key else other)

    def _written(self, cell: Cell) -> str:
        """The constant that a cell is, or its place."""
        cell = self._origin(cell)
        constant = self._constant(cell)
        if constant is not None:
            return constant
        return f"C[{self.numbers.setdefault(cell, len(self.numbers) + 1)}]"

    def _constant(self, cell: Cell) -> str | None:
        """The text of a constant, or of a calculation with constants only."""
        module = self.modules[cell.module]
        if cell.name == "M" or cell.name in module.changing:
            return None
        tokens, place, parts = _tokens(module.bound[cell.name]), 0, list[str]()
        while place < len(tokens):
            part, used = tokens[place], 1
            if not _OPERATOR.fullmatch(part):
                if self._cell(module, part) is None:
                    return None
                part, used = self._known(module, tokens, place)
                if part.startswith("C["):
                    return None
            parts.append(part)
            place += used
        return parts[0] if len(parts) == 1 else f"({''.join(parts)})"

    def _field(self, cell: Cell, key: str) -> str | None:
        """A field of a table of constants."""
        cell = self._origin(cell)
        text = "" if cell.name == "M" else self.modules[cell.module].bound[cell.name]
        if not text.startswith("{") or cell.name in self.modules[cell.module].changing:
            return None
        found = re.search(rf'\b{key} = (-?[\d.]+|"[^"]*")[,\s]', text)
        return found[1] if found else None


def _key(tokens: list[str], place: int) -> str | None:
    """The key of an index that is known before the call: `.key` or `["key"]`."""
    match tokens[place : place + 3]:
        case [".", key, *_]:
            return key
        case ["[", key, "]"] if key.startswith('"'):
            return key[1:-1]
        case _:
            return None


def _probable(text: str) -> Iterator[int]:
    """The cells that a function uses whatever it decides, or once for each of what it is given."""
    inside: list[str] = []
    is_open = False
    tokens = _tokens(text)
    for place, token in enumerate(tokens):
        if token in ("function", "then", "do", "repeat"):
            inside.append(token)
        elif token in ("end", "until", "elseif"):
            inside.pop()
        elif token == "C" and not is_open and "then" not in inside and inside.count("function") < 2:
            yield int(tokens[place + 2])
        is_open = token != "\n" and (is_open or token in ("and", "or"))


def _choice(branches: list[str], first: int) -> str:
    """Nested halves, so that finding one cell of two hundred takes eight comparisons."""
    if len(branches) == 1:
        return branches[0]
    half = min(len(branches) // 2, MANY)
    left, right = _choice(branches[:half], first), _choice(branches[half:], first + half)
    return f"if number < {first + half} then\n{left}else\n{right}end\n"


MANY = 160


@cache
def script(door: str) -> str:
    """The Lua text of a door such as `doors.reqless`, for `SCRIPT LOAD`. Raises CoreBroken if a file cannot be split."""
    made = Script(door)
    names = ", ".join(path.replace(".", "_") for path in HOISTED)
    places = {str(number): place for place, number in enumerate(made.order, 1)}
    text = (
        f"local NONE, {names} = nil, {', '.join(HOISTED)}\n"
        f"local C\nC = setmetatable({{ {', '.join(['nil'] * MANY)} }}, {{ __index = function(_, number)\nlocal made\n"
        f"{_choice([made.branches[number] for number in made.order], 1)}C[number] = made\nreturn made\nend }})\n"
        f"return {made.run}\n"
    )
    return _CELL.sub(lambda found: f"C[{places[found[1]]}]", text)
