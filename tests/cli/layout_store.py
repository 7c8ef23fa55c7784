"""The namespace that `test_layouts.py` shows: the same names, jids and times whenever it is made."""

import json
from itertools import count
from unittest import mock

from holdfast import Client
from holdfast.commands.admin import Audit
from holdfast.commands.workers import WorkerSeen
from holdfast.console.handles import Console
from holdfast.console.operations.spec import Spec
from holdfast.testing.clock import START_MS, StoppedClock

NAMESPACE = "test-layouts"
HOST = "mail-host-7.internal"
TRACE = """Traceback (most recent call last):
  File "/srv/shop/jobs/mail.py", line 41, in send
    deliver(message, to=address, timeout=settings.MAIL_TIMEOUT)
  File "/srv/shop/smtp.py", line 17, in deliver
    raise ValueError(f"no such address: {address}")
ValueError: no such address: ada@example.org"""


def jid(number: int) -> str:
    """A jid as long as those that are generated."""
    return f"01a209e1e7157000{number:016x}"


def make(client: Client) -> None:
    """Put everything that a list can show into the namespace of a client, which must be new."""
    clock = StoppedClock(client, START_MS)
    clock.start()
    client.config["heartbeat"] = 3600
    client.config["shop-region"] = "eu-west"
    _workers(client, clock)
    _jobs(client, clock)
    _failures(client, clock)
    _others(client, clock)
    _operators(client, clock)


def _workers(client: Client, clock: StoppedClock) -> None:
    for number in range(2):
        facts = {
            "host": HOST, "pid": str(4711 + number), "pool": "process", "version": "0.2.0", "slots": "1", "busy": str(1 - number),
            "queues": json.dumps(["mail", "mail-eu", "reports"]), "started": str(clock.now_ms - 86_400_000),
        }  # fmt: skip
        client.run(WorkerSeen(f"{HOST}-4710-{number}", facts))
    client.run(
        WorkerSeen(
            "old", {"host": "old", "pool": "asyncio", "slots": "20", "queues": '["import"]', "pid": "9"}
        )
    )
    client.workers.quiet("old")


def _jobs(client: Client, clock: StoppedClock) -> None:
    mail = client.queues["mail"]
    client.throttles["printer"].maximum = 1
    data = {"order": {"id": 17, "lines": [1, 2, 3]}, "to": "ada@example.org", "note": "ring the bell 漢字"}
    for number in range(4):
        mail.put("shop.jobs.mail.send", data, jid=jid(number), tags=["vip"], priority=number)
    client.queues["reports"].put("shop.reports.MonthlyReport", {}, jid="report-11", throttles=["printer"])
    client.queues["reports"].put("shop.reports.MonthlyReport", {}, jid="report-12", throttles=["printer"])
    client.queues["mail-eu"].put("shop.jobs.mail.send", jid="later", delay=7200, tags=["vip", "eu"])
    client.queues["mail-eu"].put("shop.jobs.mail.send", jid="after", depends=["report-11"])
    for number in range(1234):
        client.queues["import"].put("shop.imports.Row", jid=f"row-{number}")
    clock.advance(minutes=3)
    client.worker_name = f"{HOST}-4710-0"
    for job in mail.pop(2):
        clock.advance(seconds=2)
        job.complete()
    clock.advance(minutes=40)
    [running] = mail.pop(1)
    running.report(0.4, "page 2 of 5", ["opened the connection", "sent page 1"])
    client.queues["reports"].pop(2)


def _failures(client: Client, clock: StoppedClock) -> None:
    client.worker_name = f"{HOST}-4710-1"
    for number in range(3):
        client.queues["mail"].put("shop.jobs.mail.send", {"to": "x"}, jid=jid(100 + number), priority=9)
        clock.advance(minutes=1)
        [job] = client.queues["mail"].pop(1)
        clock.advance(seconds=1.5)
        job.fail("mail-ValueError", TRACE)
    client.queues["import"].put("shop.imports.Row", jid="bad-row", priority=9)
    [job] = client.queues["import"].pop(1)
    job.fail("import-shop.errors.ARatherLongNameOfAnErrorThatGoesOnAndOn", "KeyError: 'price'")
    client.jobs[jid(100)].track()


def _others(client: Client, clock: StoppedClock) -> None:
    client.queues["reports"].recur("shop.reports.Nightly", {"format": "pdf"}, 86_400, jid="nightly-report", offset=3600, tags=["slow"])  # fmt: skip
    client.queues["import"].recur("shop.imports.Poll", {}, 600, jid="poll", offset=60)
    client.recurring["poll"].pause()
    client.topics["reminders"].put("order-17", '{"order": 17}', delay=7200)
    client.topics["reminders"].put("order-18", "hello")
    client.throttles["ql:q:import"].maximum = 5
    clock.advance(minutes=1)


def _operators(client: Client, clock: StoppedClock) -> None:
    console = Console(client, "ada@box")
    console.pause("import", why="the supplier's server is down", seconds=3600)
    client.run(Audit("bob@laptop", "set config", "heartbeat", "3600"))
    with mock.patch("holdfast.console.operations.operations.mint_jid", side_effect=map(jid, count(900))):
        done = console.start_operation(
            Spec(action="tag", filter="queue:mail state:waiting,failed", value="seen")
        )
        console.run_operation(done)
        clock.advance(seconds=30)
        stopped = console.start_operation(Spec(action="move", filter="queue:import klass:shop.imports.*", value="import-slow"))  # fmt: skip
        console.stop_operation(stopped.id)
    clock.advance(seconds=5)
