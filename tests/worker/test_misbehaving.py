"""Jobs that do things to their process, each with its stated end (workers.md 3 and 13; the issue's list)."""

import os
import signal

import pytest
from worker_kit import process_lives, until

from holdfast import JobFailed

ROGUES = """
import asyncio, os, signal, socket, sys, threading
import chores
from chores import HERE, app, note
from holdfast.errors import PerformTimeout


@app.job(queue="q")
def deafen() -> None:
    for number in (signal.SIGTERM, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 0.5)


@app.job(queue="q")
def hurry_sockets() -> None:
    socket.setdefaulttimeout(0.000001)


@app.job(queue="q")
def start_thread() -> None:
    threading.Thread(target=threading.Event().wait).start()


@app.job(queue="q")
def recurse_deeply() -> None:
    def deeper():
        deeper()

    deeper()


@app.job(queue="q")
def want_memory() -> None:
    bytearray(1 << 60)


@app.job(queue="q")
def close_output() -> None:
    note(f"closes {os.getpid()}")
    sys.stdout.close()
    os.closerange(0, 3)


@app.job(queue="q")
def wrap_output() -> str:
    # As many libraries do for a while: the wrapper closes what it wraps when it is collected.
    import gc, io
    before = sys.stdout, sys.stderr
    sys.stderr = io.TextIOWrapper(sys.stderr.buffer, encoding="utf-8")
    sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8")
    sys.stdout, sys.stderr = before
    gc.collect()
    note(f"closed {sys.stderr.closed}")
    return "done"


@app.job(queue="q")
def print_all() -> None:
    print("an error", file=sys.stderr)
    print("a line", flush=True)


@app.job(queue="q")
def close_all() -> None:
    note(f"closes {os.getpid()}")
    os.closerange(3, 256)


@app.job(queue="q")
async def aclose_all(seconds: float) -> None:
    os.closerange(3, 256)
    if seconds:
        await asyncio.sleep(seconds)


@app.job(queue="q")
def leave() -> None:
    note(f"leaves {os.getpid()}")
    os._exit(0)


@app.job(queue="q")
def interrupted(name: str) -> str:
    if not (HERE / name).exists():
        (HERE / name).touch()
        raise KeyboardInterrupt
    return "done"


@app.job(queue="q")
async def ainterrupted(name: str) -> str:
    return interrupted(name)


@app.job(queue="q")
def stubborn() -> str:
    try:
        chores.wait_for("gate")
    except KeyboardInterrupt:
        note("told")
    return "late"


@app.job(queue="q", soft_timeout=0.2)
def slow() -> str:
    try:
        chores.wait_for("gate")
    except PerformTimeout:
        return "half of it"


@app.job(queue="q", soft_timeout=0.2, timeout=60)
async def aslow() -> str:
    try:
        await chores.await_for("gate")
    except PerformTimeout:
        return "half of it"


class Slow:
    soft_timeout = 0.2

    @staticmethod
    def perform(job):
        chores.wait_for("gate")


@app.job(queue="q")
def grow() -> int:
    global leak
    leak = bytearray(os.urandom(1)) * (96 << 20)
    note(f"grows {os.getpid()}")
    return len(leak)


@app.job(queue="q")
def end_thread() -> None:
    # As a library in C does: nothing of Python returns.
    import ctypes
    note(f"ends {os.getpid()}")
    ctypes.CDLL(None).pthread_exit(None)


@app.job(queue="q")
def start_program(gate: str = "gate") -> None:
    import subprocess
    program = subprocess.Popen(["sleep", "600"])
    note(f"begin {os.getpid()} {program.pid}")
    chores.wait_for(gate)


@app.job(queue="q")
def look_around() -> list[str]:
    os.fstat(1), os.fstat(2)
    print("still there")
    return [str(socket.getdefaulttimeout()), str(signal.getsignal(signal.SIGTERM) == signal.SIG_IGN)]
"""


@pytest.fixture
def rogues(shop):
    (shop.here / "rogues.py").write_text(ROGUES)
    import rogues

    yield rogues
    import sys

    del sys.modules["rogues"]


