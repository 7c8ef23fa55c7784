"""Changes of many jobs by a filter, and `holdfast operations`, through the command itself."""

import json

import pytest

from command_line import holdfast
from holdfast import Client
from holdfast.commands.jobs import PutMany
from holdfast.console.handles import Console
from holdfast.console.operations.spec import Spec
from holdfast.ids import mint_jid
from terminal import Terminal
from waiting import until


@pytest.fixture
def place(url: str, namespace: str) -> tuple[str, ...]:
    return ("--url", url, "--namespace", namespace)


def fill(client: Client, queue: str, count: int) -> None:
    for at in range(0, count, 500):
        jobs: list[str | bytes] = []
        for _ in range(min(500, count - at)):
            jobs += [mint_jid(), "jobs.send", b"{}"]
        client.run(PutMany(queue, jobs))


def fail(client: Client, queue: str, count: int) -> None:
    fill(client, queue, count)
    for job in client.queues[queue].pop(count):
        job.fail(f"{queue}-ValueError", "ValueError: no")


def last_operation(place: tuple[str, ...]) -> dict[str, object]:
    rows = json.loads(holdfast("operations", "--json", *place).stdout)
    found: dict[str, object] = rows[0]
    return found


def test_a_filter_is_tried_dry_first_and_asks(client: Client, place: tuple[str, ...]) -> None:
    fail(client, "mail", 12)
    fill(client, "mail", 2)
    said = holdfast("jobs", "retry", "--filter", "queue:mail", "--dry-run", *place)
    assert said.returncode == 0
    first, states, queues, others, *table = said.stdout.splitlines()
    assert first.startswith("12 jobs to retry (12 jobs in state failed in 1 queue")
    assert (states, queues) == ("by state: failed 12", "by queue: mail 12")
    assert others == "Only jobs that are failed can be retried; others are not changed."
    assert (len(table), table[-1]) == (12, "… and 2 more jobs")
    found = json.loads(
        holdfast("jobs", "retry", "--filter", "queue:mail", "--dry-run", "--json", *place).stdout
    )
    assert (found["matched"], found["by_state"], len(found["examples"])) == (12, {"failed": 12}, 10)
    said = holdfast("jobs", "retry", "--filter", "queue:mail", *place)
    assert (said.returncode, "Give --yes" in said.stderr) == (2, True)
    with Terminal("jobs", "retry", "--filter", "queue:mail", *place, rows=50, columns=200) as screen:
        screen.shows("Retry 12 jobs? [y/N]")
        screen.press("n\n")
        screen.shows("nothing was changed")
        assert screen.code() == 1
    assert client.queues["mail"].counts["waiting"] == 2
    with Terminal("jobs", "retry", "--filter", "queue:mail", *place) as screen:
        screen.shows("Retry 12 jobs? [y/N]")
        screen.press("y\n")
        screen.shows("12 jobs retried, 0 unchanged, 0 refused", "To undo it within an hour:")
        assert screen.code() == 0
    assert client.queues["mail"].counts["waiting"] == 14


@pytest.mark.full
def test_what_was_done_is_reported_and_undone(client: Client, place: tuple[str, ...]) -> None:
    fail(client, "mail", 3)
    said = holdfast("jobs", "retry", "--filter", "state:failed", "--yes", *place)
    id = str(last_operation(place)["id"])
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.endswith(f"holdfast operations undo {' '.join(place)} {id}\n")
    assert holdfast("operations", "undo", id, *place).returncode == 2
    said = holdfast("operations", "undo", id, "--yes", *place)
    assert (said.returncode, said.stdout.startswith("3 jobs marked as failed")) == (0, True)
    assert client.queues["mail"].counts["failed"] == 3
    shown = holdfast("operations", "show", id, *place).stdout
    assert "state        undone\n" in shown
    said = holdfast("operations", "undo", id, "--yes", *place)
    assert (said.returncode, "cannot be undone" in said.stderr) == (1, True)


