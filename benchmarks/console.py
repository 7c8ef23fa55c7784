"""What do the looks and repairs of an operator cost? A million jobs in a thousand queues: each query, a filter over all of them, a
bulk retry, and the live view; with the longest call in the store by its own slow log."""

import time
from collections.abc import Callable

from benchmarks.report import Row, Say, at_least, at_most, shown
from holdfast import Client
from holdfast.cli.top import pause_after
from holdfast.commands.jobs import PutMany
from holdfast.console.handles import Console
from holdfast.console.operations.spec import Spec
from holdfast.ids import mint_jid
from holdfast.testing.store import ScratchStore

QUEUES = 1000


def run(quick: bool, say: Say) -> list[Row]:
    jobs, failed = (100_000, 10_000) if quick else (1_000_000, 100_000)
    with ScratchStore() as store, Client(store.url, namespace="bench", timeout=60, deadline=60) as client:
        client.config["jobs-history-count"] = 10_000_000
        fill(client, jobs, failed, say)
        console = Console(client, "bench@here")
        store.ask("CONFIG", "SET", "slowlog-log-slower-than", "2000")
        store.ask("CONFIG", "SET", "slowlog-max-len", "1000")
        store.ask("SLOWLOG", "RESET")
        return [*queries(store, console, say), *scans(store, console, jobs, say), *bulk(store, console, failed, say),
                *live(store, console)]  # fmt: skip


def fill(client: Client, jobs: int, failed: int, say: Say, queues: int = QUEUES) -> None:
    """Put the jobs over the queues in turn, and let some of one queue fail."""
    each = jobs // queues
    for number in range(queues):
        if number * 20 % queues == 0:
            say(f"{number * each:,} of {jobs:,} jobs")
        words: list[str | bytes] = []
        for at in range(each):
            words += [
                mint_jid(),
                f"jobs.klass{number % 7}",
                b'{"args":[%d],"order":{"id":%d}}' % (at, number * each + at),
            ]
            if len(words) == 1500:
                client.run(PutMany(f"queue-{number:04d}", words))
                words = []
        if words:
            client.run(PutMany(f"queue-{number:04d}", words))
    queue = client.queues["broken"]
    for at in range(0, failed, 500):
        say(f"{at:,} of {failed:,} failed jobs")
        client.run(PutMany("broken", [word for _ in range(500) for word in (mint_jid(), "jobs.bad", b"{}")]))
        for job in queue.pop(500):
            job.fail("broken-ValueError", "Traceback\nValueError: no luck")


def longest(store: ScratchStore) -> float:
    """The longest call of our functions since the last look, in ms of wall time; 2 if none took 2 ms."""
    calls = store.ask("SLOWLOG", "GET", "1000").splitlines()
    times = [
        int(calls[at - 1])
        for at, line in enumerate(calls)
        if line in ("FCALL", "FCALL_RO", "fcall") and calls[at - 1].isdigit()
    ]
    store.ask("SLOWLOG", "RESET")
    return max(times, default=2000) / 1000


def cpu(store: ScratchStore) -> float:
    """Seconds of processor time that the store has used."""
    found = dict(line.split(":", 1) for line in store.ask("INFO", "cpu").splitlines() if ":" in line)
    return float(found["used_cpu_user"]) + float(found["used_cpu_sys"])


def queries(store: ScratchStore, console: Console, say: Say) -> list[Row]:
    jid = console.jobs("queue:queue-0500", limit=1).jobs[0].jid
    asked: dict[str, Callable[[], object]] = {
        "overview": console.overview,
        "queues by name": console.queues,
        "queues by waiting": lambda: console.queues(sort="waiting"),
        "queue": lambda: console.queue("queue-0500"),
        "jobs of a queue": lambda: console.jobs("state:waiting queue:queue-0500"),
        "jobs of any state": lambda: console.jobs(""),
        "failed jobs of a group": lambda: console.jobs("state:failed group:broken-*", wants="e"),
        "job": lambda: console.job(jid),
        "failures": console.failures,
        "failure": lambda: console.failure("broken-ValueError"),
        "workers": console.workers,
        "throttles": console.throttles,
        "recurring": console.recurring,
        "tags": console.tags,
        "settings": console.settings,
        "audit": console.audit,
        "metrics": console.metrics,
    }
    rows: list[Row] = []
    for name, ask in asked.items():
        say(name)
        ask()
        begun = time.perf_counter()
        ask()
        took = (time.perf_counter() - begun) * 1000
        text = f"longest call {longest(store):.1f} ms"
        rows.append(
            shown(name, took, "ms", text) if name == "metrics" else at_most(name, took, 150, "ms", text)
        )
    return rows


def scans(store: ScratchStore, console: Console, jobs: int, say: Say) -> list[Row]:
    """Filters without an index, over all jobs."""
    rows: list[Row] = []
    for what, text in (("klass", "klass:jobs.none"), ("data", "data.order.id=-1"), ("text", '"nowhere"')):
        say(f"filter over all jobs: {text}")
        before, begun = cpu(store), time.perf_counter()
        found = console.dry_run(Spec(action="track", filter=text))
        took = time.perf_counter() - begun
        each = (cpu(store) - before) / found.looked * 1e6
        detail = f"{found.looked:,} looked at; store {each:.1f} µs of CPU a job, longest call {longest(store):.1f} ms"
        rows.append(
            at_least(f"filter over all jobs by {what}", found.looked / took, 40_000, "jobs/s", detail)
        )
    return rows


def bulk(store: ScratchStore, console: Console, failed: int, say: Say) -> list[Row]:
    say("bulk retry")
    before, begun = cpu(store), time.perf_counter()
    done = console.run_operation(
        console.start_operation(Spec(action="retry", filter="state:failed group:broken-ValueError"))
    )
    took = time.perf_counter() - begun
    text = f"{done.changed:,} of {failed:,}; store {(cpu(store) - before) / done.changed * 1e6:.1f} µs a job, longest call {longest(store):.1f} ms"
    say("undo")
    begun = time.perf_counter()
    undone = console.run_operation(console.undo_operation(done.id))
    return [
        at_least("bulk retry", done.changed / took, 20_000, "jobs/s", text),
        shown("undo of it", undone.changed / (time.perf_counter() - begun), "jobs/s"),
    ]


def live(store: ScratchStore, console: Console) -> list[Row]:
    """What `holdfast top` reads every two seconds, or less often if that takes long."""
    before, begun = cpu(store), time.perf_counter()
    for _ in range(20):
        console.overview(200)
        console.workers(limit=64)
    used, pause = (cpu(store) - before) / 20, pause_after((time.perf_counter() - begun) / 20, 2.0)
    text = f"a look takes {used * 1000:.1f} ms of the store's CPU"
    return [
        at_most(
            f"holdfast top, a look each {pause:.1f} s",
            used / pause * 100,
            1.0,
            "% of a core of the store",
            text,
        )
    ]
