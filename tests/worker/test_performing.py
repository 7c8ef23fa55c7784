"""What becomes of a job, in every pool."""

import importlib
import signal
import sys

import pytest
from worker_kit import until

from holdfast import CodecError, JobFailed


@pytest.mark.full
def test_function_jobs_answer_their_results(shop, pool):
    shop.start(pool)
    handles = [shop.chores.add.put(n, b=10) for n in range(5)] + [shop.chores.aadd.put(100)]
    assert [handle.result(30) for handle in handles] == [10, 11, 12, 13, 14, 101]
    assert all(shop.state(handle.jid) == "complete" for handle in handles)


@pytest.mark.full
def test_a_class_job_goes_through_its_queues_and_keeps_its_edits(shop, pool):
    shop.start(pool, "-q", "r")
    jid = shop.q.put("chores.Parcel", {"to": "Ann"})
    until(lambda: shop.state(jid) == "complete", "the parcel is shipped")
    assert shop.notes() == ["packed Ann", "shipped Ann True"]


@pytest.mark.full
def test_a_class_job_may_be_async_or_complete_by_returning_from_perform(shop, pool):
    shop.start(pool)
    jids = [shop.q.put("chores.Awaited", {}), shop.q.put("chores.Older", {})]
    until(lambda: [shop.state(jid) for jid in jids] == ["complete"] * 2, "both are complete")
    assert sorted(shop.notes()) == ["awaited", "performed"]


@pytest.mark.full
def test_an_exception_fails_the_job_with_its_own_traceback(shop, pool):
    shop.start(pool)
    jid = shop.q.put("chores.Broken", {})
    until(lambda: shop.state(jid) == "failed", "the job failed")
    failure = shop.job(jid).failure
    assert failure["group"] == "q-KeyError"
    assert "broken inside" in failure["message"]
    assert "raise KeyError" in failure["message"]
    assert "holdfast" not in failure["message"]


@pytest.mark.full
def test_a_function_without_retries_fails_at_once(shop, pool):
    shop.start(pool)
    with pytest.raises(JobFailed, match="no hope") as caught:
        shop.chores.hopeless.put().result(30)
    assert caught.value.group == "q-LookupError"
    assert shop.notes() == ["hopeless"]


@pytest.mark.full
def test_a_function_with_retries_is_tried_again_and_then_fails_in_the_errors_group(shop, pool):
    shop.start(pool)
    handle = shop.chores.unlucky.put()
    with pytest.raises(JobFailed, match="out of luck") as caught:
        handle.result(30)
    assert caught.value.group == "q-ValueError"
    assert shop.notes() == ["unlucky"] * 3


@pytest.mark.full
def test_leaving_by_sys_exit_is_a_failure_of_the_job_alone(shop, pool):
    worker = shop.start(pool)
    with pytest.raises(JobFailed) as caught:
        shop.chores.leave.put().result(30)
    assert caught.value.group == "q-SystemExit"
    assert shop.chores.add.put(1).result(30) == 2
    assert worker.process.poll() is None


@pytest.mark.full
@pytest.mark.parametrize(
    ("how", "name"),
    [
        ("time", "OutOfTime"),
        ("generator", "GeneratorExit"),
        ("iterator", "StopIteration"),
        ("name", "OSError"),
        ("text", "Unspeakable"),
    ],
)
def test_whatever_a_job_raises_is_a_failure_of_the_job_alone(shop, pool, how, name):
    worker = shop.start(pool, "--workers", "1")
    with pytest.raises(JobFailed) as caught:
        shop.chores.end_oddly.put(how).result(30)
    assert caught.value.group == f"q-{name}"
    with pytest.raises(JobFailed) as caught:
        shop.chores.aend_oddly.put(how).result(30)
    assert caught.value.group == ("q-RuntimeError" if how == "iterator" else f"q-{name}")
    assert shop.chores.add.put(1).result(30) == 2
    assert "released:" not in worker.said()
    assert "Logging error" not in worker.said()


@pytest.mark.full
def test_whatever_a_module_raises_when_it_is_imported_is_a_failure_of_the_job_alone(shop, pool):
    (shop.here / "stormy.py").write_text("raise KeyboardInterrupt")
    worker = shop.start(pool)
    jid = shop.q.put("stormy.Job", {})
    until(lambda: shop.state(jid) == "failed", "the job failed")
    assert shop.job(jid).failure["group"] == "q-KeyboardInterrupt"
    assert shop.chores.add.put(1).result(30) == 2
    assert "released:" not in worker.said()


