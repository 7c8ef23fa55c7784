"""Pools whose children perform many jobs at once: workers.md 1 (seats), 3 and 11.3 (losing a job while it runs)."""

import signal
from pathlib import Path
from time import monotonic

import pytest
from worker_kit import until

MANY = ["asyncio", "thread", "gevent"]
BLOCKING = ["thread", "gevent"]

MORE = '''

@app.job(queue="q")
def doze(seconds: float) -> None:
    threading.Event().wait(seconds)


@app.job(queue="q")
async def adoze(seconds: float) -> None:
    await asyncio.sleep(seconds)


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
    """Whether its lease has ended before its time, and nobody said how the job ended."""
    job = shop.job(handle.jid)
    return job.state in ("running", "stalled") and job.ttl <= 0


@pytest.mark.parametrize("pool", MANY)
def test_all_seats_of_a_child_are_busy_at_once(more, pool):
    chore = more.chores.adoze if pool == "asyncio" else more.chores.doze
    more.start(pool, "--concurrency", "50")
    chore.put(0.0).result(10)
    begun = monotonic()
    for handle in [chore.put(1.0) for _ in range(50)]:
        handle.result(10)
    # One after the other they would need 50 s. How near to 1 s it comes is told by the benchmarks.
    assert monotonic() - begun < 10


@pytest.mark.parametrize("pool", BLOCKING)
def test_a_seat_whose_job_cannot_be_ended_is_not_lost_with_it(more, pool):
    worker = more.start(pool, "--concurrency", "2")
    handle = more.chores.stubborn.put("a")
    [pid] = began(more)
    more.client.jobs.cancel(handle.jid)
    until(lambda: "dropped" in worker.said(), "the worker has heard")
    # Both seats work, in the same process.
    handles = [more.chores.block.put(name) for name in "bc"]
    assert began(more, 3)[1:] == [pid, pid]
    more.open()
    assert [other.result(10) for other in handles] == ["b", "c"]
    until(lambda: more.notes("end a"), "it ended by itself")
    assert more.chores.add.put(1).result(10) == 2


@pytest.mark.parametrize("pool", BLOCKING)
def test_a_process_in_which_too_many_lost_jobs_go_on_is_replaced_after_the_good_ones(more, pool):
    worker = more.start(pool, "--concurrency", "2")
    lost = [more.chores.stubborn.put(name) for name in "ab"]
    [pid, _] = began(more, 2)
    more.client.jobs.cancel(lost[0].jid)
    until(lambda: "dropped" in worker.said(), "the worker has heard")
    good = more.chores.block.put("c", "other-gate")
    began(more, 3)
    more.client.jobs.cancel(lost[1].jid)
    until(lambda: "is replaced: as many jobs" in worker.said(), "the process is to be replaced")
    more.open("other-gate")
    assert good.result(10) == "c"
    assert more.job(good.jid).attempts == 1
    assert more.chores.add.put(1).result(10) == 2
    assert pid not in worker.children()
    assert more.notes("end") == ["end c"]


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
