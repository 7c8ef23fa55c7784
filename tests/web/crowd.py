"""A namespace with many jobs, and names as long as people give them: what tables have to hold."""

import json

from everything import put_flow

from holdfast import Client
from holdfast.commands.flows import Edge
from holdfast.commands.leases import CompletePop, Done
from holdfast.commands.workers import WorkerSeen
from holdfast.console.handles import Console
from holdfast.console.operations.spec import Spec

QUEUES = tuple(
    f"{team}-{what}-production-eu-central-1"
    for team in ("billing", "notifications", "search-index", "customer-import")
    for what in ("invoices.nightly-reconciliation", "webhooks", "receipts")
)
KLASS = "acme.platform.billing.reconciliation.tasks.ReconcileInvoicesOfCustomer"
TAGS = ["customer-4711-of-the-eu-region", "priority-support", "black-friday-2026"]
WORKER = "worker-production-eu-central-1-{}.internal.acme.example-{}"
THROTTLE = "stripe-api.production.eu-central-1.requests-a-second"
TRACE = "Traceback (most recent call last):\nacme.errors.UpstreamError: the service at https://payments.internal.acme.example/v2/invoices did not respond within 30 s"
RESULT = json.dumps({"reconciled": [{"invoice": n, "amount": 12.5} for n in range(9)]}).encode()
FIRST = QUEUES[0]
FLOW = "reconciliation-of-customer-4711-of-the-eu-region-2026-11"
GROUP = f"{FIRST}-acme.errors.UpstreamTimeoutError"
PAGES = {
    "overview": "/", "queues": "/queues", "jobs": "/jobs", "jobs-failed": "/jobs?q=state:failed",
    **{f"queue-{tab}": f"/queues/{FIRST}?tab={tab}" for tab in ("running", "waiting", "throttled", "scheduled", "stalled", "depends", "recurring", "failed")},
    "failed": "/failed", "failure": f"/failed/{GROUP}", "completed": "/completed", "recurring": "/recurring", "throttles": "/throttles",
    "flows": "/flows", "flow": f"/flows/{FLOW}",
    "topics": "/topics", "topic": "/topics/reminders-of-customers-who-have-not-paid-0", "workers": "/workers", "operations": "/operations",
    "worker": "/workers/" + WORKER.format(0, 2113),
    "tracked": "/tracked", "tags": "/tags", "tag": f"/tags/{TAGS[0]}", "audit": "/audit",
}  # fmt: skip
"""Each page with a table."""


def fill(client: Client) -> None:
    """Put some of everything, with long names."""
    console = Console(client, actor="grace.hopper@operations.acme.example")
    workers = [
        Client(client.store_url, namespace=client.settings.namespace, hostname=WORKER.format(n, 2113 + n))
        for n in range(4)
    ]
    client.queues[FIRST].put_many([(KLASS, {"n": n}) for n in range(3)], tags=TAGS)
    client.config["heartbeat"] = 1
    workers[1].queues[FIRST].pop(3)  # their leases have ended when a page is opened
    client.config["heartbeat"] = 86_400
    for number, name in enumerate(QUEUES):
        _fill_queue(client, workers[number % 4], name, number)
    _limits(client, console, workers[0])
    for number in range(6):
        facts = {"queues": json.dumps([*QUEUES[: number + 1]]), "slots": "40", "busy": "9", "host": f"worker-production-eu-central-1-{number}.internal.acme.example",
                 "pid": "2113", "pool": "asyncio", "version": "2026.11.28+build.4711", "started": "1795703520000"}  # fmt: skip
        client.run(WorkerSeen(WORKER.format(number, 2113 + number), facts))
        client.topics[f"reminders-of-customers-who-have-not-paid-{number}"].put(
            f"invoice-{number}-of-customer-4711-of-the-eu-region",
            "Do you need a hand? " * 9,
            delay=60.0 * number,
        )
    several = [(f"{KLASS}{'BC'[n % 2]}", ()) for n in range(40)]
    after = [Edge(f"{FLOW}-{n}") for n in range(40)]
    put_flow(client, FLOW, [*several, (KLASS, after)], FIRST, KLASS.rpartition(".")[2])
    console.run_operation(
        console.start_operation(Spec(action="priority", filter=f"state:failed queue:{FIRST}", value="7"))
    )
    console.start_operation(Spec(action="retry", filter=f"state:failed queue:{QUEUES[1]} klass:{KLASS}"))
    for one in workers:
        one.close()


def _fill_queue(client: Client, worker: Client, name: str, number: int) -> None:
    queue, count = client.queues[name], 30
    error = GROUP if name == FIRST else f"{name}-acme.errors.UpstreamTimeoutError"
    queue.put_many([(KLASS, {"invoice": n}) for n in range(count)], tags=TAGS)
    for job in worker.queues[name].pop(count):
        job.fail(error, TRACE)
    queue.put_many([(KLASS, {"invoice": n}) for n in range(8)], tags=TAGS)
    for job in worker.queues[name].pop(8):
        worker.run(
            CompletePop(worker.worker_name, (), (Done(job.jid, job.token, b"", 3_600_000, RESULT),), 0)
        )
    held = queue.put_many([(KLASS, {"invoice": n}) for n in range(20)], tags=TAGS, retries=5)
    worker.queues[name].pop(4 + number % 3)
    for jid in held[:2]:
        client.job(jid).track()
    queue.put_many([(KLASS, {"n": n}) for n in range(3)], delay=3600, tags=TAGS)
    queue.put(KLASS, {"n": 1}, depends=held[-3:], tags=TAGS)
    queue.recur(KLASS, {"full": True}, 86_400, jid=f"nightly-reconciliation-of-{name}", tags=TAGS)


def _limits(client: Client, console: Console, worker: Client) -> None:
    client.throttles[THROTTLE].set_maximum(3)
    client.queues[FIRST].put_many(
        [(KLASS, {"n": n}) for n in range(9)], throttles=[THROTTLE], tags=TAGS, priority=250
    )
    worker.queues[FIRST].pop(12)
    console.pause(
        QUEUES[3], why="the warehouse is being upgraded, and nothing may be written until it is done"
    )
    console.pause_recurring(f"nightly-reconciliation-of-{QUEUES[1]}")
