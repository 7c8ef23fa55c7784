"""Flows with a group of any number of jobs, put by both clients."""

from collections.abc import Iterator
from typing import Any

import pytest

from holdfast import AsyncClient, FlowOutcome, Results, UsageError, chain, group, join
from holdfast.errors import FlowClosed, JobFailed, QueueFull

MANY = 600


class Mill:
    """Function jobs of one client, and its calls."""

    def __init__(self, do: Any, works: Any) -> None:
        self.do, self.work = do, works.all
        self.broken = True
        app = do.client

        @app.job(name="grind", queue="q")
        def grind(number: int) -> int:
            if number == 13 and self.broken:
                raise ValueError("unlucky")
            return number

        @app.job(name="total", queue="q")
        def total(numbers: list[int]) -> int:
            return sum(numbers)

        @app.job(name="paged", queue="q")
        def paged(numbers: Results[int]) -> list[int]:
            return [len(numbers), sum(numbers), sum(numbers)]

        @app.job(name="paged_async", queue="q")
        async def paged_async(numbers: Results[int]) -> int:
            return sum([one async for one in numbers])

        @app.job(name="report", queue="q")
        def report(outcomes: Results[FlowOutcome[int]]) -> list[int]:
            return [sum(one.ok for one in outcomes), sum(not one.ok for one in outcomes)]

        @app.job(name="pair", queue="q")
        def pair(first: Any, second: Any) -> Any:
            return [first, second]

        self.grind, self.total, self.paged, self.report = grind, total, paged, report
        self.pair = pair
        self.paged_async = paged_async

    def put(self, flow: Any, **options: Any) -> Any:
        return self.do(lambda: self.do.client.put(flow, **options))

    def result(self, handle: Any) -> Any:
        return self.do(lambda: handle.result(30))

    def numbers(self, count: int = MANY, first: int = 100) -> Iterator[Any]:
        return (self.grind.call(number) for number in range(first, first + count))


@pytest.fixture
def mill(do: Any, works: Any) -> Mill:
    return Mill(do, works)


def test_what_follows_a_group_of_any_number_of_calls_gets_all_results_in_order(mill: Mill):
    handle = mill.put(mill.grind.map(range(100, 100 + MANY)).then(mill.total), jid="big")
    assert [handle.is_new, len(handle.jids), mill.do(lambda: handle.state)] == [True, 2, "running"]
    mill.work()
    assert mill.result(handle) == sum(range(100, 100 + MANY))
    assert mill.do(lambda: handle.counts) == {"complete": MANY + 2}
    assert [mill.do(lambda: handle.state), mill.do(lambda: handle.progress)] == ["complete", 1.0]
    assert len(mill.do(handle.parts)) == MANY + 2
    found = mill.do(lambda: mill.do.client.flow("big"))
    assert mill.result(found) == sum(range(100, 100 + MANY))


def test_results_are_read_in_pieces_as_often_as_the_job_likes(mill: Mill):
    handle = mill.put(group(mill.numbers()).then(mill.paged))
    mill.work()
    assert mill.result(handle) == [MANY, sum(range(100, 100 + MANY)), sum(range(100, 100 + MANY))]
    also = mill.put(group(mill.numbers()).then(mill.paged_async))
    mill.work()
    assert mill.result(also) == sum(range(100, 100 + MANY))


def test_a_job_that_takes_results_in_pieces_may_follow_a_small_group(mill: Mill):
    handle = mill.put(group(mill.numbers(3)).then(mill.paged))
    mill.work()
    assert mill.result(handle) == [3, 303, 303]


def test_results_of_a_large_group_that_nothing_follows_are_a_list(mill: Mill):
    handle = mill.put(group(mill.numbers()), jid="bare")
    mill.work()
    expected = list(range(100, 100 + MANY))
    assert mill.result(handle) == expected
    assert mill.result(mill.do(lambda: mill.do.client.flow("bare"))) == expected


