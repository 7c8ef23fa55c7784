"""What a worker loads before it takes jobs: where that fails it does not start, and nobody is replaced by it."""

import os
import signal

import pytest
from test_probes import free_port, ready, why_not
from worker_kit import until

BROKEN = """
import os
from holdfast import Client
def load():
    return no_such_name
load()
"""
HOOKS = """
import functools
def hook():
    raise RuntimeError("no database")
class Around:
    def __init__(self):
        raise RuntimeError("no database")
    def around_perform(self, job, call_next):
        return call_next(job)
"""


@pytest.mark.full
@pytest.mark.parametrize(
    ("flags", "cause"),
    [
        (("--import", "broken"), "NameError: name 'no_such_name' is not defined"),
        (
            ("--import", "no_such_module"),
            "No module named 'no_such_module'. Start the worker in its directory",
        ),
        (("--setup", "hooks:hook"), "RuntimeError: no database"),
        (("--setup", "broken:hook"), "NameError: name 'no_such_name' is not defined"),
        (("--setup", "hooks:nothing"), "module:callable"),
        (("--middleware", "hooks:Around"), "RuntimeError: no database"),
        (("--middleware", "json:nothing"), "module:object"),
    ],
)
def test_a_worker_whose_code_cannot_be_loaded_ends_with_1_and_takes_nothing(shop, flags, cause):
    (shop.here / "broken.py").write_text(BROKEN)
    (shop.here / "hooks.py").write_text(HOOKS)
    handles = [shop.chores.add.put(number) for number in range(5)]
    worker = shop.start("process", *flags)
    assert worker.wait(30) == 1
    said = worker.said()
    assert said.startswith(f"holdfast: {' '.join(flags)}")
    assert cause in said
    assert "started as process" not in said
    assert [shop.job(handle.jid).attempts for handle in handles] == [0] * 5
    assert [shop.state(handle.jid) for handle in handles] == ["waiting"] * 5


@pytest.mark.full
def test_the_error_of_a_failed_import_shows_the_frames_of_the_user_and_no_others(shop, pool):
    (shop.here / "broken.py").write_text(BROKEN)
    worker = shop.start(pool, "--import", "broken")
    assert worker.wait(30) == 1
    frames = [line for line in worker.said().splitlines() if line.startswith("  File ")]
    assert len(frames) == 2
    assert all(f'{shop.here}{os.sep}broken.py"' in frame for frame in frames)


@pytest.mark.full
def test_a_worker_class_whose_imports_fail_takes_nothing(shop):
    (shop.here / "broken.py").write_text(BROKEN)
    handle = shop.chores.add.put(1)
    worker = shop.run_code("""
        from holdfast.workers import ForkingWorker
        import chores
        ForkingWorker(["q"], chores.app, imports=["broken"], workers=1).run()
    """)
    assert worker.wait(30) == 1
    assert "holdfast.errors.StartFailed: --import broken failed" in worker.said()
    assert shop.job(handle.jid).attempts == 0


@pytest.mark.full
def test_hup_replaces_nobody_while_the_code_cannot_be_loaded(shop, forking_pool):
    (shop.here / "extras.py").write_text("")
    port = free_port()
    worker = shop.start(forking_pool, "--import", "chores", "--import", "extras", "--health-port", str(port))
    until(lambda: ready(port), "it is ready")
    before = worker.children()
    (shop.here / "extras.py").write_text(BROKEN)
    worker.signal(signal.SIGHUP)
    until(lambda: why_not(port), "it is not ready for a deploy")
    assert why_not(port) == [
        "the new code cannot be loaded: --import extras failed: NameError: name 'no_such_name' is not defined"
    ]
    assert "the old processes keep running" in worker.said()
    assert worker.children() == before
    assert shop.chores.add.put(1).result(30) == 2
    (shop.here / "extras.py").write_text("mended = True")
    worker.signal(signal.SIGHUP)
    until(lambda: not set(before) & set(worker.children()), "its children were replaced")
    until(lambda: ready(port), "it is ready")
    assert shop.chores.add.put(2).result(30) == 3


def test_code_that_another_worker_of_the_same_program_could_not_load_is_no_obstacle(shop):
    port = free_port()
    shop.run_code(f"""
        import os
        from holdfast.worker.run import run_worker
        from holdfast.worker.settings import WorkerSettings
        from holdfast.worker.startup_check import note_obstacle
        from holdfast.worker.store_choice import StoreChoice
        import chores
        other = os.fork()
        if other == 0:
            note_obstacle("the new code cannot be loaded")
            os._exit(0)
        os.waitpid(other, 0)
        run_worker(WorkerSettings(("q",), workers=1, health_port={port}), StoreChoice.of(chores.app))
    """)
    until(lambda: ready(port), "it is ready")


@pytest.mark.full
@pytest.mark.parametrize("pool", ["process", "serial"])
def test_reload_keeps_the_old_worker_while_the_code_cannot_be_loaded(shop, pool):
    (shop.here / "extras.py").write_text("")
    port = free_port()
    worker = shop.start(
        pool, "--reload", "--import", "chores", "--import", "extras", "--health-port", str(port)
    )
    until(lambda: ready(port), "it is ready")
    (shop.here / "extras.py").write_text(BROKEN)
    until(lambda: why_not(port), "it is not ready for a deploy")
    assert "NameError" in why_not(port)[0]
    assert "the old worker keeps running" in worker.said()
    assert shop.chores.add.put(1).result(30) == 2
    (shop.here / "extras.py").write_text("mended = True")
    until(lambda: worker.said().count("working for q") == 2, "it starts anew")
    until(lambda: ready(port), "it is ready")
    assert shop.chores.add.put(2).result(30) == 3
    worker.signal(signal.SIGTERM)
    assert worker.wait(30) == 0
