"""Storms: calls that carry all that one may, 512 jobs or the most weight."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from benchmarks.roots import JOB, Root, jids

MOST, TOLD, FLAGGED, NAMED, TAGGED = 512, 128, 256, 102, 15
"""Jobs of one call: plain, of verbs that tell a line each, with flags, with throttles, with 64 tags."""
HOUR_MS = 3_600_000

Call = tuple[str, tuple[str | int | bytes, ...]]


class Storm(NamedTuple):
    """What is prepared, and the calls that meet it, until they end by themselves."""

    name: str
    calls: Callable[[Root, int], Iterator[Call]]


def in_steps(verb: str, names: Sequence[str], *head: str | int) -> Iterator[Call]:
    for first in range(0, len(names), MOST):
        yield verb, (*head, *names[first : first + MOST])


def pairs(option: str, number: int, prefix: str = "") -> list[str]:
    """That option so many times, each with a value of its own."""
    return [word for at in range(number) for word in (option, f"{option}{prefix}{at}")]


def completed(root: Root, size: int, *wish: str) -> None:
    root.put("q", jids(size), 0, *wish)
    while held := root.pop("q", FLAGGED):
        root("complete", "w", *(word for jid, token in held for word in (jid, token, "", 0, "")))


def running(root: Root, count: int = MOST, *wish: str) -> list[tuple[bytes, int]]:
    root.put("q", jids(count), 0, *wish)
    held = root.pop("q", count, HOUR_MS)
    assert len(held) == count
    return held


def told(root: Root, count: int) -> list[tuple[bytes, int]]:
    """Running jobs that have a history of ten lines."""
    held = running(root, count)
    for jid, _ in held:
        for _ in range(10):
            root("log", "", 0, jid, "something", "")
    return held


def in_batches(root: Root, _size: int) -> Iterator[Call]:
    yield "put", ("", 0, "new", "q", 0, 5, 0, *(word for jid in jids(MOST) for word in (jid, *JOB)))
    yield "pop", ("w", "line", 1, MOST, 0, "q", 0)
    done = [word for jid in jids(MOST) for word in (jid, root.now, "", 60_000, "null")]
    yield "complete", ("w", *done)


def complete_pop(root: Root, _size: int) -> Iterator[Call]:
    held = running(root)
    root.put("q", jids(MOST, "n"))
    done = [word for jid, token in held for word in (jid, token, "", 60_000, "null")]
    yield "complete_pop", ("w", "line", 1, MOST, 0, 1, "q", 0, *done)


def put_again(root: Root, _size: int) -> Iterator[Call]:
    """Jobs that are there already, put anew: all of them move."""
    root.put("q", jids(MOST))
    yield "put", ("l", 1, "move", "r", 0, 5, 0, *(word for jid in jids(MOST) for word in (jid, *JOB)))


def put_completed_again(root: Root, _size: int) -> Iterator[Call]:
    completed(root, 20_000)
    yield "put", ("l", 1, "move", "r", 0, 5, 0, *(word for jid in jids(MOST) for word in (jid, *JOB)))


def put_limited(root: Root, _size: int) -> Iterator[Call]:
    """Jobs set aside one by one, for their queue is full."""
    root("throttle_set", "", 0, "ql:q:q", 1, 0)
    running(root, 1)
    yield "put", ("", 0, "new", "q", 0, 5, 0, *(word for jid in jids(MOST, "n") for word in (jid, *JOB)))


def put_x(words: Callable[[int], Sequence[str]], jobs: int) -> Callable[[Root, int], Iterator[Call]]:
    """So many jobs in one call, with what `words` wishes for each."""

    def calls(root: Root, _size: int) -> Iterator[Call]:
        root.put("p", jids(512, "p"))
        for round_ in range(4):
            given: list[str | int] = []
            for number, jid in enumerate(jids(jobs, f"x{round_}")):
                wish = words(number)
                given += (jid, *JOB, len(wish) // 2, *wish)
            yield "put_x", ("", 0, "new", "q", 0, 5, 0, *given)

    return calls


def parents(number: int) -> list[str]:
    return [word for jid in jids(number, "p") for word in ("depends", jid)]


def follow_ups(words: Sequence[str], jobs: int) -> Callable[[Root, int], Iterator[Call]]:
    """One completion with so many jobs that follow from it."""

    def calls(root: Root, _size: int) -> Iterator[Call]:
        root.put("p", jids(512, "p"))
        [(jid, token)] = running(root, 1)
        given = [
            word for name in jids(jobs, "x") for word in ("r", 0, 5, 0, name, *JOB, len(words) // 2, *words)
        ]
        yield "complete_x", ("w", jid, token, "", 0, "", "", 0, 0, *given)

    return calls


def many_parents(root: Root, jid: str = "child", extra: Sequence[str] = ()) -> Iterator[Call]:
    """A job that waits for a thousand, in calls of 500."""
    root.put("p", jids(1000, "p"))
    root.put("q", [jid], 0, "depends", jids(1, "p")[0], *extra)
    for first in (0, 500):
        yield "depend", ("", 0, "add", jid, *jids(1000, "p")[first : first + 500])


def depend(root: Root, _size: int) -> Iterator[Call]:
    yield from many_parents(root)
    yield "depend", ("", 0, "remove", "child", *jids(500, "p"))
    yield "depend", ("", 0, "all", "child")


def cancelled(root: Root, count: int, *wish: str) -> Iterator[Call]:
    root.put("q", jids(count), 0, *wish)
    yield "cancel", ("", 0, *jids(count))


def cancelled_dependents(root: Root, _size: int) -> Iterator[Call]:
    root.put("p", ["parent"])
    return cancelled(root, MOST, "depends", "parent")


def cancelled_families(root: Root, _size: int) -> Iterator[Call]:
    """256 jobs, each with one that waits for it."""
    root.put("q", jids(256))
    for jid, child in zip(jids(256), jids(256, "c"), strict=True):
        root.put("q", [child], 0, "depends", jid)
    yield "cancel", ("", 0, *jids(256, "c"), *jids(256))


def cancelled_running(root: Root, _size: int) -> Iterator[Call]:
    running(root, 80, "tag", "red", "throttle", "t")
    yield "cancel", ("", 0, *jids(80))
    running(root, 341)
    yield "cancel", ("", 0, *jids(341))


def lease_calls(root: Root, _size: int) -> Iterator[Call]:
    held = running(root)
    beats = [word for jid, token in held for word in ("w", jid, token, "")]
    for _ in range(3):
        yield "heartbeat", (0, *beats)
    yield "expire", tuple(word for jid, token in held[:TOLD] for word in ("w", jid, token))


def timed_out(root: Root, _size: int) -> Iterator[Call]:
    running(root, TOLD)
    yield "timeout", ("", 0, *jids(TOLD))


def reprioritised(root: Root, _size: int) -> Iterator[Call]:
    root.put("q", jids(MOST))
    yield "priority", (7, *jids(MOST))
    yield "priority", (0, *jids(MOST))


def moved(root: Root, _size: int) -> Iterator[Call]:
    wish = (*pairs("tag", 64), *pairs("throttle", 16))
    root.put("q", jids(10), 0, *wish)
    for jid in jids(10):
        yield "move", ("", 0, "r", 0, jid, "{}", "")


def settled(verb: str, *head: str | int, history: bool = False) -> Callable[[Root, int], Iterator[Call]]:
    """128 leases ended by one call of retry, fail or advance."""

    def calls(root: Root, _size: int) -> Iterator[Call]:
        held = told(root, TOLD) if history else running(root, TOLD)
        words = tuple(word for jid, token in held for word in (jid, token, ""))
        yield verb, ("w", *head, *words)
        yield verb, ("w", *head, *words)  # again: the answer is looked for in the history

    return calls


def completed_with(jobs: int, *wish: str) -> Callable[[Root, int], Iterator[Call]]:
    """Jobs with all these popped and completed in one call each."""

    def calls(root: Root, _size: int) -> Iterator[Call]:
        root.put("q", jids(jobs), 0, *wish)
        held: list[bytes] = []
        while len(held) < jobs:
            before = len(held)
            yield "pop", ("w", "l", before + 1, jobs - before, HOUR_MS, "q", 0)
            found = root("list", "running", "q", "", "", MOST)[::2]
            held = list(found)
            assert len(held) > before
        yield "complete", ("w", *(word for jid in held for word in (jid, root.now, "", 0, "")))

    return calls


def completed_told(root: Root, _size: int) -> Iterator[Call]:
    held = told(root, FLAGGED)
    yield "complete", ("w", *(word for jid, token in held for word in (jid, token, "", 0, "")))


def completed_parents(root: Root, _size: int) -> Iterator[Call]:
    """Jobs completed, for each of which one waits."""
    held = running(root, FLAGGED)
    for jid, _ in held:
        root.put("r", [f"c{jid.decode()}"], 0, "depends", jid.decode())
    yield "complete", ("w", *(word for jid, token in held for word in (jid, token, "", 0, "")))
    for _ in range(6):
        yield "pop", ("w", "", 0, 1, 0, "r", 0)


def awaited(root: Root, _size: int) -> Iterator[Call]:
    held = running(root, FLAGGED)
    yield "await", tuple(jid for jid, _ in held)
    yield "complete", ("w", *(word for jid, token in held for word in (jid, token, "", HOUR_MS, "null")))
    yield "await", tuple(jid for jid, _ in held)


def long_history(root: Root, _size: int) -> Iterator[Call]:
    """Lines of 16 kB, up to the most bytes of a history; then short ones, up to the most lines."""
    [(jid, _)] = running(root, 1)
    data = '{"a":"' + "x" * 16_000 + '"}'
    for _ in range(25):
        yield "log", ("", 0, jid, "something", data)
    for _ in range(110):
        yield "log", ("", 0, jid, "something", "")


def unbounded_history(root: Root, _size: int) -> Iterator[Call]:
    """Short lines without a limit of their number, up to the most bytes."""
    root("config_set", "max-job-history", "0")
    [(jid, _)] = running(root, 1)
    for number in range(12_000):
        call = "log", ("", 0, jid, "x", "")
        if number % 400 == 0 or number > 11_990:
            yield call
        else:
            root(call[0], *call[1])
    yield "job_get", (jid,)
    yield "explain", (jid,)


def reported(root: Root, _size: int) -> Iterator[Call]:
    [(jid, token)] = running(root, 1)
    for _ in range(5):
        yield "report", ("w", jid, token, "0.5", "n" * 1000, *(["line" * 20] * MOST))


def tagged(root: Root, _size: int) -> Iterator[Call]:
    root.put("q", ["one"])
    yield "tag", ("add", "one", *pairs("tag", 64)[1::2])
    yield "tag", ("remove", "one", *pairs("tag", 64)[1::2])


def released_slots(root: Root, _size: int) -> Iterator[Call]:
    """Slots of a throttle taken from all that run, while as many wait for them."""
    root("throttle_set", "", 0, "t", MOST, 0)
    root.put("q", jids(2 * MOST), 0, "throttle", "t")
    root.pop("q", 2 * MOST, HOUR_MS)
    holders = root("list", "holders", "t", "", "", MOST)[::2]
    yield "throttle_release", ("", 0, "t", *holders)


def paused(root: Root, _size: int) -> Iterator[Call]:
    names = [f"q{number}" for number in range(MOST)]
    for name in names:
        root.put(name, [f"j{name}"])
    yield "pause", ("", 0, 1, "me", "because", 0, *names)
    yield "pause", ("", 0, 0, "me", "because", 0, *names)
    yield "tick", tuple(names[:128])


def forgotten(root: Root, _size: int) -> Iterator[Call]:
    names = [f"q{number}" for number in range(40)]
    for name in names:
        for day in range(3):
            root.put(name, jids(300, f"{day}{name}"))
            for jid, token in root.pop(name, 300):
                root("complete", "w", jid, token, "", 0, "")
            root.advance(86_400_000)
    for first in range(0, 40, 4):
        yield "queue_forget", ("", 0, *names[first : first + 4])


def workers(root: Root, _size: int) -> Iterator[Call]:
    fields = [word for number in range(28) for word in (f"f{number}", "v" * 500)]
    for number in range(64):
        call = "worker_seen", (f"w{number}", *fields)
        if number % 16 == 0:
            yield call
        else:
            root(call[0], *call[1])
    yield "workers", ("", "", 64)
    yield "worker_forget", ("", 0, *(f"w{number}" for number in range(64)))


STORMS = (
    Storm("512 jobs put, popped, completed with results", in_batches),
    Storm("complete_pop of 512 and 512", complete_pop),
    Storm("512 jobs put anew while they wait", put_again),
    Storm("512 jobs put anew when they were complete", put_completed_again),
    Storm("512 jobs put into a full queue", put_limited),
    Storm("put_x of 512 plain jobs", put_x(lambda _: (), 512)),
    Storm("put_x of 15 jobs, 64 tags each", put_x(lambda _: pairs("tag", 64), 15)),
    Storm("put_x of 15 jobs, 64 tags of their own", put_x(lambda n: pairs("tag", 64, f"{n}-"), 15)),
    Storm("put_x of 256 jobs, one tag each", put_x(lambda _: pairs("tag", 1), 256)),
    Storm("put_x of 53 jobs, 16 throttles each", put_x(lambda _: pairs("throttle", 16), 53)),
    Storm("put_x of one job that waits for 510", put_x(lambda _: parents(510), 1)),
    Storm("put_x of 200 jobs, one parent each", put_x(lambda _: parents(1), 200)),
    Storm("complete_x with 512 plain jobs", follow_ups((), 512)),
    Storm("complete_x with 256 jobs, one tag each", follow_ups(("tag", "red"), 256)),
    Storm("complete_x with 200 jobs, one parent each", follow_ups(parents(1), 200)),
    Storm("a job waits for 1,000, 500 a call, and for none", depend),
    Storm("409 jobs cancelled, one tag each", lambda root, _: cancelled(root, 409, "tag", "red")),
    Storm("15 jobs cancelled, 64 tags each", lambda root, _: cancelled(root, TAGGED, *pairs("tag", 64))),
    Storm(
        "107 jobs cancelled, 16 throttles each", lambda root, _: cancelled(root, 107, *pairs("throttle", 16))
    ),
    Storm("512 jobs cancelled that wait for one", cancelled_dependents),
    Storm("256 jobs and their dependents cancelled", cancelled_families),
    Storm("80 running jobs with tag and throttle cancelled, 341 without", cancelled_running),
    Storm("heartbeat of 512 and expire of 128", lease_calls),
    Storm("timeout of 128", timed_out),
    Storm("priority of 512", reprioritised),
    Storm("move of a job with 64 tags and 16 throttles", moved),
    Storm("retry of 128", settled("retry", 0, "", "")),
    Storm("retry of 128 that have a history", settled("retry", 0, "group", "because", history=True)),
    Storm("fail of 128 that have a history", settled("fail", "group", "because", history=True)),
    Storm("advance of 128", settled("advance", "r", 0)),
    Storm("advance of 128 that have a history", settled("advance", "r", 0, history=True)),
    Storm("256 jobs of three tags popped and completed", completed_with(FLAGGED, *pairs("tag", 3))),
    Storm("200 jobs of 64 tags popped and completed", completed_with(200, *pairs("tag", 64))),
    Storm("102 jobs of 16 throttles popped and completed", completed_with(NAMED, *pairs("throttle", 16))),
    Storm("complete of 256 that have a history", completed_told),
    Storm("complete of 256, one dependent each", completed_parents),
    Storm("await of 256, before and after", awaited),
    Storm("log up to the most of a history", long_history),
    Storm("log without a limit of lines", unbounded_history),
    Storm("report of 512 lines", reported),
    Storm("64 tags given and taken", tagged),
    Storm("512 slots taken from those that hold them", released_slots),
    Storm("512 queues paused and not; 128 ticked", paused),
    Storm("queues forgotten, four a call", forgotten),
    Storm("workers that say all they may", workers),
)
