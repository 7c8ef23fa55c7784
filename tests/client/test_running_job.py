"""python-api 5.6 and the API people wish for: what the running job knows of itself, and puts that leave with its completion."""

import asyncio
import json
import threading
from contextlib import suppress
from contextvars import copy_context
from typing import Any

import pytest

import holdfast
from holdfast import Failed, Moved, Retry, UsageError

SEEN: dict[str, Any] = {}


@pytest.fixture(params=["sync", "async"])
def client_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Shop:
    """A client with jobs with both clients: `do("name")` is a function job that performs `SEEN[name]`."""

    def __init__(self, client: holdfast.Client, works: Any, client_kind: str) -> None:
        self.client, self.works = client, works
        other = holdfast.AsyncClient(client.settings.url, namespace=client.settings.namespace)

        async def act_async(name: str) -> Any:
            return await SEEN[name](holdfast.current_job())

        def act(name: str) -> Any:
            return SEEN[name](holdfast.current_job())

        performs = act_async if client_kind == "async" else act
        self.act = client.job(queue="q", name=f"act-{client_kind}", retries=1, backoff=0)(performs)
        self.note = client.job(queue="later", name="note")(note)
        self.async_note = other.job(queue="later", name="note")(note)
        works.async_clients.append(other)

    def perform(self, action: Any) -> Any:
        SEEN["action"] = action
        handle = self.act.put("action")
        self.works.all()
        return handle

    def waiting(self) -> list[Any]:
        return [job["args"] for job in self.client.queues["later"].peek(count=600)]


def note(*words: str) -> None: ...


def kept(do: Any, job: Any, *puts: Any) -> list[Any]:
    """Do these puts in a block of `job.on_completion()`, with either client; answers what they answer."""
    if isinstance(do.client, holdfast.Client):
        with job.on_completion():
            return [put() for put in puts]

    async def main() -> list[Any]:
        with job.on_completion():
            return [await put() for put in puts]

    return do(main)


def popped(do: Any) -> Any:
    do(lambda: do.client.queues["q"].put("K"))
    return do(do.client.queues["q"].pop)


@pytest.fixture
def shop(client: holdfast.Client, works: Any, client_kind: str) -> Shop:
    return Shop(client, works, client_kind)


def both(client_kind: str, plain: Any, awaited: Any) -> Any:
    """The action for one kind of client."""
    return plain if client_kind == "sync" else awaited


def test_outside_of_a_job_there_is_none():
    assert holdfast.current_job() is None


def test_a_job_knows_its_name_its_attempt_its_token_and_its_deadline(shop, client_kind):
    def look(job: Any) -> list[Any]:
        assert (job["args"], job.data, job.tags) == (["action"], '{"args":["action"],"kwargs":{}}', [])
        return [job.jid, job.attempt, job.token > 0, job.deadline, job.cancelled]

    async def look_async(job: Any) -> list[Any]:
        return look(job)

    handle = shop.perform(both(client_kind, look, look_async))
    assert handle.result(30) == [handle.jid, 1, True, None, False]
    limited = shop.act.options(timeout=100).put("action")
    shop.works.all()
    deadline = limited.result(30)[3]
    popped = shop.client.jobs[limited.jid].facts.popped_ms / 1000
    assert deadline == pytest.approx(popped + 100, abs=30)


TRIES: list[str] = []


@holdfast.retry(ConnectionError)
def fetch(kind: str) -> None:
    TRIES.append(kind)
    raise {"named": ConnectionResetError, "other": ValueError}[kind]


@pytest.mark.parametrize(("kind", "tries"), [("named", 4), ("other", 1)])
def test_retry_names_the_exceptions_that_are_retried_and_retries_how_often(client, works, kind, tries):
    TRIES.clear()
    handle = client.job(queue="q", retries=3, backoff=0)(fetch).put(kind)
    works.all()
    assert [kind] * tries == TRIES
    assert client.job(handle.jid).state == "failed"


def test_attempts_are_counted_anew_in_each_queue(client):
    jid = client.queues["q"].put("a.B", retries=3)
    seen = []
    for queue, act in (("q", "retry"), ("q", "move"), ("r", "retry"), ("r", "stop")):
        job = client.queues[queue].pop()
        seen.append(job.attempt)
        job.complete("r") if act == "move" else job.retry() if act == "retry" else None
    assert seen == [1, 2, 1, 2]
    assert client.job(jid).attempts == 4


