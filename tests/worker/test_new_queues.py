"""Queues that are new at the start of a worker: one that resembles a known queue is perhaps a typo, and logged."""

import logging

import pytest
from worker_kit import until

from holdfast import Client
from holdfast.errors import ConnectionLost
from holdfast.worker.queues.routing import is_near, note_new_queues
from holdfast.worker.settings import WorkerSettings


@pytest.mark.full
def test_a_new_queue_that_resembles_a_known_one_is_one_warning_of_a_worker_of_any_pool(
    shop, pool, monkeypatch
):
    monkeypatch.setenv("VERBOSE", "1")
    shop.client.queues["invoices"].put("K")
    worker = shop.start(pool, "-q", "invoces", "-q", "reports-*", "--workers", "1")
    until(lambda: 'no queue of this store matches "reports-*" yet' in worker.said(), "the pattern is logged")
    text = (
        'there is no queue "invoces" in this store yet; there is "invoices", perhaps a typo: '
        'the worker waits for jobs of "invoces"'
    )
    [line] = [line for line in worker.said().splitlines() if "there is no queue" in line]
    assert text in line
    assert "[WARNING]" in line


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("qq", "q"),
        ("q", "qq"),
        ("invoces", "invoices"),
        ("mial", "mail"),
        ("maul", "mail"),
        ("Mail", "mail"),
        ("emails", "email"),
        ("mail_out", "mail-out"),
    ],
)
def test_names_that_differ_as_by_a_slip_are_near(one, other):
    assert is_near(one, other)
    assert is_near(other, one)


@pytest.mark.full
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a", "b"),
        ("mail-1", "mail-2"),
        ("mail", "mail2"),
        ("tenant-12", "tenant-13"),
        ("jobs-a", "jobs-b"),
        ("x.reports", "y.reports"),
        ("mail", "sms"),
        ("mail", "mailing"),
        ("high", "low"),
    ],
)
def test_names_that_differ_on_purpose_are_not_near(one, other):
    assert not is_near(one, other)
    assert not is_near(other, one)


def logged(client, caplog, *queues: str) -> list[tuple[int, str]]:
    caplog.clear()
    with caplog.at_level(logging.INFO, "holdfast"):
        note_new_queues(client, WorkerSettings(queues))
    return [(record.levelno, record.getMessage()) for record in caplog.records]


@pytest.mark.full
def test_known_queues_other_new_ones_and_an_empty_store_are_not_logged(client: Client, caplog):
    assert logged(client, caplog, "mial", "mail", "m*", "*") == []
    client.queues["mail"].put("K")
    client.queues["mails"].put("K")
    assert logged(client, caplog, "mail", "mails", "post", "m*", "*", "!x*") == []
    assert [level for level, _ in logged(client, caplog, "mial", "x*")] == [logging.WARNING, logging.INFO]


@pytest.mark.full
def test_a_hostile_name_is_made_printable_and_many_names_are_compared(client: Client, caplog):
    client.queues["ma\u202eil"].put("K")
    client.queues["q"].put_many([("K", {})])
    for number in range(0, 3000, 500):
        step = [client.queues[f"queue-{number + at}"].put for at in range(500)]
        with client.batch():
            for put in step:
                put("K")
    [(level, text)] = logged(client, caplog, "ma\u202eill", "queue-9999", "qq")[:1]
    assert (level, text.count("ma?il")) == (logging.WARNING, 3)


@pytest.mark.full
def test_a_store_that_does_not_respond_never_fails_a_start(client: Client, caplog):
    class Gone:
        def run(self, command: object) -> object:
            raise ConnectionLost("gone")

    note_new_queues(Gone(), WorkerSettings(("mial",)))
    assert caplog.text == ""
