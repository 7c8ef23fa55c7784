"""What queue.put may be told behind its fixed words: tags, depends, throttles, retries."""

from typing import Any

import pytest
from stories import history, popped, put, refusal
from two_doors import Door


def job(door: Door, now: float, jid: str) -> Any:
    return door.call("job.get", now, jid)


def waits(door: Door, now: float, jid: str) -> tuple[str, Any]:
    found = job(door, now, jid)
    return found["state"], found["dependencies"]


def put_many(door: Door, jobs: dict[str, tuple[object, ...]]) -> None:
    """What is wished for each job, by jid."""
    for jid, words in jobs.items():
        door.connection.send("EVALSHA", door.sha, 0, "queue.put", 1, "w", "q", jid, "k", "{}", 0, *words)
    for _ in jobs:
        door.connection.read()


def test_tags_are_kept_as_they_came_and_looked_up_by_their_text(door: Door) -> None:
    put(door, 1, "j", "q", 0, "tags", '["x",1,1.5,"x"]')
    assert job(door, 1, "j")["tags"] == ["x", 1, 1.5, "x"]
    for tag in ("x", "1", "1.5"):
        assert door.call("jobs.tagged", 2, tag) == {"total": 1, "jobs": ["j"]}
    assert door.connection.ask("ZRANGE", "ql:tags", 0, -1, "WITHSCORES") == ["1", "1", "1.5", "1", "x", "1"]


def test_a_job_put_again_keeps_its_tags_and_gets_them_now(door: Door) -> None:
    put(door, 1, "a", "q", 0, "tags", '["x"]')
    put(door, 2, "b", "q", 0, "tags", '["x"]')
    put(door, 3, "a")
    assert job(door, 3, "a")["tags"] == ["x"]
    assert door.call("jobs.tagged", 3, "x")["jobs"] == ["b", "a"]


@pytest.mark.full
def test_new_tags_replace_the_old_ones_in_the_index(door: Door) -> None:
    put(door, 1, "j", "q", 0, "tags", '["old","both"]')
    put(door, 2, "j", "q", 0, "tags", '["both","new"]')
    assert door.connection.ask("ZRANGE", "ql:tags", 0, -1) == ["both", "new"]
    put(door, 3, "j", "q", 0, "tags", "[]")
    assert job(door, 3, "j")["tags"] == {}
    assert door.connection.ask("EXISTS", "ql:tags") == 0


@pytest.mark.full
def test_a_job_waits_for_those_that_exist_and_are_not_complete(door: Door) -> None:
    for jid in ("open", "failed", "done"):
        put(door, 1, jid)
    popped(door, 2)
    door.call("job.fail", 3, "failed", "w", "g", "m")
    door.call("job.complete", 3, "done", "w", "q", "{}")
    put(door, 4, "j", "q", 0, "depends", '["open","failed","done","unknown","open"]')
    found = job(door, 5, "j")
    assert (found["state"], sorted(found["dependencies"])) == ("depends", ["failed", "open"])
    assert (job(door, 5, "open")["dependents"], job(door, 5, "done")["dependents"]) == (["j"], {})
    assert door.call("queue.jobsByState", 5, "depends", "q") == ["j"]


@pytest.mark.full
def test_the_last_parent_that_completes_lets_a_job_go(door: Door) -> None:
    put(door, 1, "p")
    put(door, 1, "later", "q", 30, "depends", '["p"]')
    put(door, 1, "now", "q", 0, "depends", '["p"]')
    popped(door, 2)
    door.messages()
    door.call("job.complete", 3, "p", "w", "q", "{}")
    assert [text for _, text in door.messages()] == ['{"jid":"p","event":"completed","queue":"q"}']
    assert (waits(door, 3, "now"), waits(door, 3, "later")) == (("waiting", {}), ("scheduled", {}))
    assert job(door, 31, "later")["state"] == "waiting"


@pytest.mark.full
def test_dependencies_stay_unless_others_are_named(door: Door) -> None:
    for jid in ("a", "b"):
        put(door, 1, jid)
    put(door, 2, "j", "q", 0, "depends", '["a"]')
    put(door, 3, "j", "other")
    assert (waits(door, 3, "j"), door.call("queue.jobsByState", 3, "depends", "other")) == (
        ("depends", ["a"]), ["j"])  # fmt: skip
    put(door, 4, "j", "q", 0, "depends", "[]")
    assert waits(door, 4, "j") == ("depends", ["a"])
    put(door, 5, "j", "q", 0, "depends", '["b"]')
    assert (waits(door, 5, "j"), job(door, 5, "a")["dependents"]) == (("depends", ["b"]), {})
    put(door, 6, "j", "q", 0, "depends", '["unknown"]')
    assert waits(door, 6, "j") == ("waiting", {})


