"""Calls with a feature and the same calls without, whose store CPU `features` compares.

Each measure is a function of a `Bench`, makes what it needs in a queue of its own, and answers µs a job.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from secrets import token_hex
from typing import Any

from benchmarks.subjects import Native, Word, done, rows_of
from benchmarks.wirecpu import Wire, chunks

JOBS = 1000
WORKER, KLASS, BODY = "host-1-0", "app.send", '{"user":7}'
NO_OPTIONS: tuple[str, ...] = ()
Held = list[tuple[bytes, int]]


class Bench:
    """One store, and calls of `batch` jobs on one namespace."""

    def __init__(self, wire: Wire, name: str, batch: int) -> None:
        self.wire, self.batch = wire, batch
        self.native = Native(wire, name)
        self.prepare([self.native.words("config_set", "jobs-history-count", JOBS)])
        self.numbers = count(1)
        self.inner: Counter[str] | None = None
        """Commands inside the calls measured, counted while this is a counter."""

    def cpu(self, calls: Sequence[bytes], jobs: int = JOBS) -> tuple[float, list[Any]]:
        """µs a job, and the replies."""
        if self.inner is not None:
            self.wire.call("CONFIG", "RESETSTAT")
        before = self.wire.cpu()
        replies = self.wire.in_waves(calls, max(1, 100 // self.batch))
        spent = self.wire.cpu() - before
        if self.inner is not None:
            self.inner.update(self._commands())
        return spent / jobs, replies

    def _commands(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for line in self.wire.call("INFO", "commandstats").decode().splitlines()[1:]:
            name, _, rest = line.removeprefix("cmdstat_").partition(":calls=")
            if name not in {"fcall", "info", "config", "config|resetstat"}:
                found[name] += int(rest.partition(",")[0])
        return found

    def prepare(self, calls: Sequence[bytes]) -> list[Any]:
        return self.wire.in_waves(calls, 50)

    def queue(self) -> str:
        return f"q{next(self.numbers)}"

    def limited(self, limit: int) -> str:
        queue = self.queue()
        self.prepare([self.native.words("throttle_set", "", 0, f"ql:q:{queue}", limit, 0)])
        return queue

    def puts(self, queue: str, jids: Sequence[str]) -> list[bytes]:
        words = ("", 0, "new", queue, 0, 5, 0)
        return [
            self.native.words("put", *words, *(word for jid in part for word in (jid, KLASS, BODY)))
            for part in chunks(jids, self.batch)
        ]

    def puts_x(self, queue: str, jids: Sequence[str], options: Callable[[int], Sequence[str]]) -> list[bytes]:
        """`options` answers what the n-th job wishes, as option and value in turns."""
        calls, number = [], count()
        for part in chunks(jids, self.batch):
            words: list[Word] = []
            for jid in part:
                wished = options(next(number))
                words += [jid, KLASS, BODY, len(wished) // 2, *wished]
            calls.append(self.native.words("put_x", "", 0, "new", queue, 0, 5, 0, *words))
        return calls

    def pops(self, queue: str) -> list[bytes]:
        one = self.native.words("pop", WORKER, "", 0, self.batch, 0, queue, 0)
        return [one] * (JOBS // self.batch)

    def ends(self, held: Held) -> list[bytes]:
        return [self.native.words("complete", WORKER, *done(part)) for part in chunks(held, self.batch)]

    def singles(self, verb: str, held: Held, words: Callable[[bytes, int], Sequence[Word]]) -> list[bytes]:
        """A call of a verb that takes one job."""
        return [self.native.words(verb, *words(jid, token)) for jid, token in held]

    def take(self, queue: str) -> Held:
        replies = self.prepare(self.pops(queue))
        return [row for reply in replies for row in rows_of(reply, 1)]

    def running(self, queue: str, options: Sequence[str] = NO_OPTIONS, jobs: int = JOBS) -> Held:
        """Jobs put and popped: (jid, token)."""
        self.prepare(
            self.puts_x(queue, minted(jobs), lambda _: options) if options else self.puts(queue, minted(jobs))
        )
        return self.take(queue)


def minted(jobs: int = JOBS) -> list[str]:
    """Jids as long as minted ones."""
    return [token_hex(16) for _ in range(jobs)]


def plain_put(bench: Bench) -> float:
    return bench.cpu(bench.puts(bench.queue(), minted()))[0]


def plain_pop(bench: Bench) -> float:
    queue = bench.queue()
    bench.prepare(bench.puts(queue, minted()))
    return bench.cpu(bench.pops(queue))[0]


def plain_completion(bench: Bench) -> float:
    return bench.cpu(bench.ends(bench.running(bench.queue())))[0]


def put_with(*options: str) -> Callable[[Bench], float]:
    def measured(bench: Bench) -> float:
        return bench.cpu(bench.puts_x(bench.queue(), minted(), lambda _: options))[0]

    return measured


def unique_put(bench: Bench) -> float:
    """Each job has a key of its own, as long as those of functions."""
    return bench.cpu(bench.puts_x(bench.queue(), minted(), lambda _: ("unique_key", token_hex(32))))[0]


def pop_with(*options: str) -> Callable[[Bench], float]:
    def measured(bench: Bench) -> float:
        queue = bench.queue()
        bench.prepare(bench.puts_x(queue, minted(), lambda _: options))
        return bench.cpu(bench.pops(queue))[0]

    return measured


def completion_with(*options: str) -> Callable[[Bench], float]:
    def measured(bench: Bench) -> float:
        return bench.cpu(bench.ends(bench.running(bench.queue(), options)))[0]

    return measured


def put_waiting(bench: Bench) -> float:
    """Each job waits for an open job of its own."""
    parents = minted()
    bench.prepare(bench.puts(bench.queue(), parents))
    return bench.cpu(bench.puts_x(bench.queue(), minted(), lambda n: ("depends", parents[n])))[0]


def releasing(bench: Bench) -> float:
    """For each of the jobs that are completed one job waits."""
    held = bench.running(bench.queue())
    bench.prepare(bench.puts_x(bench.queue(), minted(), lambda n: ("depends", held[n][0].decode())))
    return bench.cpu(bench.ends(held))[0]


def limited_put(bench: Bench) -> float:
    return bench.cpu(bench.puts(bench.limited(2 * JOBS), minted()))[0]


def limited_pop(bench: Bench) -> float:
    queue = bench.limited(2 * JOBS)
    bench.prepare(bench.puts(queue, minted()))
    return bench.cpu(bench.pops(queue))[0]


def limited_completion(bench: Bench) -> float:
    return bench.cpu(bench.ends(bench.running(bench.limited(2 * JOBS))))[0]


def set_aside(bench: Bench) -> float:
    queue = bench.limited(bench.batch)
    bench.running(queue, jobs=bench.batch)
    return bench.cpu(bench.puts(queue, minted()))[0]


def handing_over(bench: Bench) -> float:
    """Completions by each of which a job that was set aside becomes ready."""
    queue = bench.limited(JOBS)
    held = bench.running(queue)
    bench.prepare(bench.puts(queue, minted()))
    return bench.cpu(bench.ends(held))[0]


def named_set_aside(bench: Bench) -> float:
    """The throttle that the jobs name is full."""
    name = bench.queue()
    bench.prepare([bench.native.words("throttle_set", "", 0, name, 1, 0)])
    bench.running(bench.queue(), ("throttle", name), jobs=bench.batch)
    return bench.cpu(bench.puts_x(bench.queue(), minted(), lambda _: ("throttle", name)))[0]


def log(bench: Bench, held: Held) -> list[bytes]:
    return bench.singles("log", held, lambda jid, _: ("", 0, jid, "half", ""))


def tracked(bench: Bench, *, told: bool) -> Held:
    held = bench.running(bench.queue())
    if told:
        bench.prepare(log(bench, held))
    bench.prepare(bench.singles("track", held, lambda jid, _: ("", 0, 1, jid)))
    return held


def tracked_completion(bench: Bench) -> float:
    return bench.cpu(bench.ends(tracked(bench, told=False)))[0]


def told_tracked_completion(bench: Bench) -> float:
    return bench.cpu(bench.ends(tracked(bench, told=True)))[0]


def told_completion(bench: Bench) -> float:
    held = bench.running(bench.queue())
    bench.prepare(log(bench, held))
    return bench.cpu(bench.ends(held))[0]


def logged(bench: Bench) -> float:
    """The second line of a job's own: the first makes it a told one."""
    held = bench.running(bench.queue())
    bench.prepare(log(bench, held))
    return bench.cpu(log(bench, held))[0]


