"""Rules of the Lua core that can be read off its files."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from source_tree import LUA, cycle_in, lua_files, lua_strings
from test_plain_words import IN_TEXT, WORDS

from holdfast.core.sources import in_order, source
from holdfast.core.texts import bundle

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


DECIDED_IN = {
    "nouns.job.admission": {
        "nouns.queue.pause.ends", "nouns.queue.pause.over", "nouns.lease.expiry.is_over", "nouns.lease.expiry.fail", "ctx.throttles.take",
        "ctx.throttles.is_full", "ctx.throttles.free", "ctx.budgets.pay", "ctx.budgets.is_spent",
    },
    "nouns.job.ending": {
        "nouns.failure.failure.add", "nouns.failure.failure.restore", "nouns.dependency.dependents.released",
        "nouns.dependency.dependents.ended", "nouns.job.retention.trim",
        "ctx.cancelled.note", "ctx.events.completed", "ctx.events.failed", "ctx.events.exhausted", "ctx.events.canceled",
        "ctx.events.ended",
    },
}  # fmt: skip
"""What answers "may this job start now?", and what follows from the end of a job: each is called in one file."""


def calls_in(path: Path) -> set[str]:
    """What a module calls in others: `nouns.job.job.read`, `ctx.events.ended`."""
    text = path.read_text()
    names = dict(re.findall(r'^local (\w+) = require\("([\w.]+)"\)', text, re.M))
    found = re.findall(r"(?<![\w.])(ctx\.\w+|\w+)\.(\w+)\(", code_of(path))
    return {f"{names.get(home, home)}.{member}" for home, member in found}


def test_whether_a_job_may_start_and_what_follows_from_its_end_are_each_decided_in_one_file() -> None:
    decisions = {call for calls in DECIDED_IN.values() for call in calls}
    found = {name_of(path): calls_in(path) & decisions for path in lua_files()}
    assert {name: calls for name, calls in found.items() if calls} == DECIDED_IN


def forms_of(dialect: str) -> set[str]:
    """The names in the table that a dialect returns."""
    text = code_of(LUA / "doors" / "dialects" / f"{dialect}.lua")
    return set(re.findall(r"(\w+) =", text[text.rindex("return {") : text.rindex("}")]))


def test_all_dialects_have_the_same_forms_and_the_native_one_describes_them() -> None:
    native = forms_of("native")
    assert native == forms_of("protocol")
    text = (LUA / "doors" / "dialects" / "native.lua").read_text()
    described = set(re.findall(r"^--   (\w+) ", text, re.M)) | set(re.findall(r"`(\w+)`", text))
    assert native - described == set()
    used = {name for path in lua_files() for name in re.findall(r"\bctx\.(\w+)", code_of(path))}
    assert used - native == set()


ADMITTED_IN = {
    "open": ["verbs.pop"],
    "opens": ["verbs.pop"],
    "room": ["verbs.pop"],
    "at_grant": ["nouns.lease.grant"],
    "after_return": ["nouns.lease.grant"],
    "after_loss": ["nouns.lease.loss", "verbs.release"],
    "is_last_loss": ["nouns.lease.loss"],
    "at_arrival": ["nouns.job.placement", "verbs.put_new"],
    "when_due": ["nouns.lease.timer"],
}
"""The one call of each question for each way on which jobs come to wait or to run."""


def test_each_way_to_a_worker_asks_once_whether_a_job_may_start() -> None:
    asked: dict[str, list[str]] = {}
    for path in lua_files():
        for question in re.findall(r"\badmission\.(\w+)\(", code_of(path)):
            asked.setdefault(question, []).append(name_of(path))
    assert asked == ADMITTED_IN
    assert set(ADMITTED_IN) == set(re.findall(r"^function M\.(\w+)", source("nouns.job.admission"), re.M))


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


@pytest.mark.parametrize("door", ["doors.reqless", "doors.qless", "doors.lib"])
def test_the_modules_of_a_script_have_the_form_that_the_bundler_accepts(door: str) -> None:
    """It raises CoreBroken with the module and what is wrong there: see the docstring of `core/texts.py`."""
    assert bundle(door)


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


STATE = {
    "base.keys": {
        "roots": "names, pure functions of the root; what is noted of data goes with the root's epoch (`belong_to`)",
        "root_count": "of `roots`",
    },
    "doors.checks": {
        "whole": "numbers by their text: pure",
        "wholes": "of `whole`",
        "known": "names that are well formed: pure",
        "count": "of `known`",
        "budgets": "budgets by their text: pure",
        "budgets_known": "of `budgets`",
        "served": "the `ctx` that the door fills anew in each call",
    },
    "doors.lib": {"opened": "a script, which the store runs anew for each call"},
    "doors.native": {
        "described": "filled while the library loads",
        "by_verb": "filled while the library loads",
        "dialect": "filled anew by each call (`root.open`)",
    },
    "doors.protocol.arguments": dict.fromkeys(("mark", "level", "has_refused"), "a script, which the store runs anew for each call"),
    "nouns.recurrence.series": {
        "coarse_of": "buckets by the length of a sample: pure",
        "fine_of": "buckets by the length of a sample: pure",
    },
    "nouns.job.touched_jobs": dict.fromkeys(("jids", "count", "is_full", "taken", "popped"), "each call begins without any (`begin`)"),
    "nouns.lease.grant": dict.fromkeys(("names", "sets", "leases", "waits"), "filled anew from the front"),
    "verbs.complete": dict.fromkeys(("names", "sets", "done"), "filled anew from the front") | {"counting": "each call begins with nil"},
    "nouns.job.unique": dict.fromkeys(("named", "pairs_"), "filled anew from the front"),
    "verbs.put": dict.fromkeys(("names", "sets", "entries"), "filled anew from the front"),
}  # fmt: skip
"""Everything that the core keeps in memory from one call to the next, and why it cannot outlive its data.