@pytest.mark.full
def test_a_delay_that_was_kept_goes_with_the_next_put(door: Door) -> None:
    put(door, 1, "p")
    put(door, 1, "j", "q", 500, "depends", '["p"]')
    put(door, 2, "j", "q", 0)
    popped(door, 3)
    door.call("job.complete", 4, "p", "w", "q", "{}")
    assert job(door, 4, "j")["state"] == "waiting"


@pytest.mark.full
def test_numbers_name_jobs_too(door: Door) -> None:
    put(door, 1, "5")
    put(door, 2, "j", "q", 0, "depends", "[5]")
    assert waits(door, 2, "j") == ("depends", ["5"])


def test_a_job_cannot_wait_for_itself(door: Door) -> None:
    assert refusal(put(door, 1, "j", "q", 0, "depends", '["j"]')) == "Put(): j cannot wait for itself"
    assert (job(door, 1, "j"), door.call("queues.names", 1)) == (None, [])


@pytest.mark.full
def test_a_circle_of_many_jobs_is_refused_and_leaves_no_trace(door: Door) -> None:
    put_many(door, {f"j{n}": ("depends", f'["j{n - 1}"]') if n else () for n in range(1100)})
    before = job(door, 2, "j0")
    door.messages()
    sentence = "Put(): j0 would wait for itself, through others"
    assert refusal(put(door, 2, "j0", "elsewhere", 0, "depends", '["j1099"]', "tags", '["t"]')) == sentence
    assert (job(door, 2, "j0"), door.messages(), door.call("queues.names", 2)) == (before, [], ["q"])
    assert door.call("jobs.tagged", 2, "t")["total"] == 0


@pytest.mark.full
def test_a_job_may_wait_for_thousands(door: Door) -> None:
    names = [f"p{n}" for n in range(9000)]
    put_many(door, dict.fromkeys(names, ()))
    text = "[" + ",".join(f'"{name}"' for name in names) + "]"
    put(door, 2, "j", "q", 0, "depends", text)
    assert sorted(job(door, 2, "j")["dependencies"]) == sorted(names)
    put(door, 3, "j", "q", 0, "depends", '["p0"]')
    assert job(door, 3, "j")["dependencies"] == ["p0"]


@pytest.mark.full
def test_a_job_is_told_twice_that_it_was_set_aside_if_it_is_put_twice(door: Door) -> None:
    door.call("throttle.set", 0, "db", 1)
    put(door, 1, "a", "q", 0, "throttles", '["db"]')
    popped(door, 2)
    for now in (3, 4):
        put(door, now, "b", "q", 0, "throttles", '["db"]')
    assert history(job(door, 5, "b")) == [("put", 3), ("throttled", 3), ("put", 4), ("throttled", 4)]
    assert door.call("throttle.pending", 5, "db") == ["b"]


@pytest.mark.full
def test_throttles_are_kept_once_each_with_the_own_one_of_the_queue_last(door: Door) -> None:
    put(door, 1, "j", "q", 0, "throttles", '["u",7,"ql:q:q","u"]')
    assert job(door, 1, "j")["throttles"] == ["u", "7", "ql:q:q"]


def test_retries_are_whole(door: Door) -> None:
    put(door, 1, "j", "q", 0, "retries", 2.7)
    assert (job(door, 1, "j")["retries"], job(door, 1, "j")["remaining"]) == (2, 2)


def test_the_last_of_several_counts_and_an_unknown_option_is_left_alone(door: Door) -> None:
    put(door, 1, "j", "q", 0, "priority", 1, "colour", "blue", "priority", 2)
    assert job(door, 1, "j")["priority"] == 2


@pytest.mark.full
@pytest.mark.parametrize("option", ["tags", "depends", "throttles"])
def test_an_empty_list_may_be_written_as_this_protocol_writes_it(door: Door, option: str) -> None:
    assert put(door, 1, "j", "q", 0, option, "{}") == "j"
    assert job(door, 1, "j")["throttles"] == ["ql:q:q"]


@pytest.mark.full
@pytest.mark.parametrize("option", ["tags", "depends", "throttles"])
@pytest.mark.parametrize(
    "text", ["7", '"x"', '{"a":1}', "null", "true", "[true]", "[null]", '[["x"]]', "[{}]", "["]
)
def test_what_is_no_list_of_names_is_refused_before_anything_is_written(
    door: Door, option: str, text: str
) -> None:
    put(door, 1, "j", "q", 0, "tags", '["old"]')
    before = job(door, 1, "j")
    door.messages()
    refusal(put(door, 2, "j", "other", 0, option, text))
    assert (job(door, 2, "j"), door.messages(), door.call("queues.names", 2)) == (before, [], ["q"])
    assert door.call("jobs.tagged", 2, "old")["jobs"] == ["j"]
