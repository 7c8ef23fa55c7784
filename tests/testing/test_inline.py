"""Inline mode: a put performs its job before it answers."""

import asyncio

import pytest

from holdfast import AsyncClient, Client, JobFailed, UsageError, current_job
from holdfast.testing import AsyncLocalWorker, LocalWorker, ScratchStore, assert_put


def test_a_put_performs_at_once_inside_the_block_only(crew):
    done = []

    @crew.client.job(queue="mail", name="inline.note13")
    def note(number):
        done.append(number)

    crew.inline(lambda: note.put(1))
    assert done == [1]
    crew(lambda: note.put(2))
    assert done == [1]


def test_the_result_is_there_when_the_put_answers(crew):
    @crew.client.job(queue="sums", name="inline.add24")
    async def add(a: int, b: int) -> int:
        return a + b

    handle = crew.inline(lambda: add.put(1, 2))
    assert crew(lambda: handle.result(0)) == 3


@pytest.fixture(params=["plain", "async"])
def nesting(request, crew):
    """A job of either kind that puts one of either kind, and what happened."""
    seen = []

    @crew.client.job(queue="inner", name="inline.inner_plain37")
    def inner_plain():
        seen.append("inner")

    @crew.client.job(queue="inner", name="inline.inner_async41")
    async def inner_async():
        seen.append("inner")

    names = [inner_plain.registered.name, inner_async.registered.name]

    @crew.client.job(queue="outer", name="inline.outer47")
    def outer():
        me = current_job()
        for name in names:
            me.queue.put(name, {})
            seen.append(("outer", current_job() is me))

    if request.param == "async":

        @crew.client.job(queue="outer", name="inline.outer56")
        async def outer():
            me = current_job()
            for name in names:
                await me.queue.put(name, {})
                seen.append(("outer", current_job() is me))

    return outer, seen


def test_what_a_job_puts_is_performed_inside_it_and_it_stays_the_current_job(crew, nesting):
    outer, seen = nesting
    crew.inline(lambda: outer.put())
    assert seen == ["inner", ("outer", True)] * 2


@pytest.mark.full
def test_puts_side_by_side_do_not_count_as_one_inside_the_other():
    done = []
    with ScratchStore() as store:
        client = AsyncClient(store.url, namespace="test-beside")

        @client.job(queue="mail", name="inline.note77")
        async def note(number):
            await asyncio.sleep(0.001 * (number % 7))
            done.append(number)

        async def story():
            worker = AsyncLocalWorker(client)
            async with worker.inline():
                await asyncio.gather(*[note.put(number) for number in range(120)])
            await worker.close()
            await client.close()

        asyncio.run(story())
    assert sorted(done) == list(range(120))


def test_many_puts_perform_many(crew):
    done = []

    @crew.client.job(queue="mail", name="inline.note96")
    def note(number):
        done.append(number)

    name = note.registered.name
    crew.inline(lambda: crew.client.queues["mail"].put_many([(name, {"args": [n]}) for n in range(3)]))
    assert sorted(done) == [0, 1, 2]


def test_a_failure_comes_out_of_the_put(crew):
    @crew.client.job(queue="mail", name="inline.broken106")
    def broken():
        raise LookupError("no such letter")

    with pytest.raises(JobFailed, match="no such letter") as caught:
        crew.inline(lambda: broken.put())
    assert isinstance(caught.value.__cause__, LookupError)
    crew.inline(lambda: broken.put(), raises=False)
    assert assert_put(crew.client, broken).state == "failed"


def test_a_delayed_job_waits_for_its_time_in_inline_mode_too(crew):
    done = []

    @crew.client.job(queue="mail", name="inline.note120")
    def note():
        done.append(1)

    crew.inline(lambda: note.options(delay=5).put())
    assert done == []
    crew(lambda: crew.worker.run_for(seconds=5))
    assert done == [1]


@pytest.mark.full
@pytest.mark.parametrize("kind", ["plain", "async"])
def test_jobs_that_put_each_other_for_ever_end_with_advice(crew, kind):
    @crew.client.job(queue="loop", name="inline.again132")
    def again():
        current_job().queue.put(current_job().klass_name, {})

    if kind == "async":

        @crew.client.job(queue="loop", name="inline.again138")
        async def again():
            await current_job().queue.put(current_job().klass_name, {})

    with pytest.raises(JobFailed) as caught:
        crew.inline(lambda: again.put())
    deepest = caught.value
    while deepest.__cause__ is not None:
        deepest = deepest.__cause__
    assert isinstance(deepest, UsageError)
    assert "use drain()" in str(deepest)


def test_a_job_performed_inside_a_block_of_another_keeps_nothing_back_for_it(crew):
    @crew.client.job(queue="inner", name="inline.inner152")
    async def inner():
        await current_job()._client.queues["other"].put("builtins.nothing", jid="not-kept-back", delay=60)

    @crew.client.job(queue="outer", name="inline.outer156")
    async def outer():
        me = current_job()
        with me.on_completion():
            await me._client.jobs.get("nobody")
        raise LookupError

    crew(lambda: inner.put())
    crew.inline(lambda: outer.options(priority=1).put(), raises=False)
    assert crew(lambda: crew.client.jobs["not-kept-back"]).state == "scheduled"


def test_handles_of_many_puts_have_their_results(crew):
    @crew.client.job(queue="sums", name="inline.double169")
    def double(number: int) -> int:
        return 2 * number

    handles = crew.inline(lambda: double.put_many([(1,), (2,)]))
    assert [crew(lambda handle=handle: handle.result(0)) for handle in handles] == [2, 4]


def test_a_batch_is_performed_when_it_leaves(url, namespace):
    done = []
    with Client(url, namespace=namespace) as client:
        worker = LocalWorker(client)

        @client.job(queue="mail", name="inline.note182")
        def note(number):
            done.append(number)

        with worker.inline():
            with client.batch():
                note.put(1)
                note.put(2)
                assert done == []
            assert done == [1, 2]
        worker.close()
