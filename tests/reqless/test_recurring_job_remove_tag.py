"""recurringJob.removeTag: fewer labels for the jobs a template puts."""

import pytest
from stories import recur, refusal
from two_doors import Door


@pytest.mark.full
def test_named_tags_go_and_the_others_keep_their_order(door: Door) -> None:
    recur(door, 0, "r", 60, 0, "tags", '["a", "b", "c", 5]')
    assert door.call("recurringJob.removeTag", 1, "r", "b", "unknown", "5") == ["a", "c"]
    assert door.call("recurringJob.get", 1, "r")["tags"] == ["a", "c"]


@pytest.mark.full
def test_no_tags_left_are_an_empty_object(door: Door) -> None:
    recur(door, 0, "r", 60, 0, "tags", '["a"]')
    assert door.raw("recurringJob.removeTag", 1, "r", "a") == "{}"


def test_only_a_template_that_exists_loses_tags(door: Door) -> None:
    assert "no jid provided" in refusal(door.call("recurringJob.removeTag", 1))
    assert "Untag(): Job none does not exist" in refusal(door.call("recurringJob.removeTag", 1, "none", "a"))
