"""The terms of a search filter, and the functions of a row that they compile to."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Final, cast

import msgspec

from holdfast.codecs import decode
from holdfast.commands.job_rows import JobRow
from holdfast.console.search.filter_values import (
    FIELDS,
    SAFE_SEGMENT,
    SAFE_WORD,
    STATES,
    Exact,
    Glob,
    Need,
    Operator,
    Value,
    bounds,
    children,
    data_test,
    finder,
    json_scalar,
    keys_of,
    text_test,
    written,
)
from holdfast.errors import CodecError

Match = Callable[[JobRow], bool]

_LATE: Final = ("waiting", "scheduled", "stalled")
"""The states that a late job can have."""


class RowData:
    """The data of the row under test, decoded and as texts in lower case: each is made once for all terms."""

    __slots__ = ("_texts", "_value")

    def __init__(self) -> None:
        self._value: tuple[JobRow | None, object] = None, msgspec.UNSET
        self._texts: tuple[JobRow | None, Sequence[str]] = None, ()

    def value(self, row: JobRow) -> object:
        """Return the decoded data; UNSET if it is not JSON."""
        seen, value = self._value
        if seen is not row:
            try:
                value = decode(row.data)
            except CodecError:
                value = msgspec.UNSET
            self._value = row, value
        return value

    def texts(self, row: JobRow) -> Sequence[str]:
        """Return the stored JSON, then its strings if some of them may be written with escapes."""
        seen, texts = self._texts
        if seen is not row:
            strings = _strings(self.value(row)) if b"\\" in row.data else ()
            texts = [text.casefold() for text in (row.data.decode("utf-8", "replace"), *strings)]
            self._texts = row, texts
        return texts


def _strings(value: object) -> Iterable[str]:
    level = [value]
    while level:
        yield from [item for item in level if isinstance(item, str)]
        level = [child for item in level for child in (*keys_of(item), *children(item))]


class Node(msgspec.Struct, frozen=True, gc=False):
    """A part of a filter."""

    def needs(self) -> frozenset[Need]:
        """Return the costly parts of a row that it reads."""
        raise NotImplementedError

    def required(self, field: str) -> tuple[str, ...] | None:
        """Return texts and globs of a field, one of which every match has; None if it may have any."""
        raise NotImplementedError

    def match(self, now_ms: int, data: RowData) -> Match:
        """Return the function that tests a row."""
        raise NotImplementedError


class All(Node, frozen=True, gc=False):
    """All of these terms; without any, every job."""

    terms: tuple[Node, ...]

    def __str__(self) -> str:
        return " ".join([_enclosed(term, AnyOf) for term in self.terms])

    def needs(self) -> frozenset[Need]:
        return _needs_of(self.terms)

    def required(self, field: str) -> tuple[str, ...] | None:
        found = [one for term in self.terms if (one := term.required(field)) is not None]
        return min(found, key=lambda one: (any("*" in text for text in one), len(one)), default=None)

    def match(self, now_ms: int, data: RowData) -> Match:
        tests = _matches_of(self.terms, now_ms, data)
        if len(tests) == 2:
            first, second = tests
            return lambda row: first(row) and second(row)

        def match(row: JobRow) -> bool:
            for test in tests:  # noqa: SIM110 - twice as fast as all(…)
                if not test(row):
                    return False
            return True

        return match


class AnyOf(Node, frozen=True, gc=False):
    """At least one of these terms."""

    terms: tuple[Node, ...]

    def __str__(self) -> str:
        return " or ".join(map(str, self.terms))

    def needs(self) -> frozenset[Need]:
        return _needs_of(self.terms)

    def required(self, field: str) -> tuple[str, ...] | None:
        texts: dict[str, None] = {}
        for term in self.terms:
            found = term.required(field)
            if found is None:
                return None
            texts.update(dict.fromkeys(found))
        return tuple(texts)

    def match(self, now_ms: int, data: RowData) -> Match:
        return _one_of(_matches_of(self.terms, now_ms, data))


class Not(Node, frozen=True, gc=False):
    """Not this term."""

    term: Node

    def __str__(self) -> str:
        return f"-{_enclosed(self.term, All, AnyOf)}"

    def needs(self) -> frozenset[Need]:
        return self.term.needs()

    def required(self, field: str) -> tuple[str, ...] | None:
        if field == "state" and isinstance(self.term, Term) and self.term.field == field:
            excluded = self.term.required(field) or ()
            return tuple([state for state in STATES if state not in excluded])
        return None

    def match(self, now_ms: int, data: RowData) -> Match:
        return _negated(self.term.match(now_ms, data))


class Word(Node, frozen=True, gc=False):
    """A text that the jid, the klass, a tag, the failure message or the data contains."""

    text: str

    def __str__(self) -> str:
        return written(self.text, SAFE_WORD)

    def needs(self) -> frozenset[Need]:
        return frozenset(("tags", "failure", "data"))

    def required(self, field: str) -> tuple[str, ...] | None:
        return None

    def match(self, now_ms: int, data: RowData) -> Match:
        needle = self.text.casefold()

        def contains(text: str) -> bool:
            return needle in text

        def match(row: JobRow) -> bool:
            if any(map(contains, map(str.casefold, (row.jid, row.klass, row.message, *row.tags)))):
                return True
            return any(map(contains, data.texts(row)))

        return match


class Term(Node, frozen=True, gc=False):
    """A field, or data at a path, compared with values of which one must match; None in the path is any element."""

    field: str
    op: Operator
    values: tuple[Value, ...]
    path: tuple[str | None, ...] = ()

    def __str__(self) -> str:
        path = "".join(["." + ("*" if one is None else written(one, SAFE_SEGMENT)) for one in self.path])
        values = ",".join([self._written(value) for value in self.values])
        return f"{self.field}{path}{self.op}{values}"

    def _written(self, value: Value) -> str:
        text = str(value)
        if self.field == "data" and isinstance(value, Exact) and text == value.text and _means_more(text):
            return f'"{text}"'
        return text

    def needs(self) -> frozenset[Need]:
        if self.field == "is":
            return frozenset(["due"] if Exact("late") in self.values else [])
        need = FIELDS[self.field].need
        return frozenset([need] if need else [])

    def required(self, field: str) -> tuple[str, ...] | None:
        if field == "state":
            return self._states()
        if field != self.field or FIELDS[field].kind != "text" or self.op != ":":
            return None
        texts = [
            value.text if isinstance(value, Exact) else "*".join(cast("Glob", value).parts)
            for value in self.values
        ]
        # A job may have no worker or group: an empty text and the glob `*` restrict nothing.
        return tuple(texts) if all(text.strip("*") for text in texts) else None

    def _states(self) -> tuple[str, ...] | None:
        if self.field == "state":
            test = text_test(self.op, self.values)
            return tuple([state for state in STATES if test(state) != (self.op == "!=")])
        if self.field == "group" and self.op == "~":
            return None if text_test(self.op, self.values)("") else ("failed",)
        return _LATE if self.field == "is" and self.op == ":" and self.values == (Exact("late"),) else None

    def match(self, now_ms: int, data: RowData) -> Match:
        kind = FIELDS[self.field].kind
        if kind == "time":
            return _match_time(self, now_ms)
        match = _MATCHES[kind](self, now_ms, data)
        return _negated(match) if self.op == "!=" else match


def _means_more(text: str) -> bool:
    """Return whether a text in data, without quotes, would be a number, boolean, null or range."""
    return ".." in text or json_scalar(text) is not msgspec.UNSET


def all_of(terms: Sequence[Node]) -> Node:
    """Return the term that requires all of these terms; nested `All` terms are flattened."""
    if len(terms) == 1:
        return terms[0]
    return All(tuple([one for term in terms for one in (term.terms if isinstance(term, All) else (term,))]))


def any_of(terms: Sequence[Node]) -> Node:
    """Return the term that requires at least one of these terms; nested `AnyOf` terms are flattened."""
    if len(terms) == 1:
        return terms[0]
    return AnyOf(
        tuple([one for term in terms for one in (term.terms if isinstance(term, AnyOf) else (term,))])
    )


def negation(term: Node) -> Node:
    """Return the opposite of a term."""
    return term.term if isinstance(term, Not) else Not(term)


def _enclosed(term: Node, *kinds: type[Node]) -> str:
    return f"({term})" if isinstance(term, kinds) else str(term)


def _needs_of(terms: Iterable[Node]) -> frozenset[Need]:
    return frozenset([need for term in terms for need in term.needs()])


def _matches_of(terms: Iterable[Node], now_ms: int, data: RowData) -> list[Match]:
    """Return the functions of terms, those first that do not read the data."""
    return [term.match(now_ms, data) for term in sorted(terms, key=lambda term: "data" in term.needs())]


def _negated(match: Match) -> Match:
    return lambda row: not match(row)


def _one_of(tests: Sequence[Match]) -> Match:
    if len(tests) == 1:
        return tests[0]

    def match(row: JobRow) -> bool:
        for test in tests:  # noqa: SIM110 - twice as fast as any(…)
            if test(row):
                return True
        return False

    return match


def _match_text(term: Term, now_ms: int, data: RowData) -> Match:
    test, get = text_test(term.op, term.values), attrgetter(FIELDS[term.field].attribute)
    if term.field == "tag":
        return lambda row: any(map(test, row.tags))
    if term.field == "group":  # a job that is retried keeps the record of its last failure
        return lambda row: test(row.group if row.state == "failed" else "")
    return lambda row: test(get(row))


def _match_flag(term: Term, now_ms: int, data: RowData) -> Match:
    def is_late(row: JobRow) -> bool:
        if row.state == "stalled":
            return True
        return 0 < row.due_ms <= now_ms and row.state in _LATE

    flags: dict[Value, Match] = {Exact("tracked"): attrgetter("tracked"), Exact("late"): is_late}
    return _one_of([flags[value] for value in term.values])


def _match_number(term: Term, now_ms: int, data: RowData) -> Match:
    name = FIELDS[term.field].attribute
    get: Callable[[JobRow], int] = attrgetter(name) if term.field != "size" else lambda row: len(row.data)
    return _one_of([_match_between(get, *bounds(term.op, value, now_ms, 1)) for value in term.values])


def _match_between(get: Callable[[JobRow], int], low: float, high: float) -> Match:
    return lambda row: low <= get(row) <= high


def _match_time(term: Term, now_ms: int) -> Match:
    """Return the function that tests a time; 0 means that there is no time, and never matches."""
    get: Callable[[JobRow], int] = attrgetter(FIELDS[term.field].attribute)
    ends = [bounds(term.op, value, now_ms, 1 if term.field == "due" else -1) for value in term.values]
    match = _one_of([_match_between(get, max(low, 1), high) for low, high in ends])
    if term.op != "!=":
        return match
    return lambda row: get(row) > 0 and not match(row)


def _match_data(term: Term, now_ms: int, data: RowData) -> Match:
    find, test = finder(term.path), data_test(term.op, term.values)
    return lambda row: any(map(test, find(data.value(row))))


_MATCHES: Final[Mapping[str, Callable[[Term, int, RowData], Match]]] = {
    "text": _match_text,
    "flag": _match_flag,
    "number": _match_number,
    "data": _match_data,
}
