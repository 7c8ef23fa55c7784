"""Signals: what a worker does when it is told to stop, pause or go on."""

import os
import pty
import signal
from time import monotonic

import pytest
from worker_kit import process_lives, until

from holdfast.commands.leases import Lease
from holdfast.commands.outcomes import Expire


def began(shop, count=1):
    until(lambda: len(shop.notes("begin")) >= count, f"{count} jobs began")
    return [int(line.split()[2]) for line in shop.notes("begin")]


def given_back(shop, handle):
    """Whether anybody may have the job now, which was not charged for what happened to it."""
    job = shop.job(handle.jid)
    return (job.state, job.losses) == ("waiting", 0)


def lose_twice(shop, handle):
    """Make a job one that is performed alone."""
    for _ in range(2):
        [job] = shop.q.pop(1)
        lease = Lease(job.jid, job.facts.token, job.worker_name)
        assert shop.client.run(Expire([lease])) == 1


@pytest.mark.full
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
    assert handle.result(30) == "a"
    assert (shop.job(handle.jid).losses, shop.job(handle.jid).attempts) == (0, 2)


SLOW_END = """
import chores
from holdfast.worker.performing.surroundings import Surroundings

close = Surroundings.close


def close_slowly(around):
    chores.note("closes")
    chores.wait_for("gate")
    close(around)


Surroundings.close = close_slowly
"""


@pytest.mark.full
def test_an_order_to_unwind_that_comes_after_the_last_job_cuts_nothing_off(shop):
    (shop.here / "slow_end.py").write_text(SLOW_END)
    worker = shop.start("serial", "-m", "slow_end", "--shutdown-timeout", "1")
    assert shop.chores.add.put(1, 2).result(30) == 3
    worker.signal(signal.SIGTERM)
    until(lambda: shop.notes("closes") and "stopping now" in worker.said(), "both happened")
    shop.open()
    assert worker.wait() == 0
    assert "Traceback" not in worker.said()


@pytest.fixture(params=["terminal", "group"])
def interrupt(request):
    """A way to stop a worker and all that belongs to it at one moment: Ctrl-C at its terminal, TERM to its group."""
    screen, terminal = pty.openpty()

    def stop(worker):
        if request.param == "terminal":
            os.write(screen, b"\x03")
        else:
            os.killpg(worker.pid, signal.SIGTERM)

    stop.stdin = terminal
    yield stop
    os.close(screen)
    os.close(terminal)


CALLBACK = """
import asyncio, os, signal, chores

@chores.app.job(queue="q", name="callback")
async def callback() -> None:
    try:
        asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGVTALRM)
        await asyncio.sleep(300)
    finally:
        chores.note("unwound callback")
"""


@pytest.mark.full
@pytest.mark.parametrize("of_one", ["process", "fork"])
def test_an_async_job_unwinds_when_the_order_to_end_comes_between_two_of_its_steps(shop, of_one):
    """There asyncio logs what a signal handler raises, and goes on."""
    (shop.here / "callback.py").write_text(CALLBACK)
    worker = shop.start(of_one, "--import", "callback")
    shop.q.put("callback", {"args": []})
    until(lambda: shop.notes("unwound"), "it unwinds")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert "Traceback" not in worker.said()


@pytest.mark.full
def test_a_signal_to_the_whole_group_unwinds_each_job_and_requeues_it(shop, pool, interrupt):
    worker = shop.start(pool, leads=True, stdin=interrupt.stdin)
    handle = shop.chores.careful.put("a")
    began(shop)
    interrupt(worker)
    assert worker.wait() == 0
    assert shop.notes("unwound") == ["unwound a"]
    assert given_back(shop, handle)
    assert "Traceback" not in worker.said()


@pytest.mark.full
@pytest.mark.parametrize("of_one", ["process", "fork"])
def test_a_job_that_has_just_begun_unwinds_when_the_whole_group_is_told_to_stop(shop, of_one):
    # The title's thread lives then: a signal that it received would not wake the main thread.
    for number in range(1, 11):
        worker = shop.start(of_one, leads=True)
        if number == 1:
            shop.chores.hog_carefully.put("a")
        until(lambda number=number: len(shop.notes("begin")) >= number, "the job began")
        os.killpg(worker.pid, signal.SIGTERM)
        assert worker.wait() == 0
        assert len(shop.notes("unwound")) == number


