"""Arguments of function jobs: what fits, what is refused, and in which words."""

import datetime
from typing import Any

import pytest

from holdfast.code.signature import Arguments, decode_envelope
from holdfast.errors import UsageError


def welcome(user_id: int, lang: str = "en", *, when: datetime.date | None = None) -> None: ...


def anything(first, *rest: int, **named: float) -> None: ...


def test_fitting_arguments_pass_as_they_are():
    assert Arguments(welcome, "welcome").fit([7], {"lang": "de"}) == ([7], {"lang": "de"})
    assert Arguments(anything, "anything").fit([object, 1, 2], {"x": 1.5}) == ([object, 1, 2], {"x": 1.5})


def test_what_travelled_as_json_becomes_what_the_annotation_says():
    fitted = Arguments(welcome, "welcome").fit([7], {"when": "2024-02-29"})
    assert fitted == ([7], {"when": datetime.date(2024, 2, 29)})


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        (["7"], {}, "user_id"),
        ([True], {}, "user_id"),
        ([], {}, "misses its argument 'user_id'"),
        ([1, "de", 3], {}, "at most 2 arguments by position, not 3"),
        ([1], {"nope": 1}, "no argument 'nope'"),
        ([1], {"user_id": 2}, "'user_id' twice"),
        ([1], {"lang": 5}, "lang"),
        ([1], {"when": "yesterday"}, "when"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(args: list[Any], kwargs: dict[str, Any], words: str):
    with pytest.raises(UsageError, match="welcome") as caught:
        Arguments(welcome, "welcome").fit(args, kwargs)
    assert words in str(caught.value)


def test_rest_parameters_are_checked_too():
    with pytest.raises(UsageError, match="rest"):
        Arguments(anything, "anything").fit([0, "x"], {})
    with pytest.raises(UsageError, match="speed"):
        Arguments(anything, "anything").fit([0], {"speed": "fast"})


def test_an_annotation_that_cannot_be_looked_up_lets_everything_pass():
    def odd(value: "NowhereToBeFound") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    assert Arguments(odd, "odd").fit([3], {}) == ([3], {})


def test_an_envelope_may_leave_out_either_half():
    assert decode_envelope(b'{"args":[1]}').kwargs == {}
    assert decode_envelope(b"{}").args == []
