"""python-api 5.6, D3, D26: functions as jobs, put once, together, later, with options of their own; for both clients."""

import asyncio
import copy
import dataclasses
import json
import pickle
import re
import sys
import time
import types
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from starlette.background import BackgroundTask

import holdfast
from holdfast import UsageError
from holdfast.testing import LocalWorker


@dataclasses.dataclass
class Address:
    street: str
    since: date | None = None


class Pair(NamedTuple):
    left: int
    right: int


def welcome(user_id: int, lang: str = "en") -> str:
    """Say hello."""
    return f"{user_id} {lang}"


async def greet(user_id: int, lang: str = "en") -> str:
    return f"async {user_id} {lang}"


def move(to: Address, days: set[int] = set()) -> tuple[Address, timedelta]:  # noqa: B006
    return Address(to.street.upper(), to.since), timedelta(days=len(days))


def add(pair: Pair) -> int:
    return pair.left + pair.right


def facts(do, handle) -> Any:
    return do(lambda: do.client.jobs.get(handle.jid))[0].facts


def data(do, handle) -> Any:
    return json.loads(facts(do, handle).data)


@pytest.fixture
def job(do):
    return do.client.job(queue="q")(welcome)


def test_a_function_is_registered_by_module_and_name_and_can_still_be_called(do, job):
    assert job(7, lang="de") == "7 de"
    assert (job.__name__, job.__doc__) == ("welcome", "Say hello.")
    handle = do(lambda: job.put(7))
    assert facts(do, handle).klass == f"{__name__}.welcome"
    assert do.client.job(queue="q", name="greetings")(welcome).stored_name == "greetings"


def test_it_is_called_with_its_own_arguments_and_complete_when_it_returns(do, job, works):
    handle = do(lambda: job.put(7, lang="de"))
    assert data(do, handle) == {"args": [7], "kwargs": {"lang": "de"}}
    works.all()
    assert do(lambda: handle.result(30)) == "7 de"
    assert facts(do, handle).state == "complete"


def test_a_coroutine_function_is_a_job_like_others(do, works):
    handle = do(lambda: do.client.job(queue="q")(greet).put(7))
    works.all()
    assert do(lambda: handle.result(30)) == "async 7 en"


def test_arguments_and_results_travel_as_what_they_are(do, works):
    job = do.client.job(queue="q")(move)
    handle = do(lambda: job.put(Address("Main St", date(2024, 2, 29)), days={1, 2}))
    works.all()
    assert do(lambda: handle.result(30)) == (Address("MAIN ST", date(2024, 2, 29)), timedelta(days=2))


def test_anybody_may_put_one_who_writes_its_data(do, job, works):
    jid = do(lambda: do.client.queues["q"].put(job.stored_name, {"args": [3]}))
    works.all()
    assert do(lambda: do.client.result_of(jid, 30)) == b'"3 en"'


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        (("7",), {}, "welcome: argument 'user_id' does not fit"),
        ((), {}, "welcome requires the argument 'user_id'"),
        ((7,), {"language": "de"}, "welcome has no argument 'language'; did you mean 'lang'?"),
        ((7, "de", 1), {}, "welcome takes at most 2 arguments"),
    ],
)
def test_a_call_that_does_not_fit_is_refused_before_anything_is_sent(do, job, args, kwargs, words):
    for ask in (
        job.put,
        job.bind,
        lambda *a, **k: job.put_in(1, *a, **k),
        lambda *a, **k: job.every(60).put(*a, **k),
    ):
        with pytest.raises(UsageError) as caught:
            do(lambda ask=ask: ask(*args, **kwargs))
        assert str(caught.value).startswith(words)
    assert do(lambda: do.client.queues.names) == []


def test_a_call_that_does_not_fit_any_more_when_performed_fails_in_a_group_of_its_own(do, job, works):
    jids = {
        "user_id": do(lambda: do.client.queues["q"].put(job.stored_name, {"kwargs": {"user": 7}})),
        "requires": do(lambda: do.client.queues["q"].put(job.stored_name, {})),
    }
    works.all()
    for word, jid in jids.items():
        failure = do(lambda jid=jid: do.client.jobs[jid]).failure
        assert failure["group"] == "q-ArgumentError"
        assert word in failure["message"]