def pid_of(shop, word):
    until(lambda: shop.notes(word), f"a job {word}")
    return int(shop.notes(word)[-1].split()[1])


@pytest.mark.full
def test_what_a_job_leaves_in_its_process_disturbs_nobody(shop, pool, rogues):
    worker = shop.start(pool)
    for rogue, name in ((rogues.recurse_deeply, "RecursionError"), (rogues.want_memory, "MemoryError")):
        with pytest.raises(JobFailed) as caught:
            rogue.put().result(30)
        assert caught.value.group == f"q-{name}"
    rogues.start_thread.put().result(30)
    rogues.hurry_sockets.put().result(30)
    if pool in ("thread", "asyncio"):
        with pytest.raises(JobFailed, match="main thread"):  # Python itself refuses it there
            rogues.deafen.put().result(30)
    else:
        rogues.deafen.put().result(30)
    until(lambda: rogues.look_around.put().result(30) == ["None", "False"], "all was put right")
    assert "released:" not in worker.said()
    worker.signal(signal.SIGQUIT)
    assert worker.wait() == 0


@pytest.mark.full
def test_a_job_that_closes_output_is_done_and_its_process_replaced(shop, pool, rogues):
    worker = shop.start(pool)
    handle = rogues.close_output.put()
    handle.result(30)
    pid = pid_of(shop, "closes")
    until(lambda: not process_lives(pid), "its process has ended")
    if pool == "serial":
        assert worker.wait() == 0  # something else must start it again
        return
    assert rogues.look_around.put().result(30) == ["None", "False"]
    assert shop.job(handle.jid).attempts == 1
    assert worker.process.poll() is None


@pytest.mark.full
def test_a_job_whose_wrapper_closes_output_is_done_once_and_later_jobs_can_print(shop, pool, rogues):
    worker = shop.start(pool)
    handle = rogues.wrap_output.put()
    assert handle.result(30) == "done"
    assert shop.notes("closed") == ["closed True"]
    rogues.print_all.put().result(30)
    until(lambda: "an error" in worker.said() and "a line" in worker.said(), "both are in the log")
    assert f"job {handle.jid} (rogues.wrap_output) took" in worker.said()
    assert shop.job(handle.jid).attempts == 1
    assert worker.process.poll() is None


@pytest.mark.full
@pytest.mark.parametrize("pool", ["process", "fork", "thread", "gevent", "asyncio", "serial"])
def test_a_job_that_closes_all_that_is_open_is_done_once_and_its_process_replaced(shop, pool, rogues):
    worker = shop.start(pool)
    handle = rogues.close_all.put()
    handle.result(30)
    assert shop.job(handle.jid).attempts == 1
    pid = pid_of(shop, "closes")
    until(lambda: not process_lives(pid), "its process has ended")
    if pool != "fork":
        assert "descriptors" in worker.said()
    if pool == "serial":
        assert worker.wait() == 0  # something else must start it again
        return
    assert shop.chores.add.put(1).result(30) == 2
    assert worker.process.poll() is None


@pytest.mark.full
@pytest.mark.parametrize("pool", ["process", "thread", "asyncio"])
def test_a_coroutine_that_closes_the_descriptors_of_its_event_loop_ends_once_and_its_process_is_replaced(
    shop, rogues, pool
):
    worker = shop.start(pool)
    handle = rogues.aclose_all.put(0)
    handle.result(30)
    waits = rogues.aclose_all.put(600)
    with pytest.raises(JobFailed, match="closed descriptors of its process") as caught:
        waits.result(30)
    assert caught.value.group == "q-ClosedDescriptors"
    assert [shop.job(one.jid).attempts for one in (handle, waits)] == [1, 1]
    assert shop.chores.add.put(1).result(30) == 2
    assert worker.process.poll() is None