def test_calls_of_several_jobs_each_may_be_a_large_group(mill: Mill):
    chains = (chain(mill.grind.call(number), mill.grind) for number in range(300, 600))
    handle = mill.put(group(chains).then(mill.total))
    mill.work()
    assert mill.result(handle) == sum(range(300, 600))
    assert mill.do(lambda: handle.counts) == {"complete": 602}


def test_a_large_group_fails_what_follows_and_a_retry_of_the_flow_mends_it(mill: Mill):
    handle = mill.put(group(mill.numbers(first=0)).then(mill.total), jid="odd")
    mill.work()
    with pytest.raises(JobFailed, match="odd-15 did not complete: q-ValueError"):
        mill.result(handle)
    assert mill.do(lambda: handle.state) == "failed"
    mill.broken = False
    assert mill.do(handle.retry) == 3
    mill.work()
    assert mill.result(handle) == sum(range(MANY))


def test_what_runs_in_any_case_gets_an_outcome_of_each(mill: Mill):
    handle = mill.put(group(mill.numbers(first=0)).then(mill.report, on_failure="run"))
    mill.work()
    assert mill.result(handle) == [MANY - 1, 1]


@pytest.mark.parametrize("policy", ["fail", "run", "wait"])
def test_a_large_flow_is_cancelled_whole_before_what_follows_can_begin(mill: Mill, policy: str):
    step = mill.report if policy == "run" else mill.total
    handle = mill.put(group(mill.numbers()).then(step, on_failure=policy))
    assert mill.do(handle.cancel) == MANY + 2
    assert mill.do(lambda: handle.state) == "gone"
    mill.work()


def test_calls_are_added_to_an_open_flow_until_it_is_closed(mill: Mill):
    handle = mill.put(group([mill.grind.call(1)]).then(mill.total), jid="open", open=True)
    assert mill.do(lambda: handle.add(mill.numbers(700))) == 700
    mill.work()
    assert mill.do(lambda: handle.state) == "running"
    other = mill.put(group([mill.grind.call(1)]).then(mill.total), jid="open", open=True)
    assert other.is_new is False
    assert mill.do(lambda: other.add([mill.grind.call(2)])) == 1
    assert [mill.do(handle.close), mill.do(handle.close)] == [True, False]
    with pytest.raises(FlowClosed):
        mill.do(lambda: handle.add([mill.grind.call(3)]))
    mill.work()
    assert mill.result(handle) == 1 + sum(range(100, 800)) + 2


def test_an_open_flow_without_calls_runs_what_follows_when_it_is_closed(mill: Mill):
    handle = mill.put(group([]).then(mill.total), open=True)
    mill.do(handle.close)
    mill.work()
    assert mill.result(handle) == 0


def test_a_program_that_was_interrupted_puts_the_rest_of_the_same_flow(mill: Mill):
    def interrupted() -> Iterator[Any]:
        yield from mill.numbers(1000)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mill.put(group(interrupted()).then(mill.total), jid="twice")
    mill.work()
    handle = mill.put(group(mill.numbers(1200)).then(mill.total), jid="twice")
    mill.work()
    assert [handle.is_new, mill.result(handle)] == [False, sum(range(100, 1300))]
    assert mill.do(lambda: handle.counts) == {"complete": 1202}


def test_a_queue_that_is_full_keeps_a_large_flow_open_to_be_put_again(mill: Mill):
    mill.do(lambda: mill.do.client.queues["q"].set_bound("max-waiting", 700))
    with pytest.raises(QueueFull):
        mill.put(group(mill.numbers(1500)).then(mill.total), jid="full")
    mill.do(lambda: mill.do.client.queues["q"].set_bound("max-waiting", None))
    handle = mill.put(group(mill.numbers(1500)).then(mill.total), jid="full")
    mill.work()
    assert mill.result(handle) == sum(range(100, 1600))