@pytest.mark.full
def test_a_signal_to_the_whole_group_breaks_off_nothing_within_the_shutdown_timeout(shop, pool, interrupt):
    worker = shop.start(
        pool, "--shutdown-timeout", "60", "--concurrency", "1", leads=True, stdin=interrupt.stdin
    )
    first, second = shop.chores.block.put("a"), shop.chores.block.put("b")
    began(shop)
    interrupt(worker)
    interrupt(worker)  # together with the first they are one
    until(lambda: "stopping after the running jobs, within 60 s" in worker.said(), "it has heard")
    if pool in ("asyncio", "thread", "gevent"):
        until(lambda: "takes no more jobs" in worker.said(), "its child has heard")
    shop.open()
    assert worker.wait() == 0
    assert first.result(30) == "a"
    assert (shop.state(second.jid), shop.notes("end")) == ("waiting", ["end a"])
    assert shop.job(first.jid).attempts == 1


@pytest.mark.full
def test_jobs_that_take_longer_than_the_shutdown_timeout_unwind_and_are_requeued(shop, pool):
    worker = shop.start(pool, "--shutdown-timeout", "0.5")
    handle = shop.chores.careful.put("a")
    began(shop)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert "within 0.5 s" in worker.said()
    assert shop.notes("unwound") == ["unwound a"]
    assert given_back(shop, handle)


@pytest.mark.full
def test_a_second_signal_does_not_wait_for_the_shutdown_timeout(shop, pool):
    worker = shop.start(pool, "--shutdown-timeout", "3600")
    handle = shop.chores.careful.put("a")
    began(shop)
    worker.signal(signal.SIGTERM)
    until(lambda: "within 3600 s" in worker.said(), "it has heard")
    heard = monotonic()
    until(lambda: monotonic() > heard + 1.1, "a second passes")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert shop.notes("unwound") == ["unwound a"]
    assert given_back(shop, handle)


@pytest.mark.full
def test_a_job_without_retries_outlives_any_number_of_stops(shop, pool):
    jid = shop.q.put("chores.careful", {"args": ["a"]}, retries=0)
    for number in range(1, 4):
        worker = shop.start(pool)
        began(shop, number)
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0
        job = shop.job(jid)
        assert (job.state, job.losses) == ("waiting", 0)
    shop.open()
    worker = shop.start(pool)
    assert shop.client.result_of(jid, 30) == b'"a"'
    assert "alone" not in worker.said()


@pytest.mark.full
@pytest.mark.parametrize("pool", ["asyncio", "fork", "gevent", "serial", "thread"])
def test_a_job_that_is_performed_alone_unwinds_too(shop, pool):
    handle = shop.chores.careful.put("a")
    lose_twice(shop, handle)
    worker = shop.start(pool)
    [pid] = began(shop)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert shop.notes("unwound") == ["unwound a"]
    assert not process_lives(pid)
    job = shop.job(handle.jid)
    assert (job.state, job.losses) == ("waiting", 2)


@pytest.mark.full
@pytest.mark.parametrize("pool", ["asyncio", "fork", "thread"])
def test_programs_of_a_job_that_is_performed_alone_end_when_it_unwinds(shop, pool):
    handle = shop.chores.start_program.put("a")
    lose_twice(shop, handle)
    worker = shop.start(pool)
    [pid] = began(shop)
    program = int(shop.notes("begin a")[0].split()[3])
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    until(lambda: not process_lives(pid) and not process_lives(program), "both have ended")


@pytest.mark.full
@pytest.mark.parametrize("setting", ["x", "-1", "nan"])
def test_a_shutdown_timeout_that_is_no_number_of_seconds_is_refused_in_one_sentence(shop, setting):
    worker = shop.start("process", "--shutdown-timeout", setting)
    assert worker.wait() == 2
    assert "Traceback" not in worker.said()
    assert "shutdown" in worker.said().strip().splitlines()[-1]


def restart_under_load(shop, times):
    """Restart workers by HUP and by TERM in turn while they work, and see that no job is charged for it."""
    jids = []
    worker = shop.start("process", "--interval", "0.3", workers=2)
    for number in range(times):
        handles = [
            shop.chores.careful.put(f"{number}", f"gate{number}"),
            *shop.chores.count.put_many(range(20)),
        ]
        jids += [handle.jid for handle in handles]
        until(lambda at=number: shop.notes(f"begin {at} "), "it works")
        if number % 2:
            worker.signal(signal.SIGTERM)
            assert worker.wait() == 0
            worker = shop.start("process", "--interval", "0.3", workers=2)
        else:
            worker.signal(signal.SIGHUP)
            until(lambda now=worker: "HUP: the children are replaced" in now.said(), "it has heard")
        shop.open(f"gate{number}")
    until(lambda: shop.q.length() == 0, "all jobs have ended", 60)
    jobs = shop.client.jobs.get(*jids)
    assert {(job.state, job.losses) for job in jobs} == {("complete", 0)}
    assert all(job.facts.remaining == job.facts.retries for job in jobs)


