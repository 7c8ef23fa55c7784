"""The texts of the core, which clients in any language can load into a store."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from holdfast.core.library import library
from holdfast.core.sources import CoreBroken, in_order, source

# A door as a script: one text that the store runs again for every call.
# To run all modules would cost more than the call: they make hundreds of functions, of which a call uses some
# tens. So each name that a module binds is a *cell*, made at its first use in the call: `job.read(…)` becomes
# `C[7](…)`, and to read an empty place of `C` makes the seventh cell. What no call can reach is left out.
# The Lua text is read as tokens; what they cannot decide is refused. A module has at its top level `local x =
# …`, `local function f`, `function M.f`, `M.x = …`, `return M`, and a door a last `return …`. Values there
# have no calls in them (they are made later, or never) and use nothing that functions change. No function
# binds a name again that its module has bound.

_TOKEN = re.compile(r"(?s)(?:--)?\[(=*)\[.*?\]\1\]|--[^\n]*|\s+|([\"'])(?:\\.|.)*?\2|\w+|\.\.\.?|[=~<>]=|.")
_BLOCKS, _CLOSERS = {"function", "if", "do", "repeat"}, {"end", "until", *")]}"}
_TARGET = re.compile(r'((?!M$)\w+)|M(?:\.(\w+)(?:\.(\w+))?|\["(.+)"\])')
_MEMBER = re.compile(r'\. (\w+)|\[ "(.+)" \]')
_WORD = re.compile(r'(C\[\d+\])|\d\w*|"[^"]*"|nil|true|false')
# In texts of `_code`: the rest of an assignment, what binds names, and a call or a second statement.
_CHANGED = re.compile(r"(?:(?:[.:,] \w+|\[ \]|\( \)) )*= ")
_BINDS = re.compile(r"\b(?:local|for) (?!function )(\w+(?: , \w+)*)|\bfunction ([\w .:]*\( [\w ,]*)")
_NO_VALUE = re.compile(r"(?<!\band)(?<!\bor)(?<!\bnot)(?<=[\w\])}\"]) (?:[({\"]|(?!and\b|or\b|end\b)\w)|;")


class Token(NamedTuple):
    text: str
    gap: str  # what is kept of the space before it: nothing, a blank or a line break
    inside: tuple[str, ...]  # the brackets and blocks that are open
    cell: str = ""  # what it names, with the tokens behind it that are left out


def _statements(text: str) -> list[list[Token]]:
    """Return the top-level statements of a text, each of which begins a line, without comments."""
    found, gap, inside = list[list[Token]](), "", tuple[str, ...]()
    for hit in _TOKEN.finditer(text):
        word = hit[0]
        if word.startswith("--") or word.isspace():
            gap = "\n" if "\n" in gap + word else " "
            continue
        if word in _CLOSERS:
            inside = inside[:-1]
        elif not found or (not inside and text[hit.start() - 1] == "\n"):
            found.append([])
        found[-1].append(Token(word, gap, inside))
        gap, inside = "", (*inside, word) if word in _BLOCKS or word in "([{" else inside
    return found


def _code(tokens: Iterable[Token]) -> str:
    """Return the tokens with a blank between any two of them, and without what is in strings."""
    return " ".join('""' if t.text[0] in "\"'[" and len(t.text) > 1 else t.text for t in tokens)


def _split(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    """Return what is between the commas of a list of values."""
    ends = [at for at, token in enumerate(tokens) if token.text == "," and not token.inside]
    return [tokens[a + 1 : b] for a, b in zip([-1, *ends], [*ends, len(tokens)], strict=True)]


def _is_changed(tokens: Sequence[Token], at: int) -> bool:
    """Return whether the name that ends here is in front of the `=` of an assignment."""
    inside = tokens[at].inside
    beside = () if _BLOCKS.isdisjoint(inside[-1:]) else tokens[at + 1 :]
    return bool(_CHANGED.match(_code(token for token in beside if len(token.inside) <= len(inside))))


class _Core:
    """What the modules of a door bind, and the cells that the door needs of it in the order in which they are met."""

    def __init__(self, door: str) -> None:
        self.bound: dict[str, list[tuple[str, list[Token]]]] = {}
        """By cell: `nouns.job.job:M.read`, `nouns.job.job:fits`. First its value, then parts, as `function M.native.read` adds."""
        self.changed = set[str]()  # by functions: these, or something in them
        self.numbers, self.made = dict[str, int](), list[str]()
        for self.module in in_order(door):
            self.seen = {name: f"{self.module}:{name}" for name in ("M", "C")}
            for tokens in _statements(source(self.module)):
                self._read(tokens, self.module == door)
        self.run = self._text(f"{door}:return", self.bound[f"{door}:return"][0][1])
        while len(self.made) < len(self.numbers):
            self.made.append(self._making([*self.numbers][len(self.made)]))

    def _read(self, tokens: Sequence[Token], is_door: bool) -> None:
        """Bind what a statement binds. It sees the names that those before it have bound."""
        words = [token.text for token in tokens]
        match words:
            case ["local", "M", "=", "{", "}"] | ["return", "M"]:
                pass
            case ["local", alias, "=", "require", "(", name, ")"] if alias not in self.seen:
                self.seen[alias] = f"{name[1:-1]}:M"
            case ["local", "function", name, *_]:
                self.seen.setdefault(name, f"{self.module}:{name}")
                self._bind([name], [[tokens[1], *tokens[3:]]])
            case ["function", "M", ".", *_]:
                end = words.index("(")
                self._bind(["".join(words[1:end])], [[tokens[0], *tokens[end:]]])
            case ["local" | "M", *_] if "=" in words:
                first, end = words[0] == "local", words.index("=")
                self._bind("".join(words[first:end]).split(","), _split(tokens[end + 1 :]))
            case ["return", *_] if is_door:
                self._bind(["return"], [tokens])
            case _:
                raise CoreBroken(f"{self.module} has at its top level `{' '.join(words[:9])}`")

    def _bind(self, targets: list[str], values: Sequence[Sequence[Token]]) -> None:
        if len(targets) != len(values):
            raise CoreBroken(f"{self.module}: expected one value for each of {', '.join(targets)}")
        for target, value in zip(targets, [self._pieces(value, targets[0]) for value in values], strict=True):
            hit = _TARGET.fullmatch(target)
            cell = f"{self.module}:{hit[1] or f'M.{hit[2] or hit[4]}'}" if hit else ""
            if not hit or (cell in self.bound) != bool(hit[3]) or self.seen.get(target, cell) != cell:
                raise CoreBroken(f"{self.module}: {target} is bound twice, or no name, M.name or M.name.part")
            self.bound.setdefault(cell, []).append((hit[3] or "", value))
            self.seen[target] = cell

    def _pieces(self, tokens: Sequence[Token], target: str) -> list[Token]:
        """Find the tokens of a value that name cells, and which of these its functions change."""
        code, outside = _code(tokens), _code(token for token in tokens if "function" not in token.inside)
        if again := {*re.findall(r"\w+", " ".join(map("".join, _BINDS.findall(code))))} & {*self.seen}:
            raise CoreBroken(f"{self.module}: a function in {target} binds {', '.join(again)} again")
        if target != "return" and _NO_VALUE.search(outside):
            raise CoreBroken(f"{self.module}: {target} has a call, or more than one value: {outside}")
        pieces, at = list[Token](), 0
        while at < len(tokens):
            cell, length = self._named(tokens, at)
            if cell and cell[-2:] != ":M" and cell not in self.bound and "function" not in tokens[at].inside:
                raise CoreBroken(f"{self.module}: {target} uses {cell}, which is not bound yet")
            if cell.endswith(":M") and at > 1 and tokens[at - 2].text in ("pairs", "ipairs", "next"):
                raise CoreBroken(f"{self.module}: {target} looks at the members of {cell} all at once")
            if cell and _is_changed(tokens, at + length - 1):
                self.changed.add(cell)
            pieces.append(tokens[at]._replace(cell=cell) if cell else tokens[at])
            at += length
        return pieces

    def _named(self, tokens: Sequence[Token], at: int) -> tuple[str, int]:
        """Return the cell that is named at this place, and by how many tokens; "" if none is."""
        cell = self.seen.get(tokens[at].text, "")
        rest = " ".join(token.text for token in tokens[at + 1 : at + 4]) if cell else ""
        is_field = tokens[at].inside[-1:] == ("{",) and rest.startswith("= ")
        if is_field or (at > 0 and tokens[at - 1].text in (".", ":")):
            return "", 1
        if cell.endswith(":M") and (member := _MEMBER.match(rest)):
            return f"{cell}.{member[1] or member[2]}", 3 if member[1] else 4
        return cell, 1

    def _text(self, cell: str, tokens: Sequence[Token]) -> str:
        """Return the text of a value, in which cells are read where names were."""
        for t in tokens:
            if t.cell in self.changed and "function" not in t.inside and not cell.endswith(":return"):
                raise CoreBroken(f"{cell} is made with {t.text}, which functions change")
        return "".join(t.gap + (self._used(t.cell) if t.cell else t.text) for t in tokens).strip()

    def _used(self, cell: str) -> str:
        """Return the text that reads a cell, or, where that is one word, what it holds."""
        bound = self.bound.get(cell, [])
        if not bound and not cell.endswith(":M"):
            raise CoreBroken(f"{cell} is used, and bound nowhere")
        is_word = len(bound) == 1 and len(bound[0][1]) == 1 and cell not in self.changed
        if is_word and (word := _WORD.fullmatch(self._text(cell, bound[0][1]))):
            return word[1] or f"({word[0]})"
        number = self.numbers.setdefault(cell, len(self.numbers) + 1)
        return f"C[{number}]{'[1]' * (cell in self.changed)}"

    def _making(self, cell: str) -> str:
        """Return the statements that make a cell. A module that is used as a value makes its members one by one."""
        if cell.endswith(":M"):
            members = [member for member in self.bound if member.startswith(f"{cell}.")]
            if not members or not self.changed.isdisjoint([*members, cell]):
                raise CoreBroken(f"{cell} is used as a value, and has no members, or functions change them")
            tests = [f'if k == "{m[len(cell) + 1 :]}" then made = {self._used(m)}\n' for m in members]
            find = f"function(M, k)\nlocal made\n{'else'.join(tests)}end\nM[k] = made\nreturn made\nend"
            return f"made = setmetatable({{}}, {{ __index = {find} }})\n"
        (_, first), *parts = self.bound[cell]
        text, box = self._text(cell, first), "[1]" * (cell in self.changed)
        added = (f"C[n] = made\nmade{box}.{part} = {self._text(cell, one)}\n" for part, one in parts)
        return f"made = {f'{{ {text} }}' if box else text}\n{''.join(added)}"


def _choice(made: list[str], first: int) -> str:
    """Return nested halves, so that to find one of a thousand takes ten comparisons."""
    half = len(made) // 2
    if not half:
        return made[0]
    return f"if n < {first + half} then\n{_choice(made[:half], first)}else\n{_choice(made[half:], first + half)}end\n"


@cache
def bundle(door: str) -> str:
    """Return the Lua text of a door such as `doors.reqless`, for `SCRIPT LOAD`. Raises CoreBroken."""
    core = _Core(door)
    prelude = [token.gap + token.text for part in _statements(source("base.prelude")) for token in part]
    start = "\nbind()\nlocal C = {}\nsetmetatable(C, { __index = function(_, n)\nlocal made\n"
    made = f"{_choice(core.made, 1)}C[n] = made\nreturn made\nend }})\n{core.run}\n"
    return "".join([*prelude, start, made])


class Text(NamedTuple):
    """One text: the name of its file, its purpose, and the function that makes it."""

    file: str
    purpose: str
    make: Callable[[], str]


def native() -> str:
    """Return the function library of our own clients."""
    return library().text


def lib() -> str:
    """Return the beginning of a user's own script, which follows it and can use `Holdfast`."""
    return f"local Holdfast = (function()\n{bundle('doors.lib')}end)()\n"


TEXTS: Final[Mapping[str, Text]] = {
    "reqless": Text(
        "reqless.lua",
        "the reqless protocol, as one script: EVALSHA <sha> 0 <command> <now> …",
        lambda: bundle("doors.reqless"),
    ),
    "qless": Text(
        "qless.lua",
        "the protocol before it, under its own names: EVALSHA <sha> 0 <command> <now> …",
        lambda: bundle("doors.qless"),
    ),
    "native": Text(
        "holdfast.lua",
        "the native protocol, as a function library: FUNCTION LOAD, then FCALL hf1_<verb> 1 <root> …",
        native,
    ),
    "lib": Text(
        "holdfast-lib.lua",
        "the front half of a script of your own: Holdfast.config.get(key), Holdfast.job.get(jid)",
        lib,
    ),
}
"""The texts by their names in `holdfast lua`."""
