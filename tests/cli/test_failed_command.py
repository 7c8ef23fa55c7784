"""`holdfast failed`: groups, what their jobs share, and retrying them, through the command itself."""

import json
import threading

import pytest

from command_line import holdfast
from holdfast import Client
from holdfast.commands.jobs import PutMany
from terminal import Terminal
from waiting import until

TRACEBACK = 'Traceback (most recent call last):\n  File "mail.py", line 3, in send\n    raise\nValueError: no'


@pytest.fixture
def place(url: str, namespace: str) -> tuple[str, ...]:
    return ("--url", url, "--namespace", namespace)


@pytest.fixture
def failures(client: Client) -> Client:
    """Four jobs in two groups."""
    for queue, group, count in (("mail", "mail-ValueError", 3), ("sms", "b\u202ed *", 1)):
        for at in range(count):
            client.queues[queue].put("jobs.send", {"lang": "de", "n": at}, tags=["spring"])
        for job in client.queues[queue].pop(count):
            job.fail(group, f"{TRACEBACK} {job['n']}")
    return client


@pytest.mark.full
def test_groups_are_listed_with_their_queues(failures: Client, place: tuple[str, ...]) -> None:
    for words in (("failed",), ("failed", "list")):
        said = holdfast(*words, *place)
        head, *rows = [line.split("\t") for line in said.stdout.splitlines()]
        assert head == ["group", "count", "hour", "last", "queues", "first"]
        assert [(row[0], row[1], row[2], row[4]) for row in rows] == [
            ("b?d *", "1", "1", "sms"), ("mail-ValueError", "3", "3", "mail"),
        ]  # fmt: skip
        assert said.stderr == "4 failed jobs in 2 groups\n"
    found = json.loads(holdfast("failed", "list", "mail*", "--json", *place).stdout)
    [group] = found["groups"]
    assert (group["name"], group["queues"], group["trend"][-1], len(group["trend"])) == (
        "mail-ValueError", ["mail"], 3, 48,
    )  # fmt: skip
    said = holdfast("failed", "--limit", "1", *place)
    assert said.stderr == "4 failed jobs in 2 groups; --limit 2 shows all\n"


@pytest.mark.parametrize(("rows", "columns"), [(24, 80), (50, 200)])
def test_a_terminal_shows_the_trend(
    failures: Client, place: tuple[str, ...], rows: int, columns: int
) -> None:
    with Terminal("failed", *place, rows=rows, columns=columns) as screen:
        text = screen.shows("mail-ValueError", "trend", "···█", "4 failed jobs in 2 groups")
        assert screen.code() == 0
    assert len(text.splitlines()) == 4


@pytest.mark.full
def test_a_group_is_shown_with_what_its_jobs_share(failures: Client, place: tuple[str, ...]) -> None:
    said = holdfast("failed", "show", "mail-ValueError", *place)
    assert said.returncode == 0
    for text in ("mail-ValueError: 3 failed jobs, 3 in this hour", "1  ValueError: no 2", "3 of 3 have data.lang de",
                 "3 of 3 have tag spring", '    File "mail.py", line 3, in send\n'):  # fmt: skip
        assert text in said.stdout
    assert "holdfast failed retry --url" in said.stdout
    found = json.loads(holdfast("failed", "show", "mail-ValueError", "--json", *place).stdout)
    assert (found["group"]["count"], len(found["newest"])) == (3, 3)
    assert {"what": "data.lang", "value": "de", "count": 3, "of": 3} in found["shares"]
    said = holdfast("failed", "show", "nope", *place)
    assert (said.returncode, said.stderr) == (1, 'holdfast: there is no failure group "nope"\n')


@pytest.mark.full
def test_a_group_is_retried_whatever_its_name(failures: Client, place: tuple[str, ...]) -> None:
    said = holdfast("failed", "retry", "mail-ValueError", "--count", "1", *place)
    assert (said.returncode, said.stdout.count("retried")) == (0, 1)
    assert failures.queues["mail"].counts["waiting"] == 1
    said = holdfast("failed", "retry", "b\u202ed *", "--yes", *place)
    assert (said.returncode, said.stdout.startswith("1 job retried")) == (0, True)
    assert holdfast("failed", "retry", "--all", "--yes", "--rate", "100", *place).returncode == 0
    assert failures.queues["mail"].counts["waiting"] == 3
    for words in (("retry",), ("retry", "x", "--all"), ("retry", "x", "--count", "0")):
        assert holdfast("failed", *words, *place).returncode == 2


@pytest.mark.full
def test_some_of_a_group_are_retried_at_a_rate(failures: Client, place: tuple[str, ...]) -> None:
    words = ("failed", "retry", "mail-ValueError", "--count", "2", *place)
    assert holdfast(*words, "--dry-run").stdout.startswith("2 jobs to retry")
    assert holdfast(*words, "--rate", "100", "--yes").stdout.startswith("2 jobs retried")
    assert failures.queues["mail"].counts["waiting"] == 2


def test_data_that_are_too_deep_to_be_read_keep_nothing_from_being_shown(
    client: Client, place: tuple[str, ...]
) -> None:
    client.run(PutMany("deep", ["a", "shop.jobs.Send", b"[" * 9000 + b"]" * 9000]))
    for job in client.queues["deep"].pop(1):
        job.fail("deep-ValueError", "no luck")
    said = holdfast("failed", "show", "deep-ValueError", *place)
    assert (said.returncode, said.stdout.splitlines()[0]) == (
        0,
        "deep-ValueError: 1 failed job, 1 in this hour",
    )


@pytest.mark.full
def test_a_group_is_cancelled(failures: Client, place: tuple[str, ...]) -> None:
    said = holdfast("failed", "cancel", "mail-ValueError", "--dry-run", *place)
    assert said.stdout.startswith("3 jobs to cancel")
    assert holdfast("failed", "cancel", "mail-ValueError", "--yes", *place).returncode == 0
    assert failures.queues["mail"].counts["failed"] == 0


@pytest.mark.parametrize("ends_well", [True, False])
def test_a_probe_retries_one_and_then_asks(failures: Client, place: tuple[str, ...], ends_well: bool) -> None:
    def work() -> None:
        job = until(lambda: failures.queues["mail"].pop(), "the probe was put", 60.0)
        if ends_well:
            job.complete()
        else:
            job.fail("mail-ValueError", "ValueError: still no")

    worker = threading.Thread(target=work)
    worker.start()
    with Terminal("failed", "retry", "mail-ValueError", "--probe", *place, columns=200) as screen:
        screen.shows("waiting up to 1 min for its end")
        if ends_well:
            screen.shows("has completed", "Retry 2 jobs? [y/N]")
        else:
            screen.shows("did not complete", "still no", "Retry the others anyway? [y/N]")
        screen.press("n\n")
        assert screen.code() == 1
    worker.join(30)
    assert failures.queues["mail"].counts["failed"] == (2 if ends_well else 3)


@pytest.mark.full
def test_a_probe_that_does_not_end_is_reported(failures: Client, place: tuple[str, ...]) -> None:
    words = ("failed", "retry", "mail-ValueError", "--probe", "--yes", "--timeout", "0.5")
    said = holdfast(*words, *place)
    assert said.returncode == 1
    assert "has not ended within 0.5 s; `holdfast jobs why" in said.stderr
    assert failures.queues["mail"].counts["failed"] == 2
