"""The search language: what filters match, how they are written, and what is wrong with those that are not."""

import json
import operator
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.commands.job_rows import JobRow
from holdfast.console.filters import MAX_DEPTH, MAX_LENGTH, MAX_TEXTS, Filter, glob, parse
from holdfast.console.search import filter_terms
from holdfast.console.search.filter_terms import All, AnyOf, Node, Not, Term, Word, all_of, any_of, negation
from holdfast.console.search.filter_values import (
    FIELDS,
    PRECISIONS,
    STATES,
    Age,
    Exact,
    Glob,
    Moment,
    Number,
    Range,
    Scalar,
    Value,
)
from holdfast.errors import FilterError, UsageError

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "search.md").read_text()
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
NOW = int(datetime(2026, 11, 23, 12, tzinfo=UTC).timestamp() * 1000)
ROW = JobRow(
    jid="5e1f-mail-77",
    klass="jobs.send",
    queue="mail-eu",
    state="failed",
    priority=-3,
    retries=5,
    remaining=0,
    attempts=6,
    losses=1,
    created_ms=NOW - 3 * HOUR,
    queued_ms=NOW - 2 * HOUR,
    popped_ms=NOW - HOUR,
    ended_ms=NOW - 30 * MINUTE,
    failed_ms=NOW - 30 * MINUTE,
    worker="host-a:812",
    tags=("vip", "Two Words"),
    group="mail-Timeout",
    message="Traceback\nTimeoutError: no reply from SMTP",
    data=b'{"order":{"id":17,"lines":[{"sku":"AB-1","n":2},{"sku":"CD-9","n":40}]},"to":"ann@example.org","paid":true,'
    b'"code":"17","note":null,"rate":1.5,"escaped":"caf\\u00e9 \\"noir\\"","odd key":1}',
)


def matches(text: str, row: JobRow = ROW) -> bool:
    return parse(text).matcher(NOW)(row)


def changed(**values: Any) -> JobRow:
    return msgspec.structs.replace(ROW, **values)


@pytest.mark.parametrize(
    "text",
    [
        "", "   ",
        "state:failed", "state=failed", "STATE:failed", "state:waiting,failed", "state:f*", "state!=complete", "state~FAIL",
        "queue:mail-*", "queue:*eu", "queue:m*l*u", "queue~MAIL", "queue:~l-e", "queue!=mail",
        "class:jobs.send", "klass:jobs.*", "jid:5e1f*", "worker:host-a:812", "worker:host-a*",
        "tag:vip", 'tag:"Two Words"', 'tag:"Two "*', "tag~words", "tag!=other",
        "group:~timeout", "group~timeout", "message~smtp", "message:Traceback*SMTP", 'message~"\\ntimeouterror"',
        "priority:-3", "priority=-3.0", "priority<0", "priority<=-3", "priority>-3.5", "priority:-5..-1", "priority!=3", "attempts:>5",
        "attempts:1,6", "attempts>5", "attempts>=6", "losses:1", "retries:5", "remaining<1", "size>100", "size:100..1e3",
        "created<4h", "created>2h", "created:2h..4h", "created>=3h", "created<=3h", "created:<4h", "queued<2h1m", "popped<61m",
        "started<61m", "done<31m", "ended>1799s", "failed>1s500ms", "failed<0.5d",
        "created:2026-11-23", "created!=2026-11-22", "created>2026-11-22", "created<=2026-11-23", "created<2026-11-24",
        "created:2026-11-22..2026-11-23", "created:2026-11-23T08:00..2026-11-23", "created:2026-11-23..2026-11-23T09:00", "created:2026-11-23T09:00", "created:2026-11-23T10:00+01:00", "created>=2026-11-23T09:00:00Z",
        'created:"2026-11-23 09:00"', "created:2026-11-23T09:00:00.000Z", "created<2026-11-23t09:00:01", "created:1h..2h,2026-11-23",
        "data.order.id=17", "data.order.id:17.0", "data.order.id>16", "data.order.id:10..20", "data.order.id:16,17", "data.rate<=1.5",
        'data.code:"17"', "data.code:17", "data.paid:true", "data.note:null", "data.order:*", "data.note:*", "data.to:*@example.org",
        "data.to:ann@example.org", "data.to~ANN", "data.order.lines.0.sku:AB-1", "data.order.lines.*.sku:CD-9", "data.order.lines.*.n>39",
        "data.*.id:17", 'data."odd key":1', "data.absent!=1", "data.order.id!=18", "data~sku", "data.order~cd-9", "data.escaped:\"café \\\"noir\\\"\"",
        "smtp", "JOBS", "5e1f", "vip", '"two words"', "example.org", '"\\"id\\":17"', "CAFÉ", '"\\"noir\\""', '"no reply"',
        "state:failed queue:mail-*", "state:failed and vip", "state:waiting or vip", "not state:waiting", "-state:waiting",
        "state:waiting vip or smtp", "vip AND (state:waiting OR smtp)", "-(state:waiting smtp)", "not not vip", "--vip", "not(absent)",
        "vip -absent", '-"absent text"', "(vip)smtp",
    ],
)  # fmt: skip
def test_a_filter_matches_the_example(text: str) -> None:
    assert matches(text)