def test_a_second_attempt_counts(shop, client_kind):
    def twice(job: Any) -> Any:
        return job.attempt if job.attempt == 2 else Retry(after=0)

    async def twice_async(job: Any) -> Any:
        return twice(job)

    assert shop.perform(both(client_kind, twice, twice_async)).result(30) == 2


def test_a_job_says_how_far_it_is_and_what_it_does_and_renews_its_lease(shop, client_kind):
    ends: list[float] = []

    def tell(job: Any) -> None:
        job.progress(0.4, "half way")
        job.log("packed", {"box": 3})
        ends.append(job.heartbeat())

    async def tell_async(job: Any) -> None:
        await job.progress(0.4, "half way")
        await job.log("packed", {"box": 3})
        ends.append(await job.heartbeat())

    handle = shop.perform(both(client_kind, tell, tell_async))
    assert handle.result(30) is None
    job = shop.client.jobs[handle.jid]
    assert (job.progress_fraction, job.progress_note) == (0.4, "half way")
    assert [entry["box"] for entry in job.history if entry["what"] == "packed"] == [3]
    assert ends[0] > 0


def put_three(shop: Shop, then: Any = None) -> tuple[Any, Any]:
    """Actions that put three jobs on completion, and then do something."""

    def plain(job: Any) -> Any:
        with job.on_completion():
            shop.note.put("one")
            shop.note.options(priority=5, tags=["x"]).put("two")
            shop.note.put_many([("three",)])
        SEEN["before"] = shop.waiting()
        return then(job) if then else "done"

    async def awaited(job: Any) -> Any:
        with job.on_completion():
            await shop.async_note.put("one")
            await shop.async_note.options(priority=5, tags=["x"]).put("two")
            await shop.async_note.put_many([("three",)])
        SEEN["before"] = await asyncio.to_thread(shop.waiting)
        return then(job) if then else "done"

    return plain, awaited


def test_puts_on_completion_become_visible_with_the_result_in_one_step(shop, client_kind):
    handle = shop.perform(both(client_kind, *put_three(shop)))
    assert SEEN["before"] == []
    assert handle.result(30) == "done"
    assert shop.waiting() == [["two"], ["one"], ["three"]]
    assert shop.client.jobs.tagged("x")["total"] == 1


@pytest.mark.parametrize("how", ["raises", "retries", "fails", "settles"])
def test_puts_on_completion_are_dropped_when_the_job_does_not_complete(shop, client_kind, how):
    def end(job: Any) -> Any:
        if how == "raises" or job.attempt > 1:
            raise ValueError("no")
        if how == "fails":
            return Failed("chosen")
        return Retry(after=0)

    shop.perform(both(client_kind, *put_three(shop, end)))
    assert shop.waiting() == []


def test_only_the_attempt_that_completes_puts(shop, client_kind):
    shop.perform(
        both(client_kind, *put_three(shop, lambda job: "done" if job.attempt == 2 else Retry(after=0)))
    )
    assert len(shop.waiting()) == 3


def test_a_job_that_moves_on_puts_in_the_same_step(shop, client_kind):
    handle = shop.perform(both(client_kind, *put_three(shop, lambda job: Moved("next", delay=60))))
    assert len(shop.waiting()) == 3
    job = shop.client.jobs[handle.jid]
    assert (job.queue_name, job.state) == ("next", "scheduled")


def test_a_result_that_cannot_be_written_puts_nothing(shop, client_kind):
    handle = shop.perform(both(client_kind, *put_three(shop, lambda job: object())))
    with pytest.raises(holdfast.JobFailed) as caught:
        handle.result(30)
    assert caught.value.group == "q-UnserializableResult"
    assert shop.waiting() == []


def test_puts_that_the_core_refuses_fail_the_job_and_the_work_is_not_repeated(shop, client_kind):
    pair = [("a", "b"), ("b", "a")]

    def plain(job: Any) -> None:
        with job.on_completion():
            for jid, other in pair:
                shop.note.options(jid=jid, only_new=True, depends=[other]).put(jid)

    async def awaited(job: Any) -> None:
        with job.on_completion():
            for jid, other in pair:
                await shop.async_note.options(jid=jid, only_new=True, depends=[other]).put(jid)

    handle = shop.perform(both(client_kind, plain, awaited))
    with pytest.raises(holdfast.JobFailed, match="would wait for each other") as caught:
        handle.result(30)
    assert caught.value.group == "q-DependencyRefused"
    assert shop.client.jobs[handle.jid].attempts == 1
    assert shop.waiting() == []


