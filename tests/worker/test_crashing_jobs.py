"""Jobs that end their process: the cause is named, the job goes back at once, and nothing they started is left."""

import os
import re
import signal

import pytest
from worker_kit import process_lives, until


def began(shop, name="a"):
    until(lambda: shop.notes(f"begin {name}"), f"{name} began")
    return [int(word) for word in shop.notes(f"begin {name}")[0].split()[2:]]


@pytest.mark.full
@pytest.mark.parametrize(
    ("how", "cause"), [("3", "exit status 3"), ("0", "exit status 0"), ("SIGSEGV", "SIGSEGV")]
)
def test_a_crash_is_logged_with_its_cause_and_the_job_goes_back_at_once(shop, forking_pool, how, cause):
    worker = shop.start(forking_pool)
    handle = shop.chores.die_once.put(how)
    assert handle.result(30) == how
    job = shop.job(handle.jid)
    assert job.losses == 1
    assert [line["what"] for line in job.history] == ["put", "popped", "crashed", "popped", "done"]
    line = (
        f"job {handle.jid} (chores.die_once) released: its process ended with {cause}; this counts as a loss"
    )
    assert line in worker.said()


def test_a_child_that_died_in_a_job_is_replaced_at_once_however_often(shop):
    worker = shop.start("process")
    for how in ("1", "2", "3", "0"):
        shop.chores.die_once.put(how)
    assert shop.chores.add.put(1).result(30) == 2
    until(lambda: shop.q.length() == 0, "all have ended")
    assert re.findall(r"status \d; it is replaced in ([\d.]+) s", worker.said()) == ["0.0"] * 4


@pytest.mark.full
def test_a_child_that_leaves_in_a_job_does_not_end_a_worker_that_drains_its_queues(shop, forking_pool):
    handles = [shop.chores.die_once.put("0"), shop.chores.add.put(1), shop.chores.add.put(2)]
    worker = shop.start(forking_pool, "--drain")
    assert worker.wait() == 0
    assert {shop.state(handle.jid) for handle in handles} == {"complete"}


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGTERM, signal.SIGINT])
def test_signals_to_the_process_of_a_job_itself_do_not_break_it_off(shop, number):
    worker = shop.start("fork")
    handle = shop.chores.block.put("a")
    [pid] = began(shop)
    os.kill(pid, number)
    os.kill(pid, signal.SIGUSR1)
    until(lambda: f"signal SIGUSR1: stack of process {pid}" in worker.said(), "both signals were seen")
    shop.open()
    assert handle.result(30) == "a"
    assert shop.job(handle.jid).attempts == 1


@pytest.mark.full
@pytest.mark.parametrize("how", ["cancelled", "killed", "stopped"])
def test_programs_that_a_job_started_end_with_its_process(shop, how):
    worker = shop.start("fork")
    handle = shop.chores.start_program.put("a")
    pid, program = began(shop)
    if how == "cancelled":
        shop.client.jobs.cancel(handle.jid)
    elif how == "killed":
        os.kill(worker.children()[0], signal.SIGKILL)
        shop.open()
    else:
        worker.signal(signal.SIGTERM)
    until(lambda: not process_lives(pid), "the process of the job has ended")
    until(lambda: not process_lives(program), "and so has the program")
