"""Weaknesses that a call meets which puts a job, or advances it."""

import json
from typing import Any

from alike import Seen, alike, meant, refused_without_trace, same_reply
from two_doors import Refused
from view import Call, Job, View

PUTS = ("queue.put", "job.requeue")
LISTS = ("tags", "depends", "throttles")


def number(word: Any) -> float | None:
    try:
        return float(word)
    except (TypeError, ValueError):
        return None


def read_json(word: Any) -> Any:
    try:
        return json.loads(str(word))
    except ValueError:
        return None


def not_finite(view: View, call: Call) -> bool:
    """W1."""
    return any(str(word) in ("inf", "-inf", "nan") for word in call.words)


def fractional_priority(view: View, call: Call) -> bool:
    """W4: such priorities are overtaken by time."""
    found = call.option("priority", 6) if call.command in PUTS else None
    if call.command == "job.setPriority" and len(call.words) > 1:
        found = call.words[1]
    value = number(found)
    return value is not None and value == value and value % 1 != 0


def puts_one_with_slots(view: View, call: Call) -> bool:
    """W16."""
    if not view.throttling or call.command not in PUTS or len(call.words) < 6:
        return False
    jid = str(call.subject)
    return any(jid in held or jid in awaited for held, awaited in view.slots.values()) or (
        view.state(jid) == "throttled"
    )


def slots_are_free_again(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    jid = str(call.subject)
    if isinstance(theirs.reply, Refused) or isinstance(ours.reply, Refused):
        return type(theirs.reply) is type(ours.reply)
    awaits = any(jid in awaited for _, awaited in ours.slots.values())
    return (
        theirs.reply == ours.reply
        and meant(theirs.messages) == meant(ours.messages)
        and not any(jid in held for held, _ in ours.slots.values())
        and (not awaits or ours.jobs[jid]["state"] == "throttled")
    )


def advances_between_limits(view: View, call: Call) -> bool:
    """W17."""
    if not view.throttling:
        return False
    if call.command == "job.completeAndRequeue":
        return len(call.words) > 4 and call.words[4] != call.words[2]
    return call.command == "queue.unfail" and any(
        job["queue"] != call.words[0] for job in view.failed_in(str(call.subject))
    )


def limited_by_the_next(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    if isinstance(ours.reply, Refused) or not same_reply(view, theirs.reply, ours.reply):
        return same_reply(view, theirs.reply, ours.reply)
    queue = str(call.words[4] if call.command == "job.completeAndRequeue" else call.words[0])
    moved = [job for job in ours.jobs.values() if job["queue"] == queue and job["state"] != "complete"]
    # An empty list may be an object in the JSON that Lua writes.
    return all([*job["throttles"]][-1:] == [f"ql:q:{queue}"] or _is_unlimited(view, job) for job in moved)


def _is_unlimited(view: View, job: Job) -> bool:
    """Whether it had the throttle of no queue: a template whose throttles were changed puts such jobs, in both."""
    before = view.jobs.get(job["jid"])
    return before is not None and not any(name.startswith("ql:q:") for name in before["throttles"])


def advances_later(view: View, call: Call) -> bool:
    """W18."""
    delay = number(call.option("delay", 5)) if call.command == "job.completeAndRequeue" else None
    return delay is not None and delay > 0


def advanced_for_later(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    if isinstance(ours.reply, Refused) or ours.reply == "depends":
        return same_reply(view, theirs.reply, ours.reply)
    return bool(ours.reply == ours.jobs[str(call.subject)]["state"] == "scheduled")


def puts_wrong_types(view: View, call: Call) -> bool:
    """W26: lists that are none, and anything wrong with a job that has tags: they are taken off first."""
    if call.command not in PUTS:
        return False
    given = [read_json(call.option(key, 6)) for key in LISTS if call.option(key, 6) is not None]
    if any(value not in (None, {}) and not isinstance(value, list) for value in given):
        return True
    job = view.jobs.get(str(call.subject))
    numbers = [call.option(key, 6) for key in ("priority", "retries") if call.option(key, 6) is not None]
    wrong = None in given or None in map(number, numbers) or len(call.words) % 2 == 1
    return job is not None and bool(job["tags"]) and wrong


def wrong_types_leave_no_trace(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    return refused_without_trace(view, call, theirs, ours) or alike(view, call, theirs, ours)


def waits_for_itself(view: View, call: Call) -> bool:
    """W27."""
    return bool(set(_awaited(call)) & view.waiting_for(str(call.subject)))


def _awaited(call: Call) -> list[str]:
    if call.command == "job.addDependency":
        return [str(word) for word in call.words[1:]]
    place = {"queue.put": 6, "job.requeue": 6, "job.completeAndRequeue": 5}.get(call.command)
    found = read_json(call.option("depends", place)) if place else None
    return [str(jid) for jid in found] if isinstance(found, list) else []


def nothing_waits_for_itself(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    return (
        refused_without_trace(view, call, theirs, ours)
        or (isinstance(theirs.reply, Refused) and isinstance(ours.reply, Refused))
        or (call.command == "job.addDependency" and alike(view, call, theirs, ours))
    )


def says_next(view: View, call: Call) -> bool:
    """W42."""
    words = call.words[4:]
    return (
        call.command == "job.completeAndRequeue"
        and words[:1] == ("next",)
        and len(words) % 2 == 0
        and bool(words)
    )


def next_is_no_queue(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    if isinstance(ours.reply, Refused):
        return isinstance(theirs.reply, Refused) or number(call.words[-1]) is None
    return ours.jobs[str(call.subject)]["queue"] == str(call.words[5])


def retries_by_fractions(view: View, call: Call) -> bool:
    """W46."""
    value = number(call.option("retries", 6)) if call.command in PUTS else None
    return value is not None and value % 1 != 0


def retries_are_whole(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    if isinstance(ours.reply, Refused):
        return isinstance(theirs.reply, Refused)
    return ours.jobs[str(call.subject)]["retries"] % 1 == 0 and theirs.reply == ours.reply


def names_a_throttle_twice(view: View, call: Call) -> bool:
    """W48."""
    found = read_json(call.option("throttles", 6)) if call.command in PUTS else None
    return isinstance(found, list) and len({*map(str, found), f"ql:q:{call.words[1]}"}) <= len(found)


def named_once(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    if isinstance(ours.reply, Refused):
        return isinstance(theirs.reply, Refused)
    named = ours.jobs[str(call.subject)]["throttles"]
    return (
        len(named) == len(set(named)) and named[-1] == f"ql:q:{call.words[1]}" and theirs.reply == ours.reply
    )


RULES = [
    (1, not_finite, refused_without_trace),
    (4, fractional_priority, alike),
    (16, puts_one_with_slots, slots_are_free_again),
    (17, advances_between_limits, limited_by_the_next),
    (18, advances_later, advanced_for_later),
    (26, puts_wrong_types, wrong_types_leave_no_trace),
    (27, waits_for_itself, nothing_waits_for_itself),
    (42, says_next, next_is_no_queue),
    (46, retries_by_fractions, retries_are_whole),
    (48, names_a_throttle_twice, named_once),
]