def test_a_block_that_raises_drops_its_own_puts_and_no_others(shop, client_kind):
    def plain(job: Any) -> None:
        with job.on_completion():
            shop.note.put("kept")
        with suppress(ZeroDivisionError), job.on_completion():
            shop.note.put("dropped")
            raise ZeroDivisionError

    async def awaited(job: Any) -> None:
        with job.on_completion():
            await shop.async_note.put("kept")
        with suppress(ZeroDivisionError), job.on_completion():
            await shop.async_note.put("dropped")
            raise ZeroDivisionError

    shop.perform(both(client_kind, plain, awaited)).result(30)
    assert shop.waiting() == [["kept"]]


def test_blocks_of_tasks_that_run_together_do_not_touch_each_other(aclient):
    later = aclient.queues["later"]

    async def keep(job: Any, name: str, gate: asyncio.Event, raises: bool) -> None:
        with job.on_completion():
            await later.put("K", {"name": name})
            await gate.wait()
            if raises:
                raise ZeroDivisionError

    async def main() -> list[str]:
        async with aclient:
            await aclient.queues["q"].put("K")
            job = await aclient.queues["q"].pop()
            first, second = asyncio.Event(), asyncio.Event()
            bad = asyncio.create_task(keep(job, "bad", first, raises=True))
            await asyncio.sleep(0)
            good = asyncio.create_task(keep(job, "good", second, raises=False))
            await asyncio.sleep(0)
            first.set()
            await asyncio.wait([bad])
            second.set()
            await good
            assert isinstance(bad.exception(), ZeroDivisionError)
            await job.complete()
            return [found["name"] for found in await later.peek(count=5)]

    assert asyncio.run(main()) == ["good"]


def test_the_jid_is_known_at_once_and_the_job_found_when_it_is_there(shop, client_kind):
    def plain(job: Any) -> str:
        with job.on_completion():
            handle = shop.note.put("x")
        with pytest.raises(holdfast.JobNotFound):
            handle.result(30)
        return handle.jid

    async def awaited(job: Any) -> str:
        with job.on_completion():
            handle = await shop.async_note.put("x")
        with pytest.raises(holdfast.JobNotFound):
            await handle.result(30)
        return handle.jid

    jid = shop.perform(both(client_kind, plain, awaited)).result(30)
    assert shop.client.jobs[jid].state == "waiting"


def test_other_threads_and_other_calls_are_not_kept_back_but_tasks_are(shop, client_kind):
    def plain(job: Any) -> None:
        with job.on_completion():
            thread = threading.Thread(target=lambda: shop.note.put("thread"))
            thread.start()
            thread.join()
            with shop.client.batch():
                shop.note.put("kept")
        SEEN["before"] = shop.waiting()

    async def awaited(job: Any) -> None:
        with job.on_completion():
            await asyncio.create_task(shop.async_note.put("kept"))
            thread = threading.Thread(target=lambda: shop.note.put("thread"))
            thread.start()
            thread.join()
        SEEN["before"] = await asyncio.to_thread(shop.waiting)

    shop.perform(both(client_kind, plain, awaited)).result(30)
    assert SEEN["before"] == [["thread"]]
    assert shop.waiting() == [["thread"], ["kept"]]


def test_a_job_performed_inside_a_block_of_another_puts_for_itself(shop, client_kind):
    def plain(job: Any) -> None:
        shop.note.put("inner")

    async def awaited(job: Any) -> None:
        await shop.async_note.put("inner")

    SEEN["action"] = both(client_kind, plain, awaited)
    shop.client.queues["outer"].put("K")
    outer = shop.client.queues["outer"].pop()
    shop.act.put("action")
    with outer.on_completion():
        copy_context().run(shop.works.all)
        shop.note.put("outer")
    assert shop.waiting() == [["inner"]]
    outer.complete()
    assert shop.waiting() == [["inner"], ["outer"]]


