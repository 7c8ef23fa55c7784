"""Pools whose children perform many jobs at once: workers.md 1 (seats), 3 and 11.3 (losing a job while it runs)."""

import signal
from pathlib import Path

import pytest
from worker_kit import until

from holdfast.commands.leases import Lease
from holdfast.commands.outcomes import Expire

MANY = ["asyncio", "thread", "gevent"]
BLOCKING = ["thread", "gevent"]

MORE = '''

@app.job(queue="q")
def stubborn(name: str) -> None:
    """Goes on whatever it is told, and whatever is raised in it."""
    note(f"begin {name} {os.getpid()}")
    pause = threading.Event()
    while not (HERE / "gate").exists():
        try:
            pause.wait(0.005)
        except BaseException:
            pass
    note(f"end {name}")


@app.job(queue="q")
def tidy(name: str) -> None:
    note(f"begin {name} {os.getpid()}")
    try:
        wait_for("gate")
    finally:
        note(f"tidied {name}")


@app.job(queue="q")
async def atidy(name: str) -> None:
    note(f"begin {name} {os.getpid()}")
    try:
        await await_for("gate")
    finally:
        note(f"tidied {name}")
'''


@pytest.fixture
def more(shop):
    """The shop with more chores."""
    import importlib
    import sys

    with Path(shop.chores.__file__).open("a") as file:
        file.write(MORE)
    del sys.modules["chores"]
    shop.client.close()
    shop.chores = importlib.import_module("chores")
    shop.client = shop.chores.app
    shop.q = shop.client.queues["q"]
    return shop


def began(shop, count=1):
    until(lambda: len(shop.notes("begin")) >= count, f"{count} jobs began")
    return [int(line.split()[2]) for line in shop.notes("begin")]


def given_back(shop, handle):
    """Whether anybody may have the job now, which was not charged for what happened to it."""
    job = shop.job(handle.jid)
    return (job.state, job.losses) == ("waiting", 0)


@pytest.mark.full
@pytest.mark.parametrize("pool", MANY)
def test_all_seats_of_a_child_are_busy_at_once(more, pool):
    chore = more.chores.block if pool == "asyncio" else more.chores.hog
    more.start(pool, "--concurrency", "50")
    handles = [chore.put(f"job-{number}") for number in range(50)]
    until(lambda: len(more.notes("begin")) == 50, "all have begun")
    assert more.notes("end") == []
    more.open()
    assert [handle.result(30) for handle in handles] == [f"job-{number}" for number in range(50)]


@pytest.mark.full
@pytest.mark.parametrize("pool", BLOCKING)
def test_a_seat_whose_job_cannot_be_ended_is_not_lost_with_it(more, pool):
    worker = more.start(pool, "--concurrency", "2")
    handle = more.chores.stubborn.put("a")
    [pid] = began(more)
    more.client.jobs.cancel(handle.jid)
    until(lambda: "not recorded" in worker.said(), "the worker knows")
    # Both slots work, in the same process.
    handles = [more.chores.block.put(name) for name in "bc"]
    assert began(more, 3)[1:] == [pid, pid]
    more.open()
    assert [other.result(30) for other in handles] == ["b", "c"]
    until(lambda: more.notes("end a"), "it ended by itself")
    assert more.chores.add.put(1).result(30) == 2


@pytest.mark.full
@pytest.mark.parametrize("pool", BLOCKING)
def test_a_process_in_which_too_many_lost_jobs_go_on_is_replaced_after_the_good_ones(more, pool):
    worker = more.start(pool, "--concurrency", "2")
    lost = [more.chores.stubborn.put(name) for name in "ab"]
    [pid, _] = began(more, 2)
    more.client.jobs.cancel(lost[0].jid)
    until(lambda: "not recorded" in worker.said(), "the worker knows")
    good = more.chores.block.put("c", "other-gate")
    began(more, 3)
    more.client.jobs.cancel(lost[1].jid)
    until(lambda: "is replaced: all of its slots" in worker.said(), "the process is to be replaced")
    more.open("other-gate")
    assert good.result(30) == "c"
    assert more.job(good.jid).attempts == 1
    assert more.chores.add.put(1).result(30) == 2
    assert pid not in worker.children()
    assert more.notes("end") == ["end c"]