def no_change(bench: Bench) -> float:
    """A call that reads one record and writes nothing."""
    held = bench.running(bench.queue())
    return bench.cpu(bench.singles("tag", held, lambda jid, _: ("remove", jid, "a")))[0]


def tagging(bench: Bench) -> float:
    held = bench.running(bench.queue())
    return bench.cpu(bench.singles("tag", held, lambda jid, _: ("add", jid, "a")))[0]


def reporting(bench: Bench) -> float:
    held = bench.running(bench.queue())
    return bench.cpu(
        bench.singles("report", held, lambda jid, token: ("", 0, WORKER, jid, token, "0.5", "half"))
    )[0]


def with_result(bench: Bench) -> float:
    held = bench.running(bench.queue())
    calls = [
        bench.native.words(
            "complete", WORKER, *(word for jid, token in part for word in (jid, token, "", 60000, "{}"))
        )
        for part in chunks(held, bench.batch)
    ]
    return bench.cpu(calls)[0]


def retried(delay: int, *options: str) -> Callable[[Bench], float]:
    """Retries after `delay` ms, -1 for what the job wishes itself."""

    def measured(bench: Bench) -> float:
        parts = chunks(bench.running(bench.queue(), options), bench.batch)
        calls = [
            bench.native.words(
                "retry", WORKER, delay, "bad", "why", *(w for jid, token in part for w in (jid, token, ""))
            )
            for part in parts
        ]
        return bench.cpu(calls)[0]

    return measured


