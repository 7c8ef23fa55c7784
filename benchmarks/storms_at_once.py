"""Storms: so many jobs are due, expired, dependent, pending or to be dropped at the same moment."""

from collections.abc import Iterator

from benchmarks.roots import JOB, Root, jids
from benchmarks.storms_full_calls import TOLD, Call, Storm, completed, in_steps

MOST_CALLS = 3_000
THROTTLED, DEPENDS = 4, 6
"""Places in a row of counts."""
POP_ONE = ("w", "", 0, 1, 0, "q", 0)
POP_MANY = ("w", "", 0, 100, 0, "q", 0)
DAY_MS = 86_400_000


def until_none(root: Root, verb: str, *words: str | int, state: int) -> Iterator[Call]:
    """The same call again until the queue has nothing left in that column of its counts."""
    for _ in range(MOST_CALLS):
        yield verb, words
        if not int(root("counts", "q")[0][state]):
            return
    raise AssertionError(f"{verb} does not come to its end")


def due(root: Root, size: int) -> Iterator[Call]:
    root.put("q", jids(size), 1000)
    root.advance(2000)
    for _ in range(size // 100 + 5):
        yield "pop", POP_ONE


def due_and_taken(root: Root, size: int) -> Iterator[Call]:
    """The same, met by a worker that takes all it can."""
    root.put("q", jids(size), 1000)
    root.advance(2000)
    for _ in range(size // 512 + 5):
        yield "pop", ("w", "", 0, 512, 0, "q", 0)


def expired(root: Root, size: int) -> Iterator[Call]:
    root.put("q", jids(size))
    root.pop("q", size, 1000)
    root.advance(2000)
    yield from (("pop", POP_ONE) for _ in range(size // 100 + 1))
    root.advance(20_000)
    yield from (("pop", POP_MANY) for _ in range(size // 100 + 1))


def too_late(root: Root, size: int) -> Iterator[Call]:
    """Jobs that must not begin any more, met by a pop."""
    root.put("q", jids(size), 0, "expires", 1000)
    root.advance(2000)
    for _ in range(size // 100 + 5):
        yield "pop", POP_MANY


def dependents(root: Root, size: int) -> Iterator[Call]:
    root.put("p", ["parent"])
    root.put("q", jids(size), 0, "depends", "parent")
    [(jid, token)] = root.pop("p", 1)
    yield "complete", ("w", jid, token, "", 0, "")
    yield from until_none(root, "pop", *POP_ONE, state=DEPENDS)


def dependents_with_tags(root: Root, size: int) -> Iterator[Call]:
    root.put("p", ["parent"])
    root.put("q", jids(size), 0, "depends", "parent", "tag", "red", "throttle", "t")
    [(jid, token)] = root.pop("p", 1)
    yield "complete", ("w", jid, token, "", 0, "")
    yield from until_none(root, "pop", *POP_ONE, state=DEPENDS)


def pending(root: Root, size: int) -> Iterator[Call]:
    """Jobs set aside by a named throttle whose limit is lifted."""
    root("throttle_set", "", 0, "t", 1, 0)
    root.put("q", ["first"], 0, "throttle", "t")
    root.pop("q", 1)
    root.put("q", jids(size), 0, "throttle", "t")
    yield "throttle_set", ("", 0, "t", 0, 0)
    yield from until_none(root, "pop", *POP_ONE, state=THROTTLED)


def pending_in_its_queue(root: Root, size: int) -> Iterator[Call]:
    root("throttle_set", "", 0, "ql:q:q", 1, 0)
    root.put("q", jids(1, "r"))
    root.pop("q", 1)
    root.put("q", jids(size))
    yield "throttle_set", ("", 0, "ql:q:q", 0, 0)
    yield from until_none(root, "pop", *POP_ONE, state=THROTTLED)


def running_under_a_new_limit(root: Root, size: int) -> Iterator[Call]:
    """A queue gets a limit while so many of its jobs run: their ends have to be noticed from then on."""
    root.put("q", jids(size))
    root.pop("q", size, 3_600_000)
    yield "throttle_set", ("", 0, "ql:q:q", size // 2, 0)
    for _ in range(size // 100 + 5):
        yield "pop", POP_ONE


def template(jid: str, offset: int, *wish: str) -> Call:
    return "recur", ("", 0, "set", "q", jid, *JOB, 60_000, offset, 0, 5, 0, len(wish) // 2, *wish)


def templates(root: Root, size: int) -> Iterator[Call]:
    """So many templates due at once, each for one job."""
    for jid in jids(size, "t"):
        verb, words = template(jid, 1000)
        root(verb, *words)
    root.advance(1500)
    for _ in range(size // 100 + 5):
        yield "pop", POP_ONE


def tagged_templates(root: Root, size: int) -> Iterator[Call]:
    tags = [word for number in range(64) for word in ("tag", f"tag{number}")]
    for jid in jids(size // 20, "t"):
        verb, words = template(jid, 1000, *tags)
        root(verb, *words)
    root.advance(1500)
    for _ in range(size // 200 + 5):
        yield "pop", POP_ONE


def far_behind(root: Root, size: int) -> Iterator[Call]:
    """One template that has so many occurrences to make up."""
    verb, words = template("t", 1000)
    root(verb, *words)
    root.advance(size * 60_000)
    for _ in range(size // 100 + 5):
        yield "pop", POP_ONE


def unfailed(root: Root, size: int) -> Iterator[Call]:
    root.put("q", jids(size))
    for held in iter(lambda: root.pop("q", TOLD), []):
        yield "fail", ("w", "group", "because", *(word for jid, token in held for word in (jid, token, "")))
    for _ in range(size // 200 + 1):
        yield "unfail", ("", 0, "q", "group", 200)


def cancelled(root: Root, size: int) -> Iterator[Call]:
    root.put("q", jids(size))
    yield from in_steps("cancel", jids(size), "", 0)


def dropped(root: Root, size: int, *wish: str) -> Iterator[Call]:
    root("config_set", "jobs-history-count", "1000000")
    completed(root, size, *wish)
    yield "config_set", ("jobs-history-count", "0")
    for _ in range(MOST_CALLS):
        yield "sweep", ("", 0)
        if not root("jobs_complete", 0, 1):
            return
    raise AssertionError("the sweep does not come to its end")


def dropped_with_tags(root: Root, size: int) -> Iterator[Call]:
    return dropped(root, size, "tag", "red", "tag", "green", "tag", "blue")


def dropped_with_many_tags(root: Root, size: int) -> Iterator[Call]:
    return dropped(root, size // 10, *(word for number in range(64) for word in ("tag", f"tag{number}")))


def dropped_by_completing(root: Root, size: int) -> Iterator[Call]:
    """A completion of 512 jobs that meets far too many kept ones, too old ones beside."""
    root("config_set", "jobs-history-count", "1000000")
    completed(root, size, "tag", "red")
    root.advance(DAY_MS)
    root("config_set", "jobs-history-count", "1000")
    root("config_set", "jobs-history", "3600")
    root.put("q", jids(5120, "n"))
    for held in iter(lambda: root.pop("q", 500), []):
        yield "complete", ("w", *(word for jid, token in held for word in (jid, token, "", 0, "")))


def midnight(root: Root, size: int) -> Iterator[Call]:
    """The first pops of a day from queues that have as many samples to fold as a queue may have."""
    queues = [f"q{number}" for number in range(size // 500)]
    for queue in queues:
        root.put(queue, jids(500, queue))
        held = root.pop(queue, 500)
        root("complete", "w", *(word for jid, token in held for word in (jid, token, "", 0, "")))
        root.put(queue, jids(1, f"n{queue}"))
    root.advance(DAY_MS)
    for _ in range(20):
        yield "pop", ("w", "", 0, 512, 0, *(word for queue in queues for word in (queue, 0)))


def minute(root: Root, _size: int) -> Iterator[Call]:
    """The first pops of a minute from 512 queues."""
    queues = [f"q{number}" for number in range(512)]
    for queue in queues:
        root.put(queue, jids(1, queue))
    for _ in range(3):
        root.advance(61_000)
        for _ in range(12):
            yield "pop", ("w", "", 0, 1, 0, *(word for queue in queues for word in (queue, 0)))


STORMS = (
    Storm("{} jobs due", due),
    Storm("{} jobs due, 512 asked for", due_and_taken),
    Storm("{} leases expired: noticed, then handed out", expired),
    Storm("{} jobs too late to begin", too_late),
    Storm("{} jobs that depend on one", dependents),
    Storm("{} jobs with tag and throttle that depend on one", dependents_with_tags),
    Storm("{} jobs pending, the throttle lifted", pending),
    Storm("{} jobs pending, their queue's limit lifted", pending_in_its_queue),
    Storm("{} jobs running, their queue gets a limit", running_under_a_new_limit),
    Storm("{} templates due", templates),
    Storm("a twentieth of {} templates due, 64 tags each", tagged_templates),
    Storm("a template {} occurrences behind", far_behind),
    Storm("{} jobs failed, 128 a call, and unfailed, 200 a call", unfailed),
    Storm("{} jobs cancelled, 512 a call", cancelled),
    Storm("{} completed jobs above a lowered limit", dropped),
    Storm("{} completed jobs of three tags above a lowered limit", dropped_with_tags),
    Storm("a tenth of {} completed jobs of 64 tags above a lowered limit", dropped_with_many_tags),
    Storm("completions that meet {} too many and too old", dropped_by_completing),
    Storm("midnight of queues that have {} samples in all", midnight),
    Storm("a minute begins for 512 queues", minute),
)
