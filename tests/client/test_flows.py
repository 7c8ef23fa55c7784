"""Flows: chains, groups and joins of function jobs, put by both clients."""

from typing import Any

import pytest

import holdfast
from holdfast import FlowOutcome, UsageError, chain, group, join
from holdfast.commands.flows import FlowClose
from holdfast.commands.jobs import JobGet
from holdfast.errors import JobExists, JobFailed, JobNotFound


class Shop:
    """Function jobs of one client, and its calls."""

    def __init__(self, do: Any, works: Any) -> None:
        self.do, self.work = do, works.all
        self.broken = True
        app = do.client

        @app.job(name="fetch", queue="q")
        def fetch(url: str) -> list[int]:
            return [len(url), 2]

        @app.job(name="parse", queue="q")
        def parse(numbers: list[int], factor: int = 1) -> int:
            return sum(numbers) * factor

        @app.job(name="store", queue="q", result_keep=0)
        def store(value: int, *, table: str) -> str:
            return f"{table}={value}"

        @app.job(name="count", queue="q")
        def count(page: int) -> int:
            if page == 13 and self.broken:
                raise ValueError("unlucky")
            return page * 10

        @app.job(name="total", queue="q")
        def total(counts: list[int]) -> int:
            return sum(counts)

        @app.job(name="summary", queue="q")
        def summary(outcomes: list[FlowOutcome[int]]) -> list[str]:
            return [
                str(one.result) if one.failure is None else f"{one.failure.group}: {one.ok}"
                for one in outcomes
            ]

        @app.job(name="label", queue="q")
        def label(text: str) -> str:
            return text.upper()

        @app.job(name="invoice", queue="q")
        def invoice(user: int, cart: str) -> str:
            return f"{user} {cart}"

        self.fetch, self.parse, self.store, self.count = fetch, parse, store, count
        self.total, self.summary, self.label, self.invoice = total, summary, label, invoice

    def put(self, flow: Any, **options: Any) -> Any:
        return self.do(lambda: self.do.client.put(flow, **options))

    def result(self, handle: Any) -> Any:
        return self.do(lambda: handle.result(30))

    def counts(self, handle: Any) -> dict[str, int]:
        return self.do(lambda: handle.counts)

    def state(self, handle: Any) -> str:
        return self.do(lambda: handle.state)


@pytest.fixture
def shop(do: Any, works: Any) -> Shop:
    return Shop(do, works)


def test_a_chain_passes_each_result_on_and_keeps_what_is_not_kept_for_the_step_behind(shop: Shop):
    flow = chain(
        shop.fetch.call("http://x"), shop.parse.partial(factor=3), shop.store.partial(table="t"), shop.label
    )
    handle = shop.put(flow, jid="nightly")
    assert (handle.jid, handle.jids, handle.is_new) == ("nightly", [f"nightly-{n}" for n in range(4)], True)
    assert shop.state(handle) == "running"
    shop.work()
    assert shop.result(handle) == "T=30"
    assert (shop.state(handle), shop.counts(handle), shop.do(lambda: handle.progress)) == (
        "complete",
        {"complete": 4},
        1.0,
    )


def test_a_group_passes_the_list_of_its_results_in_the_order_of_the_calls(shop: Shop):
    first = shop.put(group(shop.count.call(page) for page in (3, 1, 2)).then(shop.total))
    second = shop.put(shop.count.map([5, 6]))
    third = shop.put(
        group([chain(shop.fetch.call(text), shop.parse) for text in ("a", "bb")]).then(shop.total)
    )
    shop.work()
    assert (shop.result(first), shop.result(second), shop.result(third)) == (60, [50, 60], 7)


def test_an_empty_group_runs_what_follows_at_once(shop: Shop):
    handle = shop.put(group(shop.count.call(page) for page in ()).then(shop.total))
    shop.work()
    assert shop.result(handle) == 0


def test_two_different_results_come_in_their_places(shop: Shop):
    handle = shop.put(join(shop.count.call(7), shop.store.call(1, table="cart")).then(shop.invoice))
    shop.work()
    assert shop.result(handle) == "70 cart=1"


def test_an_order_without_a_result_holds_for_the_first_jobs_of_a_flow(shop: Shop):
    before = shop.put(shop.count.call(1))
    later = chain(shop.fetch.call("x"), shop.parse).after(shop.count.call(2), before.jids[0])
    handle = shop.put(group([later, shop.count.call(3)]).after(shop.count.call(4)))
    jobs = [shop.do(lambda part=part: part.job) for part in shop.do(handle.parts)]
    [fetch] = [job for job in jobs if job.klass_name == "fetch"]
    assert len(fetch.dependencies) == 3
    shop.work()
    assert shop.result(handle) == [3, 30]


def test_a_failure_fails_what_follows_and_a_retry_of_the_flow_ends_it(shop: Shop):
    handle = shop.put(shop.count.map([1, 13]).then(shop.total))
    shop.work()
    assert (shop.state(handle), shop.counts(handle)) == ("failed", {"complete": 1, "failed": 2})
    with pytest.raises(
        JobFailed, match=f"{handle.jid}-1 did not complete: q-ValueError: ValueError: unlucky"
    ):
        shop.result(handle)
    shop.broken = False
    assert shop.do(lambda: handle.retry()) == 2
    assert shop.state(handle) == "running"
    shop.work()
    assert shop.result(shop.do(lambda: shop.do.client.flow(handle.jid))) == 140


