"""The search language: `state:failed queue:mail-* created<2h -tag:vip (data.order.id=17 or "some text")`.

docs/guide/search.md describes it. A filter has at most 4,096 characters and 50 levels.
"""

import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import ClassVar, Final, NamedTuple, NoReturn, cast

import msgspec

from holdfast.console.search.filter_terms import (
    All,
    Match,
    Node,
    RowData,
    Term,
    Word,
    all_of,
    any_of,
    negation,
)
from holdfast.console.search.filter_values import (
    FIELDS,
    SYNONYMS,
    Age,
    Exact,
    Glob,
    Kind,
    Need,
    Operator,
    Point,
    Range,
    Scalar,
    TextTest,
    Value,
    escaped,
    json_scalar,
    point,
    written,
)
from holdfast.errors import FilterError
from holdfast.settings import check_text
from holdfast.text import one_line

# Read the text of a search filter.

MAX_LENGTH: Final = 4096
MAX_DEPTH: Final = 50
MAX_TEXTS: Final = 128
"""Texts that are looked for, globs and terms of data, which may count as several: what takes time for each job."""
_SHOWN: Final = 60
"""How many characters before and after the place of an error are shown."""

_NAMES: Final = (*FIELDS, *SYNONYMS)

_BLANKS: Final = re.compile(r"\s*")
_KEYWORD: Final = re.compile(r"(and|or|not)(?=[\s()]|\Z)", re.IGNORECASE)
_STEP: Final = r'\.(?:"(?:[^"\\]|\\.)*+"|[^\s"():~=!<>,.]++)'
_SEGMENT: Final = re.compile(_STEP, re.DOTALL)
_FIELD: Final = re.compile(rf"([A-Za-z_][\w-]*+)((?:{_STEP})*+)(!=|<=|>=|:~|[:~=<>])", re.DOTALL)
_COMPARISON: Final = re.compile(r"<=|>=|<|>")
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_PLAIN: Final = re.compile(r'[^\s"(),]+')
_WORD: Final = re.compile(r'[^\s"()]+')
_LETTERS: Final = {"\\": "\\", '"': '"', "n": "\n", "t": "\t", "r": "\r"}
_OPERATORS: Final[Mapping[Kind, Sequence[str]]] = {
    "text": (":", "!=", "~"),
    "flag": (":", "!="),
    "number": (":", "!=", "<", "<=", ">", ">="),
    "time": (":", "!=", "<", "<=", ">", ">="),
    "data": (":", "!=", "~", "<", "<=", ">", ">="),
}
_COMPARISONS: Final = ("<", "<=", ">", ">=")
_EXPECTED: Final = {
    "number": "a number such as 3",
    "data": "a number such as 3",
    "time": "an age such as 2h or a date such as 2026-11-20",
}


def _cost_of(kind: Kind, op: Operator, values: Sequence[Value], path: str) -> int:
    """Return how many texts a term counts as: a text in data means to write them out, a star in a path to look at many."""
    texts = len(values) if op == "~" else sum(isinstance(one, Glob) for one in values)
    if kind != "data":
        return texts
    return max(texts, 1) + (3 if op == "~" else 0) + 4 * path.count(".*")


class _Given(NamedTuple):
    """A value as it was given: the texts between its stars, whether some of it was quoted, and its place."""

    parts: list[str]
    quoted: bool
    at: int

    @property
    def text(self) -> str:
        return "*".join(self.parts)


def filter_error(sentence: str, text: str, position: int) -> FilterError:
    """Return the error with the part of the text around the place, and a line that points at it."""
    start, end = max(0, position - _SHOWN), position + _SHOWN
    before, after = escaped(text[start:position]), escaped(text[position:end])
    before = f"…{before}" if start else before
    rest = "…" if end < len(text) else ""
    return FilterError(
        f"filter: {sentence}\n  {before}{after}{rest}\n  {' ' * _width(before)}^", text, position
    )


