"""Random calls about jobs, in every form the protocol has for them."""

import json

from chooser import Chooser
from names import GROUPS, JIDS, QUEUES, TAGS, THROTTLES, WORKERS
from view import Call, View

RARE = ("stalled", "grace", "throttled")
DELAYS = (0, 0, 0, -1, 5, 30.5, "1e1")


def a_job(view: View, choose: Chooser, wanted: tuple[str, ...] = (), percent: int = 0) -> str:
    """A jid, each state that some job is in being as likely; with `percent`, of one that is in a wanted state."""
    if wanted and choose.chance(percent):
        found = [jid for jid in view.jobs if view.state(jid) in wanted]
        if found:
            return choose.pick(found)
    by_state: dict[str, list[str]] = {}
    for jid in (*JIDS, *view.jobs):
        by_state.setdefault(view.state(jid), []).append(jid)
    rare = [state for state in RARE if state in by_state]
    return choose.pick(by_state[choose.pick(rare if rare and choose.chance(30) else list(by_state))])


def a_priority(view: View, choose: Chooser) -> object:
    """Never the same twice, in no order; or always the same, where ties are looked for."""
    if view.ties:
        return 0
    if choose.chance(0.1):
        return choose.pick((2.5, "inf", -0.25))
    view.priority += 1
    return view.priority * 7919 % 1009 - 500


def some_jids(view: View, choose: Chooser, most: int) -> list[str]:
    return [a_job(view, choose) for _ in range(choose.whole(0, most))]


def some_awaited(view: View, choose: Chooser, jid: str) -> list[str]:
    """Jobs to wait for; seldom one that waits for this one itself (W27)."""
    found = some_jids(view, choose, 2)
    return found if choose.chance(3) else [other for other in found if other not in view.waiting_for(jid)]


def _list(values: list[str]) -> str:
    return json.dumps([int(value) if value == "7" else value for value in values])


def _options(view: View, choose: Chooser, jid: str) -> list[object]:
    pairs: list[tuple[object, object]] = [("priority", a_priority(view, choose))]
    if choose.chance(30):
        pairs.append(("retries", choose.pick((0, 1, 2, 5, 0, 1) if not choose.chance(1) else (1.5,))))
    if choose.chance(30):
        pairs.append(("tags", _list(choose.some(TAGS, 3))))
    if choose.chance(25):
        pairs.append(("depends", json.dumps(some_awaited(view, choose, jid))))
    if choose.chance(75 if view.throttling else 20):
        pairs.append(("throttles", _throttles(choose)))
    if choose.chance(1):
        pairs.append((choose.pick(("tags", "depends", "throttles")), choose.pick(("7", '"x"', "{", "{}"))))
    if choose.chance(5):
        pairs.append(("colour", "blue"))
    return [word for pair in pairs for word in pair]


def _throttles(choose: Chooser) -> str:
    found = choose.some(("db", *THROTTLES[:2]) if not choose.chance(2) else THROTTLES, 2) or ["db"]
    return json.dumps(found * 2 if choose.chance(1) else found)


def _to_put(view: View, choose: Chooser, percent: int) -> str:
    """A new jid, or with `percent` any; seldom one that holds slots or awaits them (W16)."""
    if not choose.chance(percent) and len(view.jobs) < len(JIDS):
        return choose.pick([jid for jid in JIDS if jid not in view.jobs] or JIDS)
    jid = a_job(view, choose, ("throttled",), 15)
    if not view.throttling or choose.chance(60 if view.state(jid) == "throttled" else 8):
        return jid
    free = [jid for jid in JIDS if view.state(jid) not in ("running", "late", "grace", "throttled")]
    return jid if jid in free or not free else choose.pick(free)


def put(view: View, choose: Chooser) -> Call:
    command = "job.requeue" if choose.chance(33) else "queue.put"
    jid = _to_put(view, choose, 80 if command == "job.requeue" else 30 if view.throttling else 45)
    queue, worker = choose.pick((*QUEUES, "q")), choose.pick(WORKERS)
    job = view.theirs.get(jid)
    if job and job["state"] not in ("running", "complete") and job["worker"] and choose.chance(85):
        worker = job["worker"]  # or it is met how a job that was given back shows its former holder
    fixed = (worker, queue, jid, "klass", choose.json(), choose.pick(DELAYS))
    return Call(
        command, (*fixed, *(_options(view, choose, jid) if view.throttling or choose.chance(97) else []))
    )


def _settle(view: View, choose: Chooser) -> tuple[str, str, str]:
    """A job that mostly runs, who speaks for it, and its queue."""
    jid = a_job(view, choose, ("running", "running", "late", "grace"), 65)
    job = view.jobs.get(jid)
    worker = job["worker"] if job and job["worker"] else WORKERS[0]
    queue = job["queue"] if job and job["queue"] else QUEUES[0]
    return jid, choose.pick(WORKERS) if choose.chance(8) else worker, queue