@pytest.mark.full
def test_jobs_that_refuse_are_named_with_their_reasons(client: Client, place: tuple[str, ...]) -> None:
    fail(client, "a", 1)
    jid = client.queues["a"].put("K", tags=["vip"])
    said = holdfast("jobs", "run", "--filter", "tag:vip", "--yes", *place)
    assert (said.returncode, said.stderr) == (1, "")
    assert said.stdout.startswith("0 jobs started, 0 unchanged, 1 refused")
    assert f"jid\trefused because\n{jid}\t{jid} is waiting\n" in said.stdout
    said = holdfast("jobs", "run", "--filter", "tag:vip", "--dry-run", *place)
    assert "1 job of these will be refused because of their state" in said.stdout
    found = json.loads(holdfast("jobs", "run", "--filter", "tag:vip", "--yes", "--json", *place).stdout)
    assert (found["state"], found["refused"], found["refusals"]) == ("done", 1, [[jid, f"{jid} is waiting"]])


def test_more_than_a_thousand_jobs_are_cancelled_after_their_number_was_typed(
    client: Client, place: tuple[str, ...]
) -> None:
    fill(client, "mail", 1001)
    for typed, code, left in (("100", 1, 1001), ("1,001", 0, 0)):
        with Terminal("jobs", "cancel", "--filter", "queue:mail", *place) as screen:
            screen.shows("Cancel 1,001 jobs? This cannot be undone. Type the number of jobs")
            screen.press(f"{typed}\n")
            assert screen.code() == code
        assert client.queues["mail"].counts["waiting"] == left


@pytest.mark.full
def test_an_operation_is_stopped_by_ctrl_c_and_continued(client: Client, place: tuple[str, ...]) -> None:
    fail(client, "mail", 6)
    with Terminal(
        "jobs", "retry", "--filter", "queue:mail", "--yes", "--rate", "2", *place, columns=200
    ) as screen:
        until(lambda: client.queues["mail"].counts["waiting"], "the first was retried")
        screen.press("\x03")
        screen.shows("It was stopped. To continue:\n  holdfast operations resume")
        assert screen.code() == 130
    assert 0 < client.queues["mail"].counts["waiting"] < 6
    found = last_operation(place)
    assert found["state"] == "stopped"
    said = holdfast("operations", "resume", str(found["id"]), "--json", *place)
    assert (said.returncode, json.loads(said.stdout)["changed"]) == (0, 6)
    assert client.queues["mail"].counts["waiting"] == 6
    said = holdfast("operations", "resume", str(found["id"]), *place)
    assert (said.returncode, said.stderr) == (1, f"holdfast: operation {found['id']} is done\n")


@pytest.mark.full
def test_an_operation_of_another_program_is_stopped(client: Client, place: tuple[str, ...]) -> None:
    fail(client, "mail", 3)
    console = Console(client, "ada")
    running = console.start_operation(Spec(action="retry", filter="queue:mail"))
    said = holdfast("operations", "stop", running.id, *place)
    assert (said.returncode, said.stdout.startswith(f"{running.id} was stopped.")) == (0, True)
    assert console.run_operation(running).state == "stopped"
    said = holdfast("operations", "stop", running.id, *place)
    assert (said.returncode, said.stdout) == (1, "")
    said = holdfast("operations", "show", "nope", *place)
    assert (said.returncode, said.stderr) == (1, "holdfast: operation nope does not exist\n")
    assert "ada" in holdfast("operations", *place).stdout


@pytest.mark.full
@pytest.mark.parametrize(("rows", "columns"), [(24, 80), (50, 200)])
def test_every_line_fits_the_terminal_and_ids_are_whole(
    client: Client, place: tuple[str, ...], rows: int, columns: int
) -> None:
    client.queues["q" * 150].put("k" * 190, {"a": "\x1b[31m\u202e漢字" * 30})
    jid = client.queues["mail"].put("jobs.send")
    Console(client, "a" * 100).run_operation(
        Console(client).start_operation(Spec(action="move", filter="queue:mail"))
    )
    id = str(last_operation(place)["id"])
    for words, whole in (
        (("jobs", "list", "--columns", "jid,queue,klass,data,age"), jid),
        (("operations",), id),
    ):
        with Terminal(*words, *place, rows=rows, columns=columns) as screen:
            text = screen.shows(whole)
            assert screen.code() == 0
        lines = [line for line in text.splitlines() if not line.startswith(("To continue", "2 jobs"))]
        assert len(lines) <= 3
