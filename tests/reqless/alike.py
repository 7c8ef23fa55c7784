"""When two answers are the same: what the protocol leaves open, and what two weaknesses show in every job."""

import json
import re
from dataclasses import dataclass
from typing import Any

from names import JIDS
from two_doors import Refused
from view import Call, Job, View

DECODER = re.compile(
    r"Expected .* but found .*|.*bad argument #1 to 'decode'|.*not JSON|.*JSON list|.* holds what .*"
)
"""Texts of a JSON decoder, and ours in their place: W25 leaves them open. So are texts of the server that the
reference only runs into."""
CHILD = re.compile(r"(?<= is a dependency of )\S+(?= but )")
"""Which of several dependents a refused cancel names: they have no order."""
ORDER = {
    "put": ["jid", "event", "queue"],
    "lock_lost": ["jid", "event", "worker"],
    "completed": ["jid", "event", "queue"],
    "advanced": ["jid", "to", "event", "queue"],
    "failed": ["message", "jid", "group", "event", "worker"],
    "canceled": ["jid", "queue", "event", "worker"],
    "config_set": ["option", "event", "value"],
    "config_unset": ["event", "option"],
}
UNORDERED = ("dependents", "dependencies")


@dataclass
class Seen:
    """One door after a call: the reply as it came and what it means, the messages, and what could be read then."""

    raw: Any
    reply: Any
    messages: list[tuple[str, str]]
    jobs: dict[str, Job]
    slots: dict[str, tuple[list[str], list[str]]]
    templates: dict[str, Job]


TICK = 2


def meant(messages: list[tuple[str, str]]) -> list[tuple[str, Any]]:
    """In which order the reference writes the keys depends on the server it runs in."""
    return [(channel, json.loads(text) if text.startswith("{") else text) for channel, text in messages]


def well_written(messages: list[tuple[str, str]]) -> bool:
    """Ours keep to one order, without blanks."""
    for _, text in messages:
        if text.startswith("{"):
            found = json.loads(text)
            if list(found) != ORDER[found["event"]] or ": " in text.replace(found.get("message", "\0"), ""):
                return False
    return True


def same_refusal(theirs: Refused, ours: Refused) -> bool:
    return (
        ours.text.partition("(): ")[2] in theirs.text
        or ours.text in theirs.text
        or CHILD.sub("", ours.text) == CHILD.sub("", theirs.text)
        or bool(DECODER.match(theirs.text) or DECODER.match(ours.text))
        or theirs.text.startswith(("ERR ", "user_script", "attempt to ", "assertion "))
        or (theirs.text.endswith("no queue name provided") and ours.text.endswith("does not exist"))
    )


def same_reply(view: View, theirs: Any, ours: Any) -> bool:
    if isinstance(theirs, Refused) and isinstance(ours, Refused):
        return same_refusal(theirs, ours)
    if isinstance(theirs, list) and isinstance(ours, list):
        return len(theirs) == len(ours) and all(
            same_reply(view, *pair) for pair in zip(theirs, ours, strict=True)
        )
    if isinstance(theirs, dict) and isinstance(ours, dict):
        if "history" in theirs:
            return same_job(view, theirs, ours)
        if theirs.keys() == ours.keys() and min(theirs.get("ttl", -1), ours.get("ttl", -1)) >= 0:
            # Seconds of the store's own clock, asked one after the other.
            return abs(theirs["ttl"] - ours["ttl"]) <= TICK and {**theirs, "ttl": 0} == {**ours, "ttl": 0}
        if isinstance(theirs.get("jobs"), list) and theirs["jobs"] and isinstance(theirs["jobs"][0], dict):
            return same_reply(view, theirs["jobs"], ours.get("jobs")) and {**theirs, "jobs": 0} == {
                **ours,
                "jobs": 0,
            }
    return type(theirs) is type(ours) and theirs == ours


def same_job(view: View, theirs: Job, ours: Job) -> bool:
    if theirs == ours:
        return True
    allowed = dict(theirs)
    if (
        theirs["state"] != "running" and not ours["worker"]
    ):  # W13: a job that was given back shows its former holder
        allowed["worker"], allowed["expires"] = "", 0
    if theirs["state"] == "scheduled" and ours["state"] == "waiting":  # W35: due, and not moved yet
        allowed["state"] = "waiting" if view.due.get(theirs["jid"], 0) <= view.now else "scheduled"
    if theirs["jid"] in view.moved:  # W17: the throttle of the queue it left
        allowed["throttles"] = ours["throttles"]
    for key in UNORDERED:
        if isinstance(theirs.get(key), list) and isinstance(ours.get(key), list):
            allowed[key] = ours[key] if sorted(theirs[key]) == sorted(ours[key]) else theirs[key]
    return allowed == ours


def same_jobs(view: View, theirs: dict[str, Job], ours: dict[str, Job]) -> bool:
    return list(theirs) == list(ours) and all(same_job(view, job, ours[jid]) for jid, job in theirs.items())


def differences(view: View, call: Call, theirs: Seen, ours: Seen) -> list[str]:
    """What is not alike, as lines; none if all is."""
    found: list[str] = []
    if type(theirs.raw) is not type(ours.raw) or not same_reply(view, theirs.reply, ours.reply):
        found.append(f"reply\n  reference {theirs.raw}\n  ours      {ours.raw}")
    if meant(theirs.messages) != meant(ours.messages) or not well_written(ours.messages):
        found.append(f"messages\n  reference {theirs.messages}\n  ours      {ours.messages}")
    if not same_jobs(view, theirs.jobs, ours.jobs):
        wrong = [jid for jid, job in theirs.jobs.items() if not same_job(view, job, ours.jobs.get(jid, {}))]
        found += [
            f"job\n  reference {theirs.jobs[jid]}\n  ours      {ours.jobs.get(jid)}" for jid in wrong
        ] or ["jobs that only ours has"]
    if theirs.slots != ours.slots:
        found.append(f"slots\n  reference {theirs.slots}\n  ours      {ours.slots}")
    if theirs.templates != ours.templates:
        found.append(f"templates\n  reference {theirs.templates}\n  ours      {ours.templates}")
    return found


def only_replies_differ(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    """Whether messages and all that can be read agree."""
    return not [line for line in differences(view, call, theirs, ours) if not line.startswith("reply")]


def alike(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    return not differences(view, call, theirs, ours)


def refused_without_trace(view: View, call: Call, theirs: Seen, ours: Seen) -> bool:
    return isinstance(ours.reply, Refused) and not ours.messages and untouched(view, ours)


def untouched(view: View, ours: Seen) -> bool:
    """All jobs as they were, but for those that became due in between."""
    return {jid for jid in view.jobs if jid in JIDS} == {jid for jid in ours.jobs if jid in JIDS} and all(
        {**job, "state": 0} == {**ours.jobs[jid], "state": 0}
        for jid, job in view.jobs.items()
        if jid in ours.jobs
    )
