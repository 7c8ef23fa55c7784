"""recurringJob.addTag: labels of the jobs a template puts."""

import pytest
from stories import recur, refusal
from two_doors import Door


@pytest.mark.full
def test_new_tags_come_behind_the_old_ones_and_each_once(door: Door) -> None:
    recur(door, 0, "r", 60, 0, "tags", '["a"]')
    assert door.call("recurringJob.addTag", 1, "r", "b", "a", "c", "b") == ["a", "b", "c"]
    assert door.call("recurringJob.get", 1, "r")["tags"] == ["a", "b", "c"]


@pytest.mark.full
def test_a_template_may_have_any_number_of_tags(door: Door) -> None:
    recur(door, 0, "r", 60)
    tags = [f"t{number}" for number in range(70)]
    assert door.call("recurringJob.addTag", 1, "r", *tags) == tags


@pytest.mark.full
def test_no_tags_at_all_are_an_empty_list(door: Door) -> None:
    recur(door, 0, "r", 60)
    assert door.raw("recurringJob.addTag", 1, "r") == "[]"


@pytest.mark.full
def test_only_a_template_that_exists_gets_tags(door: Door) -> None:
    assert "no jid provided" in refusal(door.call("recurringJob.addTag", 1))
    assert "Tag(): Job none does not exist" in refusal(door.call("recurringJob.addTag", 1, "none", "a"))


def test_the_tags_of_a_template_are_in_no_index(door: Door) -> None:
    recur(door, 0, "r", 60, 10, "tags", '["a"]')
    door.call("recurringJob.addTag", 1, "r", "b")
    assert door.connection.ask("EXISTS", "ql:tags") == 0
