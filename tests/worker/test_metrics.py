"""`--metrics-port`: what a worker tells Prometheus, of all its processes together, in every pool (observability of the issue)."""

import os
import socket
import subprocess
import sys
import urllib.request
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from worker_kit import until

import holdfast
from holdfast.errors import ConnectionLost
from holdfast.models import JobFacts
from holdfast.wire.outage import OUTAGES, Outage
from holdfast.worker.leases.keeper import GAPS, HeldLease, Keeper
from holdfast.worker.observe import ledger as ledgers
from holdfast.worker.observe.ledger import BOUNDS, MAX_ROWS, OTHER, Ledger, watch_troubles

Samples = dict[tuple[str, ...], float]


def free_port() -> int:
    with socket.create_server(("", 0)) as listener:
        return int(listener.getsockname()[1])


def scrape(port: int) -> Samples:
    """Each sample by its name and the values of its labels, in the order of their names."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=120) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain")
        text = answer.read().decode()
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def wait_for(port: int, wanted: Samples) -> Samples:
    found: Samples = {}

    def is_there() -> bool:
        try:
            found.update(scrape(port))
        except OSError:
            return False
        return all(found.get(name) == value for name, value in wanted.items())

    try:
        until(is_there, "the metrics say so")
    except AssertionError:
        differing = {
            name: (found.get(name), value) for name, value in wanted.items() if found.get(name) != value
        }
        raise AssertionError(differing) from None
    return found


def jobs(klass: str, outcome: str, queue: str = "q") -> tuple[str, ...]:
    return ("holdfast_jobs_total", f"chores.{klass}", outcome, queue)


@pytest.mark.full
def test_a_worker_counts_its_jobs_by_how_they_ended_and_says_how_busy_it_is(shop: Any, pool: str) -> None:
    port, children = free_port(), 2 if pool != "serial" else 1
    chores = shop.chores
    shop.start(pool, "--metrics-port", str(port), "-q", "r", "-n", "w", workers=children)
    for handle in [chores.add.put(n) for n in range(5)]:
        handle.result(30)
    chores.aadd.put(1).result(30)
    chores.hopeless.put()
    chores.unlucky.put()
    shop.q.put(chores.Parcel, {"to": "me"})
    shop.q.put(chores.Forgetful)
    found = wait_for(
        port,
        {
            jobs("add", "completed"): 5,
            jobs("aadd", "completed"): 1,
            jobs("hopeless", "failed"): 1,
            jobs("unlucky", "retried"): 2,
            jobs("unlucky", "failed"): 1,
            jobs("Parcel", "moved"): 1,
            jobs("Parcel", "completed", "r"): 1,
            jobs("Forgetful", "dropped"): 1,
            ("holdfast_worker_processes",): children,
            ("holdfast_worker_restarts_total",): 0,
        },
    )
    assert found["holdfast_job_seconds_count", "chores.add", "q"] == 5
    assert found["holdfast_job_seconds_bucket", "chores.add", "+Inf", "q"] == 5
    assert 0 < found["holdfast_job_seconds_sum", "chores.add", "q"] < 5
    assert ("holdfast_worker_info", *_info(pool)) in {(name, *rest) for name, *rest in found}
    blocked = chores.hog.put("it")
    found = wait_for(port, {("holdfast_worker_slots", "busy"): 1})
    assert found["holdfast_worker_slots", "free"] >= children - 1
    shop.open()
    assert blocked.result(30) == "it"
    wait_for(port, {jobs("hog", "completed"): 1, ("holdfast_worker_slots", "busy"): 0})


@pytest.mark.full
def test_a_worker_without_a_name_is_shown_under_the_one_that_its_processes_have(shop: Any) -> None:
    port = free_port()
    worker = shop.start("process", "--metrics-port", str(port))
    found = wait_for(port, {("holdfast_worker_processes",): 1})
    name = f"{socket.gethostname()}-{worker.pid}"
    assert ("holdfast_worker_info", name, "process", holdfast.__version__) in found


def _info(pool: str) -> tuple[str, ...]:
    return ("w", pool, holdfast.__version__)


@pytest.mark.full
@pytest.mark.parametrize("pool", ["process", "fork", "asyncio"])
def test_a_job_that_takes_its_process_along_is_counted_as_lost_and_the_counts_outlive_the_process(
    shop: Any, pool: str
) -> None:
    port = free_port()
    shop.start(pool, "--metrics-port", str(port))
    shop.chores.add.put(1).result(30)
    assert shop.chores.once.put("x").result(30) == "x"
    replaced = 0 if pool == "fork" else 1
    found = wait_for(
        port,
        {
            jobs("add", "completed"): 1,
            jobs("once", "lost"): 1,
            jobs("once", "completed"): 1,
            ("holdfast_worker_restarts_total",): replaced,
            ("holdfast_worker_crashes_total",): replaced,
        },
    )
    assert found["holdfast_store_outages_total",] == 0


def test_outages_and_gaps_are_counted_where_they_are_noticed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OUTAGES, "callback", OUTAGES.callback)
    monkeypatch.setattr(GAPS, "callback", GAPS.callback)
    watch_troubles(ledger)
    outage = Outage()
    for _ in range(3):
        outage.pause(ConnectionLost("it is away"))
    outage.over()
    outage.pause(ConnectionLost("again"))
    keeper, held = Keeper(), HeldLease("j", 1, "w", 60.0, 0.0)
    keeper.begin(0.0)
    keeper.include(60.0)
    keeper.renew([held], 20.0)
    keeper.renew([held], 55.0)
    assert (ledger.outages, ledger.gaps) == (2, 1)


@pytest.mark.full
def test_without_its_package_a_worker_says_what_to_install_before_it_starts(shop: Any, tmp_path: Any) -> None:
    blocker = tmp_path / "blocked"
    blocker.mkdir()
    (blocker / "prometheus_client.py").write_text("raise ImportError('not here')")
    program = f"import sys; sys.path.insert(0, {str(blocker)!r}); from holdfast.cli.main import main; main()"
    words = ["worker", "-q", "q", "--url", shop.url, "--metrics-port", str(free_port())]
    said = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, timeout=120
    )
    assert said.returncode == 2
    assert said.stderr.splitlines()[-1].endswith(
        "pip install 'holdfast-jobs[metrics]' (in a checkout: pip install '.[metrics]')"
    )


@pytest.fixture
def ledger() -> Any:
    made = Ledger(shared=True)
    yield made
    made.close()


@pytest.mark.full
def test_a_ledger_tells_so_many_kinds_of_jobs_apart_and_counts_the_rest_together(ledger: Ledger) -> None:
    for number in range(MAX_ROWS + 10):
        ledger.begin("q", f"K{number}")
        ledger.end("q", f"K{number}", "completed", 0.2)
    rows = ledger.rows()
    assert len(rows) == MAX_ROWS + 1
    assert (rows[-1].queue, rows[-1].klass, rows[-1].outcomes["completed"]) == (OTHER, OTHER, 10)
    assert sum(row.outcomes["completed"] for row in rows) == MAX_ROWS + 10
    assert ledger.rows()[0].buckets[BOUNDS.index(0.5)] == 1


@pytest.mark.full
def test_what_a_dead_process_began_and_did_not_end_was_lost_once(ledger: Ledger) -> None:
    for _ in range(3):
        ledger.begin("q", "Grüße " * 30)
    ledger.end("q", "Grüße " * 30, "failed", 5000.0)
    for _ in range(2):
        ledger.count_lost()
    [row] = ledger.rows()
    assert (row.outcomes["lost"], row.outcomes["failed"], row.buckets[-1]) == (2, 1, 1)


@pytest.mark.full
def test_processes_forked_for_a_job_count_on_the_page_of_their_worker_without_losing_a_count(
    ledger: Ledger,
) -> None:

    pids = []
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            for number in range(300):
                ledger.begin("q", f"K{number % 7}")
                ledger.end("q", f"K{number % 7}", "completed", 0.0)
            os._exit(0)
        pids.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * 4
    assert sum(row.outcomes["completed"] for row in ledger.rows()) == 1200
    assert len(ledger.rows()) == 7


@pytest.mark.full
def test_a_job_that_closes_what_it_did_not_open_is_still_counted(ledger: Ledger) -> None:

    pid = os.fork()
    if pid == 0:
        os.close(ledger._file)
        ledger.end("q", "K", "completed", 0.0)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert ledger.rows()[0].outcomes["completed"] == 1


@pytest.mark.full
def test_where_nobody_asked_for_metrics_nothing_is_counted() -> None:
    assert ledgers.ledger_of("w-0") is None
    ledgers.note_lost(JobFacts("j", "K", "q", worker="w-0"))