@pytest.mark.full
@pytest.mark.parametrize("pool", ["process", "fork", "asyncio", "thread", "gevent"])
def test_a_job_that_leaves_by_os_exit_goes_back_until_its_retries_are_used_up(shop, pool, rogues):
    worker = shop.start(pool)
    bad = shop.client.queues["q"].put("rogues.leave", {"args": []}, retries=1)
    until(lambda: shop.state(bad) == "failed", "it failed")
    assert shop.job(bad).failure["group"] == "failed-retries-q"
    assert len(shop.notes("leaves")) == 2
    assert shop.chores.add.put(1).result(30) == 2
    assert "status 0" in worker.said()


@pytest.mark.full
@pytest.mark.parametrize("pool", ["thread", "asyncio"])
def test_a_job_that_ends_its_thread_fails_once_with_that_reason_and_its_process_is_replaced(
    shop, rogues, pool
):
    worker = shop.start(pool, "--concurrency", "2")
    other = shop.chores.block.put("a")
    until(lambda: shop.notes("begin a"), "another job runs there")
    bad = rogues.end_thread.put()
    with pytest.raises(JobFailed, match="ended its thread") as caught:
        bad.result(30)
    assert caught.value.group == "q-ThreadEnded"
    assert len(shop.notes("ends")) == 1
    (shop.here / "gate").touch()
    assert other.result(30) == "a"
    assert shop.job(other.jid).attempts == 1
    assert shop.chores.add.put(1).result(30) == 2
    pid = pid_of(shop, "ends")
    until(lambda: not process_lives(pid), "its process has ended")
    assert worker.process.poll() is None


@pytest.mark.full
@pytest.mark.parametrize(("pool", "many"), [("asyncio", 99), ("thread", 19), ("gevent", 19)])
def test_good_jobs_and_one_that_ends_the_process_they_share(shop, rogues, pool, many):
    bad = rogues.leave.put()
    good = [shop.chores.aadd.put(number) for number in range(many)]
    shop.start(pool, workers=1)
    assert [handle.result(30) for handle in good] == [number + 1 for number in range(many)]
    with pytest.raises(JobFailed) as caught:
        bad.result(30)
    assert caught.value.group == "q-Crashed"
    assert all(shop.job(handle.jid).state == "complete" for handle in good)


@pytest.mark.full
def test_an_interruption_is_not_recorded_as_a_failure(shop, pool, rogues):
    shop.client.config["grace-period"] = 0
    worker = shop.start(pool)
    for handle in (rogues.interrupted.put("plain"), rogues.ainterrupted.put("async")):
        assert handle.result(30) == "done"
        found = shop.job(handle.jid)
        assert (found.attempts, found.losses) == (2, 1)
        assert not any(entry["what"] == "failed" for entry in found.history)
    assert "it was interrupted" in worker.said()
    assert worker.process.poll() is None


@pytest.mark.full
def test_a_process_that_has_grown_too_large_is_replaced_after_its_job(shop, pool, rogues):
    worker = shop.start(pool, "--max-memory", "120M")
    handle = rogues.grow.put()
    assert handle.result(30) == 96 << 20
    pid = pid_of(shop, "grows")
    until(lambda: not process_lives(pid), "its process has ended")
    if pool == "serial":
        assert worker.wait() == 0  # something else must start it again
        return
    assert shop.chores.add.put(1).result(30) == 2
    assert shop.job(handle.jid).attempts == 1
    if pool != "fork":
        assert "it ends after its jobs" in worker.said()


@pytest.mark.full
def test_a_job_is_told_at_its_soft_limit_and_may_end_in_its_own_way(shop, pool, rogues):
    worker = shop.start(pool)
    assert [handle.result(30) for handle in (rogues.slow.put(), rogues.aslow.put())] == ["half of it"] * 2
    jid = shop.q.put("rogues.Slow", {})
    until(lambda: shop.state(jid) == "failed", "it failed")
    assert shop.job(jid).failure["group"] == "q-JobTimedOutError"
    assert "soft limit of 0.2 seconds" in shop.job(jid).failure["message"]
    assert "in wait_for" in shop.job(jid).failure["message"]
    assert worker.process.poll() is None