def spawning(bench: Bench) -> float:
    """Pops that find as many missed occurrences as they want."""
    queue = bench.queue()
    words = ("", 0, "set", queue, f"template-{queue}", KLASS, BODY, 1, -2 * JOBS, 0, 5, 0, 0)
    bench.prepare([bench.native.words("recur", *words)])
    return bench.cpu(bench.pops(queue))[0]


def calendar(bench: Bench, queue: str, jid: str, moments: Sequence[int]) -> bytes:
    """The call that makes a template with these moments, in ms; all that are due get a job."""
    plan = " ".join(f"{moment} {moment}" for moment in moments)
    own = ("cron", "* * * * *", "zone", "UTC", "missed", "all", "overlap", "allow", "plan", plan)
    words = ("", 0, "set", queue, jid, KLASS, BODY, 60_000, 0, 0, 5, 0, len(own) // 2, *own)
    return bench.native.words("recur", *words)


def spawning_of_plans(bench: Bench) -> float:
    """Pops of which each finds as many templates of calendars that are due as it wants jobs."""
    queue, now = bench.queue(), round(time.time() * 1000)
    later = [now + 86_400_000 * (1 + day) for day in range(99)]
    bench.prepare([calendar(bench, queue, f"{jid}", [now - 1000, *later]) for jid in minted()])
    return bench.cpu(bench.pops(queue))[0]


def spawning_of_one_plan(bench: Bench) -> float:
    """Pops that find a template of a calendar with as many missed moments as they want."""
    queue, now = bench.queue(), round(time.time() * 1000)
    bench.prepare([calendar(bench, queue, f"c-{queue}", [now - 2000 + moment for moment in range(JOBS)])])
    return bench.cpu(bench.pops(queue))[0]


def delayed(bench: Bench) -> float:
    """Puts with a delay, and the pops that take those jobs when they are due."""
    queue = bench.queue()
    words = ("", 0, "new", queue, 0, 5, 1)
    puts = [
        bench.native.words("put", *words, *(word for jid in part for word in (jid, KLASS, BODY)))
        for part in chunks(minted(), bench.batch)
    ]
    return bench.cpu(puts)[0] + bench.cpu(bench.pops(queue))[0]


def unfailing(bench: Bench) -> float:
    group = bench.queue()
    held = bench.running(bench.queue())
    bench.prepare(bench.singles("fail", held, lambda jid, token: (WORKER, group, "why", jid, token, "")))
    one = bench.native.words("unfail", "", 0, bench.queue(), group, bench.batch)
    return bench.cpu([one] * (JOBS // bench.batch))[0]


def lifecycle(bench: Bench) -> float:
    return plain_put(bench) + plain_pop(bench) + plain_completion(bench)


ARGUMENTS, RESULT = '{"args":[null],"kwargs":{}}', "7"
PLACE, LENGTH, MEMBERS = 9, 10, 99


def flow_lifecycle(
    bench: Bench, rounds: Sequence[int], edges: Sequence[Sequence[str]], data: Sequence[str]
) -> float:
    """Flows of jobs with these edges and data, put and run until all are complete; `{}` in an edge is the flow.

    `rounds`: how many jobs of each flow are ready after those before them.
    """
    queue, flows = bench.queue(), [token_hex(12) for _ in range(JOBS // len(edges))]
    puts: list[bytes] = []
    for flow in flows:
        words: list[Word] = []
        for number, (own, body) in enumerate(zip(edges, data, strict=True)):
            words += [queue, 0, 5, 0, f"{flow}-{number}", KLASS, body, len(own)]
            words += [word for edge in own for word in ("edge", edge.format(flow))]
        puts.append(bench.native.words("flow_put", "", 0, flow, "f", *words))
    spent = bench.cpu(puts)[0]
    one = bench.native.words("pop", WORKER, "", 0, bench.batch, 0, queue, 0)
    for ready in rounds:
        took, replies = bench.cpu([one] * -(-ready * len(flows) // bench.batch))
        held = [row for reply in replies for row in rows_of(reply, 1)]
        ends = [
            bench.native.words(
                "complete", WORKER, *(w for jid, token in part for w in (jid, token, "", 0, RESULT))
            )
            for part in chunks(held, bench.batch)
        ]
        spent += took + bench.cpu(ends)[0]
    return spent


def chained_lifecycle(bench: Bench) -> float:
    """Chains of ten, each of which gets the result before it."""
    edges = [[] if n == 0 else [f"fail {PLACE} 4 {{}}-{n - 1}"] for n in range(LENGTH)]
    return flow_lifecycle(bench, [1] * LENGTH, edges, [ARGUMENTS] * LENGTH)


def grouped_lifecycle(bench: Bench) -> float:
    """Groups of 99, and one job that gets all their results."""
    nulls = ",".join(["null"] * MEMBERS)
    last = [f"fail {PLACE + 1 + 5 * n} 4 {{}}-{n}" for n in range(MEMBERS)]
    return flow_lifecycle(
        bench,
        [MEMBERS, 1],
        [*([] for _ in range(MEMBERS)), last],
        [*[ARGUMENTS] * MEMBERS, f'{{"args":[[{nulls}]],"kwargs":{{}}}}'],
    )


def counted_lifecycle(bench: Bench) -> float:
    """A large group of as many jobs as a lifecycle has, from the put until the job that stands for it has ended."""
    queue, flow = bench.queue(), token_hex(12)
    stands = (queue, 0, 5, 0, f"{flow}-0", KLASS, "{}", 1, "group", "fail pages 1")
    bench.prepare([bench.native.words("flow_put", "", 0, flow, "f", *stands)])
    puts: list[bytes] = []
    for numbers in chunks(list(range(1, JOBS + 1)), bench.batch):
        members = [word for n in numbers for word in (queue, 0, 5, 0, f"{flow}-{n}", KLASS, BODY, 0)]
        puts.append(bench.native.words("flow_add", "", 0, flow, numbers[0], 0, "", "", 0, 0, *members))
    spent = bench.cpu([*puts, bench.native.words("flow_close", "", 0, flow)])[0]
    took, replies = bench.cpu(bench.pops(queue))
    held = [row for reply in replies for row in rows_of(reply, 1)]
    ends = [
        bench.native.words(
            "complete", WORKER, *(w for jid, token in part for w in (jid, token, "", 0, RESULT))
        )
        for part in chunks(held, bench.batch)
    ]
    return spent + took + bench.cpu(ends)[0]


def watched_lifecycle(bench: Bench) -> float:
    """The same while somebody looks at the pages."""
    bench.prepare([bench.native.words("watch", 60000)])
    return lifecycle(bench)
