"""queuePriorityPatterns.getAll and .setAll: rules about which queues come first."""

import pytest
from stories import refusal
from two_doors import Door

KEY, OLD = "ql:qp:priorities", "qmore:priority"
LAST = '{"fairly": false, "pattern": ["default"]}'
FIRST = '{"fairly": true, "pattern": ["a"]}'


@pytest.mark.full
def test_nothing_stored_is_the_rule_for_all_others(door: Door) -> None:
    assert door.call("queuePriorityPatterns.getAll", 1) == [LAST]


@pytest.mark.full
def test_the_rule_for_all_others_comes_last_unless_it_is_named(door: Door) -> None:
    assert door.call("queuePriorityPatterns.setAll", 1, FIRST) is None
    assert door.call("queuePriorityPatterns.getAll", 1) == [FIRST, LAST]
    assert door.connection.ask("LRANGE", KEY, 0, -1) == [FIRST, LAST]
    other = '{"pattern":["default"]}'
    door.call("queuePriorityPatterns.setAll", 1, other, FIRST)
    assert door.call("queuePriorityPatterns.getAll", 1) == [other, FIRST]
    two = '{"pattern": ["default", "a"]}'
    door.call("queuePriorityPatterns.setAll", 1, two)
    assert door.call("queuePriorityPatterns.getAll", 1) == [two, LAST]


@pytest.mark.full
def test_nothing_named_deletes_both_lists(door: Door) -> None:
    door.call("queuePriorityPatterns.setAll", 1, FIRST)
    door.connection.ask("RPUSH", OLD, "x")
    assert door.call("queuePriorityPatterns.setAll", 1) is None
    assert door.connection.ask("EXISTS", KEY, OLD) == 0
    assert door.call("queuePriorityPatterns.getAll", 1) == [LAST]


def test_other_programs_read_and_write_the_same_keys(door: Door) -> None:
    door.connection.ask("RPUSH", OLD, "older")
    assert door.call("queuePriorityPatterns.getAll", 1) == ["older"]
    door.connection.ask("RPUSH", KEY, "newer")
    assert door.call("queuePriorityPatterns.getAll", 1) == ["newer"]
    door.call("queuePriorityPatterns.setAll", 1, FIRST)
    assert door.connection.ask("EXISTS", OLD) == 0


@pytest.mark.full
@pytest.mark.parametrize("rule", ["x", "5", "[]", "{}", '{"pattern": "default"}', '{"pattern": [5]}'])
def test_what_is_no_rule_is_refused_and_changes_nothing(door: Door, rule: str) -> None:
    door.call("queuePriorityPatterns.setAll", 1, FIRST)
    refusal(door.call("queuePriorityPatterns.setAll", 1, LAST, rule))
    assert door.call("queuePriorityPatterns.getAll", 1) == [FIRST, LAST]
