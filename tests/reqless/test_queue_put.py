"""queue.put."""

import pytest
from stories import history, peeked, popped, put, refusal
from two_doors import Door


@pytest.mark.full
def test_a_put_job_shows_every_field(door: Door) -> None:
    reply = door.call("queue.put", 12345.678, "w", "q", "j1", "k", '{"a": 1}', 0, "priority", 2, "retries", 3,
                      "throttles", '["t1"]')  # fmt: skip
    assert reply == "j1"
    assert door.call("job.get", 12346, "j1") == {
        "jid": "j1", "klass": "k", "state": "waiting", "queue": "q", "worker": "", "tracked": False, "priority": 2,
        "expires": 0, "retries": 3, "remaining": 3, "data": '{"a": 1}', "tags": {},
        "history": [{"queue": "q", "when": 12345, "what": "put"}], "failure": {}, "throttles": ["t1", "ql:q:q"],
        "dependents": {}, "dependencies": {}, "spawned_from_jid": False,
    }  # fmt: skip


def test_the_message_of_a_put_is_what_readers_of_bytes_expect(door: Door) -> None:
    door.messages()
    put(door, 1, 'j"/1', "a/b")
    assert door.messages() == [("ql:log", '{"jid":"j\\"\\/1","event":"put","queue":"a\\/b"}')]


def test_an_owner_hears_that_its_job_was_put_elsewhere(door: Door) -> None:
    put(door, 1, "j")
    popped(door, 2, worker="w1")
    door.messages()
    put(door, 3, "j", "other", worker="w2")
    lost = '{"jid":"j","event":"lock_lost","worker":"w1"}'
    assert door.messages() == [
        ("ql:log", '{"jid":"j","event":"put","queue":"other"}'), ("ql:w:w1", lost), ("ql:log", lost),
    ]  # fmt: skip


def test_who_puts_its_own_job_is_not_told_that_it_lost_it(door: Door) -> None:
    put(door, 1, "j")
    popped(door, 2, worker="w1")
    door.messages()
    put(door, 3, "j", "other", worker="w1")
    assert [channel for channel, _ in door.messages()] == ["ql:log"]


@pytest.mark.full
def test_a_job_put_again_keeps_priority_and_retries_but_not_its_throttles(door: Door) -> None:
    put(door, 1, "j", "queue", 0, "priority", 7, "retries", 2, "throttles", '["tid"]')
    put(door, 2, "j", "other", 0, "throttles", '["ql:q:queue"]')
    job = door.call("job.get", 3, "j")
    assert (job["priority"], job["retries"], job["throttles"]) == (7, 2, ["ql:q:other"])
    assert history(job) == [("put", 1), ("put", 2)]


@pytest.mark.full
def test_a_failed_job_that_is_put_leaves_its_group_and_its_day(door: Door) -> None:
    put(door, 0, "j")
    popped(door, 0)
    door.call("job.fail", 0, "j", "w", "g", "m")
    put(door, 129600, "j")
    assert door.call("failureGroups.counts", 129600) == {}
    assert [door.call("queue.stats", 129600, "q", day)["failed"] for day in (0, 129600)] == [0, 0]
    assert door.call("queue.stats", 129600, "q", 0)["failures"] == 1
    assert door.call("job.get", 129600, "j")["failure"]["group"] == "g"


def test_a_failed_job_that_is_put_elsewhere_is_one_less_where_it_failed(door: Door) -> None:
    put(door, 0, "j")
    popped(door, 0)
    door.call("job.fail", 0, "j", "w", "g", "m")
    put(door, 5, "j", "other")
    assert [door.call("queue.stats", 5, queue, 5)["failed"] for queue in ("q", "other")] == [0, 0]


@pytest.mark.full
def test_a_waiting_job_is_there_whatever_the_time_of_the_pop(door: Door) -> None:
    put(door, 3, "j")
    assert popped(door, 0) == [("j", 5, 60)]


@pytest.mark.full
def test_time_may_be_negative_and_fractional(door: Door) -> None:
    put(door, -100.5, "j", "q", 0.25)
    assert door.call("job.get", -100.5, "j")["history"] == [{"what": "put", "when": -101, "queue": "q"}]
    assert popped(door, -100.25) == [("j", 5, -40.25)]


@pytest.mark.full
def test_higher_priority_first_then_the_earlier_then_the_one_put_first(door: Door) -> None:
    for jid, now, priority in (("low", 1, -1.5), ("late", 9, 0), ("b", 5, 0), ("a", 5, 0), ("high", 9, 1e6)):
        put(door, now, jid, "q", 0, "priority", priority)
    assert peeked(door, 10) == ["high", "b", "a", "late", "low"]


@pytest.mark.full
def test_old_throttles_are_released_when_a_running_job_is_put(door: Door) -> None:
    door.call("throttle.set", 0, "db", 1)
    for jid in ("one", "two"):
        put(door, 1, jid, "q", 0, "throttles", '["db"]')
    assert [jid for jid, *_ in popped(door, 2)] == ["one"]
    put(door, 3, "one", "other")
    assert door.call("throttle.locks", 3, "db") == []
    assert [jid for jid, *_ in popped(door, 4)] == ["two"]


@pytest.mark.full
@pytest.mark.parametrize(("words", "sentence"), [
    (("w",), "no queue name provided"),
    (("w", "q"), 'Put(): Arg "jid" missing'),
    (("w", "q", "j"), 'Put(): Arg "klass" missing'),
    (("w", "q", "j", "k", "false", 0), "not JSON"),
    (("w", "q", "j", "k", "{}"), 'Put(): Arg "delay" not a number'),
    (("w", "q", "j", "k", "{}", "inf"), 'Put(): Arg "delay" not a number'),
    (("w", "q", "j", "k", "{}", 0, "priority"), "Odd number of additional args"),
    (("w", "q", "j", "k", "{}", 0, "retries", "x"), 'Put(): Arg "retries" not a number'),
    (("w", "q", "j", "k", "{}", 0, "priority", "x"), 'Put(): Arg "priority" not a number'),
    (("w", "q", "j", "k", "{}", 0, "throttles", "7"), "throttles is not a JSON list"),
    (("w", "q", "j", "k", "{", 0), "not JSON"),
])  # fmt: skip
def test_a_refused_put_leaves_no_trace(door: Door, words: tuple[object, ...], sentence: str) -> None:
    door.messages()
    assert sentence in refusal(door.call("queue.put", 1, *words))
    assert door.messages() == []
    assert (door.call("job.get", 1, "j"), door.call("queues.names", 1)) == (None, [])


@pytest.mark.full
@pytest.mark.parametrize("now", ["", "soon", "inf", "nan", "1e306"])
def test_the_time_must_be_a_finite_number(door: Door, now: str) -> None:
    assert 'Arg "now" missing or not a number' in refusal(door.raw("job.get", now, "j"))


@pytest.mark.full
def test_names_may_be_of_any_length(door: Door) -> None:
    queue, klass, worker, jid, group = (letter * 70000 for letter in "qkwjg")
    assert door.call("queue.put", 1, worker, queue, jid, klass, '{"a":1}', 0) == jid
    [job] = door.call("queue.pop", 2, queue, worker, 1)
    assert (job["queue"], job["klass"], job["worker"], job["jid"], job["data"]) == (
        queue, klass, worker, jid, '{"a":1}')  # fmt: skip
    assert door.call("job.fail", 3, jid, worker, group, "m") == jid
    assert door.call("jobs.failedByGroup", 4, group) == {"total": 1, "jobs": [jid]}