@pytest.mark.full
def test_a_module_that_forks_when_it_is_imported_does_not_make_a_second_worker(shop, pool):
    (shop.here / "forking.py").write_text(
        "import os, chores\nif os.fork() == 0:\n    chores.note('forked')\nclass Job:\n"
        "    @staticmethod\n    def perform(job):\n        chores.note('performed')\n        job.complete()\n"
    )
    shop.start(pool)
    jid = shop.q.put("forking.Job", {})
    until(lambda: shop.state(jid) == "complete" and shop.notes("forked"), "the job is complete")
    assert shop.chores.add.put(1).result(30) == 2
    assert shop.notes("performed") == ["performed"]


@pytest.mark.full
@pytest.mark.parametrize("how", ["text", "group"])
def test_a_wish_that_cannot_be_granted_is_a_failure_of_the_job(shop, pool, how):
    worker = shop.start(pool, "--workers", "1")
    with pytest.raises(JobFailed) as caught:
        shop.chores.wish_oddly.put(how).result(30)
    assert caught.value.group == "q-UsageError"
    assert "released:" not in worker.said()


@pytest.mark.full
def test_a_job_returned_unsettled_is_named_in_a_warning_and_tried_again(shop, pool):
    shop.q.heartbeat = 1
    shop.client.config["grace-period"] = 0
    worker = shop.start(pool)
    shop.q.put("chores.Forgetful", {})
    until(lambda: len(shop.notes("forgot")) >= 2, "it is tried again when its lease has ended")
    assert "job.complete()" in worker.said()
    assert "--auto-complete" in worker.said()


@pytest.mark.full
def test_auto_complete_completes_any_method_that_returns(shop, pool):
    shop.start(pool, "--auto-complete")
    jid = shop.q.put("chores.Forgetful", {})
    until(lambda: shop.state(jid) == "complete", "the job is complete")


def test_what_is_not_allowed_or_does_not_fit_fails_with_a_group_of_its_own(shop, pool):
    shop.start(pool)
    wanted = {
        shop.q.put("os.system", {}): "q-NotAllowed",
        shop.q.put("pip._internal.utils.misc", {}): "q-NotAllowed",
        shop.q.put("chores.nothing", {}): "q-AttributeError",
        shop.q.put("nowhere.nothing", {}): "q-ModuleNotFoundError",
        shop.q.put("chores.add", {"args": ["x"]}): "q-ArgumentError",
        shop.q.put("chores.add", {"kwargs": {"c": 1}}): "q-ArgumentError",
        shop.q.put("chores.add", [1]): "q-ArgumentError",
    }
    until(lambda: shop.client.queues["q"].counts["failed"] == len(wanted), "all have failed")
    assert {jid: shop.job(jid).failure["group"] for jid in wanted} == wanted


def test_a_result_that_cannot_be_written_fails_the_job_and_the_work_is_not_repeated(shop, pool):
    worker = shop.start(pool)
    with pytest.raises(JobFailed, match=r"chores\.odd cannot be kept") as caught:
        shop.chores.odd.put().result(30)
    assert caught.value.group == "q-UnserializableResult"
    until(lambda: "chores.odd cannot be kept" in worker.said(), "the worker says so")
    assert shop.notes("odd") == ["odd"]


WRONG_RESULTS = """
import dataclasses
from typing import TypedDict
from chores import app


@dataclasses.dataclass
class Bill:
    sum: int


@dataclasses.dataclass
class LongBill(Bill):
    lines: int = 0


class Totals(TypedDict):
    net: int


@app.job(queue="q")
def price(text: str) -> int:
    return text


@app.job(queue="q", retries=3, strict_results=True)
def strict(text: str) -> int:
    return text


@app.job(queue="q", strict_results=True, result_keep=0)
def unkept() -> int:
    return "four"


@app.job(queue="q", strict_results=True)
def bill() -> Bill:
    return LongBill(1, 2)


@app.job(queue="q", strict_results=True)
def totals() -> list[Totals]:
    return [{"net": 1, "gross": 2}]


@app.job(queue="q", strict_results=True)
async def fits() -> list[Bill] | None:
    return [Bill(3)]
"""


@pytest.fixture
def wrong(shop, monkeypatch):
    (shop.here / "prices.py").write_text(WRONG_RESULTS)
    monkeypatch.delitem(sys.modules, "prices", raising=False)
    return importlib.import_module("prices")


@pytest.mark.full
def test_a_result_of_another_type_than_declared_is_logged_once_for_each_function(shop, pool, wrong):
    worker = shop.start(pool, "--import", "prices", workers=2)
    handles = wrong.price.put_many([("four",)] * 6)
    until(lambda: all(handle.state == "complete" for handle in handles), "all are complete")
    with pytest.raises(CodecError, match="not of the type that it declares"):
        handles[0].result(30)
    worker.signal(signal.SIGTERM)
    worker.wait()
    [line] = [line for line in worker.said().splitlines() if "the result of prices.price" in line]
    assert "WARNING" in line
    assert "declared as int, and the function returned str: Expected `int`, got `str`" in line


