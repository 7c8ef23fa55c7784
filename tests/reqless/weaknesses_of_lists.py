"""Weaknesses that a look at a queue, a list, or people meets."""

from collections import Counter
from typing import Any

from alike import Seen, alike, differences, same_reply
from two_doors import Refused
from view import Call, Job, View

READS = ("queue.pop", "queue.peek")


def spawns_a_name_again(view: View, call: Call) -> bool:
    """W2: a template that was made anew counts anew."""
    return call.command in READS and any(
        template["queue"] in call.words[:1] and template["count"] < view.spawned[name]
        for name, template in view.templates.items()
    )


def spares_what_exists(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    return all(
        jid in ours.jobs and ours.jobs[jid]["history"][:1] == job["history"][:1]
        for jid, job in view.jobs.items()
    )


def finds_a_tie(view: View, call: Call) -> bool:
    """W5: jobs of one priority that became ready at one time come out backwards."""
    if call.command not in READS or not call.words:
        return False
    queue = str(call.words[0])
    moving = view.overdue(queue)
    places = Counter(
        (0, -1)
        if job["state"] == "stalled"
        else (job["priority"], view.now if jid in moving else view.since[jid])
        for jid, job in view.theirs.items()
        if job["queue"] == queue and (jid in moving or jid in view.since)
    )
    return max(places.values(), default=0) > 1 or _meets_a_turn(view, queue)


def _meets_a_turn(view: View, queue: str) -> bool:
    """Whether a job became ready just when an occurrence of a template was due, which has the same priority."""
    templates = {name: one["priority"] for name, one in view.templates.items() if one["queue"] == queue}
    ready = [
        (job["priority"], view.since[jid], jid if len(job["history"]) == 1 else "")
        for jid, job in view.theirs.items()
        if job["queue"] == queue and job["state"] != "stalled" and view.since.get(jid, 0) > 0
    ]
    return any(
        priority == templates[name]
        and not untouched.startswith(f"{name}-")
        and (interval == 0 or (when >= first and (when - first) % interval == 0))
        for name, (first, interval) in view.turns.items()
        if name in templates
        for priority, when, untouched in ready
    )


def same_but_for_ties(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    if isinstance(theirs.reply, Refused) or isinstance(ours.reply, Refused):
        return type(theirs.reply) is type(ours.reply)
    return [_place(view, job) for job in theirs.reply] == [_place(view, job) for job in ours.reply]


def _place(view: View, job: Job) -> tuple[str, Any]:
    """Its class: all that were timed out are one."""
    before = view.theirs.get(job["jid"])
    return job["queue"], "first" if before and before["state"] == "stalled" else job["priority"]


def counts_tags_anew(view: View, call: Call) -> bool:
    """W7: what was added again or removed in vain is counted all the same; a number is no text when it is removed."""
    if call.command == "tags.top":
        return bool(view.drifted or view.misindexed)
    if call.command == "jobs.tagged":
        return call.subject in view.misindexed
    return False


def counts_jobs(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    if alike(view, call, theirs, ours):
        return True
    if (
        isinstance(ours.reply, Refused) or view.templates or view.spawned
    ):  # some of their jobs are not looked at
        return type(theirs.reply) is type(ours.reply)
    tagged = Counter(tag for job in ours.jobs.values() for tag in set(map(str, job["tags"])))
    if call.command == "jobs.tagged":
        return bool(ours.reply["total"] == tagged[str(call.subject)])
    popular = [tag for _, tag in sorted((count, tag) for tag, count in tagged.items() if count > 1)[::-1]]
    return len(call.words) > 0 or bool(ours.reply == popular)


def asks_for_the_timed_out(view: View, call: Call) -> bool:
    """W14: a job that was timed out stays on its worker's list."""
    return call.command in ("worker.jobs", "workers.counts") and bool(view.timed_out)


def asks_for_the_forgotten(view: View, call: Call) -> bool:
    """W32: the list of a worker that was forgotten stays behind."""
    return call.command in ("worker.jobs", "workers.counts") and bool(view.forgotten)


def timed_out_are_gone(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    if isinstance(ours.reply, dict) and call.words:
        listed = {*ours.reply["jobs"], *ours.reply["stalled"]}
        return listed <= {*theirs.reply["jobs"], *theirs.reply["stalled"]} and not any(
            ours.jobs[jid]["state"] == "stalled" for jid in listed if jid in ours.jobs
        )
    if isinstance(ours.reply, Refused) or isinstance(theirs.reply, Refused):
        return type(theirs.reply) is type(ours.reply)
    named = {worker["name"]: worker for worker in ours.reply}
    return all(worker["name"] in named and _fewer(named[worker["name"]], worker) for worker in theirs.reply)


def _fewer(ours: Job, theirs: Job) -> bool:
    return bool(ours["jobs"] <= theirs["jobs"] and ours["stalled"] <= theirs["stalled"])


def asks_for_miscounted_failures(view: View, call: Call) -> bool:
    """W20: unfail takes nothing off, and a put into another queue takes it off there."""
    return call.command == "queue.stats" and bool(view.miscounted)


def failures_are_never_negative(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    if isinstance(ours.reply, Refused):
        return same_reply(view, theirs.reply, ours.reply)
    return {**theirs.reply, "failed": 0} == {**ours.reply, "failed": 0} and ours.reply["failed"] >= 0


def unfails_into_nowhere(view: View, call: Call) -> bool:
    """W20: the queue does not become known."""
    return call.command == "queue.unfail" and len(call.words) > 1 and call.words[0] not in view.entered


def unfailed_and_known(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    return same_reply(view, theirs.reply, ours.reply) and not ours.messages and not theirs.messages


def asks_for_busy_workers(view: View, call: Call) -> bool:
    """W33: a worker that heartbeats is seen."""
    return (call.command == "workers.counts" or (call.command == "worker.jobs" and not call.words)) and bool(
        view.beating
    )


def same_workers(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    if isinstance(ours.reply, Refused):
        return same_reply(view, theirs.reply, ours.reply)
    named = {worker["name"]: worker for worker in ours.reply}
    return all(named.get(worker["name"]) == worker for worker in theirs.reply)


def counts_the_due(view: View, call: Call) -> bool:
    """W35: the reference moves them all, ours counts them and moves none."""
    if call.command == "queue.counts" and call.words:
        return bool(view.overdue(str(call.words[0])))
    if call.command == "queue.jobsByState" and call.words[:1] == ("scheduled",) and len(call.words) > 1:
        return bool(view.overdue(str(call.words[1])))
    return call.command in ("queues.counts", "queue.counts") and any(map(view.overdue, view.entered))


def same_but_for_what_moved(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    """Both say the same; what one moved is due in both."""
    return not differences(view, call, theirs, ours)


RULES = [
    (2, spawns_a_name_again, spares_what_exists),
    (5, finds_a_tie, same_but_for_ties),
    (7, counts_tags_anew, counts_jobs),
    (14, asks_for_the_timed_out, timed_out_are_gone),
    (20, asks_for_miscounted_failures, failures_are_never_negative),
    (20, unfails_into_nowhere, unfailed_and_known),
    (32, asks_for_the_forgotten, timed_out_are_gone),
    (33, asks_for_busy_workers, same_workers),
    (35, counts_the_due, same_but_for_what_moved),
]
