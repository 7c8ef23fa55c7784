"""`holdfast metrics`: what a scraper reads, by HTTP from a real process, and the files that go with it."""

import json
import re
import signal
import socket
import sys
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

import programs
from holdfast import Client
from holdfast.cli.main import run
from holdfast.console.handles import Console
from holdfast.console.read.metrics import OTHER
from waiting import until

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


@pytest.fixture
def busy(client: Client) -> Client:
    """A namespace in which something has happened."""
    for number in range(4):
        client.queues["mail"].put("k.K", {"number": number})
    for job in client.queues["mail"].pop(2):
        job.fail("k-Error", "no luck")
    client.queues['o"d\\d'].put("k.K")
    client.throttles["db"].set_maximum(2)
    client.queues["mail"].pause()
    return client


def place(url: str, namespace: str) -> tuple[str, ...]:
    return ("--url", url, "--namespace", namespace)


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (one.name, frozenset(one.labels.items())): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


@pytest.mark.full
def test_the_figures_are_those_of_the_store(
    busy: Client, url: str, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["metrics", "show", *place(url, namespace)]) == 0
    found = samples(capsys.readouterr().out)

    def of(name: str, **labels: str) -> float:
        return found[name, frozenset(labels.items())]

    assert of("holdfast_queue_jobs", queue="mail", state="waiting") == 2
    assert of("holdfast_queue_jobs", queue="mail", state="failed") == 2
    assert of("holdfast_queue_jobs", queue='o"d\\d', state="waiting") == 1
    assert of("holdfast_queue_put_total", queue="mail") == 4
    assert of("holdfast_queue_failed_total", queue="mail") == 2
    assert of("holdfast_failed_jobs", group="k-Error") == 2
    assert of("holdfast_throttle_maximum", throttle="db") == 2
    assert of("holdfast_queue_paused", queue="mail") == 1
    assert of("holdfast_up") == 1


@pytest.mark.full
def test_queues_beyond_the_limit_are_counted_together(busy: Client) -> None:
    found = {metric.name: metric for metric in Console(busy).metrics(most_queues=1)}
    jobs = found["holdfast_queue_jobs"].samples
    assert jobs["mail", "waiting"] == 2
    assert jobs[OTHER, "waiting"] == 1
    assert {labels[0] for labels in jobs} == {"mail", OTHER}


def test_json_has_the_same_figures(
    busy: Client, url: str, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["metrics", "show", "--json", *place(url, namespace)]) == 0
    found = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert {"queue": "mail", "state": "waiting", "value": 2} in found["holdfast_queue_jobs"]["samples"]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_serves_until_it_is_told_to_end(
    busy: Client, url: str, namespace: str, number: signal.Signals
) -> None:
    port = free_port()
    words = ["metrics", "serve", "--port", str(port), "--otel", *place(url, namespace)]
    server = programs.popen([sys.executable, "-m", "holdfast.cli.main", *words])

    def page() -> str:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as reply:
                return str(reply.read().decode())
        except OSError:
            return ""

    try:
        text = until(page, "the server serves", 60)
        assert samples(text)["holdfast_up", frozenset()] == 1
        server.send_signal(number)
        assert server.wait(30) == 0
    finally:
        server.kill()
        server.wait(30)


@pytest.mark.full
def test_a_store_that_cannot_be_read_shows_as_down(capsys: pytest.CaptureFixture[str]) -> None:
    from holdfast.cli.metrics import Scraper

    with Client(f"redis://127.0.0.1:{free_port()}", deadline=0.2) as client:
        found = {metric.name: metric for metric in Scraper(Console(client), 10).read()}
    assert found["holdfast_up"].samples == {(): 0}
    assert "cannot be read" in capsys.readouterr().err


def names_of(text: str) -> set[str]:
    return {re.sub("_total$", "", name) for name in re.findall(r"\bholdfast_\w+", text)}


@pytest.mark.full
def test_dashboard_and_alert_rules_use_metrics_that_exist(busy: Client) -> None:
    known = {metric.name for metric in Console(busy).metrics()} | {"holdfast_up"}
    board = json.loads((EXAMPLES / "grafana-dashboard.json").read_text())
    asked = " ".join(target["expr"] for panel in board["panels"] for target in panel["targets"])
    rules = (EXAMPLES / "prometheus-rules.yaml").read_text()
    asked += " ".join(re.findall(r"^ +expr: (.*)$", rules, re.MULTILINE))
    assert names_of(asked) <= known
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_the_alert_rules_are_groups_of_rules() -> None:
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load((EXAMPLES / "prometheus-rules.yaml").read_text())
    for rule in found["groups"][0]["rules"]:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["expr"].count("(") == rule["expr"].count(")")
        assert {"summary", "action"} == set(rule["annotations"])