def complete(view: View, choose: Chooser) -> Call:
    jid, worker, queue = _settle(view, choose)
    return Call("job.complete", (jid, worker, "other" if choose.chance(4) else queue, choose.json()))


def advance(view: View, choose: Chooser) -> Call:
    jid, worker, queue = _settle(view, choose)
    words: list[object] = [jid, worker, queue, choose.json()]
    if choose.chance(4):
        return Call("job.completeAndRequeue", tuple(words))
    words += ["next"] if choose.chance(1) else []
    words.append(choose.pick(QUEUES) if choose.chance(15) or not view.throttling else queue)
    if choose.chance(40):
        words += ["depends", json.dumps(some_awaited(view, choose, jid))]
    if choose.chance(12):
        words += ["delay", choose.pick((0, 0, 5, -1, "x"))]
    return Call("job.completeAndRequeue", tuple(words))


def fail(view: View, choose: Chooser) -> Call:
    jid, worker, _ = _settle(view, choose)
    data = [choose.json()] if choose.chance(30) else []
    return Call(
        "job.fail", (jid, worker, choose.pick(GROUPS), choose.pick(("mess", 'a "quoted/one"')), *data)
    )


def retry(view: View, choose: Chooser) -> Call:
    jid, worker, queue = _settle(view, choose)
    if choose.chance(1):
        queue = choose.pick(QUEUES)
    more = choose.pick(((), (0,), (20,), (0, "g"), (0, "g", "m"), (20, "h", "m")))
    return Call("job.retry", (jid, queue, worker, *more))


def heartbeat(view: View, choose: Chooser) -> Call:
    jid, worker, _ = _settle(view, choose)
    return Call("job.heartbeat", (jid, worker, *([choose.json()] if choose.chance(30) else [])))


def timeout(view: View, choose: Chooser) -> Call:
    jids = [a_job(view, choose, ("running", "late", "grace"), 50)]
    if choose.chance(5):
        jids.append(a_job(view, choose, ("running", "late", "grace"), 80))
    return Call("job.timeout", tuple(jids))


def cancel(view: View, choose: Chooser) -> Call:
    jids = [a_job(view, choose)]
    if jids[0] not in view.jobs and choose.chance(95):
        jids = [a_job(view, choose, tuple(map(view.state, view.jobs)), 100)]
    if choose.chance(20):
        job = view.jobs.get(jids[0])
        jids += list(job["dependents"]) if job else []
    return Call("job.cancel", tuple(jids))


def set_priority(view: View, choose: Chooser) -> Call:
    return Call("job.setPriority", (a_job(view, choose), a_priority(view, choose)))


def log(view: View, choose: Chooser) -> Call:
    data = (
        choose.pick(("{}", '{"a":1}', '{"what":"x","when":3,"b":"c"}'))
        if not choose.chance(1)
        else choose.json()
    )
    words = (a_job(view, choose), choose.pick(("note", "put", 'say "it"')))
    return Call("job.log", (*words, data) if choose.chance(60) else words)


def add_tag(view: View, choose: Chooser) -> Call:
    return Call("job.addTag", (a_job(view, choose), *choose.some(TAGS, 3)))


def remove_tag(view: View, choose: Chooser) -> Call:
    return Call("job.removeTag", (a_job(view, choose), *choose.some(TAGS, 2)))


def add_dependency(view: View, choose: Chooser) -> Call:
    jid = a_job(view, choose, ("depends",), 50)
    return Call("job.addDependency", (jid, *some_awaited(view, choose, jid)))


def remove_dependency(view: View, choose: Chooser) -> Call:
    jid = a_job(view, choose, ("depends",), 50)
    job = view.jobs.get(jid)
    named = [*job["dependencies"]][:1] if job and choose.chance(50) else some_jids(view, choose, 2)
    return Call("job.removeDependency", (jid, "all") if choose.chance(30) else (jid, *named))


def track(view: View, choose: Chooser) -> Call:
    return Call("job.track", (a_job(view, choose),))


def untrack(view: View, choose: Chooser) -> Call:
    jid = a_job(view, choose)
    if jid not in view.jobs and choose.chance(95):
        jid = a_job(view, choose, tuple(map(view.state, view.jobs)), 100)
    return Call("job.untrack", (jid,))


def get(view: View, choose: Chooser) -> Call:
    return Call("job.get", (a_job(view, choose),))


def get_multi(view: View, choose: Chooser) -> Call:
    return Call("job.getMulti", tuple(some_jids(view, choose, 3)))


CALLS = {
    put: 14, complete: 6, advance: 4, fail: 5, retry: 4, heartbeat: 5, timeout: 4, cancel: 4, set_priority: 3, log: 3,
    add_tag: 3, remove_tag: 3, add_dependency: 3, remove_dependency: 3, track: 3, untrack: 3, get: 3, get_multi: 4,
}  # fmt: skip
"""How often each is made."""
