"""queue.recurAtInterval: templates, and the jobs they put."""

import pytest
from stories import history, peeked, popped, recur, refusal
from two_doors import Door


@pytest.mark.full
def test_a_template_puts_its_jobs_when_its_queue_is_popped_or_looked_at(door: Door) -> None:
    more = ("tags", '["r"]', "retries", 2)
    assert recur(door, 1000, "daily", 100, 50, *more, queue="rep") == "daily"
    assert popped(door, 1049, "rep", limit=10) == []
    assert popped(door, 1260, "rep", limit=2) == [("daily-1", 2, 1320), ("daily-2", 2, 1320)]
    assert popped(door, 1261, "rep", limit=2) == [("daily-3", 2, 1321)]
    assert door.call("recurringJob.get", 1262, "daily")["count"] == 3
    assert door.call("recurringJob.update", 1262, "daily", "interval", 10, "priority", 3) == 1
    jobs = door.call("queue.peek", 1275, "rep", 0, 10)
    assert [(job["jid"], job["state"], job["priority"]) for job in jobs] == [
        ("daily-4", "waiting", 3), ("daily-5", "waiting", 3),
    ]  # fmt: skip
    assert door.call("recurringJob.cancel", 1277, "daily") == 1
    assert peeked(door, 1300, "rep") == ["daily-4", "daily-5"]


@pytest.mark.full
def test_a_job_is_put_at_the_moment_of_its_occurrence(door: Door) -> None:
    recur(door, 0, "r", 60)
    assert popped(door, 599, limit=20) == [(f"r-{number}", 0, 659) for number in range(1, 11)]
    assert history(door.call("job.get", 599, "r-10")) == [("put", 540), ("popped", 599)]
    wait = door.call("queue.stats", 599, "q", 599)["wait"]
    assert (wait["count"], wait["mean"]) == (10, 329)


@pytest.mark.full
def test_the_next_occurrence_lies_where_clients_read_it(door: Door) -> None:
    recur(door, 10, "r", 60, 5.5)
    assert door.connection.ask("ZSCORE", "ql:q:q-recur", "r") == "15.5"
    peeked(door, 16)
    assert door.connection.ask("ZSCORE", "ql:q:q-recur", "r") == "75"


@pytest.mark.full
def test_a_look_puts_no_more_than_it_may_see(door: Door) -> None:
    recur(door, 0, "r", 10)
    assert len(door.call("queue.peek", 99, "q", 0, 3)) == 3
    assert len(door.call("queue.peek", 99, "q", 3, 1)) == 1
    assert len(door.call("queue.peek", 99, "q", 0, 100)) == 10


@pytest.mark.full
def test_a_paused_queue_gets_recurring_jobs_by_a_look_only(door: Door) -> None:
    recur(door, 0, "r", 60)
    door.call("queue.pause", 0, "q")
    assert popped(door, 60) == []
    assert door.call("queue.counts", 60, "q")["waiting"] == 0
    assert peeked(door, 60) == ["r-1", "r-2"]


def test_a_full_queue_gets_no_recurring_jobs(door: Door) -> None:
    recur(door, 0, "r", 60)
    door.call("queue.throttle.set", 0, "q", 1)
    assert popped(door, 0) == [("r-1", 0, 60)]
    assert popped(door, 59) == []
    assert door.call("recurringJob.get", 59, "r")["count"] == 1


@pytest.mark.parametrize(("now", "times"), [(600, [540, 600]), (630, [600])])
def test_a_backlog_leaves_out_what_is_too_old(door: Door, now: float, times: list[int]) -> None:
    recur(door, 0, "r", 60, 0, "backlog", 1)
    jobs = door.call("queue.pop", now, "q", "w", 10)
    assert [history(job)[0] for job in jobs] == [("put", time) for time in times]


