"""`holdfast worker --reload`: starting anew when code changes, and not when it cannot be code."""

import os
import signal
import subprocess
import sys

import pytest
from worker_kit import process_lives, until

from holdfast.cli import worker_reload
from holdfast.cli.worker_reload import Watch, mistake_in

JOB = """
import chores, wording

@chores.app.job(queue="q", name="said")
def said() -> str:
    return wording.WORD
"""


def starts(worker):
    return worker.said().count("working for q")


def ask(shop):
    jid = shop.q.put("said", {"args": []})
    return shop.client.result_of(jid, 30)


@pytest.mark.full
def test_new_code_is_performed_by_a_new_worker_and_mistakes_wait_until_they_are_mended(shop):
    """One worker's life: two edits, one of them broken, a job under way at a third, and its end."""
    (shop.here / "speech.py").write_text(JOB)
    code = shop.here / "wording.py"
    code.write_text("WORD = 'old'")
    worker = shop.start("process", "--reload", "--import", "speech")
    assert ask(shop) == b'"old"'

    code.write_text("WORD = 'newer'")
    until(lambda: starts(worker) == 2, "it starts anew")
    assert "code changed (wording.py)" in worker.said()
    assert ask(shop) == b'"newer"'

    code.write_text("WORD = (")
    until(lambda: "wording.py, line 1" in worker.said(), "the mistake is named")
    assert ask(shop) == b'"newer"'

    handle = shop.chores.hog.put("long")
    until(lambda: shop.notes("begin long"), "a job is under way")
    code.write_text("WORD = 'third'")
    until(lambda: worker.said().count("the worker restarts after") == 2, "the old one is told", 30)
    shop.open()
    assert handle.result(30) == "long"
    assert ask(shop) == b'"third"'
    assert len(shop.notes("begin long")) == 1

    [below] = worker.children()
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert not process_lives(below)


@pytest.mark.full
def test_a_worker_that_cannot_start_waits_for_the_code_to_change(shop):
    hook = shop.here / "hook.py"
    hook.write_text("def go(): raise RuntimeError('not yet')")
    worker = shop.start("serial", "--reload", "--setup", "hook:go")
    until(lambda: "restarts when code changes" in worker.said(), "it waits")
    hook.write_text("def go(): pass")
    assert shop.chores.add.put(1).result(30) == 2
    worker.signal(signal.SIGINT)
    assert worker.wait() == 0


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]


@pytest.mark.full
def test_nothing_outlives_a_parent_that_was_killed(shop):
    worker = shop.start("process", "--reload")
    assert shop.chores.add.put(1).result(30) == 2
    [below] = worker.children()
    started = children_of(below)
    assert len(started) >= 2  # one that performs jobs, and one that calls the store
    worker.signal(signal.SIGKILL)
    worker.wait()
    until(lambda: not any(map(process_lives, [below, *started])), "the worker and its children end too")


@pytest.mark.full
@pytest.mark.parametrize(("flags", "code"), [(("--drain", "-q", "q"), 0), ((), 2)])
def test_a_worker_that_ends_for_good_ends_both(shop, flags, code):
    words = [
        "worker",
        "--reload",
        "--url",
        shop.url,
        "--namespace",
        shop.namespace,
        "--pool",
        "serial",
        *flags,
    ]
    clean = {name: text for name, text in os.environ.items() if name not in ("QUEUES", "QUEUE")}
    done = subprocess.run(
        [sys.executable, "-m", "holdfast.cli.main", *words],
        cwd=shop.here,
        env=clean,
        timeout=120,
        check=False,
    )
    assert done.returncode == code


def changes(watch, looks=3):
    """What is told in so many looks."""
    told = []
    for _ in range(looks):
        watch._scan_at = 0.0
        told += watch.changed()
    return told


def test_changes_are_told_once_and_when_they_stand_still(tmp_path):
    (tmp_path / "a.py").write_text("a")
    watch = Watch([str(tmp_path)])
    (tmp_path / "b.py").write_text("b")
    (tmp_path / "a.py").unlink()
    assert changes(watch, 1) == []
    assert changes(watch) == [str(tmp_path / "a.py"), str(tmp_path / "b.py")]
    assert changes(watch) == []


@pytest.mark.full
@pytest.mark.parametrize(
    "place",
    [
        ".git/a.py",
        "__pycache__/a.py",
        "lib/site-packages/a.py",
        "env/lib/a.py",
        "holdfast-workers/sandbox-0/a.py",
        "a.txt",
    ],
)
def test_what_is_no_code_of_the_users_is_not_watched(tmp_path, place):
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    watch = Watch([str(tmp_path), str(tmp_path / "missing")])
    file = tmp_path / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("a")
    assert changes(watch) == []


@pytest.mark.full
def test_a_tree_too_large_is_watched_in_part_and_says_so(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(worker_reload, "MOST_FILES", 2)
    for name in "abc":
        (tmp_path / f"{name}.py").touch()
    assert len(Watch([str(tmp_path)])._known) == 2
    assert "only the first 2" in caplog.text


@pytest.mark.full
def test_a_mistake_is_told_with_its_line_and_what_is_gone_is_none(tmp_path):
    (tmp_path / "good.py").write_text("x = 1 is 1")
    (tmp_path / "bad.py").write_text("x = 1\ny = (")
    (tmp_path / "worse.py").write_bytes(b"x\0")
    (tmp_path / "latin.py").write_bytes(b"# -*- coding: nonsense -*-")
    assert mistake_in([str(tmp_path / "good.py"), str(tmp_path / "gone.py")]) == ""
    assert "bad.py, line 2" in mistake_in([str(tmp_path / "good.py"), str(tmp_path / "bad.py")])
    assert "worse.py, line 1" in mistake_in([str(tmp_path / "worse.py")])
    assert "latin.py" in mistake_in([str(tmp_path / "latin.py")])