def test_many_calls_are_put_together_and_answer_handles_in_order(do, job, works):
    handles = do(
        lambda: job.put_many([(1,), (2, "de"), {"user_id": 3, "lang": "fr"}, job.bind(4, lang="it"), 5])
    )
    assert [data(do, handle) for handle in handles] == [
        {"args": [1], "kwargs": {}},
        {"args": [2, "de"], "kwargs": {}},
        {"args": [], "kwargs": {"user_id": 3, "lang": "fr"}},
        {"args": [4], "kwargs": {"lang": "it"}},
        {"args": [5], "kwargs": {}},
    ]
    works.all()
    assert do(lambda: holdfast.gather(*handles)) == ["1 en", "2 de", "3 fr", "4 it", "5 en"]


def test_many_are_put_with_the_options_of_the_job(do, job):
    handles = do(lambda: job.options(priority=3, tags=["x"]).put_many((n,) for n in range(600)))
    assert len({handle.jid for handle in handles}) == 600
    assert {(facts(do, handle).priority, facts(do, handle).tags) for handle in handles[::150]} == {
        (3, ("x",))
    }
    assert do(lambda: job.put_many([])) == []


def test_a_named_tuple_is_one_argument(do, works):
    job = do.client.job(queue="q")(add)
    handles = do(lambda: job.put_many([Pair(1, 2), Pair(3, 4)]))
    works.all()
    assert do(lambda: holdfast.gather(*handles)) == [3, 7]


def test_one_bad_call_among_many_keeps_all_from_being_put(do, job):
    with pytest.raises(UsageError, match=r"'user_id' does not fit.* \(in item 1200 of put_many"):
        do(lambda: job.put_many([*((n,) for n in range(1200)), ("seven",)]))
    with pytest.raises(UsageError, match="the name of an argument must be text"):
        do(lambda: job.put_many([{1: 7}]))
    with pytest.raises(UsageError, match="not a call of"):
        do(lambda: job.put_many([do.client.job(queue="q", name="other")(welcome).bind(1)]))
    with pytest.raises(UsageError, match="put_many must be a list"):
        do(lambda: job.put_many("seven"))
    with pytest.raises(UsageError, match="one jid"):
        do(lambda: job.options(jid="mine").put_many([(1,)]))
    assert do(lambda: do.client.queues.names) == []


@pytest.mark.parametrize("delay", [60, 60.0, timedelta(minutes=1)])
def test_a_job_may_be_put_for_later(do, job, delay):
    handle = do(lambda: job.put_in(delay, 7, lang="de"))
    row = facts(do, handle)
    assert row.state == "scheduled"
    assert row.due_ms - row.created_ms == 60_000
    assert data(do, handle) == {"args": [7], "kwargs": {"lang": "de"}}


@pytest.mark.parametrize("as_datetime", [True, False])
def test_a_job_may_be_put_for_a_moment(do, job, as_datetime):
    soon = time.time() + 100
    handle = do(lambda: job.put_at(datetime.fromtimestamp(soon, UTC) if as_datetime else soon, 7))
    row = facts(do, handle)
    assert 90_000 < row.due_ms - row.created_ms <= 100_000
    past = do(lambda: job.put_at(datetime(2001, 1, 1, tzinfo=UTC), 7))
    assert facts(do, past).state == "waiting"


def test_moments_are_meant_by_the_clock_of_a_test(stopped, do, job):
    soon = do(lambda: job.put_at(stopped.moment + timedelta(seconds=100), 7))
    row = facts(do, soon)
    assert (row.state, row.due_ms - row.created_ms) == ("scheduled", 100_000)
    stopped.advance(days=3)
    daily = do(lambda: job.every(timedelta(days=1), starting=stopped.moment - timedelta(hours=1)).put(1))
    assert template(do, daily).next_ms == stopped.now_ms + 23 * 3_600_000
    assert do(do.client.store_time) == stopped.now