A store is flushed, swapped with another of its databases, restored, or loses a slot and gets it back: whoever adds to this list
says what drops the new thing then, and has a test for it (see `test_tally_story.py`).
"""
NOTED_OF_DATA = {"day", "booked", "wait_today", "run_today", "minute_ends", "oldest_end"}
OF_KEYS = {"by_queue", "queue_count", "packed", "epoch"}


def code_of(path: Path) -> str:
    """A Lua file without what its comments and strings say."""
    return COMMENT_OR_STRING.sub('""', path.read_text())


def statements(code: str) -> Iterator[str]:
    """The lines of a module that stand in a function, without fields of tables and without new names."""
    inside, braces = False, 0
    for line in code.splitlines():
        if line[:1] not in (" ", ""):
            inside = "function" in line
            line = line.partition(") ")[2] if inside else ""
        if inside and not braces and not line.lstrip().startswith("local "):
            yield line.partition("{")[0]
        braces += line.count("{") - line.count("}")


def changed_in_functions(code: str) -> set[str]:
    """The names that a module binds for good, and of which a function changes the value or an element."""
    bound = {
        name
        for names in re.findall(r"^local ((?:\w+, )*\w+)(?: =|$)", code, re.M)
        for name in names.split(", ")
    }
    changed = {
        name
        for line in statements(code)
        for left in line.split(" = ")[:-1]
        for name in re.findall(
            r"(?<![\w.])\w+(?=[.\[,]|$)", re.split(r"\b(?:then|do|else|and|or|return)\b", left)[-1]
        )
    }
    return (bound - {"M"}) & changed


def test_all_that_the_core_keeps_in_memory_is_listed_with_what_drops_it() -> None:
    found = {name_of(path): changed_in_functions(code_of(path)) for path in lua_files()}
    assert "call" in found.pop("base.prelude")  # names of Lua and of the store, bound at the first call
    assert {name: kept for name, kept in found.items() if kept} == {
        name: set(kept) for name, kept in STATE.items() if kept
    }


def test_what_is_noted_beside_the_names_of_keys_is_known_to_the_file_that_drops_it() -> None:
    kept = re.compile(r"\b(?:queue|keys|ctx\.keys|home)\.\w+(?:, (?:queue|keys|ctx\.keys|home)\.\w+)* = ")
    found = {
        name
        for path in lua_files()
        for hit in kept.findall(code_of(path))
        for name in re.findall(r"\.(\w+)(?=,| )", hit)
    }
    assert found == NOTED_OF_DATA | OF_KEYS
