"""workers.md 5: what the flags and the variables of older workers come to, before anything runs."""

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

import programs
from holdfast.cli import worker_start as starting
from holdfast.cli.place import url_of
from holdfast.cli.worker import worker
from holdfast.errors import UsageError


@pytest.fixture
def settled(monkeypatch):
    """The settings that some flags and variables lead to."""
    for name in (
        "QUEUES",
        "QUEUE",
        "JOB_RESERVER",
        "INTERVAL",
        "VERBOSE",
        "VVERBOSE",
        "RUN_AS_SINGLE_PROCESS",
        "HOLDFAST_SHUTDOWN_TIMEOUT",
        "HOLDFAST_STUCK_TIMEOUT",
    ):
        monkeypatch.delenv(name, raising=False)

    def settle(*flags, **variables):
        for name, text in variables.items():
            monkeypatch.setenv(name, text)
        found = []
        monkeypatch.setattr(
            starting, "start", lambda told: found.append(starting.settings_of(told, os.getcwd()))
        )
        CliRunner().invoke(worker, flags, catch_exceptions=False, standalone_mode=False)
        return found[0]

    return settle


def test_queues_are_comma_separated_and_stripped(settled):
    assert settled(QUEUES=" a , b,, c ").queues == ("a", "b", "c")


@pytest.mark.full
def test_queue_is_read_where_queues_is_not_set(settled):
    assert settled(QUEUE="a,b").queues == ("a", "b")
    assert settled(QUEUE="a,b", QUEUES="c").queues == ("c",)


@pytest.mark.full
def test_no_queue_is_an_error_that_names_both_variables(settled):
    with pytest.raises(Exception, match="QUEUE or QUEUES"):
        settled(QUEUES=" , ")


@pytest.mark.full
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Ordered", "ordered"),
        ("RoundRobin", "round-robin"),
        ("ShuffledRoundRobin", "shuffled-round-robin"),
        ("shuffled-round-robin", "shuffled-round-robin"),
    ],
)
def test_job_reserver_chooses_the_reserver(settled, text, kind):
    assert settled("-q", "q", JOB_RESERVER=text).reserver == kind


@pytest.mark.full
def test_without_variables_the_defaults_hold(settled):
    found = settled("-q", "q")
    assert (found.reserver, found.interval, found.pool) == ("ordered", 5.0, "process")
    assert (found.shutdown_timeout, found.term_timeout, found.stuck_timeout) == (0.0, 2.0, 60.0)
    assert found.workers == os.cpu_count()


@pytest.mark.full
def test_interval_and_single_process_are_read(settled):
    found = settled("-q", "q", INTERVAL="2.5", RUN_AS_SINGLE_PROCESS="1")
    assert (found.interval, found.pool, found.workers) == (2.5, "serial", 1)


@pytest.mark.full
def test_the_variables_of_time_outs_are_read_and_flags_win_over_them(settled):
    variables = {"HOLDFAST_SHUTDOWN_TIMEOUT": "8", "HOLDFAST_STUCK_TIMEOUT": "30"}
    found = settled("-q", "q", **variables)
    assert (found.shutdown_timeout, found.stuck_timeout, found.term_timeout) == (8.0, 30.0, 2.0)
    found = settled("-q", "q", "--shutdown-timeout", "1", "--stuck-timeout", "0", **variables)
    assert (found.shutdown_timeout, found.stuck_timeout) == (1.0, 0.0)


@pytest.mark.full
def test_flags_win_over_variables(settled):
    flags = ("-q", "q", "--reserver", "ordered", "-i", "1", "--pool", "process")
    found = settled(*flags, QUEUES="a", JOB_RESERVER="RoundRobin", INTERVAL="9", RUN_AS_SINGLE_PROCESS="1")
    assert (found.queues, found.reserver, found.interval, found.pool) == (("q",), "ordered", 1.0, "process")


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("INTERVAL", "soon"),
        ("INTERVAL", "nan"),
        ("INTERVAL", "0"),
        ("JOB_RESERVER", "Random"),
        ("JOB_RESERVER", "-"),
    ],
)
def test_a_variable_that_means_nothing_is_refused_by_name(settled, name, text):
    with pytest.raises(UsageError, match=f"(?i){name}"):
        settled("-q", "q", **{name: text})


