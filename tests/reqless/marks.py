"""What the reference remembers without showing it: noted after each call, for the weaknesses that show it later."""

from typing import Any

from names import QUEUES
from two_doors import Refused
from view import Call, Job, View, last_line, noticed

READY = ("waiting", "stalled", "throttled")
DEPENDS = {"queue.put": 6, "job.requeue": 6, "job.completeAndRequeue": 5}
"""Commands that place a job, and where their pairs begin."""
ENTERS = {"queue.put": 1, "job.requeue": 1, "job.completeAndRequeue": 4, "queue.recurAtInterval": 0}
"""Commands that make a queue known, and which word names it."""


def expect(view: View, call: Call, reply: Any) -> None:
    """What is known before the answers are compared: jobs that now have the throttle of another queue (W17)."""
    if isinstance(reply, Refused):
        return
    if call.command == "queue.unfail" and reply:
        failed = view.failed_in(str(call.words[1]))
        view.moved |= {job["jid"] for job in failed if job["queue"] != call.words[0]}
    if call.command == "job.completeAndRequeue" and len(call.words) > 4 and call.words[4] != call.words[2]:
        view.moved.add(str(call.subject))


def note(view: View, call: Call, reply: Any, theirs: dict[str, Job], ours: dict[str, Job]) -> None:
    """`theirs` and `ours` are the jobs after the call, which both doors answered with `reply`."""
    if not isinstance(reply, Refused):
        _placed(view, call)
        if call.command in ENTERS and len(call.words) > ENTERS[call.command]:
            view.entered.add(str(call.words[ENTERS[call.command]]))
        handler = HANDLERS.get(call.command)
        if handler:
            handler(view, call, reply)
    _since(view, call, theirs)
    for jid in [jid for jid in view.noticed if not _still_noticed(view.theirs.get(jid), theirs.get(jid))]:
        view.noticed.discard(jid)
    view.noticed |= {jid for jid, job in theirs.items() if noticed(job)}
    for jid in [jid for jid in (*view.since, *view.due) if jid not in theirs]:
        view.since.pop(jid, None)
        view.due.pop(jid, None)
        view.remembered.discard(jid)
    view.theirs, view.jobs = theirs, ours
    for name, job in ours.items():
        if job["tracked"]:
            view.tracked.add(name)


def _still_noticed(before: Job | None, after: Job | None) -> bool:
    """A mark goes with the job, and when a lost job is handed out again."""
    if after is None:
        return False
    line = last_line(after)
    return not (before and noticed(before) and line and line["what"] == "popped")


def _since(view: View, call: Call, theirs: dict[str, Job]) -> None:
    for jid, job in theirs.items():
        if job["state"] not in READY:
            view.since.pop(jid, None)
        elif jid not in view.since or _is_placed_anew(view, call, jid, job):
            view.since[jid] = -1 if job["state"] == "stalled" else view.now
        elif call.command == "job.setPriority" and call.subject == jid:
            view.since[jid] = 0


def _is_placed_anew(view: View, call: Call, jid: str, job: Job) -> bool:
    """Whether its history says so; a line that was logged moves no job."""
    return bool(view.theirs[jid]["history"] != job["history"]) and call.command != "job.log"


def _placed(view: View, call: Call) -> None:
    first = DEPENDS.get(call.command)
    if first is None:
        return
    delay = call.words[5] if first == 6 else call.option("delay", first)
    jid = str(call.subject)
    if delay and float(delay) > 0:
        view.due[jid] = view.now + float(delay)
        view.remembered.discard(jid)
    elif view.due.get(jid, 0) and jid in view.jobs:
        view.remembered.add(jid)


def _retried(view: View, call: Call, _: Any) -> None:
    if len(call.words) > 3 and float(call.words[3]) > 0:
        view.due[str(call.subject)] = view.now + float(call.words[3])


def _put(view: View, call: Call, _: Any) -> None:
    jid, job = str(call.subject), view.jobs.get(str(call.subject))
    view.moved.discard(jid)
    if job and job["state"] == "failed" and job["queue"] != call.words[1]:
        view.miscounted |= set(QUEUES)


def _popped(view: View, call: Call, _: Any) -> None:
    if call.words[0] not in view.paused:
        view.popped[str(call.words[1])] = view.now
        view.beating.discard(str(call.words[1]))


def _unfailed(view: View, call: Call, reply: Any) -> None:
    if reply:
        view.miscounted |= set(QUEUES)


def _recurs(view: View, call: Call, _: Any) -> None:
    interval, offset = map(float, call.words[4:6])
    view.turns[str(call.words[1])] = (view.now + offset, interval)


def _updated(view: View, call: Call, _: Any) -> None:
    changed = dict(zip(call.words[1::2], call.words[2::2], strict=False))
    if "queue" in changed:
        view.entered.add(str(changed["queue"]))
    if "interval" in changed:
        view.turns[str(call.subject)] = (0, 0)


def _tagged(view: View, call: Call, _: Any) -> None:
    """Tags that were added again, or taken off though they are not there, or are numbers."""
    had, named = view.jobs[str(call.subject)]["tags"], list(map(str, call.words[1:]))
    adding = call.command == "job.addTag"
    numbers = {str(tag) for tag in had if not isinstance(tag, str)}
    view.drifted |= {tag for tag in named if (tag in had) == adding or tag in numbers or named.count(tag) > 1}
    view.misindexed |= {tag for tag in named if tag in numbers}


def _paused(view: View, call: Call, _: Any) -> None:
    change = view.paused.update if call.command == "queue.pause" else view.paused.difference_update
    change(map(str, call.words))


def _forgot(view: View, call: Call, _: Any) -> None:
    view.forgotten.update(map(str, call.words))
    for name in call.words:
        view.popped.pop(str(name), None)


def _beat(view: View, call: Call, _: Any) -> None:
    view.beating.add(str(call.words[1]))
    view.renewed[str(call.subject)] = last_line(view.theirs[str(call.subject)])


def _set(view: View, call: Call, _: Any) -> None:
    view.settings[str(call.words[0])] = str(call.words[1])


HANDLERS = {
    "queue.put": _put,
    "queue.recurAtInterval": _recurs,
    "job.requeue": _put,
    "queue.pop": _popped,
    "job.retry": _retried,
    "queue.unfail": _unfailed,
    "job.addTag": _tagged,
    "job.removeTag": _tagged,
    "recurringJob.update": _updated,
    "queue.pause": _paused,
    "queue.unpause": _paused,
    "config.set": _set,
    "config.unset": lambda view, call, _: view.settings.pop(str(call.words[0]), None),
    "queue.forget": lambda view, call, _: view.entered.difference_update(map(str, call.words)),
    "worker.forget": _forgot,
    "job.heartbeat": _beat,
    "job.timeout": lambda view, call, _: view.timed_out.update(map(str, call.words)),
    "job.untrack": lambda view, call, _: view.tracked.discard(str(call.subject)),
}  # fmt: skip
