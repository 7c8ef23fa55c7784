"""Unique function jobs: which calls count as the same, and what becomes of a second put; for both clients."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest

from holdfast import NotUnique, UsageError


def bill(customer: int, month: str = "may", *, dry: bool = False) -> str:
    return f"{customer} {month}"


def data(do, handle) -> Any:
    [found] = do(lambda: do.client.jobs.get(handle.jid))
    return json.loads(found.facts.data)


def test_the_same_call_however_it_is_written_is_one_job(do):
    job = do.client.job(queue="q", unique=True)(bill)
    first = do(lambda: job.put(1))
    again = do(lambda: job.put(customer=1, month="may", dry=False))
    other = do(lambda: job.put(2))
    assert (first.is_new, again.is_new, other.is_new) == (True, False, True)
    assert again.jid == first.jid != other.jid


def test_both_handles_wait_for_the_same_result(do, works):
    job = do.client.job(queue="q", unique=True)(bill)
    handles = [do(lambda: job.put(1)) for _ in range(2)]
    works.all()
    assert [do(lambda one=one: one.result(30)) for one in handles] == ["1 may"] * 2
    assert do(lambda: job.put(1)).is_new


def test_some_arguments_may_make_the_key(do):
    job = do.client.job(queue="q", unique=("customer",))(bill)
    assert do(lambda: job.put(1, "june")).jid == do(lambda: job.put(1, "may")).jid


def test_a_function_may_make_the_key(do):
    job = do.client.job(queue="q", unique=lambda customer, *_, **__: f"half {customer // 2}")(bill)
    assert do(lambda: job.put(2)).jid == do(lambda: job.put(3)).jid != do(lambda: job.put(4)).jid


def test_a_conflict_may_be_an_error(do):
    job = do.client.job(queue="q", unique=True, on_conflict="raise")(bill)
    first = do(lambda: job.put(1))
    with pytest.raises(NotUnique, match=first.jid):
        do(lambda: job.put(1))


def test_a_debounced_job_starts_after_its_last_put_with_that_ones_arguments(do):
    job = do.client.job(queue="q", unique=("customer",), debounce=timedelta(seconds=5), debounce_max=60)(bill)
    first = do(lambda: job.put(1, "may"))
    last = do(lambda: job.put(1, "june"))
    assert last.jid == first.jid
    assert data(do, first)["args"] == [1, "june"]
    assert do(lambda: first.state) == "scheduled"


def test_many_puts_in_one_call_are_unique_among_themselves(do):
    job = do.client.job(queue="q", unique=True)(bill)
    standing = do(lambda: job.put(1))
    handles = do(lambda: job.put_many([(1,), (2,), (2,), (3,)]))
    assert [one.is_new for one in handles] == [False, True, False, True]
    assert handles[0].jid == standing.jid
    assert handles[1].jid == handles[2].jid


def test_what_becomes_of_a_conflict_is_an_option_of_many_puts_too(do):
    job = do.client.job(queue="q", unique=("customer",), debounce=5)(bill)
    first, last = do(lambda: job.put_many([(1, "may"), (1, "june")]))
    assert (last.jid, last.is_new, data(do, first)["args"]) == (first.jid, False, [1, "june"])
    queue = do.client.queues["q"]
    items = [{"klass": "k", "unique_key": "a"}, {"klass": "k", "unique_key": "a"}]
    with pytest.raises(NotUnique):
        do(lambda: queue.put_many(items, on_conflict="raise"))
    with pytest.raises(UsageError, match="on_conflict needs a unique_key"):
        do(lambda: queue.put_many([("k", {})], on_conflict="raise"))


def test_the_handle_of_a_put_in_a_batch_is_of_the_job_that_stands(client) -> None:
    job = client.job(queue="q", unique=True)(bill)
    standing = job.put(1)
    with client.batch() as batch:
        kept, new, same = job.put(1), job.put(2), job.put(2)
        named = job.options(jid="mine").put(1)
        refused = job.options(on_conflict="raise").put(1)
        assert [one.is_new for one in (kept, new, same, named)] == [None] * 4
        batch.send()
        assert isinstance(batch.refused.pop(refused.jid), NotUnique)
    assert [one.is_new for one in (kept, new, same, named)] == [False, True, False, False]
    assert [kept.jid, same.jid, named.jid] == [standing.jid, new.jid, standing.jid]
    assert refused.is_new is None
    assert kept.job.jid == standing.jid
    assert kept.state == "waiting"


def test_a_put_on_completion_does_not_know_whether_another_job_will_hold_its_key(client) -> None:
    job = client.job(queue="q", unique=True)(bill)
    client.queues["first"].put("K")
    first = client.queues["first"].pop()
    assert first is not None
    with first.on_completion():
        handle = job.put(1)
    assert handle.is_new is None
    first.complete()
    assert handle.state == "waiting"


def test_a_key_is_an_option_of_any_put(do):
    queue = do.client.queues["q"]
    jid = do(lambda: queue.put("shop.Bill", {}, unique_key="1", unique_for=timedelta(minutes=1)))
    assert do(lambda: queue.put("shop.Bill", {}, unique_key="1")) == jid
    jids = do(lambda: queue.put_many([{"klass": "shop.Bill", "unique_key": key} for key in "121"]))
    assert jids[0] == jids[2] == jid


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"unique": ("nobody",)}, "bill has no argument 'nobody'"),
        ({"unique": "customer"}, "names of arguments"),
        ({"unique": 3}, "expected True"),
        ({"unique": ()}, "at least"),
        ({"unique": asyncio.sleep}, "not async"),
        ({"unique_for": "start"}, "unique_for needs unique=True"),
        ({"debounce": 5}, "debounce needs unique=True"),
        ({"unique": True, "unique_for": "never"}, "'end', 'start' or seconds"),
        ({"unique": True, "on_conflict": "wait"}, "keep, raise, replace, cancel"),
        ({"unique": True, "debounce": 5, "delay": 3}, "debounce is a delay"),
        ({"unique": True, "debounce": 5, "on_conflict": "raise"}, "debounce is a delay"),
    ],
)
def test_options_that_do_not_fit_are_refused_where_the_job_is_defined(
    do, options: dict[str, Any], words: str
):
    with pytest.raises(UsageError, match=words):
        do.client.job(queue="q", **options)(bill)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"unique_for": "start"}, "unique_for needs a unique_key"),
        ({"on_conflict": "raise"}, "on_conflict needs a unique_key"),
        ({"unique_key": ""}, "unique_key"),
        ({"unique_key": "a", "debounce_max": 5}, "debounce_max needs"),
    ],
)
def test_options_of_a_put_that_do_not_fit_are_refused(do, options: dict[str, Any], words: str):
    with pytest.raises(UsageError, match=words):
        do(lambda: do.client.queues["q"].put("k", {}, **options))


def test_a_function_that_makes_no_key_is_refused_before_the_put(do):
    job = do.client.job(queue="q", unique=lambda *_, **__: "")(bill)
    with pytest.raises(UsageError, match="must return a text"):
        do(lambda: job.put(1))


def raises(*args: object, **kwargs: object) -> str:
    raise ValueError("no\nkey")


@pytest.mark.parametrize("made", [None, 3, b"a", ["a"], raises])
def test_a_function_that_makes_no_text_puts_none_of_many(do, made: Any):
    job = do.client.job(queue="q", unique=raises if made is raises else lambda *_, **__: made)(bill)
    with pytest.raises(
        UsageError, match="raised ValueError: no.*key" if made is raises else "must return a text"
    ):
        do(lambda: job.put_many([1, 2]))
    assert do(lambda: do.client.queues["q"].length()) == 0


@pytest.mark.parametrize("key", ["a" * 10_000_000, "\0", "\ud800", "ä\n "])
def test_a_function_may_make_any_text(do, key: str):
    job = do.client.job(queue="q", unique=lambda *_, **__: key)(bill)
    assert do(lambda: job.put(1)).jid == do(lambda: job.put(2)).jid


@pytest.mark.parametrize("key", ["a" * 10_000_000, "a\0b", "\ud800", 3, b"a", ["a"]])
def test_a_key_that_is_no_name_is_refused_and_nothing_is_put(do, key: Any):
    queue = do.client.queues["q"]
    with pytest.raises(UsageError, match="unique_key"):
        do(lambda: queue.put_many([("k", {}), {"klass": "k", "unique_key": key}]))
    assert do(lambda: queue.length()) == 0