def _width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    wide = sum([unicodedata.east_asian_width(one) in "WF" for one in text])
    return len(text) + wide - sum([unicodedata.combining(one) > 0 for one in text])


def _quote(text: str) -> str:
    return f'"{escaped(text[:40])}{"…" if len(text) > 40 else ""}"'


def _near(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name.lower(), known, 1)
    return f'; did you mean "{close[0]}"?' if close else ""


class Parser:
    """Reads one filter, from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._texts = 0

    def root(self) -> Node:
        self._skip_blanks()
        if self._at == len(self._text):
            return All(())
        root = self._any_of()
        if self._at < len(self._text):
            self._fail('")" without an opening "("')
        return root

    def _fail(self, sentence: str, at: int | None = None) -> NoReturn:
        raise filter_error(sentence, self._text, self._at if at is None else at)

    def _find(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        return pattern.match(self._text, self._at)

    def _next(self) -> str:
        return self._text[self._at : self._at + 1]

    def _skip_blanks(self) -> None:
        found = self._find(_BLANKS)
        self._at = found.end() if found else self._at

    def _keyword(self, *words: str) -> bool:
        """Skip one of these words if it comes next."""
        found = self._find(_KEYWORD)
        if not found or found[1].lower() not in words:
            return False
        self._at = found.end()
        self._skip_blanks()
        return True

    def _any_of(self) -> Node:
        terms = [self._all_of()]
        while self._keyword("or"):
            terms.append(self._all_of())
        return any_of(terms)

    def _all_of(self) -> Node:
        terms = [self._term()]
        while self._keyword("and") or self._begins_term():
            terms.append(self._term())
        return all_of(terms)

    def _begins_term(self) -> bool:
        found = self._find(_KEYWORD)
        return self._next() not in ("", ")") and not (found and found[1].lower() == "or")

    def _term(self) -> Node:
        """Read a term and the blanks after it."""
        if self._keyword("not"):
            return negation(self._nested(self._term))
        if self._next() == "-":
            self._at += 1
            if self._next().strip() in ("", ")"):
                self._fail('expected a term directly after "-"; to search for "-", put it in double quotes')
            return negation(self._nested(self._term))
        if self._next() == "(":
            return self._group()
        term = self._comparison() or self._word()
        if self._next().strip() not in ("", ")"):
            self._fail(
                f"expected a blank before {one_line(self._next())}; put a text with blanks, quotes or parentheses in double quotes"
            )
        self._skip_blanks()
        return term

    def _nested(self, read: Callable[[], Node]) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._fail(f"nested deeper than {MAX_DEPTH} levels")
        node = read()
        self._depth -= 1
        return node

    def _group(self) -> Node:
        opened = self._at
        self._at += 1
        self._skip_blanks()
        node = self._nested(self._any_of)
        if self._next() != ")":
            self._fail('this "(" is not closed', opened)
        self._at += 1
        self._skip_blanks()
        return node

    def _count(self, texts: int, at: int) -> None:
        """Count what takes time for each job. Raises FilterError beyond the limit."""
        self._texts += texts
        if self._texts > MAX_TEXTS:
            self._fail(f"it has more than {MAX_TEXTS} texts, patterns and data terms to search for", at)

    def _word(self) -> Word:
        self._count(1, self._at)
        if self._next() == '"':
            return Word(self._quoted())
        found, keyword = self._find(_WORD), self._find(_KEYWORD)
        if not found:
            self._fail('expected a term, such as "state:failed"')
        if keyword:
            self._fail(
                f'expected a term, not "{keyword[0]}"; to search for the word, put it in double quotes'
            )
        if found[0][0] in ":=!<>~,":
            self._fail(
                "expected a field directly before this, such as attempts>3; to search for it, put it in double quotes"
            )
        if "*" in found[0]:
            self._fail(
                'a text matches anywhere, without "*"; write a field before it, such as jid:mail-*, or put it in double quotes',
                self._at + found[0].index("*"),
            )
        self._at = found.end()
        return Word(found[0])

    def _quoted(self) -> str:
        """Read a text in double quotes."""
        found = self._find(_QUOTED)
        if not found:
            self._fail("this quotation mark is not closed")
        self._at = found.end()
        return self._unescaped(found[1], found.start(1))

    def _unescaped(self, body: str, at: int) -> str:
        def letter(found: re.Match[str]) -> str:
            code, short = found[1] or found[2], found[3]
            if code and int(code, 16) <= sys.maxunicode:
                return chr(int(code, 16))
            if short not in _LETTERS:
                self._fail(
                    '"\\" stands only before " \\ n t r uXXXX; write \\\\ for a backslash', at + found.start()
                )
            return _LETTERS[short]

        return _ESCAPE.sub(letter, body)

    def _comparison(self) -> Term | None:
        found = self._find(_FIELD)
        if not found:
            return None
        field = self._field(found[1], found[2])
        kind = FIELDS[field].kind
        self._at = found.end()
        op = self._operator(field, kind, found)
        values = [self._value(field, op)]
        while self._next() == ",":
            if op in _COMPARISONS:
                self._fail(f'expected one value after "{op}"')
            self._at += 1
            values.append(self._value(field, op))
        self._count(_cost_of(kind, op, values, found[2]), found.start())
        path = [self._segment(one) for one in _SEGMENT.finditer(self._text, found.start(2), found.end(2))]
        return Term(field, op, tuple(values), tuple(path))

    def _field(self, given: str, path: str) -> str:
        name = SYNONYMS.get(given.lower(), given.lower())
        if name not in FIELDS or (path and name != "data"):
            near = f"; did you mean {_quote(f'data.{given}{path}')}?" if path else _near(given, _NAMES)
            self._fail(
                f"unknown field {_quote(given + path)}{near or '.'} To search for a text, put it in double quotes"
            )
        return name

    def _operator(self, field: str, kind: Kind, found: re.Match[str]) -> Operator:
        given = found[3]
        op = {"=": ":", ":~": "~"}.get(given, given)
        after = self._find(_COMPARISON) if op == ":" and kind in ("number", "time") else None
        if after:
            op, self._at = after[0], after.end()
        if op not in _OPERATORS[kind]:
            self._fail(
                f'"{field}" cannot be used with "{given}", only with {" ".join(_OPERATORS[kind])}',
                found.start(3),
            )
        return cast("Operator", op)

    def _segment(self, found: re.Match[str]) -> str | None:
        segment = found[0][1:]
        if segment.startswith('"'):
            return self._unescaped(segment[1:-1], found.start() + 2)
        return None if segment == "*" else segment

    def _value(self, field: str, op: Operator) -> Value:
        given, kind = self._given(), FIELDS[field].kind
        if kind in ("number", "time"):
            return self._point_or_range(field, op, given)
        if op in _COMPARISONS:
            return self._point(field, given.text, given)
        if len(given.parts) > 1:
            return self._glob(field, op, given)
        if kind == "data" and op != "~" and not given.quoted:
            return self._data_value(given)
        return self._exact(field, op, given)

    def _given(self) -> _Given:
        at, parts, quoted = self._at, [""], False
        while True:
            if self._next() == '"':
                quoted = True
                parts[-1] += self._quoted()
            elif found := self._find(_PLAIN):
                first, *rest = found[0].split("*")
                parts = [*parts[:-1], parts[-1] + first, *rest]
                self._at = found.end()
            else:
                break
        if self._at == at:
            self._fail("expected a value")
        return _Given(parts, quoted, at)

    def _glob(self, field: str, op: Operator, given: _Given) -> Value:
        if op == "~":
            self._fail('"~" matches a text anywhere: leave "*" out, or put it in double quotes', given.at)
        value = Glob.of(given.parts)
        if (choices := FIELDS[field].choices) and not (field == "state" and any(map(value.test(), choices))):
            self._fail_choice(field, given)
        return value

    def _exact(self, field: str, op: Operator, given: _Given) -> Value:
        choices = FIELDS[field].choices
        if choices and op != "~" and given.text not in choices:
            self._fail_choice(field, given)
        return Exact(given.text)

    def _fail_choice(self, field: str, given: _Given) -> NoReturn:
        choices = FIELDS[field].choices
        known = f"{', '.join(choices[:-1])} or {choices[-1]}"
        self._fail(
            f"{field}: expected {known}, not {_quote(given.text)}{_near(given.text, choices)}", given.at
        )

    def _data_value(self, given: _Given) -> Value:
        low, dots, high = given.text.partition("..")
        first, last = point("data", low), point("data", high)
        if dots and first and last:
            return self._range(first, last, given)
        return Exact(given.text) if json_scalar(given.text) is msgspec.UNSET else Scalar(given.text)

    def _point_or_range(self, field: str, op: Operator, given: _Given) -> Value:
        low, dots, high = given.text.partition("..")
        if dots and op in (":", "!="):
            return self._range(self._point(field, low, given), self._point(field, high, given), given)
        found = self._point(field, given.text, given)
        if isinstance(found, Age) and op in (":", "!="):
            text = f"{field}<{found} or {field}>{found}"
            self._fail(f"an age is compared with < or >, or with a range: {text}", given.at)
        return found

    def _point(self, field: str, text: str, given: _Given) -> Point:
        kind = FIELDS[field].kind
        found = point(kind, text)
        if found is None:
            self._fail(f"{field}: expected {_EXPECTED[kind]}, not {_quote(text)}", given.at)
        return found

    def _range(self, low: Point, high: Point, given: _Given) -> Range:
        if type(low) is not type(high):
            self._fail("expected a range of two ages or of two dates", given.at)
        if low.ends(0, 1)[0] > high.ends(0, 1)[1]:
            self._fail(f"the range is empty: expected {high}..{low}", given.at)
        return Range(low, high)


class Filter(msgspec.Struct, frozen=True, gc=False):
    """A search filter. `str` returns its canonical text, which is parsed as an equal filter."""

    fields: ClassVar[Mapping[str, str]] = {
        **{name: field.meaning for name, field in FIELDS.items()},
        **{name: f"the same as {field}" for name, field in SYNONYMS.items()},
    }
    """The names of all fields, each with its meaning in one line."""

    root: Node = All(())

    def __str__(self) -> str:
        return str(self.root)

    @property
    def needs(self) -> frozenset[Need]:
        """The parts of a row that are costly to read and that the filter reads."""
        return self.root.needs()

    def required(self, field: str) -> tuple[str, ...] | None:
        """Return exact values and globs of a text field, one of which every match has; None if it may have any.

        For `state` the values are exact. `glob` returns the function that tests them.
        """
        return self.root.required(SYNONYMS.get(field, field))

    def matcher(self, now_ms: int) -> Match:
        """Return the function that tests a row; ages are those at `now_ms`."""
        return self.root.match(now_ms, RowData())


def parse(text: str) -> Filter:
    """Return the filter that a text describes; an empty one matches all jobs. Raises FilterError, UsageError."""
    check_text("filter", text)
    if len(text) > MAX_LENGTH:
        raise filter_error(
            f"it has {len(text)} characters, more than the {MAX_LENGTH} allowed", text, MAX_LENGTH
        )
    found = Filter(Parser(text).root())
    if len(str(found)) > MAX_LENGTH:
        raise filter_error(
            f"with its quotes and escapes it has more than the {MAX_LENGTH} characters allowed", text, 0
        )
    return found


def term(field: str, *texts: str) -> str:
    """Return the term that matches jobs whose text field is exactly one of these."""
    return f"{field}:{','.join(map(written, texts))}"


def glob(pattern: str) -> TextTest:
    """Return the function that tests whether a text is of this pattern, in which `*` is any text."""
    return Glob.of(pattern.split("*")).test() if "*" in pattern else pattern.__eq__