def test_a_batch_that_was_open_before_is_sent_as_ever(client, works):
    client.queues["q"].put("K")
    job = client.queues["q"].pop()
    with client.batch():
        client.queues["later"].put("K", {"args": ["before"]})
        with job.on_completion():
            client.queues["later"].put("K", {"args": ["kept"]})
            assert client.queues["later"].length() == 1
    assert client.queues["later"].length() == 1
    job.complete()
    assert client.queues["later"].length() == 2


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("namespace", "its own store and namespace"),
        ("jid", "only_new=True"),
        ("requeue", "cannot be requeued"),
        ("many", "at most 512 jobs"),
        ("many more", "at most 512 jobs"),
        ("bytes", "at most 16 MiB"),
    ],
)
def test_what_cannot_wait_for_a_completion_is_refused_when_it_is_put(do, what, words):
    queue, job = do.client.queues["later"], popped(do)
    elsewhere = type(do.client)(do.client.settings.url, namespace="test-elsewhere")  # which sends nothing
    puts = {
        "namespace": lambda: elsewhere.queues["later"].put("K"),
        "jid": lambda: queue.put("K", jid="mine"),
        "requeue": lambda: queue.requeue("K", jid="mine"),
        "many": lambda: queue.put_many([("K", n) for n in range(513)]),
        "many more": lambda: queue.put_many([{"klass": "K", "tags": ["t"]} for n in range(400)]),
        "bytes": lambda: queue.put_many([("K", {"x": "x" * 1_000_000}) for n in range(18)]),
    }
    with pytest.raises(UsageError, match=words):
        kept(do, job, lambda: queue.put("K", {"kept": 1}), puts[what])
    do(job.complete)
    assert do(lambda: do.client.queues.names) == ["q"]


def test_as_many_as_one_call_takes_leave_together(do):
    job = popped(do)
    kept(do, job, lambda: do.client.queues["later"].put_many([("K", n) for n in range(512)]))
    do(job.complete)
    assert do(do.client.queues["later"].length) == 512


def test_a_jid_of_ones_own_leaves_a_job_that_is_there_alone(do):
    queue, job = do.client.queues["later"], popped(do)
    do(lambda: queue.put("K", {"n": 1}, jid="mine"))
    jids = kept(
        do,
        job,
        lambda: queue.put("K", {"n": 2}, jid="mine", only_new=True),
        lambda: queue.put("K", {"n": 3}, jid="new", only_new=True),
    )
    assert jids == ["mine", "new"]
    do(job.complete)
    assert [json.loads(job.data)["n"] for job in do(lambda: queue.peek(count=5))] == [1, 3]


@pytest.mark.parametrize("next_queue", [None, "next"])
def test_a_class_job_s_own_completion_takes_them_along_into_its_next_queue_too(do, next_queue):
    later, job = do.client.queues["later"], popped(do)
    kept(do, job, lambda: later.put("K"))
    assert do(later.length) == 0
    do(lambda: job.complete(next_queue, follow=[{"queue": "later", "klass": "F"}]))
    assert [job.klass_name for job in do(lambda: later.peek(count=5))] == ["K", "F"]
    with pytest.raises(UsageError, match="has ended"):
        kept(do, job)


def test_a_job_that_fails_keeps_nothing(do):
    job = popped(do)
    kept(do, job, lambda: do.client.queues["later"].put("K"))
    do(lambda: job.fail("g"))
    assert do(lambda: do.client.queues.names) == ["q"]


def test_a_job_that_nobody_holds_keeps_nothing_back(do):
    jid = do(lambda: do.client.queues["q"].put("app.Job"))
    job = do(lambda: do.client.jobs.get(jid))[0]
    with (
        pytest.raises(UsageError, match="is waiting, so it cannot complete: on_completion is for"),
        job.on_completion(),
    ):
        raise AssertionError("the block ran")


def test_what_puts_after_the_job_has_ended_is_told(do):
    job, contexts = popped(do), []

    def leave() -> None:
        with job.on_completion():
            contexts.append(copy_context())

    leave()
    do(job.complete)
    with pytest.raises(UsageError, match="has ended"):
        do(lambda: contexts[0].run(do.client.queues["later"].put, "K"))


def test_what_puts_after_a_function_has_returned_is_told(client, works):
    contexts = []
    later = client.queues["later"]

    def act() -> None:
        with holdfast.current_job().on_completion():
            later.put("K")
            contexts.append(copy_context())

    client.job(queue="q", name="act")(act).put()
    works.all()
    with pytest.raises(UsageError, match="has ended"):
        contexts[0].run(later.put, "K")
    assert later.length() == 1


def test_a_client_by_another_address_of_the_same_store_counts(client, store, namespace):
    client.queues["q"].put("K")
    job = client.queues["q"].pop()
    with holdfast.Client(store.url + "?x", namespace=namespace) as other:
        other.queues["q"].length()
        with job.on_completion():
            other.queues["later"].put("K")
    job.complete()
    assert client.queues["later"].length() == 1
