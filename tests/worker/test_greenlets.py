"""The pool of greenlets: a patched library, kills, imports, forks, and async code (workers.md 1, 5.1 `-g`, 11.3, 13)."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from worker_kit import until

from holdfast import Client, UsageError
from holdfast.testing.store import ScratchStore
from holdfast.worker.greenlets import check_patched, patch

GREEN = '''
import socket, subprocess, threading, time
import gevent
import gevent.monkey
import chores
from chores import HERE, app, note


@app.job(queue="q")
def library() -> list[bool]:
    """Whether the library waits for greenlets, here and in what was imported before."""
    from holdfast.wire import sync, waiting
    patched = gevent.monkey.is_module_patched
    return [*(patched(name) for name in ("socket", "threading", "time", "os", "signal", "subprocess")),
            waiting.time.sleep.__module__.startswith("gevent")]


@app.job(queue="q")
def call() -> str:
    return subprocess.run(["echo", "hello"], capture_output=True, text=True).stdout


@app.job(queue="q")
def clean(name: str) -> None:
    note(f"begin {name}")
    try:
        time.sleep(60)
    except gevent.GreenletExit:
        note(f"killed {name}")
        raise


@app.job(queue="q")
def fork_and_wait() -> int:
    """The forked process waits as greenlets do, and so would let others go on, if there were any."""
    import os
    pid = os.fork()
    if pid == 0:
        time.sleep(0.2)
        app.queues["q"].counts
        code = subprocess.run(["true"]).returncode
        os._exit(40 + code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@app.job(queue="q")
def tick() -> None:
    """Says each while in which process it is."""
    import os
    while not (HERE / "gate").exists():
        note(f"tick {os.getpid()}")
        time.sleep(0.01)

'''


@pytest.fixture
def green(shop):
    """The module of chores for greenlets, as the client of the test names them."""
    (shop.here / "green.py").write_text(GREEN)
    return lambda name, *args: shop.q.put(f"green.{name}", {"args": list(args)})


def answer(shop, jid):
    import json

    return json.loads(shop.client.result_of(jid, 30))


def test_one_child_of_greenlets_does_all_that_plain_code_may(shop, green):
    worker = shop.start("gevent", "-m", "green")
    assert answer(shop, green("library")) == [True] * 7
    assert answer(shop, green("call")) == "hello\n"
    ticking = green("tick")
    until(lambda: shop.notes("tick"), "another greenlet works")
    assert answer(shop, green("fork_and_wait")) == 40
    [child] = worker.children()
    # The other greenlets did not go on in the forked process.
    assert set(shop.notes("tick")) == {f"tick {child}"}
    shop.open()
    assert answer(shop, ticking) is None
    assert "Traceback" not in worker.said()
    assert "Warning:" not in worker.said()


@pytest.mark.full
def test_the_greenlet_of_a_lost_job_is_killed_and_no_other(shop, green):
    worker = shop.start("gevent", "-m", "green")
    lost, other = green("clean", "a"), shop.chores.hog.put("b")
    until(lambda: shop.notes("begin a") and shop.notes("begin b"), "both have begun")
    shop.client.jobs.cancel(lost)
    until(lambda: shop.notes("killed a"), "its greenlet was killed")
    until(lambda: f"job {lost}: it was cancelled" in worker.said(), "that is logged")
    shop.open()
    assert other.result(30) == "b"
    assert shop.chores.add.put(1).result(30) == 2


@pytest.mark.full
def test_a_slow_or_failing_import_keeps_nobody_waiting_and_ends_nothing(shop, green):
    (shop.here / "slow.py").write_text(
        "import chores, time\nchores.note('imports')\nwhile not (chores.HERE / 'gate').exists():\n    time.sleep(0.01)\n"
        "class Job:\n    @staticmethod\n    def perform(job):\n        chores.note('performed')\n"
    )
    (shop.here / "bad.py").write_text("import time\ntime.sleep(0.01)\nraise ImportError('no way')\n")
    worker = shop.start("gevent")
    slow = [shop.q.put("slow.Job", {}) for _ in range(3)]
    until(lambda: shop.notes("imports"), "the module is being imported")
    assert shop.chores.add.put(1).result(30) == 2
    bad = shop.q.put("bad.Job", {})
    shop.open()
    until(lambda: [shop.state(jid) for jid in slow] == ["complete"] * 3, "all have found their code")
    assert shop.notes("imports") == ["imports"]
    until(lambda: shop.state(bad) == "failed", "that one failed")
    assert shop.job(bad).failure["group"] == "q-ImportError"
    assert shop.chores.add.put(2).result(30) == 3
    assert "ended" not in worker.said()


@pytest.mark.full
def test_short_for_greenlets_is_the_pool_with_so_many_seats(shop):
    worker = shop.start("gevent", "-g", "7")
    assert shop.chores.add.put(1).result(30) == 2
    assert "pool gevent, 1 × 7" in worker.said()


def fork_during_outages(shop, times, pool="gevent"):
    """Have a child started while the store is away, again and again; each must work when the store is back."""
    with ScratchStore("valkey", "process") as store:
        client = Client(store.url, namespace=shop.namespace)
        worker = shop.start(pool, "--interval", "0.3", url=store.url)
        put = client.queues["q"].put
        for number in range(times):
            assert client.result_of(put("chores.add", {"args": [number]}), 30) == str(number + 1).encode()
            before = worker.children()
            store.kill()
            for _ in range(2):
                [child] = worker.children()
                os.kill(child, signal.SIGKILL)
                until(lambda last=child: worker.children() not in ([], [last]), "it was replaced")
            assert not {*before} & {*worker.children()}
            store.restart()
        assert client.result_of(put("chores.add", {"args": [1]}), 30) == b"2"
        worker.signal(signal.SIGQUIT)
        assert worker.wait() == 0
        assert "Traceback" not in worker.said()
        client.close()


@pytest.mark.full
def test_a_child_that_was_started_while_the_store_was_away_works_when_it_is_back(shop):
    fork_during_outages(shop, 2)


@pytest.mark.full
def test_twenty_children_that_were_started_while_the_store_was_away_work_when_it_is_back(shop):
    fork_during_outages(shop, 20)


@pytest.mark.full
def test_a_program_that_did_not_patch_its_library_is_told_how(monkeypatch):
    with pytest.raises(UsageError, match=r"monkey\.patch_all\(\)"):
        check_patched()
    monkeypatch.setitem(sys.modules, "gevent.monkey", None)
    with pytest.raises(
        UsageError,
        match=r"pip install 'holdfast-jobs\[gevent\]' \(in a checkout: pip install '.\[gevent\]'\)",
    ):
        patch()


@pytest.mark.full
def test_a_program_that_patched_all_of_its_library_may_be_the_parent(shop):
    program = Path(shop.here / "program.py")
    program.write_text(
        "from gevent import monkey\nmonkey.patch_all()\nimport os\n"
        "from holdfast.client.store_options import ClientOptions\n"
        "from holdfast.worker.run import run_worker\nfrom holdfast.worker.settings import WorkerSettings\n"
        "from holdfast.worker.store_choice import StoreChoice\n"
        "store = StoreChoice(os.environ['CHORES_URL'], ClientOptions(namespace=os.environ['CHORES_NAMESPACE']))\n"
        "run_worker(WorkerSettings(('q',), 'gevent', 1, max_jobs=2, drain=True), store)\n"
    )
    for number in range(5):
        shop.chores.count.put(number)
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=shop.here,
        timeout=120,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(shop.notes("count")) == [f"count {number}" for number in range(5)]