@pytest.mark.parametrize(
    ("put", "words"),
    [
        (lambda job: job.put_in(-1, 7), "delay must be from 0"),
        (lambda job: job.put_in("soon", 7), "delay must be a finite number of seconds"),
        (lambda job: job.put_in(timedelta(seconds=-1), 7), "delay must be from 0"),
        (lambda job: job.put_at(datetime(2030, 1, 1), 7), "moment has no time zone"),
        (lambda job: job.put_at("2030-01-01", 7), "moment must be a datetime or epoch seconds"),
        (lambda job: job.put_at(float("nan"), 7), "moment must be a finite number"),
        (lambda job: job.options(delay=-1).put(7), "delay"),
        (lambda job: job.every(0).put(7), "interval must be from 0.001"),
        (lambda job: job.every(60, starting=datetime(2030, 1, 1)).put(7), "starting has no time zone"),
        (lambda job: job.every(60, backlog=-1).put(7), "backlog"),
        (lambda job: job.every(60, jid="").put(7), "jid"),
        (
            lambda job: job.options(depends=["j"]).every(60).put(7),
            "has no depends: its jobs cannot wait for others",
        ),
        (lambda job: job.options(jid="j").every(60).put(7), r"has no jid: name it by every\(jid=…\)"),
    ],
)
def test_times_and_options_that_cannot_be_are_refused_by_name(do, job, put, words):
    with pytest.raises(UsageError, match=words):
        do(lambda: put(job))
    assert do(lambda: do.client.queues.names) == []


def test_options_differ_for_one_put_and_are_checked_by_name(do, job):
    handle = do(lambda: job.options(delay=60, queue="slow").options(priority=4).put(7))
    row = facts(do, handle)
    assert (row.queue, row.state, row.priority) == ("slow", "scheduled", 4)
    assert facts(do, do(lambda: job.put(7))).queue == "q"
    with pytest.raises(UsageError, match="did you mean 'delay'"):
        job.options(dely=3)
    with pytest.raises(UsageError, match=r"retries is the same for all puts .*@app.job\(retries=…\)"):
        job.options(retries=3)


def test_an_option_given_as_an_argument_and_a_name_of_another_library_are_answered_with_what_to_write(
    do, job
):
    for call, words in (
        (lambda: job.put(7, delay=5), r"no argument 'delay'; .*write welcome.options\(delay=…\).put\(…\)"),
        (lambda: job.put(7, retries=5), r"no argument 'retries'; .*give it to @app.job\(retries=…\)"),
        (lambda: job.put(7, countdown=5), "no argument 'countdown'; .*use delay"),
        (lambda: job.options(eta=5), r"no option 'eta'; use put_at\(moment, …\)"),
        (lambda: do.client.job(max_retries=3), "no option 'max_retries'; use retries"),
    ):
        with pytest.raises(UsageError, match=words):
            do(call)
    with pytest.raises(AttributeError, match=r"no 'delay': write welcome.put\(…\)"):
        job.delay(7)
    with pytest.raises(
        AttributeError, match=r"no attribute 'job': .*app = holdfast.Client\(\), then @app.job"
    ):
        holdfast.job  # noqa: B018


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (7, "a function job is a function, not 7"),
        (Address, "a function job is a function, not <class"),
        (lambda: (yield), "returns its result; <lambda> yields"),
    ],
)
def test_what_is_no_function_that_returns_is_no_job(do, thing, words):
    with pytest.raises(UsageError, match=words):
        do.client.job(queue="q")(thing)


def test_a_function_job_may_be_put_by_its_queue_too(do, works):
    job = do.client.job(queue="other", name="hello")(welcome)
    jid = do(lambda: do.client.queues["q"].put(job, {"args": [7]}))
    works.all()
    assert do(lambda: do.client.result_of(jid, 30)) == b'"7 en"'


def test_a_function_is_a_job_without_options_too(do, works):
    job = do.client.job(welcome)
    assert facts(do, do(lambda: job.put(7))).queue == "default"
    with pytest.raises(UsageError, match="a function job is a function, not 7"):
        do.client.job(7)


def test_a_wish_among_what_a_function_returns_is_not_its_result(do, works):
    def maybe(now: bool) -> Address | holdfast.Retry:
        return Address("Main St") if now else holdfast.Retry(after=60)

    job = do.client.job(queue="q", name="maybe", retries=1)(maybe)
    found, later = do(lambda: job.put(True)), do(lambda: job.put(False))
    works.all()
    assert do(lambda: found.result(30)) == Address("Main St")
    assert facts(do, later).state == "scheduled"