@pytest.mark.parametrize(
    "text",
    [
        "state:waiting", "state!=failed", "state:s*", "queue:mail", "queue:MAIL-eu", "queue:*mail", 'queue:"mail-*"', "queue!=mail-*", "queue~us",
        "jid:5e1f", "tag:Vip", "tag!=vip", 'worker:""', 'group:""', "queue:mail-eu*eu",
        "priority>-3", "priority:3", "priority:-3.5", "priority!=-3", "attempts:1..5", "attempts!=1,6", "size<10",
        "created<3h", "created>3h", "created<2h", "created:1h..2h", "due<1h", "due>1h", "due!=2026-11-23", "due:2000-01-01..2100-01-01",
        "created:2026-11-22", "created:2026-11-23..2026-11-23T08:59", "created!=2026-11-23", "created>2026-11-23", "created<2026-11-23T09:00", "created:2026-11-23T09:00+01:00",
        'data.order.id:"17"', "data.code>1", "data.paid:1", "data.paid:\"true\"", "data.note:0", "data.order.id:true", "data.absent:*",
        "data.order.lines.2.sku:*", "data.order.lines.sku:AB-1", "data.lines.*:1", "data.to:*@Example.org", "data.order.lines.-1.n:40", "data.to.0:a",
        "absent", '"two  words"', "state:failed -vip", "not vip", "-(vip smtp)", "is:tracked", "is:late", "state:waiting or absent",
    ],
)  # fmt: skip
def test_a_filter_does_not_match_the_example(text: str) -> None:
    assert not matches(text)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("is:tracked", {"tracked": True}),
        ("is:tracked,late", {"tracked": True}),
        ("is:late", {"state": "stalled"}),
        ("is:late", {"state": "scheduled", "due_ms": NOW - 1}),
        ("is:late", {"state": "waiting", "due_ms": NOW}),
        ("-is:late", {"state": "scheduled", "due_ms": NOW + 1}),
        ("-is:late", {"state": "waiting"}),
        ("is!=late", {"state": "running", "due_ms": NOW - 1}),
        ("due<10m", {"due_ms": NOW + 9 * MINUTE}),
        ("due<10m", {"due_ms": NOW - HOUR}),
        ("due>10m", {"due_ms": NOW + 11 * MINUTE}),
        ("due:5m..10m", {"due_ms": NOW + 10 * MINUTE}),
        ("data:17", {"data": b"17"}),
        ("data:17", {"data": b'"17"'}),
        ("data.big:123456789012345678901234567890", {"data": b'{"big":123456789012345678901234567890}'}),
        ("data.0:a", {"data": b'["a"]'}),
        ("data.0:a", {"data": b'{"0":"a"}'}),
        ("-data.x:*", {"data": b"not JSON"}),
        ("json", {"data": b"not JSON\xff"}),
        ("-data:*", {"data": b"[" * 5000}),
        ("-data~x", {"data": b"1e999"}),
        ('worker:"" group:""', {"worker": "", "group": ""}),
        ("-failed>1s -failed<1s", {"failed_ms": 0}),
    ],
)
def test_a_filter_matches_a_job_that_is_like_the_example_but_for(text: str, values: dict[str, Any]) -> None:
    assert matches(text, changed(**values))


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        ("  class:a   AND  queue=b ", "klass:a queue:b"),
        ("((a b)) or (c or d)", "a b or c or d"),
        ("(a or b) c", "(a or b) c"),
        ("not (a or b)", "-(a or b)"),
        ("not not a", "a"),
        ("done<36h", "ended<1d12h"),
        ("created<1w", "created<7d"),
        ("created<0ms", "created<0s"),
        ("attempts:>3", "attempts>3"),
        ("group:~x", "group~x"),
        ("created>2026-11-20T10:00+02:00", "created>2026-11-20T08:00Z"),
        ('created>"2026-11-20 10:00:30.5"', "created>2026-11-20T10:00:30.500Z"),
        ("queue:a**b", "queue:a*b"),
        ('queue:"a b"*', 'queue:"a b"*'),
        ('"12"', "12"),
        ("12:30", '"12:30"'),
        ('"and"', '"and"'),
        ('data."a".*.0."*":"17"', 'data.a.*.0."*":"17"'),
        ('data.x:"1..2",1..2,true,"x"', 'data.x:"1..2",1..2,true,x'),
        ('data.x:"a b..c"', 'data.x:"a b..c"'),
        ('"\\u001b[31m\\n"', '"\\u001b[31m\\n"'),
        ("\x1b[31m", '"\\u001b[31m"'),
    ],
)
def test_a_filter_has_one_canonical_text(text: str, canonical: str) -> None:
    found = parse(text)
    assert str(found) == canonical
    assert parse(canonical) == found


