"""workers.md 15: `holdfast stats` and its gauges, received by a real UDP socket."""

import json
import re
import signal
import socket
import sys
from collections.abc import Iterator

import pytest

import programs
from holdfast import Client
from holdfast.cli.main import run
from holdfast.cli.stats import MOST_BYTES, Statsd
from holdfast.errors import UsageError
from holdfast.testing.clock import START_MS, StoppedClock


@pytest.fixture
def ear() -> Iterator[socket.socket]:
    """Where a statsd would listen."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
        wire.bind(("127.0.0.1", 0))
        wire.settimeout(10)
        yield wire


def heard(ear: socket.socket, last: str) -> dict[str, float]:
    """The gauges of one emission, whose last one is `last`."""
    found: dict[str, float] = {}
    while last not in found:
        for line in ear.recv(65_535).decode().split("\n"):
            name, number = re.fullmatch(r"([A-Za-z0-9_.-]+):(\d+(?:\.\d+)?)\|g", line).groups()  # type: ignore[union-attr]
            assert name not in found
            found[name] = float(number)
    return found


@pytest.fixture
def busy(client: Client) -> Client:
    """A namespace where something has happened."""
    mail, other = client.queues["mail"], client.queues["o.t:h er"]
    for number in range(4):
        mail.put("k.K", {"number": number})
    mail.pop().complete()  # type: ignore[union-attr]
    mail.pop().fail("k-Error", "no luck")  # type: ignore[union-attr]
    mail.pop()
    mail.pause()
    other.put("k.K", delay=60)
    other.put("k.K")
    return client


@pytest.mark.full
def test_every_gauge_of_the_page_is_sent(
    busy: Client, url: str, namespace: str, ear: socket.socket, capsys: pytest.CaptureFixture[str]
) -> None:
    place = (
        "--host",
        "127.0.0.1",
        "--port",
        str(ear.getsockname()[1]),
        "--url",
        url,
        "--namespace",
        namespace,
    )
    assert run(["stats", "statsd", "--count", "1", "--json", *place]) == 0
    found = heard(ear, "workers")
    mail = {name.removeprefix("queues.mail."): value for name, value in found.items() if ".mail." in name}
    states = {
        "waiting": 1,
        "running": 1,
        "scheduled": 0,
        "stalled": 0,
        "depends": 0,
        "recurring": 0,
        "throttled": 0,
    }
    today = {
        "popped": 3,
        "completed": 1,
        "failed": 1,
        "failures": 1,
        "retries": 0,
        "retried": 0,
        "lost": 0,
        "paused": 1,
    }
    times = {f"{what}.{of}" for what in ("run", "wait") for of in ("avg", "std-dev")}
    assert {name: value for name, value in mail.items() if name not in times} == states | today
    assert times <= set(mail)
    assert mail["wait.avg"] < 10
    assert found["queues.o_t_h_er.scheduled"] == 1
    assert found["queues.o_t_h_er.paused"] == 0
    assert (found["failures.k-Error"], found["failed"], found["workers"]) == (1, 1, 1)
    assert "failures" not in found
    said = json.loads(capsys.readouterr().out)
    assert said == {"gauges": len(found), "packets": 1}


def test_prefix_and_postfix_go_around_every_name() -> None:
    target = Statsd("localhost", 1, "app.", ".eu")
    assert list(target.packets({("queues", "q", "waiting"): 10, ("failed",): 0.25})) == [
        b"app.queues.q.waiting.eu:10|g\napp.failed.eu:0.25|g"
    ]


@pytest.mark.full
@pytest.mark.parametrize("words", [("a b", ""), ("", "x:y"), ("a\n", "")])
def test_a_prefix_that_statsd_could_not_keep_is_refused(words: tuple[str, str]) -> None:
    with pytest.raises(UsageError, match="--p"):
        Statsd("localhost", 1, *words)


def test_packets_fit_into_a_frame_and_lose_nothing() -> None:
    gauges = {
        ("queues", f"a-queue-with-a-long-name-{number}", "waiting"): float(number) for number in range(500)
    }
    packets = list(Statsd("localhost", 1).packets(gauges))
    assert max(map(len, packets)) <= MOST_BYTES
    assert sum(packet.count(b"\n") + 1 for packet in packets) == 500
    assert len(packets) > 1


@pytest.mark.full
def test_emissions_repeat_until_int_and_a_statsd_that_nobody_knows_is_said_once(
    busy: Client, url: str, namespace: str, ear: socket.socket
) -> None:
    words = [sys.executable, "-m", "holdfast.cli.main", "stats", "statsd", "--interval", "0.1", "--url", url]
    port = str(ear.getsockname()[1])
    telling = programs.popen([*words, "--namespace", namespace, "--host", "127.0.0.1", "--port", port])
    for _ in range(3):
        heard(ear, "workers")
    telling.send_signal(signal.SIGINT)
    assert telling.wait(30) == 0
    said = programs.run([*words, "--namespace", namespace, "--host", "nobody.invalid", "--count", "3"])
    assert said.returncode == 1
    assert said.stderr.count("cannot be reached") == 1


@pytest.mark.full
def test_the_table_shows_queues_and_today(
    busy: Client, url: str, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["stats", "--url", url, "--namespace", namespace]) == 0
    shown = capsys.readouterr().out
    *lines, last = shown[shown.index("queue\t") :].splitlines()
    now, mail, _, today, mail_today, _ = [line.split("\t") for line in lines]
    assert now == ["queue", "waiting", "running", "scheduled", "paused"]  # nothing is stalled, throttled, …
    assert mail == ["mail", "1", "1", "0", "1"]
    assert today == ["today", "popped", "completed", "failures", "retried", "lost", "failed", "run", "wait"]
    assert mail_today[:-2] == ["mail", "3", "1", "1", "0", "0", "1"]
    assert mail_today[-1].endswith("s")
    assert last == "1 failed job, 1 worker"
    assert run(["stats", "--url", url, "--namespace", namespace, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["queues"]["mail"]["run"].keys() == {"avg", "std-dev"}
    assert (found["failures"], found["failed"], found["workers"]) == ({"k-Error": 1}, 1, 1)


@pytest.mark.full
def test_retried_counts_exceptions_and_lost_counts_leases(
    client: Client, url: str, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = StoppedClock(client, START_MS)
    clock.advance(seconds=0)
    queue = client.queues["mail"]
    queue.put("k.K", retries=5)
    for _ in range(3):
        job = queue.pop()
        assert job is not None
        job.retry()
    queue.put("k.K")
    assert len(queue.pop(2)) == 2
    clock.advance(seconds=3600)
    assert queue.pop(2) == []  # both leases are lost; the grace period begins
    assert run(["stats", "--url", url, "--namespace", namespace, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["queues"]["mail"]
    tallies = queue.tallies()
    assert (found["retried"], tallies["retried"]) == (3, 3)
    assert (found["lost"], found["retries"], tallies["lost"]) == (2, 2, 2)
    stats = queue.stats()
    assert (stats["retried"], stats["lost"]) == (3, 2)


def test_options_before_the_sub_command_are_refused(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["stats", "--url", url, "statsd", "--count", "1"]) == 2
    assert "follow" in capsys.readouterr().err


@pytest.mark.full
def test_an_empty_namespace_has_totals_all_the_same(
    client: Client, url: str, namespace: str, ear: socket.socket
) -> None:
    port = str(ear.getsockname()[1])
    words = ["stats", "statsd", "--count", "1", "--host", "127.0.0.1", "--port", port]
    assert run([*words, "--url", url, "--namespace", namespace]) == 0
    assert heard(ear, "workers") == {"failed": 0, "workers": 0}