def test_a_job_is_not_made_a_job_again(do, job):
    with pytest.raises(UsageError, match="is a job already"):
        do.client.job(queue="p")(job)


def fall(kind: str) -> None:
    raise LookupError(kind)


def test_one_that_raises_is_retried_after_about_a_second_and_then_fails_under_its_error(do, works):
    job = do.client.job(queue="q", retries=1)(fall)
    handle = do(lambda: job.put("once"))
    works.all()
    row = facts(do, handle)
    assert (row.state, row.remaining) == ("scheduled", 0)
    [retried] = [entry.when_ms for entry in row.history if entry.what == "retried"]
    assert 750 <= row.due_ms - retried <= 1250
    [at_once] = [do(lambda: do.client.job(queue="q", retries=1, backoff=0)(fall).put("now"))]
    works.all()
    assert facts(do, at_once).failure.group == "q-LookupError"
    assert facts(do, at_once).attempts == 2


def test_one_without_retries_fails_at_once_though_it_may_be_lost_three_times(do, works):
    handle = do(lambda: do.client.job(queue="q")(fall).put("now"))
    assert (facts(do, handle).retries, facts(do, handle).max_losses) == (0, 3)
    works.all()
    row = facts(do, handle)
    assert (row.state, row.attempts, row.failure.group) == ("failed", 1, "q-LookupError")


def test_a_result_is_kept_for_an_hour_unless_said_otherwise_and_none_is_one(do, job, works):
    assert job.registered.keep_ms == 3_600_000

    def nothing() -> None: ...

    handle = do(lambda: do.client.job(queue="q", name="nothing")(nothing).put())
    works.all()
    assert do(lambda: do.client.wait_for(handle.jid, 30)).result == b"null"
    assert do(lambda: handle.result(30)) is None


def test_a_queue_may_mix_functions_and_classes(do, job, works):
    jids = do(lambda: do.client.queues["q"].put_many([(job.stored_name, {"args": [1]}), (Chore, {"n": 1})]))
    works.all()
    assert [do(lambda jid=jid: do.client.jobs[jid]).state for jid in jids] == ["complete", "complete"]


class Chore:
    @staticmethod
    def process(job):
        job.complete()


class Shelf:
    def put_on(self, thing: str) -> None: ...

    @classmethod
    def empty(cls) -> None: ...

    def called_otherwise(this) -> None: ...


@pytest.mark.parametrize(
    "method", [Shelf.put_on, Shelf().put_on, Shelf().called_otherwise, Shelf.empty, vars(Shelf)["empty"]]
)
def test_a_method_is_refused_when_it_is_decorated(do, method):
    with pytest.raises(
        UsageError, match=r"is a method, .*make it a function of the module or a @staticmethod"
    ):
        do.client.job(queue="q")(method)


def test_a_static_method_may_be_a_job(do, works):
    class Mail:
        @staticmethod
        async def send(to: int) -> str:
            return f"sent {to}"

    job = do.client.job(queue="q", name="Mail.send")(vars(Mail)["send"])
    handle = do(lambda: job.put(3))
    works.all()
    assert do(lambda: handle.result(30)) == "sent 3"


def template(do, recurrence) -> Any:
    return do(lambda: do.client.recurring[recurrence.jid]).facts


def test_a_function_recurs_under_a_name_of_its_own(do, job, works):
    recurrence = do(lambda: job.every(timedelta(hours=1)).put(7, lang="de"))
    row = template(do, recurrence)
    assert (row.queue, row.klass, row.interval_ms, row.backlog, row.retries) == (
        "q",
        job.stored_name,
        3_600_000,
        1,
        0,
    )
    assert json.loads(row.data) == {"args": [7], "kwargs": {"lang": "de"}}
    assert works.all() == [f"{recurrence.jid}-1"]
    assert do(lambda: do.client.result_of(f"{recurrence.jid}-1", 30)) == b'"7 de"'
    assert do(recurrence.cancel) is True
    assert do(recurrence.cancel) is False


