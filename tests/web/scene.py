"""A namespace as it is on a busy afternoon, for pictures of every page: the same at each call, under a stopped clock."""

import json
import random

from everything import put_flow

from holdfast import Client
from holdfast.commands.flows import Edge
from holdfast.commands.workers import WorkerSeen
from holdfast.console.handles import Console
from holdfast.console.operations.spec import Spec
from holdfast.testing.clock import START_MS, StoppedClock

NOW_MS = 1_795_703_520_000
"""The afternoon of 26 November 2026, as `date -u -d @1795703520` has it."""
MINUTES = 90
QUEUES = {"mailers": 30, "webhooks": 14, "thumbnails": 9, "search-index": 6, "reports": 2}
"""How many jobs each queue gets every three minutes."""
CLASSES = {
    "mailers": ("Mail.send_receipt", "Mail.password_reset", "Mail.digest"),
    "webhooks": ("Webhooks.deliver",),
    "thumbnails": ("Thumbnails.render",),
    "search-index": ("Search.index", "Search.remove"),
    "reports": ("Reports.monthly",),
}
WORKERS = {
    "web-1-4127": "mailers",
    "web-2-811": "webhooks",
    "gpu-a-2113": "thumbnails",
    "batch-1-90": "search-index",
}
FAILED, GRAPH_ROOT, CONFIG = (
    "0193a1b2c3d48f0e9a7b6c5d4e3f2a1b",
    "0193a1b2c3d48f0e9a7b6c5d4e3f2a00",
    "jobs-history-count",
)
HOSTILE = "<script>alert(1)</script> {{7*7}} \"'\\ a/b .. %2F 🦑 \u202eright"
TRACE = """Traceback (most recent call last):
  File "/srv/app/jobs/webhooks.py", line 225, in deliver
    result = client.call(body, timeout=10)
  File "/srv/venv/lib/python3.13/site-packages/httpx/_client.py", line 914, in send
    response = self._send_handling_auth(request)
  File "/srv/venv/lib/python3.13/site-packages/httpx/_client.py", line 942, in _send_handling_auth
    raise ReadTimeout(message)
httpx.ReadTimeout: upstream did not answer within 10.0 s"""
ERRORS = {
    "webhooks": ("httpx.ReadTimeout", TRACE),
    "thumbnails": ("PIL.UnidentifiedImageError", "Traceback (most recent call last):\nPIL.UnidentifiedImageError: cannot identify image file"),
    "mailers": ("smtplib.SMTPRecipientsRefused", "Traceback (most recent call last):\nsmtplib.SMTPRecipientsRefused: 550 no such mailbox"),
}  # fmt: skip