@pytest.mark.parametrize(
    ("text", "position", "part"),
    [
        ("stat:failed", 0, 'unknown field "stat"; did you mean "state"?'),
        ("a tags:x", 2, 'did you mean "tag"?'),
        ("klas:x", 0, 'did you mean "klass"?'),
        ("zzz:x", 0, 'unknown field "zzz". To search for a text, put it in double quotes'),
        ("http://x", 0, 'unknown field "http"'),
        ("order.id=17", 0, 'did you mean "data.order.id"?'),
        ("queue.x:1", 0, 'unknown field "queue.x"'),
        ("state:faild", 6, 'not "faild"; did you mean "failed"?'),
        ("state:failed,wating", 13, 'did you mean "waiting"?'),
        ("state:x*", 6, "expected waiting, running"),
        ("is:traced", 3, 'did you mean "tracked"?'),
        ("is:*", 3, "expected tracked or late"),
        ("is~late", 2, '"is" cannot be used with "~", only with : !='),
        ("queue<3", 5, '"queue" cannot be used with "<", only with : != ~'),
        ("attempts~3", 8, "cannot be used with"),
        ("attempts:many", 9, 'attempts: expected a number such as 3, not "many"'),
        ("attempts:1e999", 9, "expected a number"),
        ("attempts:3*", 9, "expected a number"),
        ("attempts:3..x", 9, "expected a number"),
        ("attempts:5..3", 9, "the range is empty: expected 3..5"),
        ("attempts>3,5", 10, 'expected one value after ">"'),
        ("created:soon", 8, "created: expected an age such as 2h or a date such as 2026-11-20"),
        ("created:2026-13-01", 8, "expected an age"),
        ("created<999999999999w", 8, "expected an age"),
        ("created:2h", 8, "created<2h or created>2h"),
        ("created:2026-11-20..2026-11-19T23:59", 8, "the range is empty"),
        ("created:2h..2026-11-20", 8, "two ages or of two dates"),
        ("created>1h..2h", 8, "expected an age"),
        ("data.x>abc", 7, "data: expected a number"),
        ("queue:", 6, "expected a value"),
        ("queue: x", 6, "expected a value"),
        ("queue:a,", 8, "expected a value"),
        ("queue~a*", 6, 'leave "*" out'),
        ("mail*", 4, 'a text matches anywhere, without "*"'),
        ("attempts > 3", 9, "expected a field directly before this"),
        ('queue:"mail', 6, "this quotation mark is not closed"),
        ('x "a\\q"', 4, "write \\\\ for a backslash"),
        ('"\\U00110000"', 1, "for a backslash"),
        ('data."a\\q":1', 7, "for a backslash"),
        ("(a", 0, 'this "(" is not closed'),
        ("a or (b (c)", 5, 'this "(" is not closed'),
        ("a)", 1, '")" without an opening "("'),
        ("()", 1, "expected a term"),
        ("a or", 4, "expected a term"),
        ("or a", 0, 'expected a term, not "or"'),
        ("a and or b", 6, 'expected a term, not "or"'),
        ("a -", 3, 'expected a term directly after "-"'),
        ("a(b)", 1, "expected a blank before ("),
        ("queue:a(b)", 7, "expected a blank before ("),
        ('a"b"', 1, 'expected a blank before "'),
        ('"id":17', 4, "expected a blank before :"),
    ],
)
def test_an_error_points_at_the_place(text: str, position: int, part: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse(text)
    assert caught.value.position == position
    assert caught.value.text == text
    assert part in str(caught.value)
    shown, caret = str(caught.value).splitlines()[1:]
    assert shown == f"  {text}"
    assert caret == " " * (2 + position) + "^"


def test_an_error_is_a_usage_error_of_three_lines() -> None:
    with pytest.raises(UsageError) as caught:
        parse("queue:mail stat:failed")
    assert str(caught.value) == (
        'filter: unknown field "stat"; did you mean "state"? To search for a text, put it in double quotes\n'
        "  queue:mail stat:failed\n"
        "             ^"
    )


def test_an_error_in_a_long_filter_shows_what_is_around_the_place() -> None:
    with pytest.raises(FilterError) as caught:
        parse("word " * 100 + "stat:failed" + " word" * 100)
    shown, caret = str(caught.value).splitlines()[1:]
    assert len(shown) < 130
    assert shown.startswith("  …")
    assert shown.endswith("…")
    assert shown.find("stat:failed") == caret.find("^")


def test_an_error_shows_control_characters_escaped_and_points_behind_them() -> None:
    with pytest.raises(FilterError) as caught:
        parse("\x1b[2J\u202e漢 :")
    sentence, shown, caret = str(caught.value).splitlines()
    assert (sentence + shown + caret).isprintable()
    assert shown == "  \\u001b[2J\\u202e漢 :"
    assert caret.index("^") == shown.index(":") + 1  # one character before it takes two columns


def test_a_filter_that_is_no_text_is_refused() -> None:
    with pytest.raises(UsageError, match="filter must be text, not int"):
        parse(3)  # type: ignore[arg-type]


def test_the_length_of_a_filter_is_limited() -> None:
    assert matches("a" * MAX_LENGTH) is False
    with pytest.raises(FilterError, match="has 4097 characters, more than the 4096 allowed"):
        parse("a" * (MAX_LENGTH + 1))
    with pytest.raises(FilterError, match="with its quotes and escapes"):
        parse("|" * (MAX_LENGTH - 1))


@pytest.mark.parametrize(
    ("one", "counts"),
    [
        ("zz", 1), ("-zz", 1), ("message~zz", 1), ("message~a,b", 2), ("queue:a*b", 1), ("data.x:1", 1), ("data.x:1,2", 1),
        ("data~zz", 4), ("data.*:1", 5), ("data.*.*~a,b", 13),
    ],
)  # fmt: skip
def test_what_a_filter_looks_for_is_limited(one: str, counts: int) -> None:
    assert parse(" or ".join([one] * (MAX_TEXTS // counts)))
    with pytest.raises(FilterError, match="more than 128 texts, patterns and data terms"):
        parse(" or ".join([one] * (MAX_TEXTS // counts + 1)))


def test_exact_values_are_not_limited() -> None:
    assert parse("jid:" + ",".join(f"j{at}" for at in range(500)))
    assert parse(" or ".join(["queue:a", "state:failed", "priority>3"] * 80))


@pytest.mark.parametrize(
    ("before", "after", "levels"), [("(", ")", 50), ("-", "", 50), ("not ", "", 50), ("-(", ")", 25)]
)
def test_the_depth_of_a_filter_is_limited(before: str, after: str, levels: int) -> None:
    assert matches(before * levels + "vip" + after * levels) == (before == "(" or levels % 2 == 0)
    with pytest.raises(FilterError, match="nested deeper than 50 levels"):
        parse(before * (levels + 1) + "vip" + after * (levels + 1))
    with pytest.raises(FilterError):
        parse(before * (MAX_LENGTH // len(before)))


def test_a_glob_of_many_stars_ends_soon_on_a_long_text() -> None:
    assert not matches("message:" + "a*" * 1000 + "b", changed(message="a" * 100_000))


def test_a_deep_alternation_prints_and_parses_within_its_limits() -> None:
    node: Node = Word("a")
    for _ in range(MAX_DEPTH):
        node = all_of([any_of([node, Word("b")]), Word("c")])
    found = Filter(node)
    assert parse(str(found)) == found


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("", set()),
        ("state:failed queue:x created<2h is:tracked", set()),
        ("tag:x", {"tags"}),
        ("group:x", {"group"}),
        ("group:x or -message~x or failed<2h", {"group", "failure"}),
        ("due<2h", {"due"}),
        ("is:late", {"due"}),
        ("size>3", {"data"}),
        ("state:failed data.x:1", {"data"}),
        ("word", {"data", "tags", "failure"}),
    ],
)
def test_a_filter_names_the_costly_parts_that_it_needs(text: str, needs: set[str]) -> None:
    assert parse(text).needs == needs


@pytest.mark.parametrize(
    ("text", "field", "required"),
    [
        ("", "queue", None),
        ("queue:a", "queue", ("a",)),
        ("class:a", "klass", ("a",)),
        ("class:a", "class", ("a",)),
        ("queue:a,b-*", "queue", ("a", "b-*")),
        ("queue:a tag:x,y", "tag", ("x", "y")),
        ("queue:a*,b queue:c,d", "queue", ("c", "d")),
        ("queue:a or queue:b*", "queue", ("a", "b*")),
        ("queue:a or tag:b", "queue", None),
        ("(queue:a or queue:a,c) x", "queue", ("a", "c")),
        ("-queue:a", "queue", None),
        ("queue!=a", "queue", None),
        ("queue~a", "queue", None),
        ("queue:*", "queue", None),
        ('worker:""', "worker", None),
        ("attempts:3", "attempts", None),
        ("state:failed,stalled", "state", ("stalled", "failed")),
        ("state:s*", "state", ("stalled", "scheduled")),
        ("state!=complete", "state", tuple(state for state in STATES if state != "complete")),
        ("-state:complete queue:x", "state", tuple(state for state in STATES if state != "complete")),
        ("is:late", "state", ("waiting", "scheduled", "stalled")),
        ("-is:late", "state", None),
        ("is:late,tracked", "state", None),
        ("state:failed or is:late", "state", ("failed", "waiting", "scheduled", "stalled")),
    ],
)
def test_a_filter_names_the_texts_of_a_field_that_every_match_has(
    text: str, field: str, required: tuple[str, ...] | None
) -> None:
    assert parse(text).required(field) == required


def test_data_is_decoded_once_for_a_row_and_only_where_the_rest_matches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decoded: list[bytes] = []

    def decode(data: bytes) -> object:
        decoded.append(data)
        return json.loads(data)

    monkeypatch.setattr(filter_terms, "decode", decode)
    match = parse("data.order.id:1 or data.code:2 or (data.paid:true state:failed)").matcher(NOW)
    assert match(ROW)
    assert decoded == [ROW.data]
    assert not match(changed(data=b"{}"))
    assert decoded == [ROW.data, b"{}"]
    assert not parse("data.paid:true state:waiting").matcher(NOW)(ROW)
    assert len(decoded) == 2


def test_every_field_is_on_the_page_with_its_meaning() -> None:
    rows = re.findall(
        r"^\| `(\w+)`(?:, `(\w+)`)? \| (text|flag|number|time|data) \| (.*) \|$", PAGE, re.MULTILINE
    )
    assert [(name, kind, meaning) for name, _, kind, meaning in rows] == [
        (name, field.kind, field.meaning) for name, field in FIELDS.items()
    ]
    synonyms = {synonym: f"the same as {name}" for name, synonym, _, _ in rows if synonym}
    assert Filter.fields == {name: field.meaning for name, field in FIELDS.items()} | synonyms


def test_the_ten_examples_of_the_page_can_be_parsed() -> None:
    table = PAGE.partition("| filter |")[2].partition("\n\n")[0]
    examples = re.findall(r"^\| `([^|]*)` \|", table, re.MULTILINE)
    assert len(examples) == 10
    assert all(parse(str(parse(text))) == parse(text) for text in examples)


# ---- random filters and jobs ----

HOSTILE = ["", " ", "a b", 'q"u\\o', "17", "1.50", "-0", "true", "null", "1..5", "a*b", "*", "and", "NOT", "é", "É", "ß", "İ", "-x", "~x", "=",
           "x,y", "(x)", "\x1b[31m", "\x00", "\u202e", "\ud800", "\U000e0001", "a:b", "..", "mail", "mail-eu", "Mail", "data.x"]  # fmt: skip
TEXTS = st.sampled_from(HOSTILE) | st.text(max_size=4)
ROW_TEXTS = TEXTS.map(lambda text: text.encode("utf-8", "replace").decode())
KEYS = st.sampled_from(["x", "y", "0", "1", "a b", "", "*", 'q"', "é"])
NUMBERS = st.integers(-3, 20) | st.sampled_from([1.5, -0.0, 17.0, 1e300, 10**25])
TIMES = st.sampled_from([NOW, NOW + 1, NOW - 1, NOW - 2 * HOUR, NOW + HOUR, 1, NOW - DAY]) | st.integers(
    1, 2**42
)
AGES = st.sampled_from([0, 1, HOUR, 2 * HOUR, DAY]) | st.integers(0, 40 * DAY)


def globs() -> st.SearchStrategy[Value]:
    return st.lists(TEXTS, min_size=2, max_size=4).map(Glob.of)


def exacts() -> st.SearchStrategy[Value]:
    return TEXTS.map(Exact)


def moment(time: int, precision: str) -> Moment:
    length = PRECISIONS[precision]
    return Moment(time // length * length, length)


def in_order(kind: Callable[[Any], Any], ends: tuple[Any, Any]) -> Range:
    low, high = sorted(ends, key=lambda end: getattr(end, "value", end))
    return Range(kind(low), kind(high))


POINTS: dict[str, st.SearchStrategy[Value]] = {
    "number": NUMBERS.map(Number),
    "age": AGES.map(Age),
    "moment": st.builds(moment, TIMES, st.sampled_from(sorted(PRECISIONS))),
}
NUMBER_RANGES = st.tuples(NUMBERS, NUMBERS).map(lambda ends: in_order(Number, ends))
TIME_RANGES = st.tuples(AGES, AGES).map(lambda ends: in_order(Age, ends)) | st.tuples(
    POINTS["moment"], POINTS["moment"]
).map(lambda ends: in_order(lambda end: end, ends))
SCALARS = st.sampled_from(["17", "1.50", "-0", "1e2", "true", "false", "null", "0"]).map(Scalar)
DATA_VALUES = exacts() | globs() | SCALARS | NUMBER_RANGES
PATHS = st.lists(KEYS | st.none(), max_size=3).map(tuple)


def terms(field: st.SearchStrategy[str], op: str, values: st.SearchStrategy[Value], most: int = 3) -> Any:
    several = st.lists(values, min_size=1, max_size=most).map(tuple)
    return st.builds(Term, field, st.sampled_from(op.split()), several)


def of_kind(kind: str) -> st.SearchStrategy[str]:
    return st.sampled_from([name for name, field in FIELDS.items() if field.kind == kind and name != "state"])


def with_path(term: Term, path: tuple[str | None, ...]) -> Term:
    return msgspec.structs.replace(term, path=path)


STATE = st.sampled_from(STATES).map(Exact) | st.sampled_from([Glob(("", "ed")), Glob(("s", ""))])
DATA = st.just("data")
LEAVES: st.SearchStrategy[Node] = st.one_of(
    TEXTS.map(Word),
    terms(st.just("state"), ": !=", STATE),
    terms(st.just("state"), "~", exacts()),
    terms(of_kind("text"), ": !=", exacts() | globs()),
    terms(of_kind("text"), "~", exacts()),
    terms(of_kind("flag"), ": !=", st.sampled_from([Exact("tracked"), Exact("late")])),
    terms(of_kind("number"), ": !=", POINTS["number"] | NUMBER_RANGES),
    terms(of_kind("number"), "< <= > >=", POINTS["number"], 1),
    terms(of_kind("time"), ": !=", POINTS["moment"] | TIME_RANGES),
    terms(of_kind("time"), "< <= > >=", POINTS["moment"] | POINTS["age"], 1),
    st.builds(with_path, terms(DATA, ": !=", DATA_VALUES), PATHS),
    st.builds(with_path, terms(DATA, "~", exacts()), PATHS),
    st.builds(with_path, terms(DATA, "< <= > >=", POINTS["number"], 1), PATHS),
)
NODES = st.recursive(
    LEAVES,
    lambda nodes: st.one_of(
        st.lists(nodes, min_size=2, max_size=3).map(all_of),
        st.lists(nodes, min_size=2, max_size=3).map(any_of),
        nodes.map(negation),
    ),
    max_leaves=8,
)
FILTERS = st.builds(Filter, NODES)

JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | ROW_TEXTS,
    lambda values: st.lists(values, max_size=3) | st.dictionaries(KEYS, values, max_size=3),
    max_leaves=8,
)
BODIES = st.one_of(
    JSON.map(lambda value: json.dumps(value).encode()),
    JSON.map(msgspec.json.encode),
    st.sampled_from([b"", b"{", b"1e999", b'"\xff"', b"\xff", b"[" * 2000]),
)
COUNTS = st.integers(-3, 20)
MOMENTS = st.just(0) | TIMES
ROWS = st.builds(
    JobRow, jid=ROW_TEXTS, klass=ROW_TEXTS, queue=ROW_TEXTS, state=st.sampled_from(STATES), priority=COUNTS, retries=COUNTS, remaining=COUNTS,
    attempts=COUNTS, losses=COUNTS, created_ms=TIMES, queued_ms=TIMES, popped_ms=MOMENTS, ended_ms=MOMENTS, due_ms=MOMENTS, worker=ROW_TEXTS,
    tracked=st.booleans(), tags=st.lists(ROW_TEXTS, max_size=3).map(tuple), group=ROW_TEXTS, message=ROW_TEXTS, failed_ms=MOMENTS, data=BODIES,
)  # fmt: skip


# ---- a plain reading of the same terms, as slow as may be ----

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
NO_DATA = object()


def expected(node: Node, row: JobRow) -> bool:
    match node:
        case All(terms=several):
            return all(expected(one, row) for one in several)
        case AnyOf(terms=several):
            return any(expected(one, row) for one in several)
        case Not(term=one):
            return not expected(one, row)
        case Word(text=text):
            return any(contained(text, place) for place in places(row))
        case Term():
            return expected_term(node, row)
    raise AssertionError(node)


def contained(text: str, place: str) -> bool:
    return text.casefold() in place.casefold()


def places(row: JobRow) -> list[str]:
    own = [row.jid, row.klass, *row.tags, row.message, row.data.decode("utf-8", "replace")]
    return own + (strings_of(loaded(row)) if b"\\" in row.data else [])


def strings_of(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [*value, *strings_of(list(value.values()))]
    if isinstance(value, list):
        return [text for one in value for text in strings_of(one)]
    return [value] if isinstance(value, str) else []


def loaded(row: JobRow) -> Any:
    try:
        value = json.loads(row.data)
        msgspec.json.decode(row.data)
    except (ValueError, RecursionError):
        return NO_DATA
    return value


def expected_term(term: Term, row: JobRow) -> bool:
    kind = FIELDS[term.field].kind
    if kind == "time":
        moment = getattr(row, f"{term.field}_ms")
        return bool(moment) and any(holds_time(term, value, moment) for value in term.values) != (
            term.op == "!="
        )
    if kind == "data":
        found = [value for value in at_path(loaded(row), term.path) if value is not NO_DATA]
        holds = any(holds_data(term.op, one, value) for one in found for value in term.values)
    elif kind == "number":
        number = len(row.data) if term.field == "size" else getattr(row, term.field)
        holds = any(holds_number(term.op, value, number) for value in term.values)
    elif kind == "flag":
        late = row.state == "stalled" or (row.state in ("scheduled", "waiting") and 0 < row.due_ms <= NOW)
        holds = any({"tracked": row.tracked, "late": late}[value.text] for value in term.values)  # type: ignore[attr-defined]
    else:
        texts = row.tags if term.field == "tag" else (getattr(row, term.field),)
        holds = any(holds_text(term.op, value, text) for value in term.values for text in texts)
    return holds != (term.op == "!=")


def holds_text(op: str, value: Value, text: str) -> bool:
    if isinstance(value, Glob):
        return re.fullmatch(".*".join(map(re.escape, value.parts)), text, re.DOTALL) is not None
    assert isinstance(value, Exact)
    return contained(value.text, text) if op == "~" else value.text == text


def holds_number(op: str, value: Value, number: float) -> bool:
    if isinstance(value, Range):
        return value.low.value <= number <= value.high.value
    assert isinstance(value, Number)
    return COMPARE.get(op, operator.eq)(number, value.value)


def holds_time(term: Term, value: Value, moment: int) -> bool:
    age = moment - NOW if term.field == "due" else NOW - moment
    if isinstance(value, Range):
        if isinstance(value.low, Age):
            return value.low.value <= age <= value.high.value
        assert isinstance(value.high, Moment)
        return value.low.value <= moment < value.high.value + value.high.length
    if isinstance(value, Age):
        return COMPARE[term.op](age, value.value)
    assert isinstance(value, Moment)
    start, end = value.value, value.value + value.length
    before, after = moment < start, moment >= end
    within = not before and not after
    return {"<": before, "<=": before or within, ">": after, ">=": after or within}.get(term.op, within)


def at_path(value: Any, path: tuple[str | None, ...]) -> list[Any]:
    if not path:
        return [value]
    key, *rest = path
    if isinstance(value, dict):
        chosen = list(value.values()) if key is None else [value[key]] if key in value else []
    elif isinstance(value, list) and key is not None:
        chosen = value[int(key) :][:1] if key.isdecimal() else []
    else:
        chosen = value if isinstance(value, list) else []
    return [found for one in chosen for found in at_path(one, tuple(rest))]


def holds_data(op: str, value: Any, given: Value) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if op == "~":
        assert isinstance(given, Exact)
        return contained(given.text, value if isinstance(value, str) else msgspec.json.encode(value).decode())
    if given == Glob(("", "")):
        return True
    if isinstance(given, (Number, Range)):
        return is_number and holds_number(op, given, value)
    if isinstance(given, Scalar):
        constant = {"true": True, "false": False, "null": None}
        if given.text in constant:
            return value is constant[given.text] or value == given.text
        return value == given.text or (is_number and value == float(given.text))
    return isinstance(value, str) and holds_text(op, given, value)


@pytest.mark.full
@settings(max_examples=60, deadline=None)
@given(FILTERS)
def test_a_filter_prints_as_a_text_that_is_parsed_as_the_same_filter(found: Filter) -> None:
    assert str(found).isprintable()
    assert parse(str(found)) == found


@pytest.mark.full
@settings(max_examples=200, deadline=None)
@given(FILTERS, st.lists(ROWS, min_size=1, max_size=4))
def test_the_matcher_agrees_with_a_plain_reading_of_the_filter(found: Filter, rows: list[JobRow]) -> None:
    match = found.matcher(NOW)
    assert [match(row) for row in rows] == [expected(found.root, row) for row in rows]


@settings(max_examples=60, deadline=None)
@given(FILTERS, ROWS)
def test_a_match_has_one_of_the_texts_that_the_filter_requires(found: Filter, row: JobRow) -> None:
    if not found.matcher(NOW)(row):
        return
    for name in ("state", "queue", "klass", "jid", "worker", "tag", "group"):
        required = found.required(name)
        texts = row.tags if name == "tag" else (getattr(row, name),)
        assert required is None or any(glob(pattern)(text) for pattern in required for text in texts)


@pytest.mark.full
@settings(max_examples=60, deadline=None)
@given(FILTERS, ROWS)
def test_a_filter_does_not_read_what_it_does_not_need(found: Filter, row: JobRow) -> None:
    needs = found.needs
    bare = msgspec.structs.replace(
        row,
        data=row.data if "data" in needs else b"",
        tags=row.tags if "tags" in needs else (),
        group=row.group if "group" in needs else "",
        message=row.message if "failure" in needs else "",
        failed_ms=row.failed_ms if "failure" in needs else 0,
        due_ms=row.due_ms if "due" in needs else 0,
    )
    assert found.matcher(NOW)(bare) == found.matcher(NOW)(row)


PIECES = st.sampled_from([*HOSTILE, *FIELDS, "data.x.", 'data."', ":", ":~", "~", "=", "!=", "<", "<=", ">", "(", ")", '"', "\\", ",", "*", "-",
                          " ", "\n", " or ", " not ", "..", "2h", "2026-11-20", "T10:00", "+23:59", "9" * 50, "0001-01-01", "9999-12-31"])  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(PIECES | st.text(max_size=3), max_size=12).map("".join) | st.text())
def test_any_text_is_a_filter_or_a_filter_error(text: str) -> None:
    try:
        found = parse(text)
    except FilterError as error:
        problem = error
    else:
        assert parse(str(found)) == found
        assert found.matcher(NOW)(ROW) in (True, False)
        return
    assert 0 <= problem.position <= len(text)
    assert str(problem).replace("\n", "").isprintable()
