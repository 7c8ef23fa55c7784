"""Section 2.3 and 13.4 of the Python API: what a client does as a whole, and small operations on many things."""

import pydoc
import re

import pytest

import holdfast
from holdfast import DependencyRefused, UsageError


def put(do, queue: str, count: int, **options) -> list[str]:
    return do(lambda: do.client.queues[queue].put_many([("app.Job", n) for n in range(count)], **options))


def fail_all(do, queue: str, group: str) -> None:
    while job := do(do.client.queues[queue].pop):
        do(lambda job=job: job.fail(group, "message"))


def test_tracking_answers_whether_it_changed_anything(do):
    [jid] = put(do, "mail", 1)
    client = do.client
    assert [do(lambda: client.track(jid)), do(lambda: client.track(jid))] == [True, False]
    assert [do(lambda: client.untrack(jid)), do(lambda: client.untrack(jid))] == [True, False]
    with pytest.raises(holdfast.ReqlessError):
        do(lambda: client.track("nobody"))


def test_tags_are_those_that_at_least_two_jobs_carry_most_used_first(do):
    assert do(lambda: do.client.tags()) == []
    put(do, "mail", 3, tags=["often"])
    put(do, "mail", 2, tags=["twice"])
    put(do, "mail", 1, tags=["once"])
    assert do(lambda: do.client.tags()) == ["often", "twice"]
    assert do(lambda: do.client.tags(1, 5)) == ["twice"]
    assert do(lambda: do.client.tags(offset=0, count=1)) == ["often"]


def test_unfail_moves_the_oldest_failures_of_a_group_into_a_queue(do):
    jids = put(do, "mail", 3)
    fail_all(do, "mail", "odd")
    assert do(lambda: do.client.unfail("odd", "again", 2)) == 2
    moved = do(lambda: do.client.queues["again"].pop(5))
    assert [job.jid for job in moved] == jids[:2]
    assert (moved[0].state, moved[0].retries_left) == ("running", 5)
    assert do(lambda: do.client.unfail("odd", "again")) == 1
    assert do(lambda: do.client.unfail("nothing", "again")) == 0


def test_unfail_all_puts_each_group_back_into_the_queue_of_its_first_job(do):
    put(do, "mail", 3)
    put(do, "letters", 2)
    fail_all(do, "mail", "odd")
    fail_all(do, "letters", "ugly")
    assert do(lambda: do.client.unfail_all()) == 5
    assert do(do.client.jobs.failed) == {}
    assert do(do.client.queues["mail"].length) == 3
    assert do(do.client.queues["letters"].length) == 2
    assert do(lambda: do.client.unfail_all()) == 0


def test_unfail_all_of_a_mixed_group_follows_its_newest_failure_and_goes_in_batches(do):
    put(do, "mail", 2)
    fail_all(do, "mail", "odd")
    put(do, "letters", 1)
    fail_all(do, "letters", "odd")
    assert do(lambda: do.client.unfail_all(batch_size=1)) == 3
    assert do(do.client.queues["letters"].length) == 3
    assert do(do.client.queues["mail"].length) == 0


def test_bulk_cancel_takes_a_set_that_waits_for_each_other(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.put("app.Job", jid="a"))
    do(lambda: queue.put("app.Job", jid="b", depends=["a"]))
    with pytest.raises(DependencyRefused):
        do(lambda: do.client.bulk_cancel(["a"]))
    assert do(lambda: do.client.bulk_cancel(jid for jid in ("a", "b", "nobody"))) == ["a", "b", "nobody"]
    assert do(lambda: do.client.jobs.get("a", "b")) == []


def test_bulk_cancel_of_more_than_one_call_holds(do):
    jids = put(do, "mail", 700)
    do(lambda: do.client.queues["mail"].put("app.Job", jid="last", depends=jids[:400]))
    assert do(lambda: do.client.bulk_cancel([*jids, "last"])) == [*jids, "last"]
    assert do(do.client.queues["mail"].length) == 0


def test_nothing_to_cancel_or_to_forget_is_no_call(do):
    assert do(lambda: do.client.bulk_cancel([])) == []
    assert do(lambda: do.client.deregister_workers()) == 0
    assert not do.client.shard.met