def test_saying_it_again_is_the_same_recurrence_and_its_time_stays(do, job, works):
    first = do(lambda: job.every(3600).put(7))
    assert len(works.all()) == 1
    due = template(do, first).next_ms
    again = do(lambda: job.options(priority=2).every(3600).put(7))
    assert again.jid == first.jid
    row = template(do, again)
    assert (row.next_ms, row.priority) == (due, 2)
    assert works.all() == []
    do(lambda: job.every(7200).put(7))
    assert template(do, first).next_ms == due + 3_600_000
    assert do(lambda: job.every(3600).put(user_id=7)).jid == first.jid
    assert do(lambda: job.every(3600).put(8)).jid != first.jid
    assert do(lambda: job.every(3600, jid="report").put(7)).jid == "report"


def test_a_daily_function_runs_each_day_however_often_its_program_starts(stopped, client):
    seen: list[float] = []

    def report() -> None:
        seen.append((stopped.now_ms - begun) / 3_600_000)

    begun = stopped.now_ms
    job = client.job(queue="q", name="report")(report)
    worker = LocalWorker(client, stopped)
    for _ in range(7):
        job.every(timedelta(days=1), starting=stopped.moment + timedelta(hours=3)).put()
        worker.run_for(hours=12)
    worker.close()
    assert seen == [3.0, 27.0, 51.0, 75.0]


def test_sets_give_a_recurrence_the_same_name_in_every_process(do):
    from holdfast.code.registry import recurring_jid

    words = [f"word{n}" for n in range(50)]
    assert recurring_jid("f", [set(words)], {}) == recurring_jid("f", [{*words[::-1]}], {})
    assert len(recurring_jid("é" * 100, [], {}).encode()) <= 180


def test_what_recurs_says_how_often_and_which_function(job):
    with pytest.warns(RuntimeWarning, match="never put"):
        assert re.fullmatch(r"<(Async)?Every 60 of <.*>>", repr(job.every(60)))


def test_a_recurrence_begins_when_it_is_told_to(do, job):
    later = datetime.now(UTC) + timedelta(seconds=500)
    future = template(do, do(lambda: job.every(60, starting=later).put(1)))
    assert abs(future.next_ms / 1000 - later.timestamp()) < 5
    grid = datetime(2024, 1, 1, 3, tzinfo=UTC)
    daily = template(do, do(lambda: job.every(timedelta(days=1), starting=grid).put(2)))
    off = (daily.next_ms / 1000 - grid.timestamp()) % 86_400
    assert min(off, 86_400 - off) < 5
    assert 0 <= daily.next_ms / 1000 - time.time() + 5 <= 86_405


def test_what_was_said_at_the_function_holds_for_its_recurrences(do):
    job = do.client.job(
        queue="q", retries=2, backoff=5, timeout=9, expires=60, result_keep=30, tags=["red"], throttles=["t"],
        priority=4, delay=100,
    )(welcome)  # fmt: skip
    row = template(do, do(lambda: job.every(60, backlog=0).put(1)))
    assert (row.retries, row.priority, row.tags, row.throttles, row.backlog) == (
        2,
        4,
        ("red",),
        ("t", "ql:q:q"),
        0,
    )
    assert row.options == {
        "backoff": "fixed:5000:5000:0",
        "limit": "9000",
        "expires": "60000",
        "keep": "30000",
        "losses": "3",
    }
    assert row.next_ms - row.since_ms == 100_000


def test_what_cannot_be_said_is_told_where_it_is_said(do):
    """Not when a function is decorated later, nor at the first put."""
    with pytest.raises(UsageError, match="did you mean 'queue'"):
        do.client.job(queu="mail")
    with pytest.raises(UsageError, match="an interval is a number of seconds"):
        do.client.job(_nothing).every("1h")


def _nothing() -> None: ...


def test_a_function_job_is_pickled_and_copied_by_name_as_a_plain_function(client, monkeypatch):
    module = types.ModuleType("pickled_jobs")
    monkeypatch.setitem(sys.modules, "pickled_jobs", module)
    module.app = client
    exec("@app.job\ndef double(n: int) -> int: return 2 * n", module.__dict__)
    double = module.double
    assert pickle.loads(pickle.dumps(double)) is double
    assert copy.deepcopy({"task": double})["task"] is double
    later = pickle.loads(pickle.dumps(double.options(delay=60)))
    assert later.put_options()[1]["delay"] == double.options(delay=60).put_options()[1]["delay"]
    assert later(2) == 4


