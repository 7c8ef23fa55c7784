"""A door as a script: a text that the store runs anew for every call.

Running a module costs as much as a job: a hundred functions take ten microseconds to make, and a call uses a third
of them. So a script is not a row of modules but a table of *cells*, one for each name that a module binds, and a cell
is filled when its name is first used: `job.read(…)` becomes `C[7].read(…)`, a miss in `C` runs the seventh branch of
`make`. Constants are written where they are used, and what no branch needs is left out.

It is a reading of our own style, not of Lua: a statement of a module begins in the first column, and no name of a
module is bound again inside it (the linter sees to that).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.core.sources import in_order, source
from holdfast.core.usual import USUAL

_COMMENT = re.compile(r"^ *--.*\n| +-- .*$", re.MULTILINE)
_STATEMENT = re.compile(r"^(?![ )}\n]|end\b).*\n(?:(?:[ )}].*|end\b.*|)\n)*", re.MULTILINE)
_QUOTED = r""""(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'"""
_WORD = re.compile(
    rf"({_QUOTED})|([{{}}])|(?<![\w.:])(?:([A-Za-z_]\w*)\[\"([\w.]+)\"\]|([A-Za-z_]\w*)((?:\.\w+)*)( = )?)"
)
_LITERAL = re.compile(rf"-?[\d.]+(?: [*/^] [\d.]+)?|true|false|nil|{_QUOTED}")
_SUM = re.compile(r'"((?:\\.|[^"\\\n])*)" \.\. "((?:\\.|[^"\\\n])*)"')
_FIELD = re.compile(rf"(\w+) = (\d+(?: / \d+)?\b|(?:true|false)\b|{_QUOTED})")
HOISTED = ("redis.call", "struct.pack", "struct.unpack", "string.sub", "cjson.encode", "math.floor")
"""Names of the store that most calls use: looked up once a call."""


@dataclass
class Module:
    """What the statements of one file bind."""

    name: str
    aliases: dict[str, str] = field(default_factory=dict[str, str])
    natives: dict[str, str] = field(default_factory=dict[str, str])
    bound: dict[str, str] = field(default_factory=dict[str, str])
    """Expression by name; a member of the module's table as `M.name`."""
    changing: set[str] = field(default_factory=set[str])
    rest: str = ""
    """Statements that bind nothing: a door's own run."""

    def __post_init__(self) -> None:
        text = _COMMENT.sub("", source(self.name))
        for statement in _STATEMENT.findall(text):
            self._read(statement.rstrip("\n"))
        for name in self.bound:
            if re.search(
                rf"^ +(?:.*(?:then |else |do |, ))?{re.escape(name)}(?:\.\w+)?(?:, [\w.\[\]]+)* = ",
                text,
                re.MULTILINE,
            ):
                self.changing.add(name)

    def _read(self, text: str) -> None:
        if found := re.fullmatch(r'local (\w+) = require\("([\w.]+)"\)', text):
            self.aliases[found[1]] = found[2]
        elif text in ("local M = {}", "return M"):
            pass
        elif found := re.fullmatch(r"late\.bind\(function\(\)\s+(.*?)\s+end\)", text, re.DOTALL):
            for line in found[1].splitlines():
                names, _, values = line.partition(" = ")
                self.natives.update(zip(_parts(names), _parts(values), strict=True))
        elif found := re.match(r"(?:local )?function ([\w.]+)(?=\()", text):
            self.bound[found[1]] = "function" + text[found.end() :]
        elif found := re.match(r'(?:local |(?=M[.\[]))([\w., "\[\]]+?)(?: = |$)', text):
            self._bind(found[1], text[found.end() :])
        else:
            self.rest += text + "\n"

    def _bind(self, names: str, values: str) -> None:
        several = _parts(re.sub(r'M\["([\w.]+)"\]', r"M.\1", names))
        known = _parts(values) if len(several) > 1 else [values or "nil"]
        for place, name in enumerate(several):
            self.bound[name] = known[place] if place < len(known) else "nil"


def _parts(text: str) -> list[str]:
    """`text` split at the commas that are in no bracket and no quotes."""
    parts, depth = [""], 0
    for piece in re.findall(rf"{_QUOTED}|.", text, re.DOTALL):
        depth += (piece in "([{") - (piece in ")]}")
        if piece == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += piece
    return [part.strip() for part in parts if part.strip()]


