"""Sandboxes (workers.md 4): directories that jobs find empty, and leave empty."""

import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from worker_kit import until

from holdfast.errors import UsageError
from holdfast.worker.performing.sandboxes import (
    PrivateDirectory,
    Sandbox,
    Sandboxes,
    check_base,
    claimed,
    clean,
    create_sandbox,
)

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


@chores.app.job(queue="q", result_keep=60)
def read(name: str) -> str:
    return pathlib.Path(name).read_text()


class Older:
    @staticmethod
    def perform(job):
        chores.note(f"older {os.getcwd()}")
        pathlib.Path("left").touch()


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


@pytest.mark.full
def test_a_job_finds_its_sandbox_empty_and_none_of_its_things_stay(shop, pool, messy):
    worker = shop.start(pool, "-m", "messy", "--workdir", ".")
    base = shop.here / "holdfast-workers"
    first = messy.litter.put("a").result(30)
    with pytest.raises(Exception, match="lost"):
        messy.stray.put().result(30)
    there, where, *found = messy.litter.put("b").result(30)
    task = {"thread": "thread-0", "gevent": "greenlet-0"}.get(pool, "task-0")
    assert (there, found) == (first[0], [])
    until(lambda: left_in(shop.here) == [], "the sandbox is empty")
    if pool == "serial":
        assert (there, where) == (str(base / "sandbox-0"), str(shop.here))
    elif pool in ("process", "fork"):
        assert there == where == str(base / "sandbox-0")
    else:
        assert there == f"{base}/sandbox-0/{task}"
        assert first[1] == f"{base}/sandbox-0"
    worker.process.terminate()
    assert worker.wait() == 0
    assert left_in(shop.here) == []
    assert (base / "sandbox-0").stat().st_mode & 0o777 == base.stat().st_mode & 0o777 == 0o700


@pytest.fixture
def temporary(shop, monkeypatch):
    """The directory for temporary files of the workers, and where their sandboxes are to lie in it."""
    (shop.here / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(shop.here / "temporary"))
    return shop.here / "temporary" / f"holdfast-workers-{os.geteuid()}"


@pytest.mark.full
def test_functions_work_where_the_worker_was_started_and_leave_nothing_in_the_project(
    shop, pool, messy, temporary
):
    worker = shop.start(pool, "-m", "messy")
    (shop.here / "in.txt").write_text("read me")
    assert messy.read.put("in.txt").result(30) == "read me"
    assert not list(temporary.glob("sandbox-*/*"))
    with pytest.raises(Exception, match="lost"):
        messy.stray.put().result(30)
    until(lambda: messy.litter.put("b").result(30)[1] == str(shop.here), "it works there again")
    there, where, *found = messy.litter.put("c").result(30)
    assert there.startswith(f"{temporary}/sandbox-0")
    assert (where, found) == (str(shop.here), [])
    worker.process.terminate()
    assert worker.wait() == 0
    assert not (shop.here / "holdfast-workers").exists()
    assert [path for path in temporary.rglob("*") if path.is_file()] == []


@pytest.mark.full
def test_classes_work_in_the_sandbox_of_their_child_with_process_and_fork(shop, pool, messy, temporary):
    shop.start(pool, "-m", "messy")
    jid = shop.q.put("messy.Older", {})
    until(lambda: shop.notes("older"), "it was performed")
    [line] = shop.notes("older")
    assert line == f"older {temporary}/sandbox-0" if pool in ("process", "fork") else f"older {shop.here}"
    until(lambda: shop.state(jid) == "complete", "it is complete")
    assert messy.litter.put("c").result(30)[1] == str(shop.here)


@pytest.mark.full
def test_with_sandbox_every_child_works_in_its_sandbox(shop, forking_pool, messy, temporary):
    shop.start(forking_pool, "-m", "messy", "--sandbox")
    assert messy.litter.put("a").result(30)[1] == f"{temporary}/sandbox-0"


