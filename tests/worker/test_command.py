"""`holdfast worker`: what can be told it, how it says that it cannot, and how little it asks when idle."""

import logging
import re
import signal
import sys

import pytest
from worker_kit import until

import programs
from holdfast.cli import main
from holdfast.testing.store import ScratchStore
from holdfast.worker.settings import SLOTS


def run(*flags, env=None, cwd=None):
    words = [sys.executable, "-m", "holdfast.cli.main", "worker", *flags]
    return programs.run(words, timeout=120, env=env, cwd=cwd)


@pytest.mark.full
def test_help_lists_every_flag_with_its_default():
    said = " ".join(run("--help").stdout.split())
    flags = (
        "-q --queue --pool -w --workers --concurrency -g --greenlets -i --interval -n --name -p --path -m --import --allow "
        "-d --workdir --sandbox --setup --middleware --url --host --port --namespace --auto-complete --drain --term-timeout "
        "--max-jobs --max-memory -v --verbose -l --logger --log-format --debugger --json -r --resume --reserver "
        "--health-port --health-host --metrics-port --metrics-host --max-startup-interval --reload"
    )
    for flag in flags.split():
        assert re.search(rf"(^| ){flag}[, ]", said), flag
    assert said.count("[default:") >= flags.count("--") - 2  # --host and --json have none
    assert f"[default: {', '.join(f'{slots} for {pool}' for pool, slots in SLOTS.items())}]" in said


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        ((), "queue"),
        (("-q", "q", "--pool", "threads"), "threads"),
        (("-q", "q", "--interval", "0"), "interval"),
        (("-q", "q", "--workers", "-3"), "workers"),
        (("-q", "q", "--greenlets", "3", "--pool", "serial"), "cannot be used together"),
        (("-q", "q", "--greenlets", "3", "--concurrency", "4"), "cannot be used together"),
        (("-q", "q", "--resume"), "name"),
        (("-q", "q", "--reserver", "random"), "ordered"),
        (("-q", "q", "--max-memory", "plenty"), "512M"),
        (("-q", "q", "--max-memory", "-5"), "512M"),
        (("-q", "q", "--health-port", "70000"), "--health-port must be"),
        (("-q", "q", "--metrics-port", "8001", "--metrics-host", ""), "--metrics-host must have"),
        (("-q", "q", "--host", "redis://here", "--port", "7"), "--port"),
        (("-q", "q", "--host", "here:7", "--port", "7"), "--port"),
        (("-q", "q", "--host", "he re"), "machine"),
        (("-q", "q", "--middleware", "json"), "module:object"),
        (("-q", "q", "--log-format", "xml"), "json"),
        (("-q", "q", "--concurrency", "7"), "--workers"),
        (("-q", "q\n"), "control"),
        (("-q", "q", "--url", "http://nowhere"), "redis://"),
        (("-q", "q", "--namespace", "a:b"), "namespace"),
        (("-q", "q", "--setup", "json"), "module:callable"),
        (("-q", "q", "--setup", "json:__name__"), "module:callable"),
        (
            ("-q", "q", "--workdir", "/no/such/place", "--url", "redis://127.0.0.1:1"),
            "name a directory that exists",
        ),
        (("-q", "q", "--logger", "/no/such/place/log"), "/no/such/place"),
        (("-q", "q", "--wrokers", "3"), "--workers"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence_and_ends_with_2(flags, word, capsys, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    log = logging.getLogger("holdfast")
    monkeypatch.setattr(log, "handlers", list(log.handlers))
    level = log.level
    assert main.run(["worker", *flags]) == 2
    log.setLevel(level)
    said = capsys.readouterr().err
    assert word in said
    assert "Traceback" not in said


@pytest.mark.full
def test_the_environment_of_older_workers_is_read(shop, monkeypatch):
    monkeypatch.setenv("QUEUES", " q , other ")
    monkeypatch.setenv("REDIS_URL", shop.url)
    monkeypatch.setenv("RUN_AS_SINGLE_PROCESS", "1")
    monkeypatch.setenv("HOLDFAST_SETUP", "chores:setup")
    with (shop.here / "chores.py").open("a") as file:
        file.write("\n\ndef setup():\n    note('set up')\n")
    handle = shop.chores.add.put(1)
    done = run("--namespace", shop.namespace, "--drain", cwd=shop.here)
    assert done.returncode == 0, done.stderr
    assert handle.result(30) == 2
    assert "working for q, other: pool serial" in done.stderr
    assert shop.notes() == ["set up"]


@pytest.mark.full
def test_one_line_says_what_a_worker_works_on(shop):
    log = shop.here / "its.log"
    worker = shop.start("process", "--logger", str(log))
    assert shop.chores.add.put(1).result(30) == 2
    [line] = [line for line in worker.said().splitlines() if "working for" in line]
    for part in ("q", "pool process", "1 × 1", shop.namespace, shop.url):
        assert part in line
    assert "working for" in log.read_text()


@pytest.mark.full
def test_code_is_found_on_path_and_by_import_and_by_prefix_only(shop):
    elsewhere = shop.here / "elsewhere"
    elsewhere.mkdir()
    (shop.here / "app").mkdir()
    (elsewhere / "depot.py").write_text("class Depot:\n    @staticmethod\n    def perform(job): pass\n")
    jid = shop.q.put("depot.Depot", {})
    words = ["-q", "q", "--pool", "serial", "--drain", "--url", shop.url, "--namespace", shop.namespace]
    assert run(*words, cwd=shop.here / "app").returncode == 0
    assert shop.job(jid).failure["group"] == "q-ModuleNotFoundError"
    jid = shop.q.put("depot.Depot", {})
    assert run(*words, "--path", "../elsewhere", cwd=shop.here / "app").returncode == 0
    assert shop.state(jid) == "complete"


@pytest.mark.full
def test_a_worker_waits_for_a_store_that_is_not_there_yet(shop, tmp_path):
    worker = shop.start("process", url=f"unix://{tmp_path}/nothing")
    until(lambda: "the store is unavailable" in worker.said(), "it says so")
    until(lambda: "started as process" in worker.said(), "it goes on")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0


@pytest.mark.full
def test_an_idle_serial_worker_without_a_store_ends_at_term_and_logs_nothing_of_jobs(shop, tmp_path):
    worker = shop.start("serial", url=f"unix://{tmp_path}/nothing")
    until(lambda: "the store is unavailable" in worker.said(), "it is logged")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert "unwind" not in worker.said()


def calls(client, seconds):
    """How many functions were called a second, while nothing happened for that long."""
    from time import monotonic

    from holdfast.wire.plans import Step

    def count():
        [text] = client.link.send(Step([("INFO", "commandstats")]))
        lines = [line for line in text.decode().splitlines() if line.startswith("cmdstat_fcall")]
        return sum(int(line.partition("calls=")[2].partition(",")[0]) for line in lines)

    before, begun = count(), monotonic()
    until(lambda: monotonic() >= begun + seconds, "time passed")
    return (count() - before) / (monotonic() - begun)


@pytest.mark.full
def test_an_idle_worker_makes_at_most_one_call_a_second(shop, pool, namespace):
    from holdfast import Client

    with ScratchStore() as store, Client(store.url, namespace=namespace) as client:
        worker = shop.start(pool, "--interval", "1", url=store.url)
        jid = client.queues["q"].put("chores.add", {"args": [1]})
        # One that is due far gate must not make anybody restless either.
        client.queues["q"].put("chores.add", {"args": [1]}, delay=3600)
        assert client.result_of(jid, 30) == b"2"
        assert calls(client, 1.5) <= 2 / 1.5
        assert worker.process.poll() is None
