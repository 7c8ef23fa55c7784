"""Flows whose jobs are skipped, are rescued, or return flows themselves, put by both clients."""

from typing import Any

import pytest

from holdfast import FlowFailure, FlowOutcome, Skip, UsageError, chain, group
from holdfast.client.calls import Call, Group
from holdfast.commands.admin import ConfigSet
from holdfast.errors import JobCancelled, JobFailed


class Orders:
    """Function jobs of one client, and its calls."""

    def __init__(self, do: Any, works: Any) -> None:
        self.do, self.work = do, works.all
        self.broken = True
        app = do.client

        @app.job(name="find", queue="q")
        def find(count: int) -> list[int]:
            if count == 0:
                raise Skip("no orders today")
            return list(range(count))

        @app.job(name="maybe", queue="q")
        def maybe(count: int) -> int | Skip:
            return count or Skip("zero")

        @app.job(name="total", queue="q")
        def total(numbers: list[int]) -> int:
            if numbers and self.broken and numbers[-1] == 12:
                raise ValueError("unlucky")
            return sum(numbers)

        @app.job(name="refund", queue="q")
        def refund(failure: FlowFailure, order: int) -> str:
            return f"{order}: {failure.group}"

        @app.job(name="report", queue="q")
        def report(outcome: FlowOutcome[int]) -> str:
            return "ok" if outcome.failure is None else f"{outcome.failure.group}: {outcome.failure.message}"

        @app.job(name="expand", queue="q", result_keep=600)
        def expand(count: int) -> Call[int]:
            return find.call(count).then(total)

        @app.job(name="spread", queue="q")
        async def spread(count: int) -> Group[int]:
            return group(total.call([n]) for n in range(count))

        @app.job(name="deep", queue="q")
        def deep(levels: int) -> Call[int] | int:
            return deep.call(levels - 1) if levels else 7

        @app.job(name="double", queue="q")
        def double(number: int) -> int:
            return 2 * number

        self.find, self.maybe, self.total, self.refund, self.report = find, maybe, total, refund, report
        self.expand, self.spread, self.deep, self.double = expand, spread, deep, double

    def put(self, flow: Any, **options: Any) -> Any:
        return self.do(lambda: self.do.client.put(flow, **options))

    def result(self, handle: Any) -> Any:
        return self.do(lambda: handle.result(30))

    def part(self, handle: Any, number: int) -> Any:
        return self.do(handle.parts)[number]


@pytest.fixture
def orders(do: Any, works: Any) -> Orders:
    return Orders(do, works)


def test_steps_behind_a_job_that_skips_are_not_run(orders: Orders):
    handle = orders.put(chain(orders.find.call(0), orders.total, orders.double), jid="quiet")
    orders.work()
    with pytest.raises(JobCancelled, match="no orders today"):
        orders.result(handle)
    assert orders.do(lambda: handle.counts) == {"complete": 1, "gone": 2}
    returned = orders.put(orders.maybe.call(0).then(orders.report, on_failure="run"))
    orders.work()
    assert orders.result(returned) == "skipped: zero"


def test_a_group_of_which_one_call_skips_is_skipped(orders: Orders):
    handle = orders.put(group(orders.maybe.call(n) for n in (1, 0, 2)).then(orders.total))
    orders.work()
    with pytest.raises(JobCancelled, match="zero"):
        orders.result(handle)
    large = orders.put(group(orders.maybe.call(n) for n in (*range(1, 600), 0)).then(orders.total))
    orders.work()
    with pytest.raises(JobCancelled, match="zero"):
        orders.result(large)


def test_a_job_that_nothing_follows_may_skip_too(orders: Orders):
    handle = orders.put(orders.maybe.options(result_keep=60).call(0))
    orders.work()
    assert orders.result(handle) is None


def test_what_is_rescued_runs_only_where_the_call_did_not_complete(orders: Orders):
    call = orders.total.call([12]).on_failure(orders.refund.partial(order=7))
    bad = orders.put(call, jid="bad")
    good = orders.put(
        orders.total.call([1]).on_failure(orders.refund.partial(order=8)).then(orders.double), jid="good"
    )
    orders.work()
    with pytest.raises(JobFailed, match="unlucky"):
        orders.result(bad)
    assert orders.result(orders.part(bad, 1)) == "7: q-ValueError"
    assert orders.result(good) == 2
    assert orders.do(lambda: good.counts) == {"complete": 2, "gone": 1}


def test_what_rescues_a_chain_runs_for_any_failure_in_it(orders: Orders):
    call = chain(orders.find.call(13), orders.total, orders.double).on_failure(orders.refund.partial(order=1))
    handle = orders.put(call)
    orders.work()
    assert orders.result(orders.part(handle, 3)) == "1: q-ParentFailed"
    orders.broken = False
    orders.do(handle.retry)
    orders.work()
    assert orders.result(handle) == 2 * sum(range(13))