@pytest.mark.full
def test_a_workdir_that_vanishes_is_said_once_and_jobs_go_on(shop, messy):
    (shop.here / "gone").mkdir()
    worker = shop.start("process", "-m", "messy", "--workdir", "gone")
    assert messy.litter.put("a").result(30)
    shutil.rmtree(shop.here / "gone")
    for number in range(3):
        assert shop.chores.add.put(number).result(30) == number + 1
    said = [line for line in worker.said().splitlines() if "[ERROR]" in line]
    assert len(said) == 1
    assert "gone/holdfast-workers/sandbox-0 cannot be used: " in said[0]
    assert "Traceback" not in worker.said()


@pytest.mark.full
def test_a_sandbox_is_never_a_directory_of_somebody_else(tmp_path):
    base = tmp_path / "holdfast-workers"
    (tmp_path / "victim" / "kept").mkdir(parents=True)
    base.symlink_to(tmp_path / "victim")
    with pytest.raises(UsageError, match="in the way"):
        claimed(base / "kept")
    base.unlink()
    base.mkdir(mode=0o777)
    base.chmod(0o777)
    sandbox = claimed(base / "sandbox-0")
    assert base.stat().st_mode & 0o777 == 0o700
    # Whoever owns the directory around it swaps ours for a link, while a job has left something in it.
    Path(sandbox.path, "left").touch()
    base.rename(tmp_path / "aside")
    (tmp_path / "victim" / "sandbox-0" / "kept").mkdir(parents=True)
    base.symlink_to(tmp_path / "victim")
    sandbox.tidy()
    assert not (tmp_path / "aside" / "sandbox-0" / "left").exists()
    assert (tmp_path / "victim" / "sandbox-0" / "kept").is_dir()
    if os.geteuid() == 0:
        other = tmp_path / "other"
        other.mkdir()
        os.chown(other, NOBODY, NOBODY)
        with pytest.raises(UsageError, match="another user"):
            check_base(other)


@pytest.mark.full
def test_what_a_killed_child_left_is_gone_before_its_successor_works_in_the_same_place(shop, pool, messy):
    if pool == "serial":
        pytest.skip("nobody replaces it")
    worker = shop.start(pool, "-m", "messy", "--workdir", ".")
    base = shop.here / "holdfast-workers"
    found = messy.vanish.put().result(30)
    assert found == [f"{base}/sandbox-0"]
    assert len(shop.notes("begin")) == 2
    worker.process.terminate()
    assert worker.wait() == 0
    assert left_in(shop.here) == []


@pytest.mark.full
def test_a_worker_that_is_killed_with_its_jobs_leaves_no_sandbox_behind_once_there_is_another(shop, messy):
    worker = shop.start("process", "-m", "messy", "--workdir", ".", "--term-timeout", "0", workers=2)
    messy.hang.put("a")
    messy.hang.put("b")
    until(lambda: len(shop.notes("begin")) == 2, "both are under way")
    worker.kill_whole()
    assert len(left_in(shop.here)) == 2
    second = shop.start("process", "-m", "messy", "--workdir", ".", "--drain")
    until(lambda: left_in(shop.here) == [], "the sandboxes are empty")
    second.process.terminate()
    second.wait()


@pytest.mark.full
def test_a_worker_whose_children_must_be_killed_at_its_end_leaves_their_sandboxes_empty(shop, messy):
    other = shop.start("process", "-m", "messy", "--workdir", ".")
    messy.hang.put("other")
    until(lambda: shop.notes("begin other"), "the other one is busy")
    worker = shop.start("process", "-m", "messy", "--workdir", ".", "--term-timeout", "0")
    messy.hang.put("a")
    until(lambda: shop.notes("begin a"), "it is under way")
    os.kill(worker.children()[0], signal.SIGSTOP)
    assert len(left_in(shop.here)) == 2
    worker.process.terminate()
    assert worker.wait() == 0
    # What the other worker's job has there stays.
    assert left_in(shop.here) == [f"{shop.here}/holdfast-workers/sandbox-0/half"]
    assert other.process.poll() is None


@pytest.mark.full
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


