"""Random calls about queues, lists of jobs, people, and templates."""

import json

from calls_of_jobs import a_priority
from chooser import Chooser
from names import EVERY_GROUP, QUEUES, TAGS, TEMPLATES, THROTTLES, WORKERS
from view import Call, View

STATES = ("running", "stalled", "throttled", "scheduled", "depends", "recurring")
PAGES = ((), (0,), (0, 0), (0, 1), (1, 2), (0, 10), (0, -1), (1, 0), (-1, 5), (0, 100))


def pop(view: View, choose: Chooser) -> Call:
    return Call("queue.pop", (choose.pick(QUEUES), choose.pick(WORKERS), choose.whole(1, 4)))


def peek(view: View, choose: Chooser) -> Call:
    return Call("queue.peek", (choose.pick(QUEUES), choose.whole(0, 2), choose.whole(0, 4)))


def pause(view: View, choose: Chooser) -> Call:
    return Call("queue.pause", tuple(choose.some(QUEUES, 2)) or ("other",))


def unpause(view: View, choose: Chooser) -> Call:
    return Call("queue.unpause", tuple(sorted(view.paused)) or (choose.pick(QUEUES),))


def _unless_due(view: View, choose: Chooser, call: Call) -> Call:
    """`call`, which counts; mostly not while there are jobs that it would move at the reference (W35)."""
    due = [queue for queue in QUEUES if view.overdue(queue)]
    return Call("queue.peek", (due[0], 0, 9)) if due and choose.chance(75) else call


def counts(view: View, choose: Chooser) -> Call:
    return _unless_due(
        view, choose, Call("queue.counts", (choose.pick(QUEUES),) if choose.chance(80) else ())
    )


def length(view: View, choose: Chooser) -> Call:
    return Call("queue.length", (choose.pick(QUEUES),))


def stats(view: View, choose: Chooser) -> Call:
    day = choose.pick((0, 0, 86400))
    return Call("queue.stats", (choose.pick(QUEUES), view.now - day))


def forget(view: View, choose: Chooser) -> Call:
    return Call("queue.forget", (choose.pick(QUEUES),))


def by_state(view: View, choose: Chooser) -> Call:
    state = choose.pick(STATES) if choose.chance(95) else choose.pick(("complete", "waiting"))
    call = Call("queue.jobsByState", (state, choose.pick(QUEUES), *choose.pick(PAGES)))
    return _unless_due(view, choose, call) if state == "scheduled" else call


def unfail(view: View, choose: Chooser) -> Call:
    filled = [group for group in EVERY_GROUP if view.failed_in(group)] or list(EVERY_GROUP)
    group = choose.pick(filled if choose.chance(60) else EVERY_GROUP)
    homes = [job["queue"] for job in view.failed_in(group)] or list(QUEUES)
    queue = choose.pick(homes if choose.chance(60 if not view.throttling else 90) else QUEUES)
    return Call("queue.unfail", (queue, group, *choose.pick(((), (1,), (2,), (25,), (0,)))))


def failed(view: View, choose: Chooser) -> Call:
    return Call(
        "jobs.failedByGroup", (choose.pick(EVERY_GROUP), *choose.pick(PAGES)) if choose.chance(95) else ()
    )


def tagged(view: View, choose: Chooser) -> Call:
    return Call("jobs.tagged", (choose.pick(TAGS), *choose.pick(PAGES)))


def listing(view: View, choose: Chooser) -> Call:
    command = choose.pick(("jobs.completed", "tags.top", "jobs.tracked", "failureGroups.counts", "queues.counts",
                           "queues.names", "workers.counts"))  # fmt: skip
    call = Call(command, choose.pick(PAGES) if command in ("jobs.completed", "tags.top") else ())
    return _unless_due(view, choose, call) if command == "queues.counts" else call


def worker_jobs(view: View, choose: Chooser) -> Call:
    return Call("worker.jobs", (choose.pick((*WORKERS, "nobody")),) if choose.chance(90) else ())


def worker_forget(view: View, choose: Chooser) -> Call:
    return Call("worker.forget", (choose.pick((*WORKERS, "nobody")),))


def _template_options(view: View, choose: Chooser) -> list[object]:
    pairs: list[tuple[object, object]] = [("priority", a_priority(view, choose))]
    if choose.chance(40):
        pairs.append(("retries", choose.whole(0, 3)))
    if choose.chance(40):
        pairs.append(("backlog", choose.whole(0, 3)))
    if choose.chance(40):
        pairs.append(("tags", json.dumps(choose.some(TAGS, 2))))
    if choose.chance(30):
        pairs.append(("throttles", json.dumps(choose.some(THROTTLES[:2], 2))))
    return [word for pair in pairs for word in pair]


def recur(view: View, choose: Chooser) -> Call:
    fixed = (choose.pick(QUEUES), choose.pick(TEMPLATES), "klass", choose.json())
    when = (choose.pick((60, 1.5, 500, 4000)), choose.pick((0, 5, 0.25, 60)))
    return Call("queue.recurAtInterval", (*fixed, *when, *_template_options(view, choose)))


def recurring_update(view: View, choose: Chooser) -> Call:
    some = [("priority", a_priority(view, choose)), ("retries", 2), ("interval", choose.pick((60, 90, 700))),
            ("data", '{"new":1}'), ("klass", "other"), ("backlog", 1), ("queue", choose.pick(QUEUES)),
            ("throttles", json.dumps(choose.some(THROTTLES[:2], 2)))]  # fmt: skip
    if choose.chance(3):
        some = [("interval", 0), ("tags", "[]"), ("retries", "x")]
    return Call(
        "recurringJob.update",
        (choose.pick(TEMPLATES), *(word for pair in choose.some(some, 3) for word in pair)),
    )


def recurring_tag(view: View, choose: Chooser) -> Call:
    command = choose.pick(("recurringJob.addTag", "recurringJob.removeTag"))
    return Call(command, (choose.pick(TEMPLATES), *choose.some(TAGS, 2)))


def recurring_get(view: View, choose: Chooser) -> Call:
    return Call("recurringJob.get", (choose.pick(TEMPLATES),))


def recurring_cancel(view: View, choose: Chooser) -> Call:
    return Call("recurringJob.cancel", (choose.pick(TEMPLATES),))


CALLS = {
    pop: 16, peek: 3, pause: 2, unpause: 3, counts: 3, length: 2, stats: 2, forget: 1, by_state: 4, unfail: 3, failed: 2,
    tagged: 2, listing: 5, worker_jobs: 3, worker_forget: 1,
}  # fmt: skip
RECURRING = {
    recur: 5, recurring_update: 3, recurring_tag: 3, recurring_get: 1, recurring_cancel: 1,
}  # fmt: skip
"""Made where a sequence has templates."""
