"""job.log."""

import pytest
from stories import history, popped, put, refusal
from two_doors import Door


def test_a_line_says_its_message_its_second_and_what_the_data_say(door: Door) -> None:
    put(door, 1, "j")
    assert door.call("job.log", 2.7, "j", "half way", '{"done":3,"of":{"all":[]},"by":"me"}') is None
    line = {"what": "half way", "when": 2, "done": 3, "of": {"all": {}}, "by": "me"}
    assert door.call("job.get", 3, "j")["history"][1:] == [line]


@pytest.mark.full
def test_data_cannot_say_another_message_or_time(door: Door) -> None:
    put(door, 1, "j")
    door.call("job.log", 2, "j", "real", '{"what":"other","when":9}')
    assert door.call("job.get", 3, "j")["history"][1:] == [{"what": "real", "when": 2}]


@pytest.mark.full
def test_a_message_may_look_like_a_line_of_the_protocol(door: Door) -> None:
    put(door, 1, "j")
    for message in ("put", "done", "2", ""):
        door.call("job.log", 2, "j", message)
    lines = door.call("job.get", 3, "j")["history"][1:]
    assert lines == [{"what": what, "when": 2} for what in ("put", "done", "2", "")]


@pytest.mark.full
def test_lines_stand_among_what_happened_to_the_job(door: Door) -> None:
    put(door, 1, "j")
    popped(door, 2)
    door.call("job.log", 3, "j", "mine")
    door.call("job.complete", 4, "j", "w", "q", "{}")
    assert door.call("job.log", 5, "j", "afterwards") is None
    found = history(door.call("job.get", 6, "j"))
    assert found == [("put", 1), ("popped", 2), ("mine", 3), ("done", 4), ("afterwards", 5)]


@pytest.mark.full
def test_only_so_many_lines_are_kept(door: Door) -> None:
    door.call("config.set", 0, "max-job-history", 5)
    put(door, 0, "j")
    for now in range(1, 100):
        door.call("job.log", now, "j", "line")
    assert [when for _, when in history(door.call("job.get", 100, "j"))] == [0, 96, 97, 98, 99]


def test_nobody_is_told(door: Door) -> None:
    put(door, 1, "j")
    door.call("job.track", 1, "j")
    door.messages()
    door.call("job.log", 2, "j", "mine")
    assert door.messages() == []


@pytest.mark.full
@pytest.mark.parametrize(("words", "sentence"), [
    ((), "Log(): Argument 'jid' missing"),
    (("j",), "Log(): Argument 'message' missing"),
    (("j", "m", "{"), "Expected"),
    (("none", "m"), "Log(): Job none does not exist"),
    *((("j", "m", text), "is not a JSON object") for text in ('"x"', "7", "true", "null", "[]", "[1]")),
])  # fmt: skip
def test_a_line_that_cannot_be_told_is_refused(door: Door, words: tuple[str, ...], sentence: str) -> None:
    put(door, 1, "j")
    before = door.call("job.get", 1, "j")
    assert sentence in refusal(door.call("job.log", 2, *words))
    assert door.call("job.get", 2, "j") == before
