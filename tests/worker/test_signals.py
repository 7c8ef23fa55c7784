"""Signals to children, and to a worker without children (spec/workers.md 11.2 and the Decision column of 11.1).

What the parent does at TERM, INT, QUIT, USR1, USR2 and CONT is in test_stopping.py, HUP in test_restarting.py.
"""

import os
import pty
import signal
import threading

import pytest
from worker_kit import process_lives, until

from holdfast.wire.plans import Step
from holdfast.worker.signals import (
    ALL,
    UNWIND,
    DeferredTermination,
    Terminated,
    start_without_signals,
    terminator,
)


def began(shop, name):
    until(lambda: shop.notes(f"begin {name}"), f"{name} began")
    return int(shop.notes(f"begin {name}")[0].split()[2])


def title(pid):
    with open(f"/proc/{pid}/cmdline") as file:
        return file.read()


@pytest.mark.full
def test_a_message_that_is_none_is_logged_and_ignored(shop):
    workers = [shop.start(pool, "--name", pool) for pool in ("process", "serial")]
    assert shop.chores.add.put(1).result(30) == 2
    channels = [shop.client.shard.worker_channel(f"{pool}-0") for pool in ("process", "serial")]
    nonsense = [b"", b"nonsense \xff", b"[]", b'{"event": 7}', b'{"jid": "x"}']

    def publish(message):
        return [shop.client.link.send(Step([("PUBLISH", channel, message)]))[0] for channel in channels]

    until(lambda: publish(b"first") == [1, 1], "both listen")
    for message in nonsense:
        publish(message)
    publish(b'{"event": "lock_lost", "jid": "nobody\'s", "worker": "w", "more": [1]}')
    for worker in workers:
        until(
            lambda worker=worker: worker.said().count("a message of the store was ignored") >= len(nonsense),
            "each is logged",
        )
    assert shop.chores.add.put(2).result(30) == 3
    assert all(worker.process.poll() is None for worker in workers)


@pytest.mark.full
def test_a_child_says_where_it_is_and_works_on(shop, forking_pool):
    worker = shop.start(forking_pool)
    handle = shop.chores.hog.put("a")
    began(shop, "a")
    [child] = worker.children()
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        os.kill(child, number)
        until(
            lambda: f"signal {number.name}: stack of process {child}" in worker.said(),  # noqa: B023
            "its stack is logged",
        )
    if forking_pool != "fork":
        # Not where the process waits: where its job is.
        until(
            lambda: worker.said().count(f"stack of job {handle.jid}:") == 2, "the stack of the job is logged"
        )
        assert "in wait_for" in worker.said()
    shop.open()
    assert handle.result(30) == "a"
    assert worker.children() == [child]
    assert "is stopped here" not in worker.said()


@pytest.mark.full
def test_a_child_told_to_quit_finishes_its_job_and_is_replaced(shop, forking_pool):
    worker = shop.start(forking_pool)
    handle = shop.chores.block.put("a")
    began(shop, "a")
    [child] = worker.children()
    os.kill(child, signal.SIGQUIT)
    shop.open()
    assert handle.result(30) == "a"
    assert shop.job(handle.jid).attempts == 1
    until(lambda: not process_lives(child), "it has ended")
    assert shop.chores.add.put(1).result(30) == 2


@pytest.mark.full
@pytest.mark.parametrize(
    ("pool", "number"), [("process", signal.SIGTERM), ("process", signal.SIGINT), ("asyncio", signal.SIGTERM)]
)
def test_a_child_that_gets_term_finishes_its_job_and_one_that_gets_int_goes_on(shop, pool, number):
    worker = shop.start(pool)
    handle = shop.chores.careful.put("a")
    child = began(shop, "a")
    os.kill(child, number)
    os.kill(child, signal.SIGUSR1)
    until(lambda: f"signal SIGUSR1: stack of process {child}" in worker.said(), "both signals were seen")
    assert shop.notes("unwound") == []
    shop.open()
    assert handle.result(30) == "a"
    assert shop.job(handle.jid).attempts == 1
    if number == signal.SIGTERM:
        until(lambda: not process_lives(child), "it has ended")
    assert shop.chores.add.put(1).result(30) == 2
    assert process_lives(child) == (number == signal.SIGINT)
    assert len(shop.notes("begin a")) == 1


@pytest.mark.full
def test_the_console_sees_what_the_interrupted_code_sees_and_goes_on_when_it_is_left(shop):
    reader, writer = os.pipe()
    worker = shop.start("process", "--debugger", stdin=reader)
    os.close(reader)
    handle = shop.chores.hog.put("a")
    child = began(shop, "a")
    os.kill(child, signal.SIGUSR2)
    until(lambda: f"Process {child} is stopped here." in worker.said(), "the console is open")
    # The traceback comes first, in the log.
    assert worker.said().index("signal SIGUSR2: stack of process") < worker.said().index("is stopped here")
    os.write(writer, b"'the ' + (gate if 'gate' in dir() else 'pause')\n1 / 0\nexit()\n")
    until(lambda: "ZeroDivisionError" in worker.said(), "it was evaluated")
    assert "'the gate'" in worker.said() or "'the pause'" in worker.said()
    shop.open()
    assert handle.result(30) == "a"
    # Its input may end as well.
    os.close(writer)
    os.kill(child, signal.SIGUSR2)
    until(lambda: worker.said().count(f"Process {child} is stopped here.") == 2, "it is open again")
    assert shop.chores.add.put(1).result(30) == 2
    assert worker.children() == [child]