def test_an_argument_may_be_named_self(client):
    @client.job(queue="q", name="frameworks.keep")
    def keep(**fields: int) -> dict[str, int]:
        return fields

    assert keep(self=1) == {"self": 1}
    assert b'"self":1' in bytes(keep.bind(self=1).data)
    for handle in (keep.put(self=1), keep.put_in(5, self=1), keep.put_at(5, self=1)):
        assert '"self":1' in client.jobs[handle.jid].raw_data.decode()
    assert keep.every(60).put(self=1).jid


def test_an_async_function_job_is_awaited_by_frameworks(client):
    ran = []

    @client.job(queue="q", name="frameworks.notify")
    async def notify(n: int) -> None:
        ran.append(n)

    @client.job(queue="q", name="frameworks.plain")
    def plain(n: int) -> None:
        ran.append(n)

    for job in (notify, notify.options(delay=1), plain):
        asyncio.run(BackgroundTask(job, 7)())
    assert ran == [7, 7, 7]
    assert asyncio.iscoroutinefunction(notify)
    assert not asyncio.iscoroutinefunction(plain)


def test_a_datetime_whose_offset_has_seconds_is_refused(client):
    @client.job(queue="q", name="frameworks.at")
    def at(when: datetime, others: list[datetime] | None = None) -> None: ...

    old = datetime(1890, 1, 1, tzinfo=ZoneInfo("Europe/Berlin"))
    for args in ((old,), (datetime.now(UTC), [old])):
        with pytest.raises(UsageError, match="has seconds, which JSON cannot represent"):
            at.put(*args)
    at.put(old.astimezone(UTC), [datetime(2026, 1, 1, tzinfo=ZoneInfo("Europe/Berlin"))])


class TestWhetherAPutMadeTheJob:
    """`handle.is_new`, with both clients."""

    def test_a_put_without_a_jid_or_with_a_new_one_made_the_job(self, do) -> None:
        job = do.client.job(queue="q", name="w")(welcome)
        assert do(lambda: job.put(1)).is_new is True
        assert do(lambda: job.options(only_new=True).put(1)).is_new is True
        for number, options in enumerate(({}, {"only_new": True}, {"tags": ["a"]}, {"delay": 60})):
            handle = do(lambda n=number, o=options: job.options(jid=f"j{n}", **o).put(1))
            assert handle.is_new is True, options
            assert type(handle.jid) is str
        assert [handle.is_new for handle in do(lambda: job.put_many([(1,), (2,)]))] == [True, True]

    @pytest.mark.parametrize("options", [{}, {"tags": ["a"]}, {"delay": 60}, {"throttles": ["t"]}])
    def test_a_put_that_found_a_job_of_its_jid_did_not(self, do, options) -> None:
        job = do.client.job(queue="q", name="w")(welcome)
        first = do(lambda: job.options(jid="a", **options).put(1))
        moved = do(lambda: job.options(jid="a", **options).put(2))
        assert (first.is_new, moved.is_new) == (True, False)
        assert data(do, moved)["args"] == [2]
        left = do(lambda: job.options(jid="a", only_new=True, **options).put(2))
        assert left.is_new is False

    def test_a_handle_that_no_put_returned_does_not_know(self, do) -> None:
        assert do.client.jobs.handle("a").is_new is None

    def test_puts_of_one_moment_each_know_it(self, client, aclient) -> None:
        client.queues["q"].put("K", jid="b")
        job = aclient.job(queue="q", name="w")(welcome)

        async def story() -> list[Any]:
            async with aclient:
                return await asyncio.gather(*[job.options(jid=jid).put(1) for jid in "abc"])

        assert [handle.is_new for handle in asyncio.run(story())] == [True, False, True]

    def test_in_a_batch_it_is_known_when_the_batch_is_sent(self, client) -> None:
        client.queues["q"].put("K", jid="b")
        job = client.job(queue="q", name="w")(welcome)
        with client.batch():
            handles = [job.options(jid=jid).put(1) for jid in "abc"]
            assert [handle.is_new for handle in handles] == [None, None, None]
        assert [handle.is_new for handle in handles] == [True, False, True]
