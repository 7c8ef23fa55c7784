"""job.addTag and job.removeTag."""

import pytest
from stories import popped, put, refusal
from two_doors import Door


def test_new_tags_go_behind_the_old_ones_each_once(door: Door) -> None:
    put(door, 1, "j", "q", 0, "tags", '["a",1]')
    assert door.call("job.addTag", 2, "j", "b", "a", "b", "1") == ["a", 1, "b", "1"]
    assert door.call("job.get", 2, "j")["tags"] == ["a", 1, "b", "1"]


def test_a_tag_given_again_counts_once_and_is_the_newest(door: Door) -> None:
    for now, jid in enumerate("ab", 1):
        put(door, now, jid, "q", 0, "tags", '["x"]')
    door.call("job.addTag", 3, "a", "x")
    assert door.call("jobs.tagged", 3, "x") == {"total": 2, "jobs": ["b", "a"]}
    assert door.connection.ask("ZSCORE", "ql:tags", "x") == "2"


def test_tags_are_taken_away_and_others_stay_in_order(door: Door) -> None:
    put(door, 1, "j", "q", 0, "tags", '["a","b","c"]')
    assert door.call("job.removeTag", 2, "j", "b", "unknown") == ["a", "c"]
    assert door.call("jobs.tagged", 2, "b") == {"total": 0, "jobs": {}}
    assert door.call("job.removeTag", 3, "j", "a", "c") == []
    assert door.connection.ask("EXISTS", "ql:tags") == 0


@pytest.mark.full
def test_a_tag_that_the_job_does_not_have_is_no_less_popular_for_it(door: Door) -> None:
    for jid in "ab":
        put(door, 1, jid, "q", 0, "tags", '["x"]')
    put(door, 1, "c")
    assert door.call("job.removeTag", 2, "c", "x") == []
    assert door.call("tags.top", 2) == ["x"]


@pytest.mark.full
def test_no_tags_change_nothing(door: Door) -> None:
    put(door, 1, "j", "q", 0, "tags", '["a"]')
    assert door.call("job.addTag", 2, "j") == door.call("job.removeTag", 2, "j") == ["a"]
    assert door.raw("job.addTag", 2, "j") == '["a"]'


@pytest.mark.full
def test_a_job_may_have_hundreds(door: Door) -> None:
    put(door, 1, "j")
    names = [f"t{n}" for n in range(300)]
    assert door.call("job.addTag", 2, "j", *names) == names


@pytest.mark.full
def test_a_completed_job_is_tagged_and_leaves_no_tag_behind_when_it_goes(door: Door) -> None:
    put(door, 1, "j")
    popped(door, 2)
    door.call("job.complete", 3, "j", "w", "q", "{}")
    assert door.call("job.addTag", 4, "j", "x") == ["x"]
    door.call("config.set", 5, "jobs-history", -1)
    put(door, 6, "other", "q", 0, "tags", '["y"]')
    popped(door, 7)
    door.call("job.complete", 8, "other", "w", "q", "{}")
    assert door.connection.ask("EXISTS", "ql:tags") == 0


@pytest.mark.full
def test_a_cancelled_job_leaves_no_tag_behind(door: Door) -> None:
    put(door, 1, "j", "q", 0, "tags", '["a"]')
    door.call("job.cancel", 2, "j")
    assert door.call("jobs.tagged", 2, "a") == {"total": 0, "jobs": {}}
    assert door.connection.ask("EXISTS", "ql:tags") == 0


@pytest.mark.full
@pytest.mark.parametrize("command", ["job.addTag", "job.removeTag"])
def test_only_a_job_that_exists_has_tags(door: Door, command: str) -> None:
    assert refusal(door.call(command, 1)) == 'Tag(): Arg "jid" missing'
    assert refusal(door.call(command, 1, "none", "t")) == "Tag(): Job none does not exist"
    assert door.connection.ask("EXISTS", "ql:tags") == 0


@pytest.mark.full
def test_a_number_and_its_text_are_two_tags_of_a_job_and_one_of_the_index(door: Door) -> None:
    put(door, 1, "j", "q", 0, "tags", "[7]")
    assert door.call("job.addTag", 2, "j", "7") == [7, "7"]
    assert door.call("job.removeTag", 3, "j", "7") == [7]
    assert door.call("jobs.tagged", 4, "7") == {"total": 1, "jobs": ["j"]}
    door.call("job.cancel", 5, "j")
    assert door.connection.ask("EXISTS", "ql:tags") == 0