def test_jobs_come_as_they_end(mill: Mill):
    handle = mill.put(group(mill.numbers(20)).then(mill.total))
    mill.work()

    async def all_of(parts: Any) -> list[Any]:
        return [part async for part in parts]

    ended = handle.as_ended(30)
    parts = list(ended) if hasattr(ended, "__next__") else mill.do(lambda: all_of(ended))
    assert len(parts) == 21
    waiting = mill.put(mill.grind.call(1))
    again = waiting.as_ended(0.01)
    with pytest.raises(TimeoutError):
        list(again) if hasattr(again, "__next__") else mill.do(lambda: all_of(again))


def test_what_no_large_group_can_be_is_refused_before_anything_is_put(mill: Mill):
    large = group(mill.numbers())
    with pytest.raises(UsageError, match="at most one group of more than 512 calls"):
        mill.put(join(large.then(mill.total), group(mill.numbers()).then(mill.total)).then(mill.pair))
    with pytest.raises(UsageError, match="cannot start after others"):
        large.after("job")
    with pytest.raises(UsageError, match="cannot start after others"):
        mill.put(large.then(mill.total).after(mill.grind.call(1)))
    both = join(large.then(mill.total), large.then(mill.report, on_failure="run")).then(mill.pair)
    with pytest.raises(UsageError, match="one on_failure"):
        mill.put(both)
    both = join(large.then(mill.total), large.then(mill.paged)).then(mill.pair)
    with pytest.raises(UsageError, match="as a list, or all of them as Results"):
        mill.put(both)
    with pytest.raises(UsageError, match="an open flow has one group"):
        mill.put(mill.grind.call(1), open=True)
    with pytest.raises(UsageError, match="a step behind it"):
        mill.put(group([]), open=True)
    with pytest.raises(UsageError, match="expected calls"):
        list(group([*mill.numbers(), 7]).members())
    shared = mill.grind.call(1)
    with pytest.raises(UsageError, match="part of two calls"):
        mill.put(group(shared.then(mill.grind) for _ in range(MANY)).then(mill.total), jid="shared")
    assert mill.do(lambda: mill.do.client.jobs.get("shared-0")) == []
    with pytest.raises(UsageError, match="at most 180 bytes"):
        mill.put(mill.grind.map(range(2000)).then(mill.total), jid="x" * 196)  # "x…-1000" is too long
    assert mill.do(lambda: mill.do.client.jobs.get("x" * 196 + "-0")) == []
    plain = mill.put(mill.grind.call(1))
    assert mill.do(lambda: plain.add([])) == 0
    with pytest.raises(UsageError, match="open=True"):
        mill.do(lambda: plain.add([mill.grind.call(1)]))


def test_calls_that_an_iterator_gave_once_are_not_put_again(mill: Mill):
    once, often = group(mill.numbers()).then(mill.total), group(list(mill.numbers())).then(mill.total)
    mill.put(once)
    with pytest.raises(UsageError, match="used up by an earlier put"):
        mill.put(once)
    first, second = mill.put(often), mill.put(often)
    mill.work()
    assert mill.result(first) == mill.result(second)


def test_jobs_of_a_group_add_others_while_they_run(mill: Mill):
    app = mill.do.client

    def children(number: int) -> list[Any]:
        return [crawl.call(n) for n in (2 * number, 2 * number + 1) if n < 64]

    def crawl_plain(number: int) -> int:
        app.flow("crawl").add(children(number))
        return number

    async def crawl_async(number: int) -> int:
        await (await app.flow("crawl")).add(children(number))
        return number

    is_async = isinstance(app, AsyncClient)
    crawl = app.job(name=f"crawl_{is_async}", queue="q")(crawl_async if is_async else crawl_plain)
    handle = mill.put(group([crawl.call(1)]).then(mill.total), jid="crawl", open=True)
    mill.do(handle.close)
    mill.work()
    assert mill.result(handle) == sum(range(1, 64))