class _Script:
    """The cells that a door needs, numbered in the order they are met."""

    def __init__(self, door: str) -> None:
        self.modules = {name: Module(name) for name in in_order(door)}
        self.forms = self._forms(self.modules[door])
        self.numbers: dict[tuple[str, str], int] = {}
        self.texts: list[str] = []
        self.run = self.resolved(self.modules[door], self.modules[door].rest)
        while len(self.texts) < len(self.numbers):
            name, bound = list(self.numbers)[len(self.texts)]
            self.texts.append(self._filling(self.modules[name], bound))

    @staticmethod
    def _forms(door: Module) -> dict[str, tuple[str, str]]:
        """What the door puts into `at` once and for all: modules, and tables of its own, by the field's name:
        the module that has it, and the name of its table there."""
        forms: dict[str, tuple[str, str]] = {}
        for key, value in re.findall(r"(\w+) = (\w+)\b", door.bound.get("AT", "")):
            if value in door.aliases:
                forms[key] = (door.aliases[value], "")
            elif door.bound.get(value, "").startswith("{"):
                forms[key] = (door.name, value)
        return forms

    def together(self, names: Sequence[str]) -> str:
        """Statements that fill the cells of these names, which is cheaper than filling each when it is missed."""
        number = {f"{module}:{bound}": place for (module, bound), place in self.numbers.items()}
        return "".join(
            f"C[{number[name]}] = {self.texts[number[name] - 1]}\n" for name in names if name in number
        )

    def branches(self, usual: Mapping[str, Sequence[str]]) -> list[str]:
        """What fills each cell; the cell of a usual command fills those it is going to use."""
        names = [f"{module}:{bound}" for module, bound in self.numbers]
        return [
            f"{self.together(usual.get(name, ()))}made = {text}\n"
            for name, text in zip(names, self.texts, strict=True)
        ]

    def _filling(self, module: Module, bound: str) -> str:
        if bound != "M":
            text = module.bound[bound]
            if bound == "AT":  # its forms are written where they are used
                text = re.sub(
                    r"\b(\w+) = \w+,?", lambda field: "" if field[1] in self.forms else field[0], text
                )
            return self.resolved(module, text)
        # A module that is used as a value (a form that `at` holds) makes its members one by one, too.
        members = [(key[2:], text) for key, text in module.bound.items() if re.fullmatch(r"M\.[\w.]+", key)]
        known = "else".join(
            f'if key == "{key}" then made = {self.resolved(module, text)}\n' for key, text in members
        )
        return f"setmetatable({{}}, {{ __index = function(M, key)\nlocal made\n{known}end\nM[key] = made\nreturn made\nend }})"

    def resolved(self, module: Module, text: str) -> str:
        """`text` of `module` with every name that the module binds spelled as what it stands for."""
        depth = 0

        def spelled(found: re.Match[str]) -> str:
            nonlocal depth
            quoted, brace, table, key, name, chain, assigned = found.groups()
            if brace:
                depth += 1 if brace == "{" else -1
            if quoted or brace:
                return found[0]
            if key:
                home = module if table == "M" else self.modules.get(module.aliases.get(table, ""))
                return (
                    self.reference(home, f"M.{key}") if home else f'{self._named(module, table, "")}["{key}"]'
                )
            if assigned and depth and not chain:
                return found[0]  # the name of a field
            return self._named(module, name, chain) + (assigned or "")

        return _WORD.sub(spelled, text)

    def _named(self, module: Module, name: str, chain: str) -> str:
        if name in module.natives:
            path = module.natives[name]
            return (path.replace(".", "_") if path in HOISTED else path) + chain
        form, dot, member = chain[1:].partition(".")
        if name == "at" and form in self.forms:
            return self._of_form(form, member)
        home = module if name == "M" else self.modules.get(module.aliases.get(name, ""))
        if home is None:
            return self.reference(module, name, chain) if name in module.bound else name + chain
        if not chain:
            return self.reference(home, "M")
        member, dot, rest = chain[1:].partition(".")
        return self.reference(home, f"M.{member}", dot + rest)

    def _of_form(self, form: str, path: str) -> str:
        """A member of a form, which is known before any call is made; `nil` if the form lacks it."""
        home, table = self.forms[form]
        module, (bound, _, chain) = self.modules[home], path.partition(".")
        if table:
            return self.reference(module, table, path and "." + path)
        if not path:
            return "true"  # only asked whether there is one
        if f"M.{bound}" not in module.bound:
            return "(nil)"
        return self.reference(module, f"M.{bound}", chain and "." + chain)

    def reference(self, module: Module, bound: str, chain: str = "") -> str:
        """How a use of a bound name is written: its constant, what it is another name for, or its cell."""
        text = module.bound.get(bound, "")
        if bound not in module.changing and text:
            if chain and text.startswith("{") and (value := dict(_FIELD.findall(text)).get(chain[1:])):
                return f"({value})" if " " in value else value
            if re.fullmatch(r"[A-Za-z_][\w.]*", text) and text not in ("true", "false", "nil"):
                return self.resolved(module, text + chain)
            constant = self._constant(module, text)
            if constant:
                return constant + chain
        number = self.numbers.setdefault((module.name, bound), len(self.numbers) + 1)
        return f"C[{number}]{chain}"

    def _constant(self, module: Module, text: str) -> str | None:
        if re.fullmatch(r"[\w.]+(?: \.\. (?:[\w.]+|\"[^\"]*\"))*", text):
            text = self.resolved(module, text)
            while _SUM.search(text):
                text = _SUM.sub(r'"\1\2"', text)
        if _LITERAL.fullmatch(text):
            return f"({text})" if " " in text and text[0] not in "\"'" else text
        return None


def _choice(branches: list[str], first: int) -> str:
    """Nested halves, so that finding one cell of two hundred takes eight comparisons."""
    if len(branches) == 1:
        return branches[0]
    half = len(branches) // 2
    left, right = _choice(branches[:half], first), _choice(branches[half:], first + half)
    return f"if number < {first + half} then\n{left}else\n{right}end\n"


def script(door: str, usual: Mapping[str, Sequence[str]] = USUAL) -> str:
    """The Lua text of a door such as `doors.reqless`, for `SCRIPT LOAD`."""
    made = _Script(door)
    names = ", ".join(path.replace(".", "_") for path in HOISTED)
    cells = ", ".join(["nil"] * len(made.texts))
    return (
        f"local {names} = {', '.join(HOISTED)}\nlocal C = {{{cells}}}\n"
        "setmetatable(C, { __index = function(_, number)\nlocal made\n"
        f"{_choice(made.branches(usual), 1)}C[number] = made\nreturn made\nend }})\n"
        f"{made.together(usual.get('', ()))}{made.run}"
    )


def missed(door: str, usual: Mapping[str, Sequence[str]] = USUAL) -> tuple[str, list[str]]:
    """A script that pushes the number of each cell it misses onto the list `missed`, and the names by number."""
    text = script(door, usual).replace(
        "C[number] = made\n", "C[number] = made\nredis_call('RPUSH', 'missed', number)\n"
    )
    return text, [f"{module}:{bound}" for module, bound in _Script(door).numbers]