def test_a_step_may_run_whatever_became_of_the_calls_before_it(shop: Shop):
    handle = shop.put(shop.count.map([1, 13]).then(shop.summary, on_failure="run"))
    shop.work()
    assert shop.result(handle) == ["10", "q-ValueError: False"]


def test_a_step_may_wait_until_a_failed_call_is_retried(shop: Shop):
    handle = shop.put(shop.count.call(13).then(shop.count, on_failure="wait"))
    shop.work()
    assert shop.counts(handle) == {"failed": 1, "depends": 1}
    shop.broken = False
    assert shop.do(lambda: handle.retry()) == 1
    shop.work()
    assert shop.result(handle) == 1300


def test_a_flow_is_cancelled_as_a_whole(shop: Shop):
    handle = shop.put(shop.count.map(range(150)).then(shop.total))
    assert shop.do(lambda: handle.cancel()) == 151
    assert (shop.state(handle), shop.counts(handle)) == ("gone", {"gone": 151})


def test_the_same_flow_is_put_once_and_another_one_under_its_jid_is_refused(shop: Shop):
    flow = chain(shop.fetch.call("x"), shop.parse)
    assert shop.put(flow, jid="f").is_new
    again = shop.put(flow, jid="f")
    assert not again.is_new
    assert shop.counts(again) == {"waiting": 1, "depends": 1}
    with pytest.raises(JobExists, match="flow of 2 jobs"):
        shop.put(shop.count.call(1), jid="f")
    with pytest.raises(JobNotFound):
        shop.do(lambda: shop.do.client.flow("other"))


def test_a_chain_may_be_longer_than_the_stack_of_python(shop: Shop):
    call = shop.count.call(1)
    for _ in range(511):
        call = call.then(shop.count)
    handle = shop.put(call)
    assert len(handle.jids) == 512
    with pytest.raises(UsageError, match="at most 512 jobs"):
        shop.put(call.then(shop.count))
    assert shop.do(lambda: handle.cancel()) == 512


def test_a_failure_goes_down_a_long_chain(shop: Shop):
    call = shop.count.call(13)
    for _ in range(511):
        call = call.then(shop.count)
    handle = shop.put(call)
    shop.work()
    assert shop.counts(handle) == {"failed": 512}


def test_bad_flows_are_refused_before_anything_is_written(shop: Shop):
    @shop.do.client.job(name="only", queue="q", unique=True)
    def only(page: int) -> int:
        return page

    call = shop.count.call(1)
    bad = [
        (lambda: shop.put("count"), "expected a call, chain"),
        (lambda: chain("x", shop.parse), "a flow begins with a call"),
        (lambda: call.then(print), "a step is a function job"),
        (lambda: call.then(shop.count.call(2)), "a step is a function job"),
        (lambda: call.then(shop.count, on_failure="never"), "on_failure: expected one of"),
        (lambda: call.after(7), "after: expected calls"),
        (lambda: shop.put(group([])), "this group is empty"),
        (lambda: shop.put(join(call, call).then(shop.invoice)), "waits for the same call twice"),
        (lambda: shop.put(shop.count.options(jid="x").call(1)), "a job of a flow has no jid"),
        (lambda: shop.put(only.call(1)), "only is unique"),
        (lambda: shop.put(call, jid=""), "jid"),
        (
            lambda: shop.do(lambda: shop.count.put_many([call.then(shop.count)])),
            "is part of a flow: put it by app.put",
        ),
        (lambda: shop.do.client.schedule(call.after("x"), every=60), "is part of a flow: put it by app.put"),
        (lambda: shop.count.call(1).then(shop.store), "requires the argument 'table'"),
    ]
    for wrong, sentence in bad:
        with pytest.raises(UsageError, match=sentence):
            wrong()
    with pytest.raises(JobNotFound):
        shop.put(call.after("nobody"))
    assert shop.do(lambda: shop.do.client.queues["q"].length()) == 0


def test_calls_keep_the_name_of_release_0_2(shop: Shop):
    assert len(shop.do(lambda: shop.count.put_many([shop.count.bind(1)]))) == 1
    assert holdfast.chain is chain


def test_a_job_whose_result_is_passed_on_but_not_kept_needs_a_worker_that_sends_it(shop: Shop):
    handle = shop.put(shop.store.call(1, table="t").then(shop.label), jid="kept")
    plain = shop.put(chain(shop.fetch.call("x"), shop.parse))
    client = shop.do.client
    [first, last] = shop.do(lambda: client.run(JobGet(["kept-0", "kept-1"])))
    assert [first.options.get("needs"), last.options.get("needs")] == [1, None]
    assert [job.options for job in shop.do(lambda: client.run(JobGet(plain.jids)))] == [{}, {}]
    shop.work()
    assert shop.result(handle) == "T=1"


def test_what_is_refused_about_a_flow_is_one_sentence(shop: Shop):
    shop.put(shop.count.call(1), jid="twice")
    with pytest.raises(JobExists, match=r"^twice is a flow of 1 jobs$"):
        shop.put(chain(shop.fetch.call("x"), shop.parse), jid="twice")
    shop.do(lambda: shop.do.client.queues["q"].put("k", {}, jid="taken-0"))
    with pytest.raises(JobExists, match=r"^a job has the jid of one of flow taken$"):
        shop.put(shop.count.call(1), jid="taken")
    with pytest.raises(JobNotFound, match=r"^flow twice has no large group$"):
        shop.do(lambda: shop.do.client.run(FlowClose("twice")))
