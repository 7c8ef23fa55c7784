"""Sandboxes (workers.md 4): directories that jobs find empty, and leave empty."""

import os
import signal
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from worker_kit import until

from holdfast.errors import UsageError
from holdfast.work.performing.sandboxes import Sandbox, Sandboxes, check_base, claimed, clean, create_sandbox

NOBODY = 65534

MESSY = """
import os, pathlib
import chores
from holdfast import current_job


@chores.app.job(queue="q", result_keep=60)
def litter(name: str, where: str = "sandbox") -> list[str]:
    \"\"\"What is there, before something is left behind.\"\"\"
    here = pathlib.Path(current_job().sandbox if where == "sandbox" else ".")
    found = sorted(os.listdir(here))
    (here / name).write_text("left")
    (here / f"{name}.d" / "deep").mkdir(parents=True)
    chores.note(f"begin {name}")
    return [str(here.resolve()), os.getcwd(), *found]


@chores.app.job(queue="q")
def stray() -> None:
    os.chdir("/")
    raise LookupError("lost")


@chores.app.job(queue="q", result_keep=60)
def hang(name: str) -> str:
    there = current_job().sandbox
    pathlib.Path(there, "half").write_text("done")
    chores.note(f"begin {name} {os.getpid()} {there}")
    chores.wait_for("gate")
    return there


@chores.app.job(queue="q", result_keep=60)
def vanish() -> list[str]:
    found = [os.getcwd(), *os.listdir(), *os.listdir(current_job().sandbox)]
    pathlib.Path(current_job().sandbox, "half").write_text("done")
    pathlib.Path(os.getcwd(), "more").write_text("done")
    chores.once("vanished")
    return found
"""


@pytest.fixture
def messy(shop):
    (shop.here / "messy.py").write_text(MESSY)
    import messy

    yield messy
    import sys

    del sys.modules["messy"]


def left_in(here: Path) -> list[str]:
    """Everything below the sandboxes that is no directory of a worker's own."""
    return [
        str(path) for path in here.glob("holdfast-workers/**/*") if not path.is_dir() or path.suffix == ".d"
    ]


def test_a_job_finds_its_sandbox_empty_and_none_of_its_things_stay(shop, pool, messy):
    worker = shop.start(pool, "-m", "messy")
    base = shop.here / "holdfast-workers"
    first = messy.litter.put("a").result(10)
    with pytest.raises(Exception, match="lost"):
        messy.stray.put().result(10)
    second = messy.litter.put("b").result(10)
    assert first == second
    there, where, *found = second
    task = {"thread": "thread-0", "gevent": "greenlet-0"}.get(pool, "task-0")
    assert found == []
    until(lambda: left_in(shop.here) == [], "the sandbox is empty")
    if pool == "serial":
        assert (there, where) == (str(base), str(shop.here))
    elif pool in ("process", "fork"):
        assert there == where == str(base / "sandbox-0")
    else:
        assert there == f"{base}/sandbox-0/{task}"
        assert where == f"{base}/sandbox-0"
        messy.litter.put("c", where=".").result(10)
    worker.process.terminate()
    assert worker.wait() == 0
    assert left_in(shop.here) == []
    assert Path(where).is_dir()


def test_what_a_killed_child_left_is_gone_before_its_successor_works_in_the_same_place(shop, pool, messy):
    if pool == "serial":
        pytest.skip("nobody replaces it")
    worker = shop.start(pool, "-m", "messy")
    base = shop.here / "holdfast-workers"
    found = messy.vanish.put().result(10)
    assert found == [f"{base}/sandbox-0"]
    assert len(shop.notes("begin")) == 2
    worker.process.terminate()
    assert worker.wait() == 0
    assert left_in(shop.here) == []


