"""The script of a door, which the store runs again for every call, does what its modules do, or is refused."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from two_doors import Connection, Door

from holdfast.core import sources
from holdfast.core.sources import CoreBroken
from holdfast.core.texts import bundle
from holdfast.testing import ScratchStore

DOOR = "doors.reqless"
Made = Callable[..., str]
"""Bundles `doors.own` and further modules, which are given as text by name; `base.prelude` is the core's."""


def test_a_script_leaves_out_what_its_door_never_uses() -> None:
    text = bundle(DOOR)
    assert "BLPOP" not in text
    assert "register_function" not in text


@pytest.mark.full
def test_a_script_says_which_command_it_does_not_know(door: Door) -> None:
    assert "user_script:" in str(door.connection.ask("EVALSHA", door.sha, 0, "queue.fly", 1))


@pytest.mark.full
def test_a_client_of_ours_does_not_load_what_makes_scripts() -> None:
    asked = "import sys, holdfast.core.library as l; l.library(); print('holdfast.core.texts' in sys.modules)"
    answer = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, timeout=60, check=True
    )
    assert answer.stdout == "False\n"


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    prelude = sources.source("base.prelude")

    def bundled(door: str, **modules: str) -> str:
        texts = {"doors/own": door, "base/prelude": prelude}
        texts |= {f"nouns/{name}": f"local M = {{}}\n{text}\nreturn M\n" for name, text in modules.items()}
        for name, text in texts.items():
            path = tmp_path / f"{name}.lua"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        monkeypatch.setattr(sources, "LUA", tmp_path)
        sources.source.cache_clear()
        bundle.cache_clear()
        return bundle("doors.own")

    yield bundled
    monkeypatch.undo()
    sources.source.cache_clear()
    bundle.cache_clear()


OWN = 'local one = require("nouns.one")\nreturn one.run()\n'
EAGER = """\
local loaded = {{}}
local function require(name) return loaded[name] end
loaded["nouns.two"] = (function()
local M = {{}}
{two}
return M end)()
loaded["nouns.one"] = (function()
local M = {{}}
{one}
return M end)()
{own}"""
"""The same modules, run as they stand."""

FORMS = {
    "fields that are called like names": (
        """
local limit, size = 3, 4
local SIZES = { limit = 5, [limit] = 6, size }
function M.run()
  local own = { limit = limit, size = function() return size end, { limit = 7 } }
  return { own.limit, own.size(), own[1].limit, SIZES.limit, SIZES[3], SIZES[1] }
end
""",
        "",
        [3, 4, 7, 5, 6, 4],
    ),
    "nil in a name that had a value": (
        """
local last, count, seen = 1, 0, {}
local function note(x)
  count = count + 1
  seen[count], last = x, nil
end
function M.run()
  note("a") note("b")
  return { last == nil and 1 or 0, count, seen[2], #seen }
end
""",
        "",
        [1, 2, "b", 2],
    ),
    "members that functions of two modules assign to": (
        """
local two = require("nouns.two")
function M.run()
  local before = two.state()
  two.first,
    two.second = 5, nil
  return { before, two.state(), two.first, two.second or "none" }
end
""",
        """
M.first, M.second = 1, "x"
function M.state() return M.first .. (M.second or "") end
""",
        ["1x", "5", 5, "none"],
    ),
    "the same names in two modules": (
        """
local two = require("nouns.two")
local LIMIT = 1
local function double(x) return x * 2 end
function M.run() return { double(LIMIT), two.double(), two.LIMIT } end
""",
        """
M.LIMIT = 10
local function double(x) return x * 20 end
function M.double() return double(M.LIMIT) end
""",
        [2, 200, 10],
    ),
    "a name of the prelude that the module binds later": (
        """
local function place(text) return find(text, "b", 1, true) end
local function find(text) return "found in " .. text end
function M.run() return { place("abc"), find("abc") } end
""",
        "",
        [2, "found in abc"],
    ),
    "a name that is bound in the same statement": (
        """
local max, greatest = 5, max
local function sum(n) return n == 0 and 0 or n + sum(n - 1) end
function M.run() return { max, greatest(1, 2), sum(4) } end
""",
        "",
        [5, 2, 10],
    ),
    "a local name that the module binds later": (
        """
local function same(later)
  local function inner(x, ...) return later + x + select("#", ...) end
  return inner(1, 2, 3)
end
local later = 40
function M.run() return { same(1), later } end
""",
        "",
        [4, 40],
    ),
    "parts of a member": (
        """
local two = require("nouns.two")
function M.run() return { two.form.read(3), two.form.STEP, two.form.write(2) } end
""",
        """
local STEP = 5
M.form = { START = 1 }
function M.form.read(x) return M.form.write(x) + M.form.START end
M.form.STEP = STEP
function M.form.write(x) return x * 10 end
""",
        [31, 5, 20],
    ),
    "modules as values, and their members by name": (
        """
local two = require("nouns.two")
local FORMS = { form = two }
local function itself(form) return form end
function M.run()
  local name, none = "TABLE", "job.put"
  itself(two).TABLE.x = 8
  return { two["job.get"](1), two[name].x, FORMS.form == itself(two) and 1 or 0, itself(two).TABLE.x, two[none] or "none" }
end
""",
        """
M.TABLE = { x = 1 }
M["job.get"] = function(x) return x + 1 end
""",
        [2, 8, 1, 8, "none"],
    ),
    "strings and comments that look like code": (
        """
-- local function key() return [[
local key, long = "key = 'it\\"s' -- \\\\", [[
M.key = 1 ]]
--[[ function M.run() return key
]]
function M.run() -- key
  return { key, #long, ('key'):rep(2), "[[" .. key:sub(1, 3) .. "]]" }
end
""",
        "",
        ["key = 'it\"s' -- \\", 10, "keykey", "[[key]]"],
    ),
    "literals in the place of their names": (
        """
local WORD, NUMBER, NONE, NEGATIVE, HALF = "w", 2, nil, -1, 0.5
local OTHER = NUMBER
M.OTHER = OTHER
function M.run()
  return { WORD:rep(NUMBER), WORD .. NUMBER, NONE == nil and 1 or 0, 3 - NEGATIVE, NUMBER..WORD, HALF * 4, M.OTHER - -OTHER }
end
""",
        "",
        ["ww", "w2", 1, 4, "2w", 2, 4],
    ),
}


