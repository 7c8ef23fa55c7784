"""Tags, dependencies, marks and next queues in the words of qless: stories that its reference tells, too."""

import pytest
from older_words import Older
from stories import refusal


@pytest.mark.full
def test_tags_are_one_command(either: Older) -> None:
    for now, jid in enumerate("ab", 1):
        either.put(now, jid)
    assert either.call("tag", 3, "add", "a", "x", "y") == ["x", "y"]
    assert either.call("tag", 4, "add", "b", "x") == ["x"]
    assert either.call("tag", 5, "get", "x") == {"total": 2, "jobs": ["a", "b"]}
    assert either.call("tag", 5, "get", "x", 1, 1) == {"total": 2, "jobs": ["b"]}
    assert either.call("tag", 5, "top") == ["x"]
    assert either.raw("tag", 5, "top", 1, 1) == "{}"
    assert either.call("tag", 6, "remove", "a", "y") == ["x"]
    assert either.raw("tag", 6, "remove", "a", "x") == "{}"
    assert either.raw("tag", 6, "add", "a") == "{}"
    assert either.raw("tag", 6, "top") == "{}"
    assert either.call("tag", 6, "get", "nobody") == {"total": 0, "jobs": {}}


@pytest.mark.full
@pytest.mark.parametrize(("words", "sentence"), [
    ((), 'must be "add"'), (("fly",), 'must be "add"'), (("add",), 'Tag(): Arg "jid" missing'),
    (("add", "nobody", "x"), "Tag(): Job nobody does not exist"), (("get",), 'Tag(): Arg "tag" missing'),
    (("remove", "nobody", "x"), "does not exist"), (("top", "x"), 'Tag(): Arg "offset" not a number'),
    (("get", "x", "x"), 'Tag(): Arg "offset" not a number'),
])  # fmt: skip
def test_a_tag_command_that_is_none_is_refused(
    either: Older, words: tuple[object, ...], sentence: str
) -> None:
    assert sentence in refusal(either.call("tag", 1, *words))


@pytest.mark.full
def test_dependencies_are_one_command(either: Older) -> None:
    for jid in ("a", "b"):
        either.put(1, jid)
    either.put(2, "last", "q", 0, "depends", '["a"]')
    assert either.call("depends", 3, "last", "on", "b", "nobody") == 1
    assert sorted(either.call("get", 3, "last")["dependencies"]) == ["a", "b"]
    assert either.call("depends", 4, "last", "off", "a") == 1
    assert either.states(4, "last") == ["depends"]
    assert either.call("depends", 5, "last", "off", "all") == 1
    assert either.states(5, "last") == ["waiting"]
    assert "not in the depends state: waiting" in refusal(either.call("depends", 6, "last", "on", "a"))


@pytest.mark.full
@pytest.mark.parametrize(("words", "sentence"), [
    ((), "no jid provided"), (("last",), 'Depends(): Arg "command" missing'),
    (("last", "fly", "a"), 'must be "on" or "off"'), (("nobody", "on", "a"), "not in the depends state"),
])  # fmt: skip
def test_a_dependency_command_that_is_none_is_refused(
    either: Older, words: tuple[object, ...], sentence: str
) -> None:
    either.put(1, "a")
    either.put(2, "last", "q", 0, "depends", '["a"]')
    assert sentence in refusal(either.call("depends", 3, *words))


@pytest.mark.full
def test_tracked_jobs_are_listed_by_the_command_alone(either: Older) -> None:
    assert either.call("track", 1) == {"jobs": {}, "expired": {}}
    for now, jid in enumerate("ab", 1):
        either.put(now, jid)
        either.call("track", now, "track", jid)
    either.call("cancel", 4, "a")
    found = either.call("track", 5)
    assert ([job["jid"] for job in found["jobs"]], found["expired"]) == (["b"], ["a"])
    assert found["jobs"][0]["tracked"] is True


def test_a_job_completes_into_a_next_queue(either: Older) -> None:
    either.run("j")
    assert either.call("complete", 3, "j", "w", "q", '{"a":1}', "next", "p") == "waiting"
    assert either.meant() == [("ql:log", {"jid": "j", "to": "p", "event": "advanced", "queue": "q"})]
    job = either.call("get", 4, "j")
    assert (job["state"], job["queue"], job["data"], job["remaining"]) == ("waiting", "p", '{"a":1}', 5)
    assert job["history"][2:] == [{"what": "done", "when": 3}, {"what": "put", "when": 3, "q": "p"}]


@pytest.mark.full
def test_what_comes_next_may_wait(either: Older) -> None:
    either.run("a", "b", "c")
    assert either.call("complete", 3, "a", "w", "q", "{}", "delay", 5, "next", "p") == "scheduled"
    assert either.call("complete", 3, "b", "w", "q", "{}", "next", "p", "depends", '["c"]') == "depends"
    assert either.call("jobs", 3, "scheduled", "p") == ["a"]
    assert either.call("complete", 4, "c", "w", "q", "{}") == "complete"
    assert either.states(5, "b") == ["waiting"]


def test_words_without_a_meaning_change_nothing(either: Older) -> None:
    either.run("a", "b")
    assert either.call("complete", 3, "a", "w", "q", "{}", "colour", "red") == "complete"
    assert either.call("complete", 3, "b", "w", "q", "{}", "next") == "complete"


@pytest.mark.full
@pytest.mark.parametrize(("words", "sentence"), [
    (("delay", 4), '"delay" cannot be used without a "next"'),
    (("depends", '["a"]'), '"depends" cannot be used without a "next"'),
    (("next", "p", "delay", "x"), ""), (("next", "p", "depends", "x"), ""),
])  # fmt: skip
def test_what_comes_next_is_said_whole_or_not_at_all(
    either: Older, words: tuple[object, ...], sentence: str
) -> None:
    either.run("j")
    assert sentence in refusal(either.call("complete", 3, "j", "w", "q", "{}", *words))
    assert (either.states(4, "j"), either.messages()) == (["running"], [])


def test_lines_of_ones_own_stand_in_the_history(either: Older) -> None:
    either.put(1, "j")
    assert either.call("log", 2.5, "j", "hello", '{"x":1}') is None
    assert either.call("get", 3, "j")["history"][1] == {"what": "hello", "when": 2, "x": 1}
    assert "Log(): Job nobody does not exist" in refusal(either.call("log", 3, "nobody", "m"))


@pytest.mark.full
def test_several_jobs_are_looked_at_and_cancelled_in_one_call(either: Older) -> None:
    for now, jid in enumerate("ab"):
        either.put(now, jid)
    either.put(3, "last", "q", 0, "depends", '["b"]')
    assert [job["jid"] for job in either.call("multiget", 4, "b", "nobody", "a")] == ["b", "a"]
    assert "b is a dependency of last" in refusal(either.call("cancel", 5, "a", "b"))
    assert either.call("cancel", 5, "last", "b") == ["last", "b"]
    assert either.call("get", 6, "last") is None
    assert either.call("cancel", 7) == []
