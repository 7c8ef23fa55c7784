"""Weaknesses that a call about configuration, a throttle, or a template meets."""

from typing import Any

from alike import Seen, alike, same_reply
from two_doors import Refused
from view import Call, View

NUMERIC = ("heartbeat", "grace-period", "jobs-history", "jobs-history-count", "max-job-history", "max-pop-retry",
           "max-worker-age", "q-heartbeat", "other-max-pop-retry")  # fmt: skip
SETS = ("throttle.set", "queue.throttle.set")


def _whole(word: Any) -> bool:
    try:
        return float(word) % 1 == 0
    except ValueError:
        return False


def keeps_one_line_or_two(view: View, call: Call) -> bool:
    """W28."""
    return call.command == "config.set" and call.words in (("max-job-history", "1"), ("max-job-history", "2"))


def changes_an_awaited_limit(view: View, call: Call) -> bool:
    """W38: a limit that is raised or removed lets the waiting in."""
    if call.command not in (*SETS, "throttle.delete") or not call.words:
        return False
    name = str(call.words[0])
    name = f"ql:q:{name}" if call.command == "queue.throttle.set" else name
    return name in view.slots and bool(view.slots[name][1])


def lets_the_waiting_in(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    return same_reply(view, theirs.reply, ours.reply) and all(
        set(ours.slots[name][1]) <= set(view.slots[name][1]) and ours.slots[name][0] == view.slots[name][0]
        for name in view.slots
    )


def sets_no_number(view: View, call: Call) -> bool:
    """W38."""
    return call.command in SETS and any(not _whole(word) or float(word) < 0 for word in call.words[1:2])


def no_number_is_set(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    return isinstance(ours.reply, Refused) or same_reply(view, theirs.reply, ours.reply)


def configures_no_number(view: View, call: Call) -> bool:
    """W45."""
    return (
        call.command == "config.set"
        and len(call.words) > 1
        and call.words[0] in NUMERIC
        and not str(call.words[1]).lstrip("-").isdigit()
    )


def updates_badly(view: View, call: Call) -> bool:
    """W26, W30: a template that is changed by half, or recurs at no interval."""
    return call.command == "recurringJob.update" and call.subject in view.templates


def updated_or_untouched(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    if isinstance(theirs.reply, Refused) or isinstance(ours.reply, Refused):
        return isinstance(ours.reply, Refused) and ours.templates == view.templates
    return alike(view, call, theirs, ours)


def _bad_update(view: View, call: Call) -> bool:
    if not updates_badly(view, call):
        return False
    keys, values = call.words[1::2], call.words[2::2]
    known = ("priority", "retries", "interval", "data", "klass", "backlog", "queue", "throttles")
    intervals = [value for key, value in zip(keys, values, strict=False) if key == "interval"]
    return (
        len(keys) != len(values)
        or any(key not in known for key in keys)
        or any(not _number(value) > 0 for value in intervals)
        or any(
            key in ("priority", "retries", "backlog") and _number(value) != _number(value)
            for key, value in zip(keys, values, strict=False)
        )
    )


def _number(word: Any) -> float:
    try:
        return float(word)
    except ValueError:
        return float("nan")


def names_a_template_tag_twice(view: View, call: Call) -> bool:
    """W30."""
    tags = list(map(str, call.words[1:]))
    return (
        call.command == "recurringJob.addTag"
        and call.subject in view.templates
        and len(set(tags)) < len(tags)
    )


def once_each(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    return not isinstance(ours.reply, Refused) and len(set(map(str, ours.reply))) == len(ours.reply)


def sets_patterns_badly(view: View, call: Call) -> bool:
    """W26."""
    return call.command == "queuePriorityPatterns.setAll" and any(
        not str(word).startswith("{") for word in call.words
    )


def both_refuse(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    return isinstance(ours.reply, Refused)


RULES = [
    (26, _bad_update, updated_or_untouched),
    (26, sets_patterns_badly, both_refuse),
    (28, keeps_one_line_or_two, alike),
    (30, names_a_template_tag_twice, once_each),
    (38, sets_no_number, no_number_is_set),
    (38, changes_an_awaited_limit, lets_the_waiting_in),
    (45, configures_no_number, alike),
]
