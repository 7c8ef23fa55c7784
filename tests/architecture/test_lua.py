"""Rules of the Lua core that can be read off its files."""

import re
from pathlib import Path

from source_tree import LUA, cycle_in, lua_files, lua_strings
from test_plain_words import IN_TEXT, WORDS

from holdfast.core.sources import in_order, source

KEY_LIKE = re.compile(r"^(?!ql:q:)[a-zA-Z]{1,2}:(?:[a-zA-Z]{1,2}:)*$|^:|hf:|ql:(?!q:)")
"""How a piece of a key looks: `w:`, `e:r:`, a leading colon, a root. (`ql:q:` begins the id of a throttle.)"""

ROWS = ("base", "nouns", "verbs", "doors")


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(LUA).with_suffix("").parts)


FILES = [path for path in lua_files() if name_of(path) != "base.keys"]


def test_only_one_file_spells_keys() -> None:
    spelled = [
        (name_of(path), line, text)
        for path in FILES
        for line, text in lua_strings(path.read_text())
        if KEY_LIKE.search(text)
    ]
    assert spelled == []


def test_the_file_that_spells_keys_would_be_caught_elsewhere() -> None:
    literals = lua_strings((LUA / "base" / "keys.lua").read_text())
    assert len([text for _, text in literals if KEY_LIKE.search(text)]) > 10


def requires(path: Path) -> list[str]:
    return re.findall(r'require\("([a-z_.]+)"\)', path.read_text())


def test_the_lua_modules_form_no_cycle() -> None:
    assert cycle_in({name_of(path): requires(path) for path in lua_files()}) == []


def row_of(name: str) -> int:
    return ROWS.index(name.partition(".")[0])


def test_a_lua_module_requires_only_from_its_own_row_and_below() -> None:
    upward = [
        (name_of(path), name)
        for path in lua_files()
        for name in requires(path)
        if row_of(name) > row_of(name_of(path))
    ]
    assert upward == []


def test_a_lua_module_makes_no_global() -> None:
    """Globals of a function library are refused by the store when they are set, in the middle of a call."""
    stray = re.compile(
        r"^(?:function (?!M[.:])\w+|(?!local |M[.]|return |end|if |for |register)\w+ = )", re.M
    )
    found = {name_of(path): stray.findall(path.read_text()) for path in lua_files()}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_the_core_asks_at_connect_about_every_command_that_it_uses() -> None:
    text = "\n".join(source(module) for module in in_order("doors.native"))
    used = set(re.findall(r'(?<!refuse\.)\bcall\((?:\w+ and )?"([A-Z]+)"', text))
    info = source("verbs.info")
    asked = set(re.findall(r'"([A-Z]+)"', info[info.index("local INNER") : info.index("local SHAPE")]))
    assert used - asked == set()


COMMENT_OR_STRING = re.compile(r"""(--[^\n]*)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""")


def test_names_and_comments_have_none_of_the_dropped_words() -> None:
    found: list[tuple[str, str]] = []
    for path in lua_files():
        text = path.read_text()
        comments = "\n".join(hit[1] for hit in COMMENT_OR_STRING.finditer(text) if hit[1])
        named = {path.stem, *re.findall(r"[A-Za-z_]\w*", COMMENT_OR_STRING.sub("", text))}
        found += [(name_of(path), hit[0]) for hit in IN_TEXT.finditer(comments)]
        found += [(name_of(path), name) for name in named if WORDS & {*name.lower().split("_")}]
    assert found == []