@pytest.mark.full
def test_two_workers_in_one_directory_do_not_empty_each_others_sandboxes(shop, messy):
    shop.start("process", "-m", "messy", "--workdir", ".")
    shop.start("process", "-m", "messy", "--workdir", ".")
    handles = [messy.hang.put("a"), messy.hang.put("b")]
    until(lambda: len(shop.notes("begin")) == 2, "both are under way")
    assert len(left_in(shop.here)) == 2
    shop.open()
    base = shop.here / "holdfast-workers"
    assert sorted(handle.result(30) for handle in handles) == [f"{base}/sandbox-0", f"{base}/sandbox-0.1"]


@pytest.mark.full
def test_a_worker_says_at_once_that_it_cannot_make_sandboxes(shop):
    (shop.here / "holdfast-workers").write_text("in the way")
    worker = shop.start("process", "--workdir", ".")
    assert worker.wait() == 2
    assert "holdfast-workers cannot be made" in worker.said()
    (shop.here / "holdfast-workers").unlink()
    (shop.here / "holdfast-workers").mkdir()
    (shop.here / "holdfast-workers" / "sandbox-0").write_text("in the way")
    worker = shop.start("process", "--workdir", ".")
    assert worker.wait() == 2
    assert worker.said().strip().splitlines()[-1] == (
        "holdfast: workdir: the sandbox "
        f"{shop.here}/holdfast-workers/sandbox-0 cannot be made: a file or a link is in the way"
    )
    assert "started as" not in worker.said()


@pytest.mark.full
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


@pytest.mark.full
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


@pytest.mark.full
def test_a_job_cannot_pass_its_sandbox_off_as_empty(tmp_path):
    sandbox = Sandbox(tmp_path / "box" / "sandbox-0", PrivateDirectory(tmp_path / "box"))
    for _ in range(200):
        sandbox.tidy()
        inside = Path(sandbox.path)
        before = inside.stat()
        # At once, within the same tick of the clock of the file system too.
        (inside / "left").touch()
        os.utime(inside, ns=(before.st_atime_ns, before.st_mtime_ns))
        sandbox.tidy()
        assert list(inside.iterdir()) == []
        (inside / "left").touch()
        os.utime(inside, ns=(1_000_000_007, 1_000_000_007))
        sandbox.tidy()
        assert list(inside.iterdir()) == []


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


@pytest.mark.full
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


@pytest.mark.full
def test_a_clean_sandbox_is_not_looked_into_again_until_something_changes_it(tmp_path, monkeypatch):
    sandbox = Sandbox(tmp_path / "s")
    until(lambda: sandbox.tidy() or sandbox._emptied_at, "the tick has passed in which it was made")
    looks, look = [], os.listdir
    monkeypatch.setattr(os, "listdir", lambda place: looks.append(place) or look(place))
    sandbox.tidy()
    assert looks == []
    (tmp_path / "s" / "new").touch()
    sandbox.tidy()
    assert looks
    assert list((tmp_path / "s").iterdir()) == []
    (tmp_path / "s").rmdir()
    sandbox.tidy()
    assert (tmp_path / "s").is_dir()


def test_directories_are_lent_to_one_at_a_time(tmp_path):
    sandboxes = Sandboxes(PrivateDirectory(tmp_path), "greenlet")
    one, two = sandboxes.take(), sandboxes.take()
    assert {one.path, two.path} == {f"{tmp_path}/greenlet-0", f"{tmp_path}/greenlet-1"}
    Path(one.path, "left").touch()
    one.end()
    again = sandboxes.take()
    assert (again.path, os.listdir(again.path)) == (one.path, [])


@pytest.mark.full
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
    os.close(sandbox._descriptor)
    with (tmp_path / "file").open("w") as file:
        assert file.fileno() == sandbox._descriptor
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
    with pytest.raises(UsageError, match=r"sandbox-7 cannot be made: .* a link"):
        claimed(tmp_path / "sandbox-7")
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="workdir"):
        check_base(tmp_path / "file")
