"""Wait for the results of jobs, of one or of many, with both clients."""

import asyncio
import dataclasses
import pickle
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import holdfast
from holdfast import JobCancelled, JobFailed, JobNotFound, UsageError
from holdfast.commands.jobs import Await
from holdfast.wire.plans import Step
from waiting import until


@dataclasses.dataclass
class Total:
    words: int


def measure(text: str) -> Total:
    if not text:
        raise ValueError("no text\nat all")
    return Total(len(text.split()))


@pytest.fixture
def job(do):
    return do.client.job(queue="q")(measure)


def put(do, job, *texts: str) -> list[Any]:
    return [do(lambda text=text: job.put(text)) for text in texts]


def asked(do, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record from now on how many jobs each Await command of this client names."""
    sizes: list[int] = []
    words = Await.words
    monkeypatch.setattr(Await, "words", lambda self: (sizes.append(len(self.jids)), words(self))[1])
    return sizes


def test_a_result_has_the_type_that_the_annotation_of_the_function_declares(do, job, works):
    [handle] = put(do, job, "two words")
    assert do(lambda: handle.wait(0.02)) is False
    assert works.all() == [handle.jid]
    assert do(lambda: handle.wait(30)) is True
    assert do(lambda: handle.result(30)) == Total(2)
    assert do(handle.result) == Total(2)


def test_a_handle_that_has_the_outcome_makes_no_more_calls(do, job, works, monkeypatch):
    [handle] = put(do, job, "a b")
    works.all()
    sizes = asked(do, monkeypatch)
    for _ in range(3):
        assert do(lambda: handle.result(30)) == Total(2)
    assert sizes == [1]


def test_an_async_handle_is_awaited_itself(aclient, works):
    async def main() -> Total:
        async with aclient:
            handle = await aclient.job(queue="q")(measure).put("one")
            await asyncio.to_thread(works.all)
            return await handle

    assert asyncio.run(main()) == Total(1)


def test_a_failed_job_raises_with_group_message_and_the_remote_traceback(do, job, works):
    [handle] = put(do, job, "")
    works.all()
    for _ in range(2):
        with pytest.raises(JobFailed) as caught:
            do(lambda: handle.result(30))
        error = caught.value
        assert (error.group, error.jid) == ("q-ValueError", handle.jid)
        assert str(error) == "q-ValueError: ValueError: no text\nat all"
        assert error.remote_traceback == error.message
        assert 'raise ValueError("no text\\nat all")' in error.remote_traceback
        assert len(error.__notes__) == 1
        assert "in measure" in error.__notes__[0]
    assert do(lambda: handle.wait(0)) is True
    again = pickle.loads(pickle.dumps(error))
    assert (again.group, again.message, again.jid, str(again)) == (
        error.group,
        error.message,
        error.jid,
        str(error),
    )


def several() -> None:
    try:
        raise ExceptionGroup("first", [OSError("a")])
    except ExceptionGroup as first:
        inner = ExceptionGroup("inner", [ValueError("b"), TypeError("c")])
        raise ExceptionGroup("second\nand last", [inner, KeyError("d")]) from first


def several_and_one() -> None:
    try:
        several()
    except ExceptionGroup as error:
        raise ValueError("after all") from error


@pytest.mark.parametrize(
    ("raises", "raised"),
    [
        (several, "q-ExceptionGroup: ExceptionGroup: second\nand last (2 sub-exceptions)"),
        (several_and_one, "q-ValueError: ValueError: after all"),
    ],
)
def test_a_job_that_raised_a_group_carries_its_traceback_too(do, works, raises, raised):
    put_one = do.client.job(queue="q")(raises).put
    handle = do(put_one)
    works.all()
    with pytest.raises(JobFailed) as caught:
        do(lambda: handle.result(30))
    assert str(caught.value) == raised
    assert caught.value.remote_traceback == caught.value.message
    assert all(word in caught.value.remote_traceback for word in ("OSError: a", "TypeError: c"))


def test_a_failure_without_a_traceback_shows_its_message(do):
    error = JobFailed("chosen", "as wished")
    assert (str(error), error.remote_traceback) == ("chosen: as wished", "")
    assert str(JobFailed("chosen")) == "chosen"


def test_waiting_for_a_cancelled_job_says_so_and_for_an_open_one_is_a_timeout(do, job):
    [handle] = put(do, job, "a")
    with pytest.raises(TimeoutError, match=handle.jid):
        do(lambda: handle.result(0.02))
    do(lambda: do.client.jobs.cancel(handle.jid))
    with pytest.raises(JobCancelled, match=handle.jid):
        do(lambda: handle.result(30))


def test_a_result_that_is_not_kept_any_more_is_not_taken_for_none(do, works):
    job = do.client.job(queue="q", result_keep=0.001)(measure)
    handle = do(lambda: job.put("a"))
    works.all()

    def is_gone() -> bool:
        with suppress(JobNotFound):
            do(lambda: type(handle)(do.client, handle.jid, job.registered).result(30))
            return False
        return True

    until(is_gone, "the result is gone, the job is not")
    assert do(lambda: do.client.jobs.get(handle.jid))
    for forgetful in (do.client.job(queue="q", result_keep=0)(measure), job.options(result_keep=0)):
        handles = do(lambda forgetful=forgetful: forgetful.put_many(["a", "b"]))
        works.all()
        assert do(lambda handles=handles: holdfast.gather(*handles)) == [None, None]


def test_gather_answers_all_results_in_order_after_one_question(do, job, works, monkeypatch):
    handles = put(do, job, "a", "a b", "a b c")
    works.all()
    sizes = asked(do, monkeypatch)
    assert do(lambda: holdfast.gather(*handles)) == [Total(1), Total(2), Total(3)]
    assert sizes == [3]
    assert do(lambda: holdfast.gather(handles[2], handles[0], handles[2])) == [Total(3), Total(1), Total(3)]
    assert sizes == [3]


def test_gather_waits_for_what_is_still_open_and_is_pushed_the_ends(do, job, works, monkeypatch):
    handles = put(do, job, *["a b"] * 40)
    sizes = asked(do, monkeypatch)
    with works.running():
        assert do(lambda: holdfast.gather(*handles, timeout=30)) == [Total(2)] * 40
    # First, after listening, and then at most once for each end: never again for all.
    assert sum(size > 1 for size in sizes) >= 1
    assert len(sizes) <= 2 + 40
    assert sum(sizes) <= 40 * 3


def test_gather_raises_the_first_failure_while_others_still_run(do, job, works):
    handles = put(do, job, "", "later")
    works.one()
    with pytest.raises(JobFailed) as caught:
        do(lambda: holdfast.gather(*handles, timeout=30))
    assert caught.value.jid == handles[0].jid
    works.all()
    failed, total = do(lambda: holdfast.gather(*handles, return_exceptions=True))
    assert isinstance(failed, JobFailed)
    assert total == Total(1)


def test_gather_that_takes_too_long_says_how_many_are_open(do, job, works):
    handles = put(do, job, "a", "b", "c")
    works.one()
    with pytest.raises(
        TimeoutError, match=r"2 of 3 jobs .*; `holdfast jobs why .*--namespace \S+ \w{32}` shows why"
    ):
        do(lambda: holdfast.gather(*handles, timeout=0.05))


def test_gather_of_a_list_says_how_handles_are_named(do, job):
    handles = put(do, job, "a")
    with pytest.raises(UsageError, match=r"gather\(\*handles\)$"):
        do(lambda: holdfast.gather(handles))


def test_more_jobs_than_one_question_may_name_are_waited_for_too(do, works):
    job = do.client.job(queue="q")(measure)
    handles = [type(do(lambda: job.put("a")))(do.client, "j", job.registered)]
    jids = do(lambda: do.client.queues["q"].put_many([("K", n) for n in range(1100)]))
    handles = [type(handles[0])(do.client, jid, job.registered) for jid in jids]
    do(lambda: do.client.jobs.cancel(*jids))
    errors = do(lambda: holdfast.gather(*handles, timeout=30, return_exceptions=True))
    assert {type(error) for error in errors} == {JobNotFound}
    assert len(errors) == 1100


def completed(
    do, handles, timeout: float | None = None, first: Callable[[], Any] = lambda: None
) -> list[Any]:
    """What `as_completed` gives; `first` is done when the first has come."""
    ends = holdfast.as_completed(handles, timeout=timeout)
    found: list[Any] = []

    def take(handle: Any) -> None:
        found.append(handle)
        if len(found) == 1:
            first()

    if do.client.__class__.__name__ == "Client":
        for handle in ends:
            take(handle)
        return found

    async def all_of_them() -> None:
        async for handle in ends:
            take(handle)

    do(all_of_them)
    return found


def test_as_completed_gives_each_handle_when_its_job_has_ended(do, job, works):
    handles = put(do, job, "a", "", "a b c")
    works.one()
    helper = threading.Thread(target=works.all)
    found = completed(do, handles, 20, helper.start)
    helper.join()
    assert found[0] is handles[0]
    assert sorted(handle.jid for handle in found) == sorted(handle.jid for handle in handles)
    assert do(lambda: handles[2].result(0)) == Total(3)
    with pytest.raises(JobFailed):
        do(lambda: handles[1].result(0))


def test_as_completed_that_takes_too_long_is_a_timeout_after_those_that_ended(do, job, works):
    handles = put(do, job, "a", "b")
    works.one()
    seen: list[str] = []
    with pytest.raises(TimeoutError, match="1 of 2 jobs"):
        completed(do, handles, 0.05, lambda: seen.append("one"))
    assert seen == ["one"]


def test_no_handles_are_no_results_with_either_client(do):
    assert do(holdfast.gather) == []
    assert completed(do, []) == []


def test_what_is_no_handle_or_of_another_client_is_refused(do, job, url):
    [handle] = put(do, job, "a")
    with pytest.raises(UsageError, match="a handle"):
        do(lambda: holdfast.gather(handle.jid))
    with pytest.raises(UsageError, match="handles"):
        holdfast.as_completed(handle)
    for ask in (holdfast.gather, lambda **given: holdfast.as_completed([], **given)):
        with pytest.raises(UsageError, match="timeout"):
            ask(timeout="soon")
    with (
        type(do)(url, "test-elsewhere").client if False else holdfast.Client(url, namespace="other") as other
    ):
        stranger = other.job(queue="q")(measure).put("a")
        with pytest.raises(UsageError, match="one client"):
            do(lambda: holdfast.gather(handle, stranger))
        other.jobs.cancel(stranger.jid)


def test_an_end_between_the_question_and_the_listening_is_not_missed(do, job, works, monkeypatch):
    [handle] = put(do, job, "a b")
    make = do.client.link.listener
    is_blocking = isinstance(do.client, holdfast.Client)

    def listener() -> Any:
        made = make()
        subscribe = made.subscribe

        async def late(*channels: str) -> None:
            await asyncio.to_thread(works.all)
            await subscribe(*channels)

        def late_blocking(*channels: str) -> None:
            works.all()
            subscribe(*channels)

        made.subscribe = late_blocking if is_blocking else late
        return made

    monkeypatch.setattr(do.client.link, "listener", listener)
    heard: list[Any] = []
    waiting = threading.Thread(target=lambda: heard.append(do(lambda: handle.result(30))))
    waiting.start()
    # Whoever misses it waits until nothing was heard for half a minute.
    waiting.join(28)
    assert heard == [Total(2)]


def test_waiting_survives_a_connection_that_is_lost(do, job, works):
    [handle] = put(do, job, "a b")
    admin = works.client
    heard: list[Any] = []

    def wait() -> None:
        heard.append(do(lambda: handle.result(30)))

    waiting = threading.Thread(target=wait)
    waiting.start()

    def is_listening() -> bool:
        return bool(
            admin.link.send(Step([("PUBSUB", "NUMSUB", admin.shard.result_channel(handle.jid))]))[0][1]
        )

    until(is_listening, "somebody listens")
    admin.link.send(Step([("CLIENT", "KILL", "TYPE", "pubsub")]))
    works.all()
    waiting.join(30)
    assert heard == [Total(2)]
