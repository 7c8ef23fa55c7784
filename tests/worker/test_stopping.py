"""Signals: what a worker does when it is told to stop, pause or go on."""

import os
import signal

import pytest
from worker_kit import process_lives, until


def began(shop, count=1):
    until(lambda: len(shop.notes("begin")) >= count, f"{count} jobs began")
    return [int(line.split()[2]) for line in shop.notes("begin")]


def given_back(shop, handle):
    """Whether anybody may have the job now: its lease has ended before its time."""
    counts = shop.q.counts
    return shop.job(handle.jid).ttl <= 0 and (counts["running"], counts["stalled"]) == (0, 1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_term_and_int_stop_at_once_and_give_the_job_back(shop, pool, number):
    worker = shop.start(pool)
    handle = shop.chores.block.put("a")
    began(shop)
    children = worker.children()
    worker.signal(number)
    assert worker.wait() == 0
    assert not any(process_lives(pid) for pid in children)
    assert shop.notes("end") == []
    assert given_back(shop, handle)
    # Given back, not waited for: the lease would have lasted a minute.
    shop.open()
    shop.start(pool)
    assert handle.result(10) == "a"
    assert shop.job(handle.jid).losses == 1


def test_being_told_to_stop_again_and_again_gives_the_job_back_all_the_same(shop, pool):
    worker = shop.start(pool)
    handle = shop.chores.block.put("a")
    began(shop)
    while worker.process.poll() is None:
        worker.signal(signal.SIGTERM)
    assert "Traceback" not in worker.said()
    assert given_back(shop, handle)


def test_quit_finishes_what_is_under_way_and_takes_nothing_more(shop, pool):
    worker = shop.start(pool, "--concurrency", "1")
    first, second = shop.chores.block.put("a"), shop.chores.block.put("b")
    began(shop)
    worker.signal(signal.SIGQUIT)
    heard = {"process": "stopping after", "fork": "stopping after", "serial": ""}.get(
        pool, "takes no more jobs"
    )
    until(lambda: heard in worker.said(), "it has heard")
    shop.open()
    assert worker.wait() == 0
    assert first.result(1) == "a"
    assert (shop.state(first.jid), shop.state(second.jid)) == ("complete", "waiting")
    assert shop.notes("end") == ["end a"]


def test_an_idle_worker_stops_at_once(shop, pool):
    worker = shop.start(pool, "--interval", "60")
    assert shop.chores.add.put(1).result(10) == 2
    worker.signal(signal.SIGQUIT)
    assert worker.wait(3) == 0


def test_a_second_signal_ends_what_a_polite_one_waits_for(shop):
    worker = shop.start("process")
    handle = shop.chores.hog.put("a")
    began(shop)
    worker.signal(signal.SIGQUIT)
    until(lambda: "stopping after" in worker.said(), "the parent has heard")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert given_back(shop, handle)


@pytest.mark.parametrize("pool", ["process", "asyncio", "thread", "gevent"])
def test_a_child_that_does_not_end_is_killed_after_the_term_timeout(shop, pool):
    worker = shop.start(pool, "--term-timeout", "0.3")
    handle = shop.chores.hog.put("a")
    [pid] = began(shop)
    os.kill(worker.children()[0], signal.SIGSTOP)
    worker.signal(signal.SIGTERM)
    os.kill(worker.pid, signal.SIGCONT)
    assert worker.wait() == 0
    assert not process_lives(pid)
    assert given_back(shop, handle)


def test_usr1_kills_the_children_and_goes_on_with_others(shop, forking_pool):
    worker = shop.start(forking_pool, workers=2)
    handle = shop.chores.hog.put("a")
    began(shop)
    before = set(worker.children())
    shop.open()
    worker.signal(signal.SIGUSR1)
    assert handle.result(10) == "a"
    until(lambda: len(worker.children()) == 2 and not before & set(worker.children()), "both were replaced")


@pytest.mark.parametrize("pool", ["process", "asyncio", "thread", "gevent"])
def test_usr2_pauses_and_cont_goes_on(shop, pool):
    worker = shop.start(pool, "--concurrency", "1", workers=2)
    handles = [shop.chores.block.put(name) for name in "ab"]
    began(shop, 2)  # one each: no child is still about to ask for its first
    shop.open()
    assert [handle.result(10) for handle in handles] == ["a", "b"]
    worker.signal(signal.SIGUSR2)
    until(lambda: "pausing" in worker.said(), "the parent has heard")
    handle = shop.chores.add.put(2)
    with pytest.raises(TimeoutError):
        handle.result(0.3)
    worker.signal(signal.SIGCONT)
    assert handle.result(10) == 3


@pytest.mark.parametrize("pool", ["process", "fork", "asyncio", "thread", "gevent"])
def test_children_of_a_killed_parent_finish_their_job_and_end(shop, pool):
    worker = shop.start(pool, workers=2)
    handle = shop.chores.block.put("a")
    began(shop)
    children = worker.children()
    worker.process.kill()
    worker.wait()
    until(lambda: sum(map(process_lives, children)) == 1, "the idle child has ended")
    shop.open()
    assert handle.result(10) == "a"
    until(lambda: not any(map(process_lives, children)), "the busy child has ended too")
