"""Assembling the Lua core: modules that require each other become one text.

A file is a plain Lua module (`local job = require("nouns.job")` … `return M`). From a door, the requires are
followed and sorted so that each module comes after what it needs. Nothing generated is stored: assembling takes
well under a millisecond once the files are read.

`assemble` is for libraries, which are run once: every module is made at the start. `script` is for texts that the
store runs anew for every call: there a module is made when its first name is needed, and never otherwise.
"""

import re
from functools import cache
from pathlib import Path

LUA = Path(__file__).parent / "lua"
_REQUIRE = re.compile(r'^local ([a-z_]+) = require\("([a-z_.]+)"\)\n', re.MULTILINE)
_BIND = re.compile(r"^late\.bind\(function\(\)(?: (.*) end\)|\n((?:  .*\n)*)end\))$", re.MULTILINE)
_COMMENT = re.compile(r"^ *--.*\n| +-- .*$", re.MULTILINE)
_TEXT = re.compile(r"""("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""")


class CoreBroken(Exception):
    """The Lua files do not fit together: a missing module or a cycle. A defect of the core, never of a caller."""


@cache
def source(module: str) -> str:
    """The text of a module such as `nouns.job`. Raises CoreBroken if there is none."""
    path = LUA / (module.replace(".", "/") + ".lua")
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise CoreBroken(f"no Lua module {module}") from error


def requires(module: str) -> list[str]:
    """The modules that `module` names, in the order of its lines."""
    return [name for _, name in _REQUIRE.findall(source(module))]


def in_order(door: str) -> list[str]:
    """All modules that `door` needs, itself last, each after what it requires. Raises CoreBroken on a cycle."""
    done: list[str] = []
    under_way: list[str] = []

    def visit(module: str) -> None:
        if module in done:
            return
        if module in under_way:
            raise CoreBroken("a cycle: " + " → ".join([*under_way[under_way.index(module) :], module]))
        under_way.append(module)
        for needed in requires(module):
            visit(needed)
        under_way.pop()
        done.append(module)

    visit(door)
    return done


def assemble(door: str) -> str:
    """One Lua chunk: the modules that `door` needs, each in a closure of its own, then the door."""
    parts = ["local loaded = {}", "local function require(name) return loaded[name] end"]
    parts += [f'loaded["{module}"] = (function()\n{source(module)}end)()' for module in in_order(door)]
    return "\n".join(parts) + "\n"


def script(door: str) -> str:
    """One Lua chunk that makes only the modules a call needs, each at the first use of its name.

    `job.read(…)` becomes `loaded[7].read(…)`, and a miss in that table runs the seventh module's text.
    """
    modules = in_order(door)
    number = {module: place for place, module in enumerate(modules, 1)}
    bodies = [_lazily(module, number) for module in modules]
    head = "local loaded = {}\nlocal function make(_, number)\n  local made\n"
    tail = "  loaded[number] = made\n  return made\nend\nsetmetatable(loaded, { __index = make })\n"
    return f"{head}{_choice(modules, bodies, 1)}{tail}return loaded[{number[door]}]\n"


def _lazily(module: str, number: dict[str, int]) -> str:
    """The module's text with every use of another module spelled as a lookup, and nothing put off until later."""
    text = _BIND.sub(lambda found: found[1] or found[2].rstrip(), source(module))
    places = {name: number[needed] for name, needed in _REQUIRE.findall(text)}
    names = re.compile(rf"(?<![\w.])({'|'.join(places) or '$'})\b(?! =)")

    pieces = _TEXT.split(_COMMENT.sub("", _REQUIRE.sub("", text)))
    for place in range(0, len(pieces), 2):  # every other piece is a text in quotes
        pieces[place] = names.sub(lambda name: f"loaded[{places[name[1]]}]", pieces[place])
    return "".join(pieces)


def _choice(modules: list[str], bodies: list[str], first: int) -> str:
    """Nested halves, so that finding one module of sixty takes six comparisons."""
    if len(modules) == 1:
        return f"-- {modules[0]}\nmade = (function()\n{bodies[0]}end)()\n"
    half = len(modules) // 2
    left, right = (
        _choice(modules[:half], bodies[:half], first),
        _choice(modules[half:], bodies[half:], first + half),
    )
    return f"if number < {first + half} then\n{left}else\n{right}end\n"
