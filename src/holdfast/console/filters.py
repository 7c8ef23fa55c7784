"""The search language: `state:failed queue:mail-* created<2h -tag:vip (data.order.id=17 or "some text")`.

docs/guide/search.md describes it. A filter has at most 4,096 characters and 50 levels.
"""

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from holdfast.console.search.filter_parser import MAX_LENGTH, Parser, filter_error
from holdfast.console.search.filter_terms import All, Match, Node, RowData
from holdfast.console.search.filter_values import FIELDS, SYNONYMS, Glob, Need, TextTest, written
from holdfast.settings import check_text


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