@pytest.mark.full
@pytest.mark.parametrize("pool", MANY)
def test_jobs_unwind_when_their_process_is_terminated(more, pool):
    names = ["atidy"] if pool == "asyncio" else ["tidy", "atidy"]
    worker = more.start(pool)
    handles = [getattr(more.chores, name).put(name) for name in names]
    began(more, len(names))
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert sorted(more.notes("tidied")) == sorted(f"tidied {name}" for name in names)
    # Broken off, not failed: somebody else has them at once.
    assert all(given_back(more, handle) for handle in handles)


@pytest.mark.full
@pytest.mark.parametrize("pool", BLOCKING)
def test_what_ended_before_a_process_was_terminated_is_said(more, pool):
    worker = more.start(pool)
    slow = more.chores.tidy.put("slow")
    began(more)
    quick = [more.chores.count.put(number) for number in range(5)]
    until(lambda: len(more.notes("count")) == 5, "the quick ones were performed")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert [more.state(handle.jid) for handle in quick] == ["complete"] * 5
    assert given_back(more, slow)


def lose_twice(shop, handle):
    """Make a job one that is performed alone."""
    for _ in range(2):
        [job] = shop.q.pop(1)
        assert shop.client.run(Expire([Lease(job.jid, job.facts.token, job.worker_name)])) == 1


@pytest.mark.parametrize("pool", ["asyncio", "gevent", "thread"])
def test_a_job_that_is_performed_alone_waits_for_no_lock_that_another_job_holds(shop, pool):
    alone = shop.chores.take_lock.put("alone")
    lose_twice(shop, alone)
    worker = shop.start(pool, "--interval", "60")
    assert alone.result(30) == "alone"
    until(lambda: "it runs in a separate process" in worker.said(), "it was")
    keeper = shop.chores.keep_lock.put("keeper")
    until(lambda: shop.notes("begin keeper"), "another job holds the lock")
    worker.signal(signal.SIGUSR2)
    until(lambda: "pausing" in worker.said(), "it takes no more jobs")
    again = shop.chores.take_lock.put("again")
    lose_twice(shop, again)
    worker.signal(signal.SIGCONT)
    assert again.result(30) == "again"
    shop.open()
    assert keeper.result(30) == "keeper"


@pytest.mark.full
def test_jobs_performed_alone_end_while_other_threads_log_to_a_file(shop):
    handles = [shop.chores.take_lock.put(str(number)) for number in range(200)]
    for _ in range(2):
        popped = [*shop.q.pop(100), *shop.q.pop(100)]
        leases = [Lease(job.jid, job.facts.token, job.worker_name) for job in popped]
        assert sum(shop.client.run(Expire(leases[at : at + 100])) for at in (0, 100)) == 200
    counts = [shop.chores.count.put(number) for number in range(5000)]
    worker = shop.start("thread", "--logger", str(shop.here / "log"), "--verbose", workers=2)
    assert [handle.result(120) for handle in handles] == [str(number) for number in range(200)]
    until(lambda: len(shop.notes("count")) >= len(counts), "all is done", 120)
    worker.signal(signal.SIGQUIT)
    assert worker.wait() == 0


@pytest.mark.full
def test_a_cancelled_thread_that_does_not_look_is_broken_off_and_the_next_job_of_its_thread_is_not(shop):
    shop.start("thread", "--concurrency", "1")
    for number in range(3):
        handle = shop.chores.hog_carefully.put(f"a{number}")
        until(lambda number=number: len(shop.notes("begin")) > number, "the job began")
        shop.client.jobs[handle.jid].cancel()
        until(lambda number=number: len(shop.notes("unwound")) > number, "the job unwound")
        assert shop.chores.add.put(number, 1).result(30) == number + 1
