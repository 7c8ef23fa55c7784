"""python-api.md 5.1 to 5.4: running a job's code without a worker, for both clients."""

import os
import subprocess
import sys
from typing import Any

import pytest

import holdfast
from holdfast import LeaseLost, UsageError, current_job
from holdfast.code.failure import ByKlass, use_failure_formatter
from holdfast.commands.jobs import Put

SEEN: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_seen():
    SEEN.clear()
    yield
    use_failure_formatter(None)


class Parcel:
    """The snippet of 5.1; for both clients, for what is returned is awaited."""

    @staticmethod
    def pack(job):
        return job.complete("ship")

    @staticmethod
    def ship(job):
        return job.complete()


class Plain:
    @staticmethod
    def process(job):
        SEEN.append(("process", current_job()))

    @staticmethod
    def perform(job):
        SEEN.append("perform")


class Older:
    @classmethod
    def perform(cls, job):
        SEEN.append(cls)

    class Nested:
        @staticmethod
        def process(job):
            SEEN.append("nested")


class Instance:
    def process(self, job): ...


class Nothing:
    x = 1


class Broken:
    @staticmethod
    def process(job):
        raise KeyError("no stamp")


class Leaving:
    @staticmethod
    def process(job):
        raise SystemExit(3)


class Ended:
    @staticmethod
    def process(job):
        raise LookupError("after the end")


class Waiting:
    @staticmethod
    async def process(job):
        await job.complete()


def put_and_pop(do, klass, queue="q", data=None):
    jid = do(lambda: do.client.queues[queue].put(klass, data or {}))
    job = do(lambda: do.client.queues[queue].pop())
    assert job.jid == jid
    return job


def again(do, job):
    return do(lambda: do.client.jobs[job.jid])


def test_the_attribute_named_like_the_queue_runs_and_needs_no_process(do):
    job = put_and_pop(do, Parcel, "pack")
    assert do(lambda: job.process()) is None
    assert again(do, job).queue_name == "ship"
    shipped = do(lambda: do.client.queues["ship"].pop())
    do(lambda: shipped.process())
    assert again(do, job).state == "complete"


def test_else_process_runs_and_is_the_running_job(do):
    job = put_and_pop(do, Plain)
    do(lambda: job.process())
    assert [("process", job)] == SEEN
    assert current_job() is None


def test_else_perform_runs_with_the_class_of_a_class_method(do):
    do(put_and_pop(do, Older).process)
    assert [Older] == SEEN


def test_nested_classes_and_modules_run(do):
    do(put_and_pop(do, Older.Nested).process)
    do(put_and_pop(do, sys.modules[__name__], "a_queue").process)
    assert SEEN == ["nested", "module"]


def a_queue(job):
    SEEN.append("module")


def test_processing_never_completes(do):
    job = put_and_pop(do, Plain)
    do(lambda: job.process())
    do(lambda: job.perform())
    assert again(do, job).state == "running"
    assert not job.state_changed


@pytest.mark.parametrize("how", ["process", "perform"])
@pytest.mark.parametrize(
    ("klass", "group", "message"),
    [
        ("no_such_shop.Parcel", "q-ModuleNotFoundError", "Failed to import no_such_shop.Parcel\n"),
        (f"{__name__}.Crate", "q-AttributeError", f"Failed to import {__name__}.Crate\n"),
        (Nothing, "q-method-missing", f'{__name__}.Nothing is missing a method "q" or "process"'),
    ],
)
def test_a_job_for_which_there_is_nothing_to_run_fails(do, how, klass, group, message):
    job = put_and_pop(do, klass)
    assert do(getattr(job, how)) is None
    failed = again(do, job)
    assert failed.state == "failed"
    assert failed.failure["group"] == group
    assert failed.failure["message"].startswith(message)


@pytest.mark.parametrize(("klass", "group"), [(Broken, "q-KeyError"), (Instance, "q-TypeError")])
def test_what_the_method_raises_fails_the_job_with_its_traceback(do, klass, group):
    job = put_and_pop(do, klass)
    do(lambda: job.process())
    failure = again(do, job).failure
    assert failure["group"] == group
    assert failure["message"].startswith("Traceback (most recent call last):\n")
    assert group[2:] in failure["message"]


def test_the_message_begins_with_the_jobs_own_code(do):
    job = put_and_pop(do, Broken)
    do(lambda: job.process())
    frames = [line for line in again(do, job).failure["message"].splitlines() if line.startswith("  File")]
    assert len(frames) == 1
    assert "test_performing_without_worker.py" in frames[0]