def test_a_worker_that_is_killed_with_its_jobs_leaves_no_sandbox_behind_once_there_is_another(shop, messy):
    worker = shop.start("process", "-m", "messy", "--term-timeout", "0", workers=2)
    messy.hang.put("a")
    messy.hang.put("b")
    until(lambda: len(shop.notes("begin")) == 2, "both are under way")
    worker.kill_whole()
    assert len(left_in(shop.here)) == 2
    second = shop.start("process", "-m", "messy", "--drain")
    until(lambda: left_in(shop.here) == [], "the sandboxes are empty")
    second.process.terminate()
    second.wait()


def test_a_worker_whose_children_must_be_killed_at_its_end_leaves_their_sandboxes_empty(shop, messy):
    other = shop.start("process", "-m", "messy")
    messy.hang.put("other")
    until(lambda: shop.notes("begin other"), "the other one is busy")
    worker = shop.start("process", "-m", "messy", "--term-timeout", "0")
    messy.hang.put("a")
    until(lambda: shop.notes("begin a"), "it is under way")
    os.kill(worker.children()[0], signal.SIGSTOP)
    assert len(left_in(shop.here)) == 2
    worker.process.terminate()
    assert worker.wait() == 0
    # What the other worker's job has there stays.
    assert left_in(shop.here) == [f"{shop.here}/holdfast-workers/sandbox-0/half"]
    assert other.process.poll() is None


def test_what_a_job_forked_does_not_keep_the_sandbox_from_others(tmp_path):
    sandbox = claimed(tmp_path / "sandbox-0")
    ours, theirs = os.pipe()
    begun, begins = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(theirs)
        os.write(begins, b"!")
        os.read(ours, 1)  # for as long as its parent lives
        os._exit(0)
    os.read(begun, 1)
    sandbox.leave()
    assert claimed(tmp_path / "sandbox-0").path == sandbox.path
    for descriptor in (ours, theirs, begun, begins):
        os.close(descriptor)
    os.waitpid(pid, 0)


def test_two_workers_in_one_directory_do_not_empty_each_others_sandboxes(shop, messy):
    shop.start("process", "-m", "messy")
    shop.start("process", "-m", "messy")
    handles = [messy.hang.put("a"), messy.hang.put("b")]
    until(lambda: len(shop.notes("begin")) == 2, "both are under way")
    assert len(left_in(shop.here)) == 2
    shop.open()
    base = shop.here / "holdfast-workers"
    assert sorted(handle.result(10) for handle in handles) == [f"{base}/sandbox-0", f"{base}/sandbox-0.1"]


def test_a_worker_says_at_once_that_it_cannot_make_sandboxes(shop):
    (shop.here / "holdfast-workers").write_text("in the way")
    worker = shop.start("process")
    assert worker.wait() == 2
    assert "holdfast-workers cannot be made" in worker.said()


def test_cleaning_removes_everything_in_a_directory_but_nothing_that_links_lead_to(tmp_path):
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    (outside / "kept").mkdir(parents=True)
    (inside / "deep" / "deeper").mkdir(parents=True)
    (inside / "deep" / "deeper").chmod(0)
    (inside / "link").symlink_to(outside)
    (inside / "deep" / "link").symlink_to(outside / "kept")
    (inside / "\udcff odd\nname").touch()
    os.mkfifo(inside / "pipe")
    clean(inside)
    assert list(inside.iterdir()) == []
    assert (outside / "kept").is_dir()


def test_what_a_job_has_protected_is_removed_too():
    with TemporaryDirectory() as directory:  # others cannot look into that of the test
        base, inside = Path(directory), Path(directory, "inside")
        base.chmod(0o755)
        for protected in (0o500, 0):
            (inside / "a" / "b" / "c").mkdir(parents=True)
            (inside / "a" / "b" / "file").touch()
            (inside / "a" / "link").symlink_to(base)
            for name, mode in (("a/b/c", 0), ("a/b", 0o100), ("a", 0o500), (".", protected)):
                (inside / name).chmod(mode)
            tidy_as_nobody(inside)
            assert list(inside.iterdir()) == []
            inside.chmod(protected)  # that alone changes no mtime
            tidy_as_nobody(inside)
            assert inside.stat().st_mode & 0o700 == 0o700
            assert base.stat().st_mode & 0o777 == 0o755