@pytest.mark.full
def test_a_template_that_is_made_again_keeps_its_count_only(door: Door) -> None:
    recur(door, 0, "r", 60, 0, "priority", 5, "tags", '["a"]', "throttles", '["ql:q:q", "db"]')
    assert len(popped(door, 60)) == 2
    recur(door, 70, "r", 30, 10, "throttles", '["ql:q:q", "db"]', queue="other")
    found = door.call("recurringJob.get", 70, "r")
    assert (found["count"], found["priority"], found["tags"], found["queue"]) == (2, 0, {}, "other")
    assert found["throttles"] == ["db", "ql:q:other"]  # the reference keeps the one of the queue it left
    assert door.call("queue.jobsByState", 70, "recurring", "q") == []
    assert popped(door, 80, "other") == [("r-3", 0, 140)]
    assert door.call("queues.names", 80) == ["q", "other"]


@pytest.mark.full
def test_a_recurring_job_takes_over_no_job_that_exists(door: Door) -> None:
    door.call("queue.put", 0, "w", "q", "r-1", "klass", '"mine"', 0)
    recur(door, 0, "r", 60)
    assert popped(door, 0, limit=5) == [("r-1", 5, 60), ("r-2", 0, 60)]
    assert door.call("job.get", 0, "r-1")["data"] == '"mine"'


def test_nothing_is_told_of_a_template_and_its_jobs(door: Door) -> None:
    door.messages()
    recur(door, 0, "r", 60)
    peeked(door, 60)
    door.call("recurringJob.cancel", 61, "r")
    assert door.messages() == []


@pytest.mark.full
def test_recurring_jobs_are_throttled_when_they_are_popped(door: Door) -> None:
    door.call("throttle.set", 0, "db", 1)
    recur(door, 0, "r", 60, 0, "throttles", '["db"]')
    assert popped(door, 60) == [("r-1", 0, 120)]
    assert door.call("throttle.pending", 60, "db") == ["r-2"]


@pytest.mark.full
@pytest.mark.parametrize(("words", "sentence"), [
    ((), "no queue name provided"),
    (("q",), 'Recur(): Arg "jid" missing'),
    (("q", "j"), 'Recur(): Arg "klass" missing'),
    (("q", "j", "k"), ""),
    (("q", "j", "k", "x"), ""),
    (("q", "j", "k", "{}"), 'Recur(): Arg "interval" not a number'),
    (("q", "j", "k", "{}", "0"), 'Recur(): Arg "offset" not a number'),
    (("q", "j", "k", "{}", "0", "1"), 'Recur(): Arg "interval" must be greater than 0'),
    (("q", "j", "k", "{}", "5", "1", "tags"), "Odd number of additional args"),
    (("q", "j", "k", "{}", "5", "1", "tags", "x"), ""),
    (("q", "j", "k", "{}", "5", "1", "tags", '"x"'), ""),
    (("q", "j", "k", "{}", "5", "1", "priority", "x", "retries", "x"), 'Recur(): Arg "priority" not a number'),
    (("q", "j", "k", "{}", "5", "1", "retries", "x", "backlog", "x"), 'Recur(): Arg "retries" not a number'),
    (("q", "j", "k", "{}", "5", "1", "backlog", "x", "throttles", "x"), 'Recur(): Arg "backlog" not a number'),
    (("q", "j", "k", "{}", "5", "1", "throttles", "x"), ""),
    (("q", "j", "k", "{}", "inf", "1"), 'Recur(): Arg "interval" not a number'),
    (("q", "j", "k", "{}", "5", "1e306"), 'Recur(): Arg "offset" not a number'),
])  # fmt: skip
def test_a_template_that_is_not_whole_is_refused_and_leaves_no_trace(
    door: Door, words: tuple[object, ...], sentence: str
) -> None:
    assert sentence in refusal(door.call("queue.recurAtInterval", 1, *words))
    assert door.call("queues.names", 1) == []
    assert door.call("recurringJob.get", 1, "j") is None