def test_workers_are_taken_off_the_list(do):
    for name in ("w1", "w2", "w3"):
        do.client.worker_name = name
        put(do, "mail", 1)
        job = do(do.client.queues["mail"].pop)
        do(job.heartbeat)
    assert do(lambda: do.client.deregister_workers("w1", "w3", "nobody")) == 2
    assert [worker.name for worker in do(do.client.workers.all)] == ["w2"]
    assert do(lambda: do.client.deregister_workers(*[f"n{number}" for number in range(1000)])) == 0


def test_stats_are_those_of_the_queue(do):
    put(do, "mail", 2)
    job = do(do.client.queues["mail"].pop)
    do(job.complete)
    found = do(lambda: do.client.stats.get("mail"))
    assert found == do(lambda: do.client.queues["mail"].stats())
    assert (found["run"]["count"], len(found["run"]["histogram"])) == (1, 148)
    assert do(lambda: do.client.stats.get("mail", "2020-02-02"))["run"]["count"] == 0
    assert do(lambda: do.client.stats.get(do.client.queues["mail"], 86_400))["run"]["count"] == 0


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (lambda client: client.bulk_cancel("abc"), "jids must be a list"),
        (lambda client: client.bulk_cancel(["a", 7]), "jids must be text"),
        (lambda client: client.unfail_all(0), "batch_size"),
        (lambda client: client.unfail_all(batch_size="many"), "batch_size"),
        (lambda client: client.deregister_workers("w", 7), "worker must be text"),
        (lambda client: client.stats.get("mail", "yesterday"), "date"),
        (lambda client: client.stats.get(""), "queue"),
    ],
)
def test_bad_arguments_are_named_before_anything_is_sent(do, ask, why):
    with pytest.raises(UsageError, match=why):
        do(lambda: ask(do.client))
    assert not do.client.shard.met


def test_several_leases_are_taken_away_in_one_call(do):
    put(do, "mail", 3)
    jids = [job.jid for job in do(lambda: do.client.queues["mail"].pop(3))]
    do(lambda: do.client("job.timeout", *jids))
    assert [job.state for job in do(lambda: do.client.jobs.get(*jids))] == ["stalled"] * 3


def test_slots_of_a_throttle_are_freed_by_hand(do):
    do(lambda: do.client.throttles["printer"].set_maximum(1))
    first, second = put(do, "mail", 2, throttles=["printer"])
    do(lambda: do.client.queues["mail"].pop(2))
    do(lambda: do.client("throttle.release", "printer", first))
    assert do(lambda: do.client.throttles["printer"].locks()) == []
    assert do(do.client.queues["mail"].pop).jid == second


def test_a_minted_jid_is_a_uuid_of_version_7_in_32_letters():
    first, second = holdfast.generate_jid(), holdfast.generate_jid()
    assert re.fullmatch(r"[0-9a-f]{12}7[0-9a-f]{19}", first)
    assert first < second


@pytest.mark.parametrize("part", ["queues", "jobs", "throttles", "recurring", "topics"])
def test_what_has_a_thing_for_whatever_name_is_no_collection_and_python_says_so(do, part):
    named = getattr(do.client, part)
    with pytest.raises(TypeError, match=f"'{type(named).__name__}' object is not iterable"):
        list(named)
    with pytest.raises(TypeError, match=r"not a container|not iterable"):
        assert "mail" in named


def test_an_async_client_outside_of_a_loop_says_where_it_is_used():
    client = holdfast.AsyncClient("unix:///nowhere")
    with pytest.raises(UsageError, match=r"no event loop is running: .* asyncio.run"):
        client.queues["mail"].put("app.Job")


def test_help_tells_which_parts_a_client_has(do):
    shown = pydoc.render_doc(type(do.client), renderer=pydoc.plaintext)
    for part in (
        "audit",
        "config",
        "events",
        "queue_patterns",
        "recurring",
        "throttles",
        "topics",
        "upkeep",
        "workers",
    ):
        assert re.search(rf"\b{part} = <(Async)?\w+ of the client: holdfast\.client\.", shown), part