@pytest.mark.full
def test_an_interval_of_none_is_for_drains_only(settled):
    assert settled("-q", "q", "-i", "0", "--drain").interval == 5.0
    assert settled("-q", "q", "--drain", INTERVAL="0").drain
    with pytest.raises(UsageError, match="interval"):
        settled("-q", "q", "-i", "0")


@pytest.mark.full
@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("4096", 4096), ("512M", 512 << 20), ("1g", 1 << 30), ("1.5 GiB", 3 << 29), ("2kb", 2048)],
)
def test_sizes_of_memory_have_units(settled, text, size):
    assert settled("-q", "q", "--max-memory", text).max_memory == size


@pytest.mark.full
def test_all_other_flags_arrive(settled, tmp_path, monkeypatch):
    (tmp_path / "belt.py").write_text("class Belt:\n    def around_perform(self, job, call_next): pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    flags = (
        "--drain",
        "--auto-complete",
        "--debugger",
        "--log-format",
        "json",
        "--max-startup-interval",
        "3",
    )
    ports = (
        "--health-port",
        "8001",
        "--metrics-port",
        "8002",
        "--metrics-host",
        "::",
        "--max-jobs",
        "9",
        "-n",
        "box",
        "-r",
    )
    found = settled("-q", "q", "-q", "p-*", "-p", str(tmp_path), "--middleware", "belt:Belt", *flags, *ports)
    assert (found.drain, found.auto_complete, found.debugger, found.log_format) == (True, True, True, "json")
    assert (found.max_startup_interval, found.health_port, found.metrics_port) == (3.0, 8001, 8002)
    assert (found.health_host, found.metrics_host) == ("127.0.0.1", "::")
    assert (found.max_jobs, found.name, found.resume, found.queues) == (9, "box", True, ("q", "p-*"))
    assert found.paths == (str(tmp_path),)
    assert [type(middleware).__name__ for middleware in found.middleware] == ["Belt"]


@pytest.mark.full
@pytest.mark.parametrize(
    ("place", "port", "url"),
    [
        (None, None, None),
        (None, 7, "redis://localhost:7"),
        ("foo.bar", None, "redis://foo.bar:6379"),
        ("foo.bar", 1234, "redis://foo.bar:1234"),
        ("foo.bar:1234", None, "redis://foo.bar:1234"),
        ("::1", 7, "redis://[::1]:7"),
        ("rediss://foo.bar/2", None, "rediss://foo.bar/2"),
    ],
)
def test_a_host_is_a_url_or_a_bare_host_with_a_port(place, port, url):
    assert url_of(place, port) == url


@pytest.mark.full
def test_the_setup_hook_lies_on_the_path_and_may_set_the_variables(shop):
    hooks = shop.here / "hooks"
    hooks.mkdir()
    (hooks / "hook.py").write_text(
        "import os\n"
        "def go():\n"
        f"    os.environ.update(QUEUES='q', HOLDFAST_URL={shop.url!r}, REDIS_URL='redis://nowhere.invalid',\n"
        "                      JOB_RESERVER='RoundRobin', RUN_AS_SINGLE_PROCESS='1')\n"
    )
    elsewhere = shop.here / "elsewhere"
    elsewhere.mkdir()
    handle = shop.chores.add.put(1)
    words = [
        "worker",
        "--drain",
        "-p",
        "hooks",
        "--setup",
        "hook:go",
        "--namespace",
        shop.namespace,
        "--json",
    ]
    clean = {name: text for name, text in os.environ.items() if name not in ("HOLDFAST_URL", "REDIS_URL")}
    done = programs.run(
        [sys.executable, "-m", "holdfast.cli.main", *words, "--workdir", str(elsewhere)],
        cwd=shop.here, env=clean, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert handle.result(30) == 2
    working, ended = map(json.loads, done.stdout.splitlines())
    assert working["event"] == "working"
    assert (working["queues"], working["pool"], working["reserver"]) == (["q"], "serial", "round-robin")
    assert (working["namespace"], working["store"]) == (shop.namespace, shop.url)
    assert ended == {"event": "ended", "pid": working["pid"]}


def test_reading_the_flags_brings_in_nothing_that_opens_sockets():
    """The pool of greenlets changes the standard library before such modules are there."""
    program = "import sys, holdfast.cli.worker; print(*sys.modules)"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert {"redis", "ssl", "asyncio", "holdfast.wire.sync"} & set(said.split()) == set()
