"""jobs.tagged and tags.top."""

import pytest
from stories import put, refusal
from two_doors import Door


@pytest.fixture
def tagged(door: Door) -> Door:
    """Five jobs with a tag, of which the last two got it at the same time."""
    for now, jid in ((1, "j0"), (2, "j1"), (3, "j2"), (4, "b"), (4, "a")):
        put(door, now, jid, "q", 0, "tags", '["x"]')
    return door


@pytest.mark.full
@pytest.mark.parametrize(("words", "jids"), [
    ((), ["j0", "j1", "j2", "a", "b"]), ((0, 0), ["j0", "j1", "j2", "a", "b"]), ((1, 2), ["j1", "j2"]),
    ((1, 0), {}), ((0, -1), ["j0", "j1", "j2", "a"]), ((-2, 2), ["a", "b"]), ((-2, 1), ["a"]), ((9,), {}),
])  # fmt: skip
def test_jobs_with_a_tag_come_by_the_time_they_got_it(
    tagged: Door, words: tuple[int, ...], jids: object
) -> None:
    assert tagged.call("jobs.tagged", 5, "x", *words) == {"total": 5, "jobs": jids}


def test_a_tag_that_nobody_has_is_no_error(door: Door) -> None:
    assert door.raw("jobs.tagged", 1, "x") == '{"total":0,"jobs":{}}'


@pytest.mark.full
def test_tags_of_two_jobs_at_least_come_by_their_number(door: Door) -> None:
    for number, tags in enumerate(('["b","c",7,"once"]', '["b","c",7]', '["c"]')):
        put(door, 1, f"j{number}", "q", 0, "tags", tags)
    assert door.call("tags.top", 2) == ["c", "b", "7"]
    assert [door.call("tags.top", 2, *words) for words in ((1,), (0, 1), (0, 0), (1, -1), (5, 5))] == [
        ["b", "7"], ["c"], [], ["b", "7"], []]  # fmt: skip
    assert door.raw("tags.top", 2, 9) == "[]"


@pytest.mark.full
@pytest.mark.parametrize(("command", "words", "sentence"), [
    ("jobs.tagged", (), 'Tag(): Arg "tag" missing'),
    ("jobs.tagged", ("x", "y"), 'Tag(): Arg "offset" not a number'),
    ("jobs.tagged", ("x", 0, "y"), 'Tag(): Arg "limit" not a number'),
    ("tags.top", ("y",), 'Tag(): Arg "offset" not a number'),
    ("tags.top", (0, "y"), 'Tag(): Arg "limit" not a number'),
])  # fmt: skip
def test_a_page_is_told_in_numbers(
    door: Door, command: str, words: tuple[object, ...], sentence: str
) -> None:
    assert refusal(door.call(command, 1, *words)) == sentence