def test_a_job_that_returns_a_flow_has_its_result(orders: Orders):
    alone = orders.do(lambda: orders.expand.put(4))
    chained = orders.put(orders.expand.call(5).then(orders.double), jid="chained")
    deep = orders.put(orders.deep.call(3).then(orders.double))
    spread = orders.put(orders.spread.call(3).then(orders.total))
    orders.work()
    assert [orders.result(one) for one in (alone, chained, deep, spread)] == [6, 20, 14, 3]
    flow = orders.do(lambda: orders.do.client.flow("chained-0.1"))
    assert orders.do(lambda: flow.state) == "complete"


def test_a_job_fails_with_the_flow_that_it_returned_and_completes_when_that_is_retried(orders: Orders):
    handle = orders.do(lambda: orders.expand.put(13))
    orders.work()
    with pytest.raises(JobFailed, match="unlucky"):
        orders.result(handle)
    orders.broken = False
    flow = orders.do(lambda: orders.do.client.flow(f"{handle.jid}.1"))
    assert orders.do(flow.retry) == 1
    orders.work()
    again = orders.do(lambda: orders.do.client.result_of(handle.jid, 30))
    assert again == b"78"


def test_a_job_that_returns_what_no_flow_can_be_fails_and_says_why(orders: Orders):
    @orders.do.client.job(name="wrong", queue="q", result_keep=60)
    def wrong(count: int) -> Group[int]:
        return group(orders.total.call([n]) for n in range(count))

    handle = orders.do(lambda: wrong.put(600))
    orders.work()
    with pytest.raises(JobFailed, match="up to 512 jobs"):
        orders.result(handle)


def test_a_rescue_that_cannot_be_is_refused(orders: Orders):
    with pytest.raises(UsageError, match="order"):
        orders.total.call([1]).on_failure(orders.refund)
    with pytest.raises(UsageError, match="a step is a function job"):
        orders.total.call([1]).on_failure(7)
    calls = (orders.total.call([n]).on_failure(orders.refund.partial(order=n)) for n in range(600))
    with pytest.raises(UsageError, match="on_failure"):
        orders.put(group(calls))


def test_a_recurring_job_that_returns_a_flow_runs_until_that_has_ended(stopped: Any, orders: Orders):
    app = orders.do.client

    @app.job(name="slow", queue="elsewhere")
    def slow(number: int) -> int:
        return number

    @app.job(name="nightly", queue="q")
    def nightly() -> Call[int]:
        return slow.call(1).then(orders.double)

    made = orders.do(lambda: nightly.every(60, overlap="skip").put())
    orders.work()
    for _ in range(3):
        stopped.advance(minutes=1)
        orders.work()
    counts = orders.do(lambda: app.recurring[made.jid]).facts
    assert [counts.count, len(orders.do(lambda: app.queues["q"].jobs.depends()))] == [1, 2]
    assert orders.do(lambda: app.queues["elsewhere"].pop()).jid.endswith(".1-0")


class NoOrders(Skip):
    """A kind of Skip of a program."""


def test_a_kind_of_skip_skips_too_and_its_reason_may_be_anything(orders: Orders):
    @orders.do.client.job(name="quiet", queue="q")
    def quiet() -> int:
        raise NoOrders(ValueError("a holiday"))

    handle = orders.put(quiet.call().then(orders.double))
    orders.work()
    with pytest.raises(JobCancelled, match="a holiday"):
        orders.result(handle)


def test_a_flow_that_is_looked_up_ends_with_its_last_step_not_with_what_rescues_that(orders: Orders):
    orders.put(
        orders.total.call([1]).then(orders.double).on_failure(orders.refund.partial(order=8)), jid="good"
    )
    orders.work()
    found = orders.do(lambda: orders.do.client.flow("good"))
    assert [orders.do(lambda: found.state), orders.result(found)] == ["complete", 2]


def test_a_job_that_returns_a_group_without_calls_has_an_empty_list(orders: Orders):
    handle = orders.put(orders.spread.options(result_keep=60).call(0))
    orders.work()
    assert orders.result(handle) == []


def test_a_job_that_returns_what_waits_for_an_unknown_job_fails_at_once(orders: Orders):
    @orders.do.client.job(name="late", queue="q")
    def late() -> Call[int]:
        return orders.double.call(2).after("nobody")

    handle = orders.put(late.call())
    orders.work()
    with pytest.raises(JobFailed, match="nobody does not exist"):
        orders.result(handle)


def test_a_job_that_returns_a_group_with_one_call_twice_fails_and_says_why(orders: Orders):
    @orders.do.client.job(name="twice", queue="q")
    def twice() -> Group[int]:
        return group([orders.double.call(2)] * 2)

    handle = orders.put(twice.call())
    orders.work()
    with pytest.raises(JobFailed, match="has each call once"):
        orders.result(handle)


def test_a_job_that_returns_a_flow_is_put_again_under_its_jid_when_it_is_not_kept(orders: Orders):
    orders.do(lambda: orders.do.client.run(ConfigSet("jobs-history-count", "0")))
    orders.do(lambda: orders.expand.options(jid="nightly").put(2))
    orders.work()
    handle = orders.do(lambda: orders.expand.options(jid="nightly").put(4))
    orders.work()
    assert orders.result(handle) == 6
