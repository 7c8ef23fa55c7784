"""Weaknesses that a call about a job meets, other than putting it."""

from typing import Any

from alike import Seen, alike, meant, refused_without_trace, same_reply, untouched
from names import JIDS
from two_doors import Refused
from view import Call, View
from weaknesses_of_putting import PUTS, read_json


def untracks_nothing(view: View, call: Call) -> bool:
    """W8."""
    return call.command == "job.untrack" and bool(call.words) and call.subject not in view.jobs


def untracked(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    if str(call.subject) not in view.tracked:
        return isinstance(ours.reply, Refused)
    return ours.reply == 1 and ours.messages == [("ql:untrack", str(call.subject))]


def logs_no_object(view: View, call: Call) -> bool:
    """W11."""
    return (
        call.command == "job.log" and len(call.words) > 2 and not str(call.words[2]).lstrip().startswith("{")
    )


def log_is_readable(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    if isinstance(ours.reply, Refused):
        return untouched(view, ours)
    return list(ours.jobs) == list(view.jobs)


def retries_elsewhere(view: View, call: Call) -> bool:
    """W12."""
    job = view.jobs.get(str(call.subject))
    return call.command == "job.retry" and len(call.words) > 2 and bool(job) and call.words[1] != job["queue"]


def retried_at_home(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    jid = str(call.subject)
    return same_reply(view, theirs.reply, ours.reply) and ours.jobs[jid]["queue"] == view.jobs[jid]["queue"]


def speaks_to_a_former_holder(view: View, call: Call) -> bool:
    """W13."""
    if call.command not in (*PUTS, "job.cancel"):
        return False
    named = map(str, call.words) if call.command == "job.cancel" else [str(call.subject)]
    former = [view.theirs[jid]["worker"] for jid in named if jid in view.theirs and _given_back(view, jid)]
    return bool(former) and not (call.command in PUTS and former == [call.words[0]])


def _given_back(view: View, jid: str) -> bool:
    job = view.theirs[jid]
    return bool(job["worker"]) and job["state"] != "running"


def nobody_hears_of_it(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    told = [(channel, text) for channel, text in meant(theirs.messages) if not channel.startswith("ql:w:")]
    told = [
        (channel, {**text, "worker": ""} if isinstance(text, dict) and text["event"] == "canceled" else text)
        for channel, text in told
        if not (isinstance(text, dict) and text["event"] == "lock_lost")
    ]
    return same_reply(view, theirs.reply, ours.reply) and told == meant(ours.messages)


def times_out_too_many(view: View, call: Call) -> bool:
    """W14: the first of several are timed out although a later one cannot be, or is the same."""
    return call.command == "job.timeout" and (
        len(set(call.words)) < len(call.words)
        or any(view.state(str(jid)) not in ("running", "late", "grace") for jid in call.words[1:])
    )


def all_or_none_timed_out(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    if isinstance(ours.reply, Refused):
        return refused_without_trace(view, call, theirs, ours)
    return all(ours.jobs[str(jid)]["state"] == "stalled" for jid in call.words)


def pops_one_noticed_before(view: View, call: Call) -> bool:
    """W15: the reference takes a new loss for the old one."""
    if call.command != "queue.pop" or not call.words or call.words[0] in view.paused:
        return False
    return any(
        view.theirs[jid]["queue"] == call.words[0] and view.state(jid) == "late" and not view.in_grace(jid)
        for jid in view.noticed
        if jid in view.theirs
    )


def noticed_again(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    """Every loss of ours has its line, as far as the pop came."""
    if alike(view, call, theirs, ours):
        return True
    late = [
        jid
        for jid, job in view.jobs.items()
        if view.state(jid) in ("late", "grace") and job["queue"] == call.words[0]
    ]
    lost = [jid for jid in late if jid in view.noticed and view.state(jid) == "late"]
    told = [
        _losses(ours, jid) > sum(line["what"] == "timed-out" for line in _lines(view, jid)) for jid in lost
    ]
    return isinstance(ours.reply, Refused) or len(late) > float(call.words[2]) or _limited(view) or all(told)


def _limited(view: View) -> bool:
    return "max-job-history" in view.settings


def _lines(view: View, jid: str) -> list[Any]:
    return list(view.jobs[jid]["history"])


def _losses(seen: Seen, jid: str) -> int:
    return sum(line["what"] == "timed-out" for line in seen.jobs[jid]["history"])


def releases_one_that_had_a_delay(view: View, call: Call) -> bool:
    """W27: the delay of an earlier life."""
    completes = call.command == "job.complete" or (
        call.command == "job.completeAndRequeue" and len(call.words) == 4
    )
    return completes and any(
        call.subject in job["dependencies"] and jid in view.remembered for jid, job in view.jobs.items()
    )


def released_at_once(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    old = [
        jid
        for jid, job in view.jobs.items()
        if list(job["dependencies"]) == [call.subject] and jid in view.remembered
    ]
    return same_reply(view, theirs.reply, ours.reply) and (
        isinstance(ours.reply, Refused)
        or all(ours.jobs[jid]["state"] == "waiting" for jid in old if jid in JIDS)
    )


def cancels_nothing(view: View, call: Call) -> bool:
    """W21."""
    return call.command == "job.cancel" and any(str(jid) not in view.jobs for jid in call.words)


def nothing_is_told_of_nothing(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    unknown = [("ql:canceled", str(jid)) for jid in call.words if str(jid) not in view.jobs]
    told = [said for said in meant(theirs.messages) if said not in unknown]
    told = [said for said in told if not (isinstance(said[1], dict) and said[1]["queue"] is False)]
    return same_reply(view, theirs.reply, ours.reply) and told == meant(ours.messages)


def writes_data_anew(view: View, call: Call) -> bool:
    """W22: a text that the reference would not write like this."""
    place = {"job.heartbeat": 2, "job.fail": 4}.get(call.command, 99)
    return (
        len(call.words) > place
        and str(call.words[place]) not in STABLE
        and read_json(call.words[place]) is not None
    )


STABLE = ("{}", '{"a":1}', '{"text":"ab"}', "7", '"x"')


def data_stays_as_given(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    if isinstance(ours.reply, Refused):
        return same_reply(view, theirs.reply, ours.reply)
    return same_reply(view, theirs.reply, ours.reply) and ours.jobs[str(call.subject)]["data"] == str(
        call.words[4 if call.command == "job.fail" else 2]
    )


RULES = [
    (8, untracks_nothing, untracked),
    (11, logs_no_object, log_is_readable),
    (12, retries_elsewhere, retried_at_home),
    (13, speaks_to_a_former_holder, nobody_hears_of_it),
    (14, times_out_too_many, all_or_none_timed_out),
    (15, pops_one_noticed_before, noticed_again),
    (27, releases_one_that_had_a_delay, released_at_once),
    (21, cancels_nothing, nothing_is_told_of_nothing),
    (22, writes_data_anew, data_stays_as_given),
]
