"""queueIdentifierPatterns.getAll and .setAll: rules about which queues a name stands for."""

import pytest
from stories import refusal
from two_doors import Door

KEY, OLD = "ql:qp:identifiers", "qmore:dynamic"


def stored(door: Door) -> dict[str, str]:
    flat = door.connection.ask("HGETALL", KEY)
    return dict(zip(flat[::2], flat[1::2], strict=True))


@pytest.mark.full
def test_nothing_stored_is_every_queue(door: Door) -> None:
    assert door.call("queueIdentifierPatterns.getAll", 1) == {"default": '["*"]'}


@pytest.mark.full
def test_what_is_stored_is_told_as_it_came(door: Door) -> None:
    words = ("a", '["1" , "2"]', "b", "[]", "c", "{}")
    assert door.call("queueIdentifierPatterns.setAll", 1, *words) is None
    assert door.call("queueIdentifierPatterns.getAll", 1) == {"default": '["*"]', "a": '["1" , "2"]'}
    assert stored(door) == {"default": '["*"]', "a": '["1" , "2"]'}


def test_a_default_that_is_stored_counts(door: Door) -> None:
    door.call("queueIdentifierPatterns.setAll", 1, "default", '["z"]', "a", '["1"]', "a", '["2"]')
    assert door.call("queueIdentifierPatterns.getAll", 1) == {"default": '["z"]', "a": '["2"]'}
    door.call("queueIdentifierPatterns.setAll", 1, "default", "[]")
    assert door.call("queueIdentifierPatterns.getAll", 1) == {"default": '["*"]'}


def test_nothing_named_resets_all(door: Door) -> None:
    door.call("queueIdentifierPatterns.setAll", 1, "a", '["1"]')
    assert door.call("queueIdentifierPatterns.setAll", 1) is None
    assert stored(door) == {"default": '["*"]'}


@pytest.mark.full
def test_other_programs_read_and_write_the_same_keys(door: Door) -> None:
    door.connection.ask("HSET", OLD, "old", '["o"]')
    assert door.call("queueIdentifierPatterns.getAll", 1) == {"default": '["*"]', "old": '["o"]'}
    door.connection.ask("HSET", KEY, "new", '["n"]')
    assert door.call("queueIdentifierPatterns.getAll", 1) == {"default": '["*"]', "new": '["n"]'}
    door.call("queueIdentifierPatterns.setAll", 1, "a", '["1"]')
    assert door.connection.ask("EXISTS", OLD) == 0


@pytest.mark.full
def test_thousands_are_stored_in_one_call(door: Door) -> None:
    words = [word for number in range(5000) for word in (f"n{number}", '["x"]')]
    assert door.call("queueIdentifierPatterns.setAll", 1, *words) is None
    assert len(door.call("queueIdentifierPatterns.getAll", 1)) == 5001


@pytest.mark.full
@pytest.mark.parametrize(("words", "sentence"), [
    (("a",), "Odd number of identifier patterns"),
    (("a", '["1"]', "b"), "Odd number of identifier patterns"),
    (("a", '["1"]', "b", "x"), ""), (("a", "5"), ""), (("a", '"x"'), ""), (("a", "[5]"), ""), (("a", "false"), ""),
])  # fmt: skip
def test_what_is_no_list_is_refused_and_changes_nothing(
    door: Door, words: tuple[str, ...], sentence: str
) -> None:
    door.connection.ask("HSET", OLD, "old", '["o"]')
    assert sentence in refusal(door.call("queueIdentifierPatterns.setAll", 1, *words))
    assert door.call("queueIdentifierPatterns.getAll", 1) == {"default": '["*"]', "old": '["o"]'}
