"""Flows under workers for tests: drained, inline, and on a clock that the test moves."""

from typing import Any

import pytest

from holdfast import Call, FlowOutcome, JobFailed, Results, chain, group
from holdfast.testing import assert_not_put, assert_put


class Shop:
    """Function jobs of one crew."""

    def __init__(self, crew: Any) -> None:
        self.crew, self.done = crew, list[Any]()
        self.is_broken = False

        @crew.client.job(queue="q", name="flows.double", retries=1, backoff=3600)
        def double(number: int) -> int:
            self.done.append(number)
            if self.is_broken:
                raise ValueError("broken")
            return number * 2

        @crew.client.job(queue="r", name="flows.total")
        async def total(numbers: list[int]) -> int:
            self.done.append(numbers)
            return sum(numbers)

        @crew.client.job(queue="r", name="flows.report")
        def report(outcomes: list[FlowOutcome[int]]) -> list[bool]:
            return [one.ok for one in outcomes]

        @crew.client.job(queue="r", name="flows.pages")
        def pages(numbers: Results[int]) -> int:
            return sum(numbers)

        @crew.client.job(queue="q", name="flows.nested")
        def nested(number: int) -> Call[int]:
            return chain(double.call(number), double)

        self.nested = nested
        self.double, self.total, self.report, self.pages = double, total, report, pages

    def put(self, flow: Any, **options: Any) -> Any:
        return self.crew(lambda: self.crew.client.put(flow, **options))

    def result(self, handle: Any) -> Any:
        return self.crew(lambda: handle.result(0))


@pytest.fixture
def shop(crew: Any) -> Shop:
    return Shop(crew)


def test_a_drain_performs_a_flow_to_its_end(shop: Shop) -> None:
    handle = shop.put(group(chain(shop.double.call(n), shop.double) for n in (1, 2)).then(shop.total))
    performed = shop.crew(lambda: shop.crew.worker.drain())
    assert [one.state for one in performed] == ["complete"] * 5
    assert (shop.done[-1], shop.result(handle)) == ([4, 8], 12)
    assert shop.crew(lambda: handle.state) == "complete"


def test_an_inline_put_of_a_flow_performs_all_of_it(shop: Shop) -> None:
    handle = shop.crew.inline(
        lambda: shop.crew.client.put(group([shop.double.call(1), shop.double.call(2)]).then(shop.total))
    )
    assert shop.result(handle) == 6
    assert shop.done == [1, 2, [2, 4]]


def test_a_large_group_is_performed_inline_and_by_a_drain(shop: Shop) -> None:
    many = [shop.double.call(n) for n in range(600)]
    handle = shop.put(group(many).then(shop.pages))
    shop.crew(lambda: shop.crew.worker.drain())
    assert shop.result(handle) == 2 * sum(range(600))
    handle = shop.crew.inline(lambda: shop.crew.client.put(group(many).then(shop.pages)))
    assert shop.result(handle) == 2 * sum(range(600))


def test_a_failure_in_a_flow_is_raised_from_what_its_code_raised(shop: Shop) -> None:
    shop.is_broken = True
    handle = shop.put(shop.double.call(1).then(shop.double))
    with pytest.raises(JobFailed) as caught:
        shop.crew(lambda: shop.crew.worker.run_for(hours=2))
    assert isinstance(caught.value.__cause__, ValueError)
    assert shop.crew(lambda: handle.counts) == {"failed": 2}
    shop.is_broken = False
    assert shop.crew(lambda: handle.retry()) == 2
    shop.crew(lambda: shop.crew.worker.drain())
    assert shop.result(handle) == 4


def test_a_step_after_retries_runs_when_the_clock_has_moved(shop: Shop, still: Any) -> None:
    shop.is_broken = True
    handle = shop.put(group([shop.double.call(1)]).then(shop.report, on_failure="run"))
    assert [one.state for one in shop.crew(lambda: shop.crew.worker.drain())] == ["scheduled"]
    performed = shop.crew(lambda: shop.crew.worker.run_for(hours=2, raises=False))
    assert [one.state for one in performed] == ["failed", "complete"]
    assert shop.result(handle) == [False]


def test_a_job_that_returns_a_flow_ends_with_it(shop: Shop) -> None:
    handle = shop.put(shop.nested.call(1).then(shop.double))
    performed = shop.crew(lambda: shop.crew.worker.drain())
    assert [one.state for one in performed] == ["depends", "complete", "complete", "complete"]
    assert shop.result(handle) == 8
    assert shop.result(shop.crew.inline(lambda: shop.nested.put(2))) == 8


def test_the_jobs_of_a_flow_are_put(shop: Shop) -> None:
    shop.put(shop.double.call(3).then(shop.double))
    assert assert_put(shop.crew.client, shop.double, 3).state == "waiting"
    assert_not_put(shop.crew.client, shop.total)
