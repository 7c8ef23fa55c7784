"""HUP: the handler is called, then every child is replaced, one at a time (spec/workers.md 11.1, row HUP)."""

import os
import re
import signal

from worker_kit import process_lives, until

DEPOT = """
import chores
class Depot:
    @staticmethod
    def perform(job):
        chores.note("{version} depot " + str(chores.os.getpid()))
        job.complete()
"""


def write_code(shop, version):
    (shop.here / "depot.py").write_text(DEPOT.format(version=version))


def restarts(worker):
    """What the log says of children that came and went: (`is replaced after` or `started`, name), in order."""
    said = re.findall(r"worker (\S+) (?:\(process \d+\) )?(started|is replaced after)", worker.said())
    return [(what, name) for name, what in said]


def began(shop, name):
    until(lambda: shop.notes(f"begin {name}"), f"{name} began")


def test_hup_replaces_idle_and_busy_children_one_at_a_time_by_others_with_new_code(shop, forking_pool):
    write_code(shop, "old")
    worker = shop.start(forking_pool, "--name", "bee", workers=3)
    shop.q.put("depot.Depot", {})
    until(lambda: shop.notes("old depot"), "the code as it was")
    handle = shop.chores.block.put("a")
    began(shop, "a")
    until(lambda: len(worker.children()) >= 3, "all are there")
    before = worker.children()
    write_code(shop, "new and longer")
    worker.signal(signal.SIGHUP)
    until(lambda: len(set(before) & set(worker.children())) == 1, "the idle ones were replaced")
    assert "at SIGHUP process" in worker.said()
    shop.open()
    # Nothing is broken off for a restart.
    assert handle.result(30) == "a"
    assert shop.job(handle.jid).attempts == 1
    until(lambda: not set(before) & set(worker.children()), "the busy one was replaced too")
    until(lambda: len(restarts(worker)) == 9, "its successor has started")
    # One goes when the one before has a successor, so that never more than one is missing.
    steps = restarts(worker)[3:]
    assert [what for what, _ in steps] == ["is replaced after", "started"] * 3
    assert [name for what, name in steps[::2]] == [name for what, name in steps[1::2]]
    assert {name for _, name in steps} == {"bee-0", "bee-1", "bee-2"}
    for _ in range(5):
        shop.q.put("depot.Depot", {})
    until(lambda: len(shop.notes("new and longer depot")) == 5, "all work by the new code")
    assert worker.said().count("[WARNING]") == worker.said().count("[WARNING] at SIGHUP") == 1


def test_a_serial_worker_shows_where_it_is_at_hup_and_goes_on(shop):
    worker = shop.start("serial")
    handle = shop.chores.hog.put("a")
    began(shop, "a")
    worker.signal(signal.SIGHUP)
    until(lambda: "at SIGHUP process" in worker.said() and "wait_for" in worker.said(), "the stack is logged")
    shop.open()
    assert handle.result(30) == "a"


def test_a_handler_for_hup_is_called_in_place_of_the_stack_and_may_fail(shop):
    worker = shop.run_code(
        """
        from holdfast.work.run import run_worker
        from holdfast.work.settings import WorkerSettings
        from holdfast.work.store_choice import StoreChoice
        import chores
        def handler():
            chores.note("handled")
            raise RuntimeError("not well")
        settings = WorkerSettings(("q",), workers=1, imports=("chores",), sighup_handler=handler)
        run_worker(settings, StoreChoice.of(chores.app))
        """
    )
    assert shop.chores.add.put(1).result(30) == 2
    [before] = worker.children()
    worker.signal(signal.SIGHUP)
    until(lambda: shop.notes("handled"), "it was called")
    until(lambda: not process_lives(before) and worker.children(), "the child was replaced all the same")
    assert shop.chores.add.put(2).result(30) == 3
    assert "RuntimeError: not well" in worker.said()
    assert "at SIGHUP" not in worker.said()


def test_children_with_new_code_that_cannot_start_leave_the_others_at_work(shop):
    (shop.here / "hooks.py").write_text("import os, pathlib\n")
    worker = shop.start_supervisor(
        """
        def body(*given):
            if (chores.HERE / "bad").exists():
                os._exit(9)
            return serial.body(*given)
        Supervisor(settings, store, body).run()
        """
    )
    assert shop.chores.add.put(1).result(30) == 2
    until(lambda: len(worker.children()) == 2, "both are there")
    shop.open("bad")
    worker.signal(signal.SIGHUP)
    until(lambda: worker.said().count("ended with status 9") >= 3, "the successor dies again and again")
    assert shop.chores.add.put(2).result(30) == 3
    assert worker.said().count("is replaced after") == 1
    pauses = [float(found) for found in re.findall(r"status 9; it is replaced in ([\d.]+) s", worker.said())]
    assert pauses == sorted(pauses)
    assert pauses[0] < pauses[-1]
    os.remove(shop.here / "bad")
    until(lambda: worker.said().count("is replaced after") == 2, "it goes on when they can")
