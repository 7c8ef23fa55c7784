"""Everything that can be read, for the end of a sequence."""

from names import EVERY_GROUP, QUEUES, TAGS, THROTTLES, WORKERS
from view import Call, View


def last_look(view: View, recurring: bool) -> list[Call]:
    found: list[tuple[object, ...]] = [
        ("tags.top",),
        ("queues.names",),
        ("failureGroups.counts",),
        ("jobs.completed",),
        ("jobs.tracked",),
        ("config.getAll",),
    ]
    found += [(f"{what}.getAll",) for what in ("queueIdentifierPatterns", "queuePriorityPatterns")]
    for queue in QUEUES:
        found.append(("queue.peek", queue, 0, 12))
        found += [("queue.length", queue), ("queue.throttle.get", queue), ("queue.stats", queue, view.now)]
        states = ("running", "stalled", "throttled", "depends", *(("recurring",) if recurring else ()))
        found += [("queue.jobsByState", state, queue, 0, 10) for state in states]
    found += [("jobs.failedByGroup", group) for group in EVERY_GROUP]
    found += [("jobs.tagged", tag) for tag in TAGS]
    found += [("worker.jobs", worker) for worker in WORKERS]
    found += [
        (f"throttle.{what}", name)
        for name in THROTTLES[: 4 * view.throttling]
        for what in ("get", "locks", "pending")
    ]
    found += [("queues.counts",), ("workers.counts",)]
    return [Call(str(command), words) for command, *rest in found for words in [tuple(rest)]]