@pytest.mark.full
def test_a_result_of_another_type_fails_the_job_without_a_retry_where_results_are_strict(shop, pool, wrong):
    shop.start(pool, "--import", "prices")
    assert wrong.fits.put().result(30) == [wrong.Bill(3)]
    for handle, words in (
        (wrong.strict.put("four"), "declared as int, and the function returned str"),
        (wrong.unkept.put(), "declared as int, and the function returned str"),
        (wrong.bill.put(), "Bill has no field 'lines'"),
        (wrong.totals.put(), "has no key 'gross'"),
    ):
        with pytest.raises(JobFailed, match=words) as caught:
            handle.result(30)
        assert caught.value.group == "q-WrongResult"
        assert shop.job(handle.jid).failure["message"].count("declared as") == 1


@pytest.mark.full
def test_the_running_job_is_known_to_its_code(shop, pool):
    shop.start(pool, "--name", "box")
    handle = shop.chores.who.put()
    assert handle.result(30) == [handle.jid, "box-0", "chores.who"]


def test_what_is_put_on_completion_is_there_when_the_result_is(shop, pool):
    shop.start(pool)
    jids = shop.chores.order.put(5).result(30)
    assert [shop.client.result_of(jid, 30) for jid in jids] == [b"6", b"7"]


@pytest.mark.full
@pytest.mark.parametrize("pool", ["asyncio", "thread"])
def test_code_that_cannot_be_stopped_sees_that_its_job_was_cancelled(shop, pool):
    shop.q.heartbeat = 1
    shop.start(pool)
    handle = shop.chores.heed.put("it")
    until(lambda: shop.notes("begin it"), "it has begun")
    shop.client.jobs.cancel(handle.jid)
    until(lambda: shop.notes("heeded it"), "it has seen that it was cancelled")


@pytest.mark.full
def test_wishes_are_granted(shop, pool):
    shop.start(pool)
    wish = shop.chores.wish
    assert wish.put("retry").result(30) == "retry"
    with pytest.raises(JobFailed, match="as wished") as caught:
        wish.put("fail").result(30)
    assert caught.value.group == "chosen"
    moved = wish.put("move")
    until(lambda: shop.job(moved.jid).queue_name == "elsewhere", "it moved on")


@pytest.mark.full
def test_a_delayed_job_wakes_an_idle_worker_when_it_is_due(shop, pool):
    worker = shop.start(pool, "--interval", "60")
    assert shop.chores.add.put(1).result(30) == 2
    assert shop.chores.add.options(delay=0.2).put(2).result(30) == 3
    assert shop.chores.add.put(3).result(30) == 4
    assert worker.process.poll() is None


@pytest.mark.full
def test_queues_are_tried_in_order_and_a_drained_worker_ends(shop, pool):
    other = shop.client.queues["a"]
    for number in range(3):
        shop.chores.count.put(number)
        other.put("chores.count", {"args": [number + 10]})
    worker = shop.start(pool, "-q", "a", "--drain", "--concurrency", "1")
    assert worker.wait() == 0
    assert [line.split()[1] for line in shop.notes("count")] == ["0", "1", "2", "10", "11", "12"]


@pytest.mark.full
def test_a_process_ends_after_max_jobs(shop):
    for number in range(5):
        shop.chores.count.put(number)
    worker = shop.start("serial", "--max-jobs", "2")
    assert worker.wait() == 0
    assert len(shop.notes("count")) == 2
    worker = shop.start("process", "--max-jobs", "2")
    until(lambda: len(shop.notes("count")) == 5, "replaced children do the rest")
    assert "has ended as planned" in worker.said()


@pytest.mark.full
def test_a_job_may_fork_and_there_is_still_one_worker(shop, pool):
    shop.start(pool)
    handles = {how: shop.chores.fork.put(how) for how in ("return", "raise", "exit", "_exit")}
    assert {how: handle.result(30) for how, handle in handles.items()} == {
        "return": 0,
        "raise": 1,
        "exit": 7,
        "_exit": 9,
    }
    assert sorted(shop.notes()) == ["forked _exit", "forked exit", "forked raise", "forked return"]
    assert all(shop.job(handle.jid).attempts == 1 for handle in handles.values())
    assert shop.chores.add.put(1).result(30) == 2


@pytest.mark.full
@pytest.mark.parametrize("pool", ["process", "asyncio", "thread", "gevent"])
def test_a_drained_worker_replaces_used_up_children_until_all_is_done(shop, pool):
    for number in range(7):
        shop.chores.count.put(number)
    worker = shop.start(pool, "--drain", "--max-jobs", "2")
    assert worker.wait() == 0
    assert len(shop.notes("count")) == 7