class Scene:
    """Fills the namespace of a client, whose name begins with `test`."""

    def __init__(self, client: Client) -> None:
        self.client, self.rng = client, random.Random(7)
        self.clock = StoppedClock(client, START_MS)
        self._move_to(NOW_MS - 46 * 3_600_000, at_start=True)
        self.workers = {
            queue: Client(client.store_url, namespace=client.settings.namespace, hostname=name)
            for name, queue in WORKERS.items()
        }

    def _move_to(self, moment_ms: int, at_start: bool = False) -> None:
        if at_start:
            self.client.shard.test_clock_ms = moment_ms
            self.clock.now_ms = moment_ms
            self.clock.start()
        self.clock.advance(seconds=(moment_ms - self.clock.now_ms) / 1000)

    def fill(self) -> None:
        """Play two days of a few jobs and ninety minutes of many, then put what each page is about."""
        for hour in range(45, 1, -1):
            self._move_to(NOW_MS - hour * 3_600_000)
            self._an_hour(hour)
        for minute in range(MINUTES, 0, -3):
            self._move_to(NOW_MS - minute * 60_000)
            if minute in (MINUTES, 30):  # a new version half an hour ago
                version = "0.1.9" if minute == MINUTES else "0.2.0"
                self.client.run(WorkerSeen("web-1-4127", {"version": version}))
            self._work(minute)
        self._move_to(NOW_MS - 40_000)
        self._a_failed_job()
        self._dependencies()
        self._flows()
        self._limits()
        self._odds_and_ends()
        self._move_to(NOW_MS)
        self._hold()
        self._operations()
        for made in self.workers.values():
            made.close()

    def _an_hour(self, hour: int) -> None:
        for queue, worker in self.workers.items():
            count = 2 + self.rng.randrange(4)
            self.client.queues[queue].put_many([self._job(queue) for _ in range(count)])
            for job in worker.queues[queue].pop(count):
                self._end(job, queue, 60 if hour % 3 else 0)

    def _work(self, minute: int) -> None:
        for queue, most in QUEUES.items():
            count = most + self.rng.randrange(most)
            self.client.queues[queue].put_many(
                [self._job(queue) for _ in range(count)],
                tags=self.rng.choice([[], ["vip"], ["eu", "backfill"]]),
            )
            self._move_to(self.clock.now_ms + self.rng.randrange(150, 2500))
            worker = self.workers.get(queue)
            for job in worker.queues[queue].pop(count - (3 if queue == "webhooks" else 0)) if worker else ():
                self._end(job, queue, minute)
        self._move_to(self.clock.now_ms + self.rng.randrange(200, 9000))

    def _job(self, queue: str) -> tuple[str, dict[str, object]]:
        account = self.rng.randrange(10_000, 99_999)
        return self.rng.choice(CLASSES[queue]), {
            "account_id": account,
            "locale": self.rng.choice(["de-DE", "fr-FR", "en"]),
        }

    def _end(self, job: object, queue: str, minute: int) -> None:
        self._move_to(self.clock.now_ms + self.rng.randrange(20, 900))
        breaks = queue in ERRORS and self.rng.random() < (
            0.45 if queue == "webhooks" and minute < 25 else 0.03
        )
        if breaks:
            job.fail(*ERRORS[queue])  # type: ignore[attr-defined]
        else:
            job.complete()  # type: ignore[attr-defined]

    def _a_failed_job(self) -> None:
        """One that was given back twice, failed twice, and has a family."""
        queue, worker = self.client.queues["webhooks"], self.workers["webhooks"]
        data = {"account_id": 65785, "url": "https://hooks.example.com/orders", "event": "order.paid", "password": "hunter2",
                "items": [{"sku": "A-1", "price": 12.5}, {"sku": "B-2", "price": 3}], "note": None}  # fmt: skip
        parent = queue.put("Feed.fetch", {"feed": 12}, jid=GRAPH_ROOT, priority=200)
        worker.queues["webhooks"].pop().complete()  # type: ignore[union-attr]
        queue.put(
            "Webhooks.deliver", data, jid=FAILED, tags=["vip", "black-friday"], priority=200, depends=[parent]
        )
        for number in range(2):
            job = worker.queues["webhooks"].pop()
            assert job is not None
            assert job.jid == FAILED
            self._move_to(self.clock.now_ms + 2300)
            if number == 0:
                job.retry(
                    group="httpx.ConnectError", message="httpx.ConnectError: [Errno 111] Connection refused"
                )
            else:
                job.log("called the endpoint", {"status": 504})
                job.fail(*ERRORS["webhooks"])

    def _dependencies(self) -> None:
        """A diamond behind the failed job."""
        queue = self.client.queues["search-index"]
        left = queue.put("Search.index", {"order": 1}, depends=[FAILED], jid="diamond-left")
        right = queue.put("Mail.notify", {"order": 1}, depends=[FAILED], jid="diamond-right")
        queue.put("Archive.store", {"order": 1}, depends=[left, right], jid="diamond-end")

    def _flows(self) -> None:
        """Pages that are fetched and counted, of which two cannot be fetched; an order whose steps wait in different ways; and an odd one."""
        jobs = [("shop.pages.fetch", ()) if n % 2 == 0 else ("shop.text.count_words", (Edge(f"nightly-28-{n - 1}"),)) for n in range(240)]  # fmt: skip
        jobs.append(("shop.text.total", [Edge(f"nightly-28-{n}") for n in range(1, 240, 2)]))
        jobs.append(("shop.mail.report", (Edge("nightly-28-240", "run"),)))
        put_flow(self.client, "nightly-28", jobs, "pages", "report")
        worker = Client(
            self.client.store_url, namespace=self.client.settings.namespace, hostname="pages-1-310"
        )
        for minute in range(14):
            self._move_to(self.clock.now_ms + 900)
            for number, job in enumerate(worker.queues["pages"].pop(16)):
                self._move_to(self.clock.now_ms + self.rng.randrange(5, 40))
                if minute in (2, 5) and not number:
                    job.fail(
                        "pages-ConnectTimeout",
                        "Traceback (most recent call last):\nhttpx.ConnectTimeout: no response from pages.example.com",
                    )
                else:
                    job.complete()
        worker.queues["pages"].pop(7)
        order = [
            ("shop.orders.check", ()),
            ("shop.payments.charge", (Edge("order-4711-0"),)),
            ("shop.stock.reserve", (Edge("order-4711-0"),)),
            ("shop.orders.ship", (Edge("order-4711-1"), Edge("order-4711-2", "wait"))),
            ("shop.mail.tell", (Edge("order-4711-3", "run"), Edge(FAILED, "wait"))),
        ]
        put_flow(self.client, "order-4711", order, "orders", "tell")
        put_flow(self.client, HOSTILE, [(HOSTILE, ()), (HOSTILE, (Edge(f"{HOSTILE}-0"),))], "orders", HOSTILE)
        worker.close()

    def _limits(self) -> None:
        """A throttle at its limit, and queues that wait for a reason."""
        self.client.throttles["stripe-api"].set_maximum(3)
        self.client.queues["billing"].put_many(
            [("Billing.charge", {"invoice": n}) for n in range(9)], throttles=["stripe-api"]
        )
        self.client.queues["thumbnails"].max_concurrency = 40
        with Client(
            self.client.store_url, namespace=self.client.settings.namespace, hostname="report-1-12"
        ) as lost:
            lost.queues["reports"].pop(2)  # their leases have ended when the pictures are taken
        self.client.queues["mailers"].put_many([("Mail.digest", {"week": n}) for n in range(60)], delay=3600)
        self.client.queues["nightly"].put_many([("Export.table", {"table": n}) for n in range(12)])
        console = Console(self.client, actor="ada")
        console.pause("nightly", why="the warehouse is being upgraded")
        console.configure(CONFIG, 20_000)
        console.set_throttle("partner-crm", 10)

    def _odds_and_ends(self) -> None:
        client, console = self.client, Console(self.client, actor="grace")
        for jid, klass, interval in (
            ("rebuild-index", "Search.rebuild", 900),
            ("monthly-report", "Reports.monthly", 86_400),
            ("heartbeat", "Health.ping", 60),
        ):
            client.queues["reports"].recur(klass, {"full": True}, interval, jid=jid)
        console.pause_recurring("monthly-report", why="the warehouse is being upgraded")
        client.queues["nightly"].recur(
            "Reports.nightly",
            {"full": True},
            cron="30 2 * * *",
            zone="Europe/Berlin",
            jid="nightly-report",
            overlap="skip",
        )
        for number, text in enumerate(
            ("Your parcel is on its way", "Do you need a hand?", "See you tomorrow")
        ):
            client.topics["reminders"].put(f"reminder-{number}", text, delay=60.0 * (number + 1))
        client.topics["digests"].put("weekly", "Twelve new articles", delay=86_400)
        client.queue_patterns.set_queue_identifier_patterns(
            {"fast": ["mailers", "webhooks"], "slow": ["reports", "search-*"]}
        )
        for jid in (FAILED, "diamond-end", GRAPH_ROOT):
            client.job(jid).track()
        client.queues[HOSTILE].put(
            HOSTILE, {HOSTILE: HOSTILE}, jid=f"j{HOSTILE}", tags=[HOSTILE], throttles=[HOSTILE]
        )
        client.throttles[HOSTILE].set_maximum(2)
        client.topics[HOSTILE].put(HOSTILE, HOSTILE, delay=900)
        with Client(client.store_url, namespace=client.settings.namespace, hostname=HOSTILE) as odd:
            odd.queues[HOSTILE].pop().fail(HOSTILE, HOSTILE)  # type: ignore[union-attr]
        client.queues[HOSTILE].recur(HOSTILE, {"text": HOSTILE}, 3600, jid=HOSTILE)

    def _hold(self) -> None:
        """Workers that run jobs, one that is quiet, and one with an older version."""
        for number, (name, queue) in enumerate(WORKERS.items()):
            self.client.queues[queue].put_many([self._job(queue) for _ in range(24)])
            held = self.workers[queue].queues[queue].pop(4 + number)
            held[0].progress(0.4, "page 40 of 100")
            facts = {"queues": json.dumps([queue, "reports"]), "slots": "10", "busy": str(len(held)), "host": name[:-5], "pid": "811", "pool": "prefork",
                     "version": "0.2.0" if number else "0.1.9", "started": str(NOW_MS - 7_200_000 * (number + 1))}  # fmt: skip
            self.client.run(WorkerSeen(name, facts))
        with Client(
            self.client.store_url, namespace=self.client.settings.namespace, hostname="billing-1-77"
        ) as worker:
            worker.queues["billing"].pop(5)
            facts = {
                "queues": json.dumps(["billing"]),
                "slots": "5",
                "busy": "3",
                "host": "billing-1",
                "pool": "threads",
                "version": "0.2.0",
            }
            worker.run(WorkerSeen("billing-1-77", facts))
        Console(self.client, actor="grace").quiet("batch-1-90")

    def _operations(self) -> None:
        console = Console(self.client, actor="ada")
        running = console.start_operation(
            Spec(action="retry", filter="state:failed group:smtplib.SMTPRecipientsRefused")
        )
        console.run_operation(running)
        console.act("priority", FAILED, value="25")
