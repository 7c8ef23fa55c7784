"""Processes that jobs start: signals for them, and their end with the process that ran the job."""

import os
import signal

import pytest
from worker_kit import process_lives, until

PARENTS = """
import multiprocessing, os, signal, subprocess, time
import chores
from chores import app, note

forked = multiprocessing.get_context("fork")


@app.job(queue="q")
def terminate_child() -> int:
    child = forked.Process(target=time.sleep, args=(600,))
    child.start()
    child.terminate()
    child.join(30)
    return child.exitcode


@app.job(queue="q")
def handlers_of_child() -> list[str]:
    read, write = os.pipe()
    if not os.fork():
        numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1, signal.SIGVTALRM)
        defaults = (signal.SIG_DFL, signal.default_int_handler)
        changed = [number.name for number in numbers if signal.getsignal(number) not in defaults]
        held_back = [str(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())]
        os.write(write, f"{changed} {signal.set_wakeup_fd(-1)} {held_back}".encode())
        os._exit(0)
    os.close(write)
    os.wait()
    return [os.read(read, 1000).decode()]


@app.job(queue="q")
def start_all(gate: str = "") -> None:
    child = forked.Process(target=time.sleep, args=(600,))
    child.start()
    note(f"multiprocessing {child.pid}")
    read, write = os.pipe()
    plain = os.fork()
    if not plain:
        if not os.fork():
            note(f"grandchild {os.getpid()}")
            os.write(write, b"1")
            time.sleep(600)
        time.sleep(600)
    os.read(read, 1)  # the process of the job ends with the job, and the grandchild with it
    note(f"plain {plain}")
    note(f"program {subprocess.Popen(['sleep', '600']).pid}")
    note(f"session {subprocess.Popen(['sleep', '600'], start_new_session=True).pid}")
    note(f"job {os.getpid()}")
    if gate:
        chores.wait_for(gate)
"""
FORKS = ("multiprocessing", "plain", "grandchild")


@pytest.fixture
def parents(shop):
    (shop.here / "parents.py").write_text(PARENTS)
    import parents

    yield parents
    import sys

    del sys.modules["parents"]
    for word in (*FORKS, "program", "session"):
        for line in shop.notes(word):
            if process_lives(int(line.split()[1])):
                os.kill(int(line.split()[1]), signal.SIGKILL)


def pids(shop):
    """The processes of `start_all` by their words."""
    words = (*FORKS, "program", "session", "job")
    until(lambda: all(shop.notes(word) for word in words), "all were started")
    return {word: int(shop.notes(word)[-1].split()[1]) for word in words}


@pytest.mark.full
def test_a_child_that_a_job_terminates_ends_and_nothing_of_its_worker_does(shop, pool, parents):
    worker = shop.start(pool)
    for _ in range(3):
        assert parents.terminate_child.put().result(30) == -signal.SIGTERM
    assert parents.handlers_of_child.put().result(30) == ["[] -1 []"]
    assert "takes no more jobs" not in worker.said()
    assert worker.process.poll() is None


@pytest.mark.full
def test_what_a_job_started_ends_with_its_process_and_a_session_of_its_own_is_left(shop, pool, parents):
    worker = shop.start(pool)
    parents.start_all.put().result(30)
    found = pids(shop)
    if pool != "fork":
        assert all(process_lives(found[word]) for word in (*FORKS, "program"))
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0
    for word in (*FORKS, "program"):
        until(lambda word=word: not process_lives(found[word]), f"the {word} has ended")
    assert process_lives(found["session"])
    until(lambda: "in its own session" in worker.said(), "it is logged")
    assert worker.said().count("in its own session") == 1


def test_what_a_job_forked_ends_when_its_process_is_killed(shop, pool, parents):
    worker = shop.start(pool)
    parents.start_all.put("gate")
    found = pids(shop)
    os.kill(found["job"], signal.SIGKILL)
    if pool == "serial":
        worker.wait()
    for word in FORKS:
        until(lambda word=word: not process_lives(found[word]), f"the {word} has ended")


@pytest.mark.full
@pytest.mark.parametrize("pool", ["process", "fork"])
def test_a_program_of_a_job_that_takes_too_long_is_killed_with_it(shop, pool, parents):
    shop.client.config["grace-period"] = 0
    shop.start(pool)
    jid = shop.q.put("parents.start_all", {"args": ["gate"]}, timeout=1, retries=0)
    found = pids(shop)
    until(lambda: shop.state(jid) == "failed", "it failed")
    for word in (*FORKS, "program"):
        until(lambda word=word: not process_lives(found[word]), f"the {word} has ended")
