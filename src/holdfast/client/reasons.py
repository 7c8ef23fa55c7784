"""Checks that show why a job is running or not: each turns facts into one plain sentence.

The looks come in the order in which they matter: whether there is a job, its state, its failure, what it logged, what its attempts
cost, who did not know its code, its due time, whom it waits for, the queue, the throttles, the workers, its place, its lease.
"""

from collections.abc import Callable, Mapping
from shlex import quote
from typing import Any, Final, Literal

import msgspec

from holdfast.errors import cancelled_text
from holdfast.printable import one_line

DOING: Final = {
    "depends": "waits for other jobs",
    "failed": "has failed",
    "throttled": "waits for a throttle",
}


def span(ms: float) -> str:
    """Milliseconds in words, as exact as people want it: `4 s`, `12 min`, `3 h`, `2 d`."""
    seconds = max(ms, 0) / 1000
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 1 else f"{max(ms, 0):.0f} ms"


def whole(said: Any) -> int:
    """A number that a worker said of itself, 0 if it is none."""
    return int(said) if str(said).isdecimal() else 0


def argument(jid: str) -> str:
    """A jid as a shell takes it for one, whatever it begins with."""
    return quote(jid) if not jid.startswith("-") else f"-- {quote(jid)}"


def times(count: int) -> str:
    """How often: `once`, `3 times`."""
    return "once" if count == 1 else f"{count} times"


def last_line(message: str) -> str:
    """The last line of a message, of 200 characters at most, of which none moves a cursor."""
    last = (message.strip().splitlines() or [""])[-1]
    return one_line(last)[:200]


Facts = Mapping[str, Any]


def _flags(facts: Facts) -> str:
    """The flags with which a command line reaches this store and namespace."""
    return str(facts.get("flags", ""))


Verdict = Literal["fine", "blocks", "note"]


_MANY_PREEMPTIONS: Final = 5


class Check(msgspec.Struct, frozen=True, gc=False):
    """One thing that was looked at: a sentence, the facts behind it, and what would help, as a command line."""

    check: str
    verdict: Verdict
    text: str
    facts: Mapping[str, Any] = {}
    fix: str = ""

    def as_dict(self) -> dict[str, Any]:
        """`check`, `verdict` (fine, blocks or note), `text`, `facts`, `fix`."""
        return {**msgspec.structs.asdict(self), "facts": dict(self.facts)}


def _exists(facts: Facts) -> Check | None:
    if facts["state"] != "gone":
        return None
    if facts["result"]:
        return Check(
            "exists", "note", "The job is over and forgotten; its result is still kept.", {"result": True}
        )
    if facts.get("cancelled"):
        who, when, queue, _, state, worker, attempts = facts["cancelled"]
        held = f" in worker {worker}" if worker else ""
        sentence = f"The job was {cancelled_text(who, when / 1000)}; it was {state}{held}, in queue {queue}, tried {times(attempts)}."
        return Check("exists", "blocks", sentence, {"by": who, "at": when})
    return Check(
        "exists", "blocks", "There is no such job: it never was, was cancelled, or is over and forgotten."
    )


def _state(facts: Facts) -> Check | None:
    state, now = facts["state"], facts["now"]
    if state == "gone":
        return None
    shown = {"state": state, "queue": facts["queue"], "attempts": facts["attempts"]}
    if state == "complete":
        return Check("state", "note", "The job is complete; there is nothing left to do.", shown)
    age = span(now - facts["created"])
    tries = f"tried {times(facts['attempts'])}" if facts["attempts"] else "never tried"
    is_let_go = state == "throttled" and "rank" in facts
    doing = "waits again" if is_let_go else DOING.get(state, f"is {state}")
    return Check(
        "state", "fine", f"The job {doing} in queue {facts['queue']}, put {age} ago, {tries}.", shown
    )


def _failure(facts: Facts) -> Check | None:
    if not facts.get("failure"):
        return None
    group, message, when, worker = facts["failure"]
    shown = {
        "group": group,
        "message": message,
        "when": when,
        "worker": worker,
        "in_group": facts.get("in_group", 0),
    }
    first = last_line(message)
    if facts["state"] != "failed":
        return Check(
            "failure",
            "note",
            f"It failed before, {span(facts['now'] - when)} ago, in group {group}: {first}",
            shown,
        )
    said = (
        f"It failed {span(facts['now'] - when)} ago in group {group} and waits for somebody to act: {first}"
    )
    return Check("failure", "blocks", said, shown, f"client.unfail({group!r}, {facts['queue']!r})")


def _log(facts: Facts) -> Check | None:
    lines = facts.get("log")
    if not lines:
        return None
    return Check("log", "note", f"The last that it logged: {last_line(lines[-1])}", {"lines": lines})


