"""Templates, workers and failed jobs in the words of qless: stories that its reference tells, too."""

import pytest
from older_words import Older
from stories import refusal


@pytest.mark.full
def test_templates_name_the_kind_of_their_schedule(either: Older) -> None:
    assert (
        either.call("recur", 10, "q", "t", "k", "[]", "interval", 60, 0, "tags", '["x"]', "retries", 2) == "t"
    )
    template = {"jid": "t", "klass": "k", "state": "recur", "queue": "q", "priority": 0, "interval": 60, "retries": 2,
                "count": 0, "data": "[]", "tags": ["x"], "backlog": 0, "throttles": ["ql:q:q"]}  # fmt: skip
    assert either.call("recur.get", 10, "t") == template
    assert either.call("recur.get", 10, "nobody") is None
    assert either.call("jobs", 10, "recurring", "q") == ["t"]
    assert either.popped(130) == [("t-1", 2, 190), ("t-2", 2, 190), ("t-3", 2, 190)]
    assert either.call("get", 130, "t-2")["history"][0] == {"what": "put", "when": 70, "q": "q"}
    assert either.call("recur.update", 131, "t", "priority", 4, "queue", "p") == 1
    changed = {**template, "priority": 4, "queue": "p", "throttles": ["ql:q:p"], "count": 3}
    assert either.call("recur.get", 131, "t") == changed
    assert either.call("recur.tag", 132, "t", "y") == ["x", "y"]
    assert either.call("recur.untag", 132, "t", "x") == ["y"]
    assert either.raw("recur.untag", 132, "t", "y") == either.raw("recur.tag", 132, "t") == "{}"
    assert [either.call("unrecur", 133, "t") for _ in range(2)] == [1, 1]
    assert either.call("recur.get", 134, "t") is None


@pytest.mark.full
@pytest.mark.parametrize(("words", "sentence"), [
    ((), "no queue name provided"), (("q",), 'Arg "jid" missing'), (("q", "t"), 'Arg "klass" missing'),
    (("q", "t", "k", "{}"), 'Arg "spec" missing'), (("q", "t", "k", "{}", "cron", 5, 0), 'schedule type "cron" unknown'),
    (("q", "t", "k", "{}", "interval", "x", 0), 'Recur(): Arg "interval" not a number'),
    (("q", "t", "k", "{}", "interval", 5), 'Recur(): Arg "offset" not a number'),
    (("q", "t", "k", "{}", "interval", 0, 0), 'Recur(): Arg "interval" must be greater than 0'),
    (("q", "t", "k", "{}", "interval", 5, 0, "tags"), "Odd number of additional args"),
])  # fmt: skip
def test_a_template_that_is_none_is_refused(either: Older, words: tuple[object, ...], sentence: str) -> None:
    assert sentence in refusal(either.call("recur", 1, *words))


def test_workers_are_listed_with_their_jobs(either: Older) -> None:
    either.put(1, "j")
    either.popped(2, worker="one")
    either.popped(3, worker="two")
    assert either.call("workers", 4) == [{"name": "two", "jobs": 0, "stalled": 0}, {"name": "one", "jobs": 1, "stalled": 0}]  # fmt: skip
    assert either.call("workers", 4, "one") == {"jobs": ["j"], "stalled": {}}
    assert either.call("workers", 70, "one") == {"jobs": {}, "stalled": ["j"]}
    assert either.call("workers", 4, "nobody") == {"jobs": {}, "stalled": {}}
    assert either.call("worker.deregister", 5, "one", "two", "nobody") is None
    assert either.raw("workers", 6) == "{}"


def failed(older: Older, *jids: str) -> None:
    older.run(*jids)
    for now, jid in enumerate(jids, 10):
        older.call("fail", now, jid, "w", "g", "m")


@pytest.mark.full
@pytest.mark.parametrize(("words", "count"), [((), 3), ((2,), 2), ((-1,), 2), ((-2,), 1), ((-9,), 0)])
def test_failed_jobs_go_back_the_oldest_first(either: Older, words: tuple[object, ...], count: int) -> None:
    """A count below 0 leaves so many of the newest."""
    failed(either, "a", "b", "c")
    assert either.call("unfail", 20, "q", "g", *words) == count
    assert either.states(21, *"abc") == ["waiting"] * count + ["failed"] * (3 - count)
    assert either.call("failed", 21, "g")["total"] == 3 - count


@pytest.mark.full
def test_names_are_forgotten_and_pauses_end(either: Older) -> None:
    either.put(1, "j")
    assert either.call("pause", 2, "q", "p") is None
    assert (either.raw("pop", 3, "q", "w", 1), either.call("queues", 3, "q")["paused"]) == ("{}", True)
    assert either.call("unpause", 4, "q", "p") is None
    assert either.call("queue.forget", 5, "q", "nobody") is None
    assert either.raw("queues", 6) == "{}"
    assert either.popped(7) == [("j", 5, 67)]