@pytest.mark.full
@pytest.mark.parametrize("form", FORMS)
def test_a_script_does_what_its_modules_do(form: str, made: Made, store: ScratchStore) -> None:
    one, two, expected = FORMS[form]
    connection = Connection(store.socket_path)
    start = f"{sources.source('base.prelude')}bind()\n"
    eager = start + EAGER.format(one=one, two=two, own=OWN)
    assert connection.ask("EVAL", eager, 0) == expected
    assert connection.ask("EVAL", made(OWN, one=one, two=two), 0) == expected
    connection.close()


REFUSED = {
    "a parameter": ("local one = 1\nfunction M.run(two, one) return one end", "M.run binds one again"),
    "a local name": (
        "local one = 1\nfunction M.run() local two, one = 2, 3 return one end",
        "binds one again",
    ),
    "a name of a loop": (
        "local one = 1\nfunction M.run(t) for one = 1, 2 do t[one] = 1 end end",
        "binds one again",
    ),
    "a function in a function": (
        "local one = 1\nfunction M.run() local function one() end end",
        "binds one again",
    ),
    "a parameter of one": (
        "local one = 1\nM.run = { f = function(_, one) return one end }",
        "binds one again",
    ),
    "a module": ("function M.run(M) return M end", "binds M again"),
    "the name of the cells": ("function M.run() local C = 1 return C end", "binds C again"),
    "a name bound twice": ("local one = 1\nlocal one = 2", "one is bound twice"),
    "a member bound twice": ("M.one = 1\nfunction M.one() end", "M.one is bound twice"),
    "the alias of a module": (
        'local one = require("nouns.two")\nlocal function one() end',
        "one is bound twice",
    ),
    "a name for a module that is bound": (
        'local one = 1\nlocal one = require("nouns.two")',
        "one has a call",
    ),
    "a part of nothing": ("function M.form.read() end", "M.form.read is bound twice, or no name"),
    "a global": ("one = 1", "has at its top level `one = 1`"),
    "a global function": ("function one() end", "has at its top level"),
    "a statement": ("local t = {}\nfor i = 1, 3 do t[i] = i end", "has at its top level `for i = 1"),
    "a call": ('call("PING")', "has at its top level"),
    "a call in a value": ("local function f() return 1 end\nlocal one = f()", "one has a call"),
    "a call in a table": ("local t = { one = { floor(1.5) } }", "t has a call"),
    "a call of a text": ('local t = ("x"):rep(3)', "t has a call"),
    "a call with a table": ("local t = setmetatable {}", "t has a call"),
    "a call with a text": ('local t = encode "x"', "t has a call"),
    "a function that is called at once": ("local t = (function() return 1 end)()", "t has a call"),
    "two statements in a line": ("local one = 1 local two = 2", "one has a call, or more than one value"),
    "two statements behind a function": (
        "local function f() end call = 1",
        "f has a call, or more than one value",
    ),
    "two values in a line": ("local one, two = 1 M.x = 2", "expected one value for each of one, two"),
    "fewer values": ("local one, two = 1", "expected one value for each of one, two"),
    "no value": ("local one", "has at its top level `local one`"),
    "a changed name": (
        "local one = 1\nfunction M.up() one = one + 1 end\nM.one = one",
        "M.one is made with one",
    ),
    "a changed table": ("local t = {}\nfunction M.up() t[1] = 2 end\nlocal one = t[1]", "one is made with t"),
    "a changed field": ("M.t = {}\nfunction M.up() M.t.x = 2 end\nlocal one = M.t.x", "one is made with M"),
    "a member that is bound later": (
        "M.one = M.two\nM.two = 2",
        "uses nouns.one:M.two, which is not bound yet",
    ),
    "a member that is bound nowhere": (
        "function M.up() return M.two() end",
        "nouns.one:M.two is used, and bound nowhere",
    ),
    "a changed member of a value": (
        "M.one = 1\nfunction M.up(k) M.one = 2 return M[k] end",
        "is used as a value",
    ),
    "a module that is not found": (
        'local two = require("nouns.two") -- why\nfunction M.up() return { two } end',
        "nouns.two:M is used as a value, and has no members",
    ),
    "a member without its name": ("function M.up(k, v) M[k] = v end", "is used as a value"),
    "all members": (
        "function M.up() for k in pairs(M) do error(k) end end",
        "looks at the members of nouns.one:M all at once",
    ),
}


@pytest.mark.full
@pytest.mark.parametrize("what", REFUSED)
def test_a_core_is_refused_that_a_script_would_do_otherwise(what: str, made: Made) -> None:
    """All that a module binds is used, so that nothing is left out."""
    text, sentence = REFUSED[what]
    locals_, members = re.findall(r"^local (?:function )?(\w+)", text, re.M), re.findall(r"M\.(\w+)", text)
    uses = ", ".join([*locals_, *(f"M.{name}" for name in members)])
    with pytest.raises(CoreBroken, match=re.escape(sentence)):
        made(OWN, one=f"{text}\nfunction M.run() return {{ {uses} }} end", two="")