def test_a_job_of_a_serial_worker_is_interrupted_at_its_limit_and_what_it_answers_then_is_dropped(
    shop, rogues
):
    shop.client.config["grace-period"] = 0
    worker = shop.start("serial")
    jid = shop.q.put("rogues.stubborn", {"args": []}, timeout=0.3, retries=0)
    until(lambda: shop.state(jid) == "failed", "it failed")
    assert shop.job(jid).failure["group"] == "q-TimedOut"
    assert shop.notes() == ["told"]
    # Whoever notices first says why: the clock of the run, or the store.
    assert "failed: it exceeded its timeout" in worker.said()
    assert shop.chores.add.put(1).result(30) == 2


@pytest.mark.full
def test_a_job_that_takes_too_long_is_killed_with_what_it_started(shop, rogues):
    shop.client.config["grace-period"] = 0
    worker = shop.start("fork")
    jid = shop.q.put("rogues.start_program", {"args": []}, timeout=0.5, retries=0)
    until(lambda: shop.state(jid) == "failed", "it failed")
    until(lambda: "exceeded its timeout" in worker.said(), "the worker says so")
    _, job, program = shop.notes("begin")[0].split()
    until(lambda: not process_lives(int(job)) and not process_lives(int(program)), "both were killed")
    assert len(worker.children()) == 1  # who forked it lives on
    assert worker.said().count("--import rogues imports it once") == 1


@pytest.mark.full
def test_the_process_of_a_job_does_not_outlive_who_forked_it(shop):
    worker = shop.start("fork")
    shop.chores.hog.put("a")
    until(lambda: shop.notes("begin"), "it began")
    pid = int(shop.notes("begin")[0].split()[2])
    os.kill(worker.children()[0], signal.SIGKILL)
    until(lambda: not process_lives(pid), "its process was killed")
    shop.open()


ENDLESS = """
import holdfast
from chores import app

@app.job(queue="q", retries=1)
@holdfast.retry(ValueError)
def named(n: int) -> None:
    raise ValueError("too small")

@app.job(queue="q", retries=1)
@holdfast.retry(ValueError)
async def anamed(n: int) -> None:
    raise ValueError("too small")

@app.job(queue="q", retries=1)
def returned(n: int) -> holdfast.Retry:
    return holdfast.Retry()

@app.job(queue="q", retries=1)
def why(n: int) -> holdfast.Retry:
    return holdfast.Retry(message="not yet")

@app.job(queue="q", retries=1)
def both(n: int) -> holdfast.Retry:
    return holdfast.Retry(group="mine", message="not yet")

class Old:
    @staticmethod
    @holdfast.retry(ValueError)
    def perform(job):
        raise ValueError("too small")

class Again:
    @staticmethod
    def perform(job):
        return holdfast.Retry()
"""


@pytest.mark.full
def test_a_job_without_retries_left_fails_by_what_it_raised_or_returned(shop):
    (shop.here / "endless.py").write_text(ENDLESS)
    jids = {name: shop.q.put(f"endless.{name}", {"args": [1]}, retries=1) for name in ("Old", "Again")}
    import endless

    for name in ("named", "anamed", "returned", "why", "both"):
        jids[name] = getattr(endless, name).put(1).jid
    shop.start("process", "--import", "endless")
    until(lambda: all(shop.state(jid) == "failed" for jid in jids.values()), "all have failed")
    failures = {name: shop.job(jid).failure for name, jid in jids.items()}
    assert {name: failure["group"] for name, failure in failures.items()} == {
        "named": "q-ValueError",
        "anamed": "q-ValueError",
        "returned": "q-RetriesExhausted",
        "why": "q-RetriesExhausted",
        "both": "mine",
        "Old": "failed-retries-q",
        "Again": "failed-retries-q",
    }
    for name in ("named", "anamed"):
        assert "ValueError: too small" in failures[name]["message"]
        assert "endless.py" in failures[name]["message"]
    assert failures["returned"]["message"] == "the job returned Retry(), and has no retries left"
    assert failures["why"]["message"] == failures["both"]["message"] == "not yet"
    assert all(shop.job(jid).attempts == 2 for jid in jids.values())