@pytest.mark.full
def test_rolling_restarts_under_load_cost_no_job_anything(shop):
    restart_under_load(shop, 4)


@pytest.mark.full
def test_a_hundred_rolling_restarts_under_load_cost_no_job_anything(shop):
    restart_under_load(shop, 100)


@pytest.mark.full
def test_being_told_to_stop_again_and_again_gives_the_job_back_all_the_same(shop, pool):
    worker = shop.start(pool)
    handle = shop.chores.block.put("a")
    began(shop)
    while worker.process.poll() is None:
        worker.signal(signal.SIGTERM)
    assert "Traceback" not in worker.said()
    assert given_back(shop, handle)


@pytest.mark.full
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
    assert first.result(30) == "a"
    assert (shop.state(first.jid), shop.state(second.jid)) == ("complete", "waiting")
    assert shop.notes("end") == ["end a"]


def test_an_idle_worker_stops_at_once(shop, pool):
    worker = shop.start(pool, "--interval", "60")
    assert shop.chores.add.put(1).result(30) == 2
    worker.signal(signal.SIGQUIT)
    assert worker.wait(30) == 0


@pytest.mark.full
def test_a_second_signal_ends_what_a_polite_one_waits_for(shop):
    worker = shop.start("process")
    handle = shop.chores.hog.put("a")
    began(shop)
    worker.signal(signal.SIGQUIT)
    until(lambda: "stopping after" in worker.said(), "the parent has heard")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert given_back(shop, handle)


@pytest.mark.full
def test_a_second_signal_after_a_polite_one_does_not_wait_for_the_shutdown_timeout(shop):
    worker = shop.start("process", "--shutdown-timeout", "3600")
    handle = shop.chores.careful.put("a")
    began(shop)
    worker.signal(signal.SIGQUIT)
    until(lambda: "stopping after" in worker.said(), "the parent has heard")
    heard = monotonic()
    until(lambda: monotonic() > heard + 1.1, "a second passes")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert shop.notes("unwound") == ["unwound a"]
    assert given_back(shop, handle)


@pytest.mark.full
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


CLINGING = """
import chores


@chores.app.job(queue="q")
def cling():
    chores.note("begin a")
    try:
        chores.wait_for("gate")
    finally:
        chores.wait_for("gate")
"""


@pytest.mark.full
@pytest.mark.parametrize("pool", ["process", "serial"])
def test_a_job_that_does_not_unwind_is_cut_off_after_the_term_timeout_and_requeued(shop, pool):
    (shop.here / "clinging.py").write_text(CLINGING)
    worker = shop.start(pool, "--import", "clinging", "--term-timeout", "0.3")
    jid = shop.q.put("clinging.cling", {"args": []})
    until(lambda: shop.notes("begin"), "it began")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    job = shop.job(jid)
    assert (job.state, job.losses, job.facts.remaining) == ("waiting", 0, job.facts.retries)


@pytest.mark.full
def test_usr1_kills_the_children_and_goes_on_with_others(shop, forking_pool):
    worker = shop.start(forking_pool, workers=2)
    handle = shop.chores.hog.put("a")
    began(shop)
    before = set(worker.children())
    shop.open()
    worker.signal(signal.SIGUSR1)
    assert handle.result(30) == "a"
    assert shop.job(handle.jid).losses == 0
    until(lambda: len(worker.children()) == 2 and not before & set(worker.children()), "both were replaced")


@pytest.mark.full
@pytest.mark.parametrize("pool", ["process", "asyncio", "thread", "gevent"])
def test_usr2_pauses_and_cont_goes_on(shop, pool):
    worker = shop.start(pool, "--concurrency", "1", workers=2)
    handles = [shop.chores.block.put(name) for name in "ab"]
    began(shop, 2)  # one each: no child is still about to ask for its first
    shop.open()
    assert [handle.result(30) for handle in handles] == ["a", "b"]
    worker.signal(signal.SIGUSR2)
    until(lambda: "pausing" in worker.said(), "the parent has heard")
    handle = shop.chores.add.put(2)
    with pytest.raises(TimeoutError):
        handle.result(0.3)
    worker.signal(signal.SIGCONT)
    assert handle.result(30) == 3


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
    assert handle.result(30) == "a"
    until(lambda: not any(map(process_lives, children)), "the busy child has ended too")
