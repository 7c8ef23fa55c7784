"""HUP: the handler is called, then every child is replaced, one at a time (spec/workers.md 11.1, row HUP)."""

import itertools
import json
import os
import re
import signal

import pytest
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


@pytest.mark.full
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
    assert "[WARNING]" not in worker.said()
    assert worker.said().count("HUP") == 1


def test_a_serial_worker_shows_where_it_is_at_hup_and_goes_on(shop):
    worker = shop.start("serial")
    handle = shop.chores.hog.put("a")
    began(shop, "a")
    worker.signal(signal.SIGHUP)
    until(
        lambda: "signal SIGHUP: stack of process" in worker.said() and "wait_for" in worker.said(),
        "the stack is logged",
    )
    shop.open()
    assert handle.result(30) == "a"


@pytest.mark.full
def test_a_handler_for_hup_is_called_in_place_of_the_stack_and_may_fail(shop):
    worker = shop.run_code(
        """
        from holdfast.worker.run import run_worker
        from holdfast.worker.settings import WorkerSettings
        from holdfast.worker.store_choice import StoreChoice
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
    assert "signal SIGHUP" not in worker.said()


@pytest.mark.full
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


UNIT = ("--import", "desk", "--shutdown-timeout", "60")
"""The flags of docs/examples/holdfast-worker.service, but for its names."""

DESK = """
import chores, phrases
VERSION = "{version}"

@chores.app.job(queue="q", name="say")
def say() -> list[str]:
    return [VERSION, phrases.VERSION]
"""


def write_desk(shop, version, phrases=""):
    write(shop, "desk.py", DESK.format(version=version))
    write(shop, "phrases.py", f"VERSION = '{phrases or version}'\n")


LENGTHS = itertools.count(1)


def write(shop, name, code):
    """Write a file of another size each time: Python takes compiled code of the same second and size for that of the file."""
    (shop.here / name).write_text(f"{code}\n#{'-' * next(LENGTHS)}\n")


def say(shop):
    return json.loads(shop.client.result_of(shop.q.put("say", {"args": []}), 30))


def started(worker):
    """The processes that were its children, or are."""
    return set(re.findall(r"started as process (\d+)", worker.said()))


def start_desk(shop, pool, *flags, workers=1):
    (shop.here / "work").mkdir()
    write_desk(shop, "old")
    worker = shop.start(pool, *UNIT, "--workdir", str(shop.here / "work"), *flags, workers=workers)
    until(lambda: len(started(worker)) == workers, "its children have started")
    return worker


def restart(worker, workers=1):
    """Have all children replaced."""
    before = started(worker)
    worker.signal(signal.SIGHUP)
    until(lambda: len(started(worker) - before) == workers, "the children are replaced")


@pytest.mark.full
def test_hup_replaces_all_of_the_imported_code(shop, forking_pool):
    worker = start_desk(shop, forking_pool)
    # Before a child has run anything.
    write_desk(shop, "new")
    restart(worker)
    assert say(shop) == ["new", "new"]
    # After it has run it.
    write_desk(shop, "newer")
    restart(worker)
    assert say(shop) == ["newer", "newer"]
    # After a child has loaded the job's own file again by itself.
    write_desk(shop, "third", "of it, the second module")
    until(lambda: say(shop)[0] == "third", "the job's own module is loaded again")
    assert say(shop) == ["third", "newer"]
    restart(worker)
    assert say(shop) == ["third", "of it, the second module"]
    said = worker.said()
    assert said.count("HUP") == 3
    assert "[WARNING]" not in said
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0


@pytest.mark.full
def test_an_imported_file_that_changed_before_its_first_job_is_loaded_again(shop, pool):
    write_desk(shop, "old")
    worker = shop.start(pool, *UNIT)
    until(lambda: "working for q" in worker.said(), "it has imported the code")
    write_desk(shop, "new")
    assert say(shop)[0] == "new"


@pytest.mark.full
def test_children_load_new_code_themselves_when_the_process_that_had_it_was_killed(shop, forking_pool):
    worker = start_desk(shop, forking_pool)
    assert say(shop) == ["old", "old"]
    [child], [loader] = worker.children(), worker.loaders()
    os.kill(loader, signal.SIGKILL)
    until(lambda: "until HUP each child loads the code itself" in worker.said(), "that is noticed")
    write_desk(shop, "new")
    os.kill(child, signal.SIGKILL)
    until(lambda: "started as process" in worker.said().rpartition("SIGKILL")[2], "the child is replaced")
    assert say(shop) == ["new", "new"]
    restart(worker)
    until(lambda: len(worker.loaders()) == 1, "the code is loaded and shared again")
    assert say(shop) == ["new", "new"]


@pytest.mark.full
def test_where_no_process_can_adopt_orphans_each_child_loads_the_code(shop):
    write_desk(shop, "old")
    worker = shop.run_code(
        f"""
        from holdfast.cli.main import run
        from holdfast.worker.supervisor import loading
        loading.adopts_orphans = lambda: False
        run(["worker", "-q", "q", "-w", "2", "--url", {shop.url!r}, "--namespace", {shop.namespace!r}, "-m", "desk"])
        """
    )
    assert say(shop) == ["old", "old"]
    until(lambda: len(started(worker)) == 2, "its children have started")
    write_desk(shop, "new")
    restart(worker, workers=2)
    assert say(shop) == ["new", "new"]
    until(lambda: not worker.loaders(), "the process that loaded the code has ended")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0


@pytest.mark.full
@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "was killed by SIGSEGV"),
        ("import os; os._exit(0)", "ended with status 0"),
        ("import sys; sys.exit('not today')", "SystemExit: not today"),
        ("import os; os.closerange(3, 100); print(open('/dev/full'))", "ended with status 1"),
    ],
)
def test_hup_survives_code_that_ends_its_process(shop, line, cause):
    worker = start_desk(shop, "process")
    write(shop, "phrases.py", f"VERSION = 'broken'\n{line}\n")
    worker.signal(signal.SIGHUP)
    until(lambda: "the old processes keep running" in worker.said(), "it is logged")
    assert cause in worker.said()
    assert say(shop) == ["old", "old"]
    write_desk(shop, "new")
    restart(worker)
    assert say(shop) == ["new", "new"]


@pytest.mark.full
def test_hup_and_term_end_the_loading_of_code_that_hangs(shop):
    worker = start_desk(shop, "process")
    (shop.here / "phrases.py").write_text("import chores\nchores.note('hangs')\nchores.wait_for('never')")
    worker.signal(signal.SIGHUP)
    until(lambda: len(shop.notes("hangs")) == 1, "the new code hangs")
    assert say(shop) == ["old", "old"]
    worker.signal(signal.SIGHUP)
    until(lambda: len(shop.notes("hangs")) == 2, "it is loaded once more")
    loaders = worker.loaders()
    assert len(loaders) == 2
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert not any(map(process_lives, loaders))


@pytest.mark.full
def test_hup_names_settings_that_the_new_code_changes_and_refuses_wrong_ones(shop):
    (shop.here / "hook.py").write_text("def go(): pass\n")
    worker = start_desk(shop, "process", "--setup", "hook:go")
    (shop.here / "hook.py").write_text("import os\ndef go(): os.environ['INTERVAL'] = '7'\n")
    restart(worker)
    assert "the new code sets interval: restart the worker for that" in worker.said()
    (shop.here / "hook.py").write_text("import os\ndef go(): os.environ['INTERVAL'] = 'often'\n")
    worker.signal(signal.SIGHUP)
    until(lambda: "INTERVAL: expected a number" in worker.said(), "that it cannot be loaded is logged")
    assert say(shop) == ["old", "old"]