def _retries(facts: Facts) -> Check | None:
    if facts["state"] in ("gone", "complete") or not (
        facts["losses"] or facts["remaining"] < facts["retries"]
    ):
        return None
    names = ("retries", "remaining", "losses", "max_losses", "loss")
    shown = {name: facts[name] for name in names if name in facts}
    left, lost = max(facts["remaining"], 0), facts["losses"]
    if "max_losses" in facts:
        failures = facts["retries"] - left
        said = f"{failures} of {facts['retries']} failures and {lost} of {facts['max_losses']} losses have been paid for"
    else:
        said = f"{left} of {facts['retries']} retries are left"
        said += f"; its lease was lost {times(lost)}" if lost else ""
    return Check("retries", "note", said + _last_loss(facts) + ".", shown)


def _last_loss(facts: Facts) -> str:
    if not facts.get("loss"):
        return ""
    what, when, attempt, worker, _, cause = facts["loss"]
    died = "its process died" + (f" ({last_line(cause)})" if cause else "")
    how = died if what == "crashed" else "its lease expired"
    ago = span(facts["now"] - when)
    return f"; the last loss was {ago} ago, attempt {attempt} on {worker}: {how}"


def _preempted(facts: Facts) -> Check | None:
    count = facts.get("preempted", 0)
    if count < _MANY_PREEMPTIONS or facts["state"] == "complete":
        return None
    said = f"It was preempted {times(count)}, which cost it nothing"
    shown: dict[str, Any] = {"preempted": count}
    if facts.get("preemption"):
        _, when, _, worker, _, reason = facts["preemption"]
        said += f"; the last time {span(facts['now'] - when)} ago on {worker}" + (
            f" ({reason})" if reason else ""
        )
        shown |= {"when": when, "worker": worker, "reason": reason}
    return Check("preempted", "note", said + ".", shown)


def _unknown(facts: Facts) -> Check | None:
    if not facts.get("unknown") or facts["state"] in ("complete", "failed"):
        return None
    first, count, _, when, worker, error, window = facts["unknown"]
    now = facts["now"]
    shown = {
        "first": first,
        "count": count,
        "when": when,
        "worker": worker,
        "error": error,
        "unknown_for": window,
    }
    said = (
        f"Worker {worker} looked at it {span(now - when)} ago and does not know its code: {last_line(error)}."
    )
    said += f" It waits for a worker that does, and fails in {span(first + window - now)} if there is none."
    return Check("unknown", "blocks", said, shown)


def _due(facts: Facts) -> Check | None:
    if "due" not in facts:
        return None
    wait = facts["due"] - facts["now"]
    if wait <= 0:
        return Check(
            "due",
            "fine",
            f"Its time came {span(-wait)} ago; the next pop takes it in.",
            {"due": facts["due"]},
        )
    return Check(
        "due",
        "blocks",
        f"It is due in {span(wait)}.",
        {"due": facts["due"]},
        f"client.jobs[{facts['jid']!r}].move({facts['queue']!r})",
    )


def _expires(facts: Facts) -> Check | None:
    if not facts.get("expires"):
        return None
    left = facts["expires"] - facts["now"]
    if left <= 0:
        return Check(
            "expires",
            "blocks",
            "It is too late to start it: the next pop fails it.",
            {"expires": facts["expires"]},
        )
    return Check(
        "expires",
        "note",
        f"If nobody starts it within {span(left)}, it fails.",
        {"expires": facts["expires"]},
    )


def _dependencies(facts: Facts) -> Check | None:
    if facts["state"] != "depends":
        return None
    parents = [dict(zip(("jid", "state", "group"), row, strict=True)) for row in facts["parents"]]
    failed = [parent["jid"] for parent in parents if parent["state"] == "failed"]
    names = ", ".join(parent["jid"] for parent in parents[:3])
    count = facts["open"]
    said = (
        f"It waits for {count} other {'job' if count == 1 else 'jobs'}: {names}{', …' if count > 3 else ''}."
    )
    if failed:
        said += f" {failed[0]} has failed, so it waits until somebody acts."
    first = failed[0] if failed else parents[0]["jid"] if parents else ""
    fix = f"holdfast jobs why{_flags(facts)} {argument(first)}" if first else ""
    return Check("dependencies", "blocks", said, {"open": count, "parents": parents, "failed": failed}, fix)


def _pause(facts: Facts) -> Check | None:
    if facts["state"] in ("gone", "complete", "failed", "running"):
        return None
    if "pause" not in facts:
        return Check("pause", "fine", f"Queue {facts['queue']} is not paused.")
    who, why, since, until = facts["pause"]
    shown = {"who": who, "why": why, "since": since, "until": until}
    said = f"Queue {facts['queue']} was paused {span(facts['now'] - since)} ago"
    said += (f" by {who}" if who else "") + (f": {last_line(why)}" if why else "")
    said += f"; it goes on in {span(until - facts['now'])}." if until else "."
    return Check("pause", "blocks", said, shown, f"client.queues[{facts['queue']!r}].unpause()")


def _wider(queue: str, throttle: str) -> str:
    if throttle == f"ql:q:{queue}":
        return f"client.queues[{queue!r}].throttle.set_maximum(…)"
    return f"client.throttles[{throttle!r}].set_maximum(…)"