@pytest.mark.full
def test_the_console_opens_by_itself_at_a_terminal_only(shop):
    screen, terminal = pty.openpty()
    worker = shop.start("asyncio", stdin=terminal)
    assert shop.chores.aadd.put(1).result(30) == 2
    [child] = worker.children()
    os.kill(child, signal.SIGUSR2)
    until(lambda: f"Process {child} is stopped here." in worker.said(), "the console is open")
    handle = shop.chores.aadd.put(2)
    os.write(screen, b"\x04")
    assert handle.result(30) == 3
    assert "It continues." in worker.said()
    os.close(screen)
    os.close(terminal)


@pytest.mark.full
def test_a_worker_without_children_pauses_after_its_job_until_cont(shop):
    worker = shop.start("serial", "--interval", "60")
    first = shop.chores.hog.put("a")
    began(shop, "a")
    worker.signal(signal.SIGUSR1)
    until(lambda: "signal SIGUSR1: stack of process" in worker.said(), "it says where it is")
    worker.signal(signal.SIGUSR2)
    until(lambda: "signal SIGUSR2: stack of process" in worker.said(), "it says where it is again")
    assert "pausing until CONT" in worker.said()
    shop.open()
    assert first.result(30) == "a"
    until(lambda: "Paused -- q" in title(worker.pid), "its title says so")
    second = shop.chores.add.put(1)
    with pytest.raises(TimeoutError):
        second.result(0.3)
    worker.signal(signal.SIGCONT)
    assert second.result(30) == 2
    until(lambda: "Waiting for q" in title(worker.pid), "its title says so")
    # An idle one hears at once, too.
    worker.signal(signal.SIGUSR2)
    until(lambda: "Paused -- q" in title(worker.pid), "it is paused")
    worker.signal(signal.SIGQUIT)
    assert worker.wait(30) == 0


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT])
def test_signals_to_a_worker_that_has_not_begun_yet_stop_it_in_order_or_are_not_for_it(shop, number):
    with (shop.here / "chores.py").open("a") as file:
        file.write("\n\ndef setup():\n    note('setting up')\n    wait_for('gate')\n")
    worker = shop.start("process", "--setup", "chores:setup")
    until(lambda: shop.notes("setting up"), "it begins")
    for ignored in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        worker.signal(ignored)
    worker.signal(number)
    assert worker.wait() == 0
    assert "stopped; no job was running" in worker.said()
    assert "Traceback" not in worker.said()


@pytest.mark.full
def test_signals_to_a_child_that_is_not_at_work_yet_end_it_in_order_or_show_where_it_is(shop):
    worker = shop.start_supervisor(
        """
        def body(*given):
            for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGQUIT):
                chores.note(f"before {number.name}")
                os.kill(os.getpid(), number)
            chores.note("never")
        Supervisor(settings, store, body).run()
        """
    )
    until(lambda: worker.said().count("ended with status 0; it is replaced") >= 4, "they have ended")
    assert shop.notes("never") == []
    for name in ("SIGUSR1", "SIGUSR2", "SIGHUP", "SIGQUIT"):
        assert len(shop.notes(f"before {name}")) >= 4
    for name in ("SIGUSR1", "SIGUSR2"):
        assert f"signal {name}: stack of process" in worker.said()


DESTRUCTOR = """
import signal

class Bomb:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGVTALRM)
        for _ in range(1000):
            pass


@app.job(queue="q")
def drop() -> str:
    bomb = Bomb()
    del bomb
    return "done"
"""


@pytest.mark.full
def test_an_order_to_end_that_is_heard_where_no_exception_gets_through_ends_the_worker_after_its_job(shop):
    with (shop.here / "chores.py").open("a") as file:
        file.write(DESTRUCTOR)
    worker = shop.start("process", "--interval", "60")
    until(worker.children, "it has a child")
    [child] = worker.children()
    jid = shop.q.put("chores.drop", {"args": []})
    assert shop.client.result_of(jid, 30) == b'"done"'
    until(lambda: not process_lives(child), "the child ended after its job")
    assert "Exception ignored in" in worker.said()


@pytest.mark.full
def test_an_order_to_unwind_within_a_fork_is_obeyed_after_it():
    terminate, passed = terminator(), []

    def fork():
        with DeferredTermination():
            terminate(UNWIND, None)
            passed.append("the rest of the block")

    with pytest.raises(Terminated):
        fork()
    assert passed
    with DeferredTermination():
        pass  # it was obeyed once


def test_orders_to_unwind_that_come_together_are_one():
    terminate = terminator()
    with pytest.raises(Terminated):
        terminate(UNWIND, None)
    terminate(UNWIND, None)  # it would cut off what the first one set going


@pytest.mark.full
def test_no_signal_for_the_main_thread_is_delivered_to_one_that_was_started_beside_it():
    before, found = signal.pthread_sigmask(signal.SIG_BLOCK, ()), []
    thread = threading.Thread(target=lambda: found.append(signal.pthread_sigmask(signal.SIG_BLOCK, ())))
    start_without_signals(thread)
    thread.join(30)
    assert found[0] >= set(ALL)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


STRUCK = """
import os, signal
import chores
from holdfast.worker.forking import forked
fork = forked._fork


def struck():
    pid = fork()
    if pid and not (chores.HERE / "struck").exists():
        (chores.HERE / "struck").touch()
        os.kill(os.getpid(), signal.SIGVTALRM)
    return pid


forked._fork = struck
"""


@pytest.mark.full
def test_an_order_to_unwind_that_comes_while_a_job_is_forked_reaches_its_process(shop):
    (shop.here / "struck_fork.py").write_text(STRUCK)
    worker = shop.start("fork", "--import", "struck_fork")
    handle = shop.chores.block.put("a")
    until(lambda: f"job {handle.jid} was stopped" in worker.said(), "its process has unwound")
