"""The parent keeps its children going (spec/workers.md 12), and does not start them all at once (1.2)."""

import os
import re
import signal
from pathlib import Path
from time import monotonic

import pytest
from worker_kit import process_lives, until

from holdfast.worker.leases.table import LeaseTable
from holdfast.worker.settings import WorkerSettings
from holdfast.worker.supervisor.children import ChildProcess, Children
from programs import calls_store


def pauses(worker):
    return [float(found) for found in re.findall(r"it is replaced in ([\d.]+) s", worker.said())]


@pytest.mark.full
@pytest.mark.parametrize("pool", ["process", "fork"])
def test_a_parent_outlives_all_its_children_again_and_again(shop, pool):
    worker = shop.start(pool, workers=3)
    killed = set()
    for _ in range(3):
        until(lambda: len({*worker.children()} - killed) == 3, "all are there", 30)
        for pid in {*worker.children()} - killed:
            os.kill(pid, signal.SIGKILL)
            killed.add(pid)
    assert shop.chores.add.put(1).result(30) == 2
    # Pid, how it ended, and what happens now; one that died young waits.
    line = r"worker \S+ \(process \d+\) was killed by SIGKILL; it is replaced in \d\.\d s"
    until(lambda: len(re.findall(line, worker.said())) == 9, "each death is told")
    assert worker.process.poll() is None


@pytest.mark.full
def test_children_that_die_young_are_replaced_later_and_later(shop):
    worker = shop.start_supervisor(
        """
def body(*given):
    if not (chores.HERE / "gate").exists():
        os._exit(7)
    return serial.body(*given)
Supervisor(settings, store, body).run()
"""
    )
    until(lambda: len(pauses(worker)) >= 6, "they die")
    assert "ended with status 7" in worker.said()
    assert pauses(worker)[:6] == [0.2, 0.2, 0.4, 0.4, 0.8, 0.8]
    shop.open()
    assert shop.chores.add.put(1).result(30) == 2


@pytest.mark.full
def test_a_parent_that_cannot_fork_tries_again_and_one_that_fails_leaves_no_child_behind(shop):
    worker = shop.start_supervisor(
        """
import errno, signal
fork, refused = os.fork, []
def no_fork():
    if len(refused) < 3:
        refused.append(1)
        raise BlockingIOError(errno.EAGAIN, "no room")
    return fork()
os.fork = no_fork
class Failing(Supervisor):
    def _on_signal(self, number):
        if number == signal.SIGUSR2:
            raise RuntimeError("the parent fails")
        super()._on_signal(number)
print("said before any fork", end=" ")
Failing(settings, store, serial.body).run()
"""
    )
    handle = shop.chores.block.put("a")
    until(lambda: shop.notes("begin a"), "it works after all")
    assert "the process that calls the store cannot be started, trying again: [Errno 11]" in worker.said()
    assert worker.said().count("cannot be started, trying again in 0.2 s: [Errno 11] no room") == 2
    until(lambda: any(map(calls_store, worker.processes())), "that process is started as well")
    children = worker.processes()
    worker.signal(signal.SIGUSR2)
    assert worker.wait() == 1
    assert "RuntimeError: the parent fails" in worker.said()
    assert not any(map(process_lives, children))
    # Whatever its end, what its children held goes back, and nothing of it came out of a child again.
    assert shop.job(handle.jid).ttl <= 0
    assert worker.said().count("said before any fork") == 1


@pytest.mark.full
def test_a_child_that_is_halted_is_told_of_and_keeps_its_job(shop):
    shop.q.heartbeat = 1
    worker = shop.start("process")
    handle = shop.chores.block.put("a")
    until(lambda: shop.notes("begin a"), "it works")
    [child] = worker.children()
    os.kill(child, signal.SIGSTOP)
    until(lambda: f"(process {child}) is halted by a signal" in worker.said(), "the parent says so")
    end = shop.job(handle.jid).expires_at
    # For longer than a lease: its parent vouches for it.
    until(lambda: shop.job(handle.jid).expires_at > end + 1.5, "its lease was renewed")
    os.kill(child, signal.SIGCONT)
    shop.open()
    assert handle.result(30) == "a"
    assert shop.job(handle.jid).attempts == 1


@pytest.mark.full
def test_children_start_at_random_moments_of_the_startup_interval_and_their_successors_at_once(shop):
    settings = WorkerSettings(("q",), workers=20, max_startup_interval=100.0).checked()
    family = Children(settings, None, None, None, None, -1, lambda slot, code: False)
    now = monotonic()
    starts = sorted(slot.fork_at - now for slot in family.children)
    assert starts[-1] - starts[0] > 20
    assert -1 < starts[0] <= starts[-1] <= 100
    slot = family.children[0]
    slot.born = now - 10
    slot.replace(-9, stopped=False)
    assert slot.fork_at <= monotonic()
    family.close()

    worker = shop.start("process", "--max-startup-interval", "3600", workers=2)
    title = Path(f"/proc/{worker.pid}/cmdline")
    until(lambda: "Working with 0 children" in title.read_text(), "it has begun")
    worker.signal(signal.SIGQUIT)
    assert worker.wait(30) == 0
    assert "started as" not in worker.said()


def test_a_place_counts_deaths_in_youth_until_one_grows_old():
    slot = ChildProcess("w-0", 0, LeaseTable())
    found = []
    for _ in range(8):
        slot.born = 1e12  # just now
        found.append(slot.replace(1, stopped=False)[2])
    assert found == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]
    slot.born = 0.0
    assert slot.replace(1, stopped=False) == ("ended with status 1", False, 0.0)
    # One that was told to end, and not by its parent: perhaps the whole group was.
    assert slot.replace(0, stopped=False) == ("ended with status 0", False, 0.1)
    slot.born = 1e12
    assert slot.replace(-11, stopped=False) == ("was killed by SIGSEGV", False, 0.2)
    assert slot.replace(-40, stopped=False)[0] == "was killed by signal 40"
    # One that died in a job says nothing of whether others can start.
    slot.had_jobs = True
    assert slot.replace(3, stopped=False) == ("ended with status 3", False, 0.0)
    slot.lease_table.close()