def _throttles(facts: Facts) -> Check | None:
    if facts["state"] not in ("waiting", "throttled", "stalled") or not (
        facts["throttles"] or facts["state"] == "throttled"
    ):
        return None
    rows: list[dict[str, Any]] = [
        {"id": name, "maximum": most, "used": used, "pending": pending, "place": place,
         "holders": dict(zip(held[::2], held[1::2], strict=True))}
        for name, most, used, pending, place, held in facts["throttles"]
    ]  # fmt: skip
    if facts["state"] == "throttled" and "rank" not in facts and not any(row["place"] for row in rows):
        said = "It was taken from those who wait for a throttle, and stays set aside until it is moved or put again."
        move = f"client.jobs[{facts['jid']!r}].move({facts['queue']!r})"
        return Check("throttles", "blocks", said, {"throttles": rows}, move)
    full = [row for row in rows if row["used"] >= row["maximum"] > 0]
    if not full:
        return Check("throttles", "fine", "Its throttles have slots free.", {"throttles": rows})
    first = full[0]
    said = f"Throttle {first['id']} is full: {first['used']} of {first['maximum']} slots are taken"
    before = first["place"] - 1
    if before > 0:
        said += f", and {before} {'job waits' if before == 1 else 'jobs wait'} before it"
    return Check("throttles", "blocks", said + ".", {"throttles": rows}, _wider(facts["queue"], first["id"]))


def _workers(facts: Facts) -> Check | None:
    if facts["state"] not in ("waiting", "throttled", "stalled", "scheduled", "depends"):
        return None
    rows = [
        dict(zip(("name", "seen", "quiet", "slots", "busy"), row, strict=True)) for row in facts["workers"]
    ]
    shown = {"workers": rows, "count": facts["worker_count"], "pattern_workers": facts["pattern_workers"]}
    queue, count, patterns = facts["queue"], facts["worker_count"], facts["pattern_workers"]
    if not count and not patterns:
        verdict: Verdict = "blocks" if not facts["running"] else "note"
        return Check(
            "workers",
            verdict,
            f"No worker is known to work for queue {queue}.",
            shown,
            f"holdfast worker -q {quote(queue)}{_flags(facts)}",
        )
    taking = [row for row in rows if not row["quiet"]]
    if count and not taking and not patterns:
        return Check(
            "workers",
            "blocks",
            f"All workers of queue {queue} are quiet: they take no jobs until they are resumed.",
            shown,
            f"holdfast workers resume{_flags(facts)} {' '.join(quote(row['name']) for row in rows)}",
        )
    free = sum(max(whole(row["slots"]) - whole(row["busy"]), 0) for row in taking)
    said = f"{count} {'worker works' if count == 1 else 'workers work'} for queue {queue}, with {free} slots free"
    if patterns:
        said += f"; {patterns} more work by patterns that may match it"
    busy = bool(count) and not patterns and free == 0
    return Check("workers", "blocks" if busy else "fine", said + ".", {**shown, "free": free})


def _place(facts: Facts) -> Check | None:
    if "rank" not in facts:
        return None
    ahead, higher = facts["rank"], facts["higher"]
    shown = {
        "ahead": ahead,
        "higher_priority": higher,
        "lost_leases": facts["lost"],
        "waiting": facts["waiting"],
    }
    if not ahead:
        return Check("place", "fine", f"It is the next job of queue {facts['queue']}.", shown)
    said = f"{ahead} {'job is' if ahead == 1 else 'jobs are'} ahead of it"
    return Check("place", "note", said + (f", {higher} of them by priority." if higher else "."), shown)


def _lease(facts: Facts) -> Check | None:
    if facts["state"] != "running":
        return None
    names = ("worker", "token", "lease_end", "worker_seen", "popped", "limit")
    shown = {name: facts[name] for name in names if name in facts}
    worker, now, end = facts["worker"], facts["now"], facts.get("lease_end", 0)
    running = f"{worker} has had it for {span(now - facts['popped'])}"
    heard = f", and was last heard {span(now - facts['worker_seen'])} ago" if "worker_seen" in facts else ""
    if facts["noticed"]:
        said = f"{worker} lost its lease; the job is handed out again in {span(end - now)}." if end > now else (
            f"{worker} lost its lease; the next pop hands the job out again."
        )  # fmt: skip
        return Check("lease", "blocks", said, shown)
    if end <= now:
        said = f"{running}{heard}; its lease ended {span(now - end)} ago, which the next pop notices."
        return Check("lease", "blocks", said, shown, f"client.jobs[{facts['jid']!r}].timeout()")
    return Check("lease", "fine", f"{running}{heard}; its lease has {span(end - now)} left.", shown)


LOOKS: Final[tuple[Callable[[Facts], Check | None], ...]] = (
    _exists,
    _state,
    _failure,
    _log,
    _retries,
    _preempted,
    _unknown,
    _due,
    _expires,
    _dependencies,
    _pause,
    _throttles,
    _workers,
    _place,
    _lease,
)