def tidy_as_nobody(inside):
    """Tidy what belongs to somebody who may not do everything, in a process of theirs."""
    am_root = os.getuid() == 0
    if am_root:
        for path in (inside, *inside.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            if am_root:
                os.setuid(NOBODY)
            Sandbox(inside).tidy()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0


def test_a_sandbox_as_a_block_is_made_emptied_before_and_after_and_stays(tmp_path):
    there = tmp_path / "a" / "b"
    there.mkdir(parents=True)
    (there / "old").touch()
    cleaned = []
    with suppress(KeyError), create_sandbox(there) as path:
        assert list(there.iterdir()) == []
        (there / "new").touch()
        raise KeyError(path)
    assert list(there.iterdir()) == []
    with create_sandbox(tmp_path / "c", cleaned.append) as path:
        assert cleaned == [path]
    assert cleaned == [path, path]
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError), create_sandbox(tmp_path / "file"):
        pass
    (tmp_path / "link").symlink_to(there)
    with pytest.raises(NotADirectoryError), create_sandbox(tmp_path / "link"):
        pass


def test_a_clean_sandbox_is_not_looked_into_again_until_something_changes_it(tmp_path, monkeypatch):
    looks = []
    monkeypatch.setattr(
        "holdfast.work.performing.sandboxes.clean", lambda path: looks.append(path) or clean(path)
    )
    sandbox = Sandbox(tmp_path / "s")
    sandbox.tidy()
    sandbox.tidy()
    assert len(looks) == 1
    (tmp_path / "s" / "new").touch()
    sandbox.tidy()
    assert (len(looks), list((tmp_path / "s").iterdir())) == (2, [])
    (tmp_path / "s").rmdir()
    sandbox.tidy()
    assert (tmp_path / "s").is_dir()


def test_directories_are_lent_to_one_at_a_time(tmp_path):
    sandboxes = Sandboxes(tmp_path, "greenlet")
    one, two = sandboxes.take(), sandboxes.take()
    assert {one.path, two.path} == {f"{tmp_path}/greenlet-0", f"{tmp_path}/greenlet-1"}
    Path(one.path, "left").touch()
    one.end()
    again = sandboxes.take()
    assert (again.path, os.listdir(again.path)) == (one.path, [])


def test_a_claimed_sandbox_stays_so_when_a_job_replaces_it_or_closes_what_it_did_not_open(tmp_path):
    sandbox = claimed(tmp_path / "sandbox-0")
    there = Path(sandbox.path)
    there.rmdir()
    sandbox.tidy()
    assert there.is_dir()
    there.rmdir()
    there.mkdir()
    (there / "new").touch()
    sandbox.tidy()
    assert list(there.iterdir()) == []
    assert claimed(there).path == f"{there}.1"
    os.close(sandbox._lock)
    with (tmp_path / "file").open("w") as file:
        assert file.fileno() == sandbox._lock
        sandbox.tidy()
        assert not file.closed
        file.write("still open")
    assert claimed(there).path != sandbox.path


def test_a_claimed_sandbox_is_claimed_by_nobody_else_until_it_is_left(tmp_path):
    one = claimed(tmp_path / "sandbox-0")
    two = claimed(tmp_path / "sandbox-0")
    assert (one.path, two.path) == (f"{tmp_path}/sandbox-0", f"{tmp_path}/sandbox-0.1")
    one.leave()
    assert claimed(tmp_path / "sandbox-0").path == one.path
    (tmp_path / "sandbox-7").symlink_to(tmp_path)
    with pytest.raises(UsageError, match=r"sandbox-7 cannot be made: .*a link"):
        claimed(tmp_path / "sandbox-7")
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="workdir"):
        check_base(tmp_path / "file")
