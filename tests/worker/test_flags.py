"""workers.md 5.1: what each flag does, seen from the outside of a real worker."""

import os
import re
import signal

import pytest
from worker_kit import until

from holdfast import Client
from holdfast.testing.store import ScratchStore

DEPOT = """
import os, chores

chores.note(f"imported by {os.getpid()}")


class Depot:
    @staticmethod
    def perform(job):
        chores.note(f"at {os.getpid()} {os.getcwd()} {job.worker_name} {__file__}")
        job.complete()
"""

LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} \| PID \d+ \| \[[A-Z]+\] .*")


def test_name_path_import_workdir_log_host_and_port_together(shop, namespace):
    """One worker with most of the flags: a relative path, another directory to work in, a bare host."""
    (shop.here / "lib").mkdir()
    (shop.here / "lib" / "depot.py").write_text(DEPOT)
    (shop.here / "base").mkdir()
    flags = ("-n", "box", "-p", "lib", "-m", "depot", "-d", "base", "-v", "-l", "its.log")
    with ScratchStore(tcp=True) as store, Client(store.url, namespace=namespace) as client:
        words = ("--host", "127.0.0.1", "--port", str(store.port), *flags)
        jid = client.queues["q"].put("depot.Depot", {})
        worker = shop.start("process", *words, workers=2)
        until(lambda: client.jobs[jid].state == "complete", "it is performed")
        until(lambda: {found.name for found in client.workers.all()} & {"box-0", "box-1"}, "it is listed")
        assert len(worker.children()) == 2
        [loader] = worker.loaders()
        worker.signal(signal.SIGQUIT)
        assert worker.wait() == 0
    # -m: once, in the process that forks the children; -p: made absolute before -d; -n: the child's own name.
    assert shop.notes("imported") == [f"imported by {loader}"]
    [(_, pid, directory, name, file)] = [line.split() for line in shop.notes("at")]
    assert pid not in (str(worker.pid), str(loader))
    assert directory.startswith(str(shop.here / "base"))
    assert name in ("box-0", "box-1")
    assert file == str(shop.here / "lib" / "depot.py")
    # -l: the same lines, in the directory that the command was started in; -v: everything there is.
    assert (shop.here / "its.log").stat().st_mode & 0o777 == 0o600
    kept, said = (shop.here / "its.log").read_text().splitlines(), worker.said().splitlines()
    assert all(line in said for line in kept)
    assert all(LINE.fullmatch(line) for line in kept)
    assert any(f"| PID {pid} |" in line for line in kept)


@pytest.mark.full
def test_the_level_of_the_log_follows_flags_and_variables(shop, monkeypatch):
    import logging

    from holdfast.cli.worker_log import set_level

    log = logging.getLogger("holdfast")
    names = ("holdfast.jobs", "holdfast.jobs.start", "asyncio")
    touched = (log, logging.root, *map(logging.getLogger, names))
    before = [logger.level for logger in touched]
    try:
        for verbose, quiet, variables, level in (
            (False, False, {}, logging.INFO),
            (False, False, {"VERBOSE": "1"}, logging.INFO),
            (False, False, {"VVERBOSE": "1"}, logging.DEBUG),
            (True, False, {}, logging.DEBUG),
            (False, True, {}, logging.WARNING),
            (False, True, {"VERBOSE": "1", "VVERBOSE": "1"}, logging.WARNING),
        ):
            for name in ("VERBOSE", "VVERBOSE"):
                monkeypatch.delenv(name, raising=False)
            for name, text in variables.items():
                monkeypatch.setenv(name, text)
            set_level(verbose, quiet)
            assert log.level == level
    finally:
        for logger, was in zip(touched, before, strict=True):
            logger.setLevel(was)


@pytest.mark.full
def test_all_cores_work_where_no_number_is_said(shop):
    worker = shop.start("process", workers=0)
    until(lambda: len(worker.children()) == (os.cpu_count() or 1), "one child a core")