def test_another_formatter_tells_the_failure(do):
    use_failure_formatter(ByKlass())
    job = put_and_pop(do, Broken)
    do(lambda: job.process())
    assert again(do, job).failure["group"] == f"{__name__}.Broken:KeyError"


def test_performing_lets_exceptions_through_and_fails_nothing(do):
    job = put_and_pop(do, Broken)
    with pytest.raises(KeyError, match="no stamp"):
        do(lambda: job.perform())
    assert again(do, job).state == "running"


def test_what_is_no_exception_is_not_caught_and_nothing_recorded(do):
    job = put_and_pop(do, Leaving)
    with pytest.raises(SystemExit):
        do(lambda: job.process())
    assert again(do, job).state == "running"


def test_the_failure_of_a_job_that_is_not_held_any_more_is_refused(do):
    job = put_and_pop(do, Ended)
    other = do(lambda: do.client.jobs[job.jid])
    do(lambda: other.complete())
    with pytest.raises(LeaseLost):
        do(lambda: job.process())
    assert again(do, job).state == "complete"


def test_a_note_says_which_process_began(do):
    job = put_and_pop(do, Plain)
    do(lambda: job.perform())
    assert f"started by pid:{os.getpid()}" in [entry["what"] for entry in again(do, job).history]


def test_perform_answers_what_the_code_returned(do):
    assert do(put_and_pop(do, Parcel, "ship").perform) == "complete"


def test_async_def_is_awaited_by_an_async_job_and_refused_by_a_blocking_one(do):
    job = put_and_pop(do, Waiting)
    if isinstance(do.client, holdfast.AsyncClient):
        do(lambda: job.process())
        assert again(do, job).state == "complete"
        return
    for run in (job.process, job.perform):
        with pytest.raises(UsageError, match="AsyncClient"):
            run()
    assert "started" not in str(again(do, job).history)
    assert again(do, job).state == "running"


def add(a: int, b: int = 1) -> int:
    SEEN.append(current_job())
    return a + b


def test_a_function_job_gets_its_own_arguments_and_is_not_completed(do):
    holdfast.Client("redis://nowhere").job(name=f"{__name__}.add")(add)
    job = put_and_pop(do, f"{__name__}.add", data={"args": [2], "kwargs": {"b": 5}})
    assert do(lambda: job.perform()) == 7
    assert [job] == SEEN
    assert again(do, job).state == "running"


def test_arguments_that_do_not_fit_fail_the_job(do):
    holdfast.Client("redis://nowhere").job(name=f"{__name__}.add")(add)
    job = put_and_pop(do, f"{__name__}.add", data={"args": [], "kwargs": {"c": 5}})
    do(lambda: job.process())
    assert again(do, job).failure["group"] == "q-ArgumentError"


@pytest.mark.parametrize(
    "data", [b"\xff", b'{"args":[1', b'{"args":[%s1%s]}' % (b"[" * 100_000, b"]" * 100_000)]
)
def test_data_that_cannot_be_read_fail_the_job(do, data):
    holdfast.Client("redis://nowhere").job(name=f"{__name__}.add")(add)
    do(lambda: do.client.run(Put("q", f"{__name__}.add", data)))
    job = do(lambda: do.client.queues["q"].pop())
    do(lambda: job.process())
    assert again(do, job).failure["group"] == "q-InvalidData"


def test_a_job_that_was_built_by_hand_is_performed_without_asking_a_store():
    job = holdfast.Job.build(object(), Plain, data={"who": "Ann"})
    job.perform()
    job.klass = Older
    job.perform()
    assert [("process", job), Older] == SEEN


class Following:
    """Its puts become visible only if it completes."""

    @staticmethod
    def process(job):
        with job.on_completion():
            SEEN.append(job._client.queues["next"].put("shop.Parcel", {}))
        if job["fails"]:
            raise ValueError
        return job.complete()


@pytest.mark.parametrize(("fails", "puts"), [(False, 1), (True, 0)])
def test_puts_on_completion_are_kept_back_here_too(client, fails, puts):
    client.queues["q"].put(Following, {"fails": fails})
    client.queues["q"].pop().process()
    assert client.queues["next"].length() == puts


@pytest.mark.full
def test_whoever_only_puts_does_not_load_what_performs():
    program = (
        "import sys, holdfast; holdfast.Client('redis://nowhere').queues['q']; "
        "print([name for name in sys.modules if name.startswith('holdfast.') and "
        "name.endswith(('code.calling', 'jobs.code', 'failure', 'code.middleware', 'importing'))])"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"
