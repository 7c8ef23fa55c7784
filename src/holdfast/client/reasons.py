"""Checks that show why a job is running or not: each turns facts into one plain sentence.

They are in order of importance: whether the job exists, its state, its failure, its flow, its unique key, its log, its retries, workers without
its code, its due time, its dependencies, the queue, the throttles, the workers, its place, its lease.
"""

from collections.abc import Callable, Mapping, Sequence
from shlex import quote
from typing import Any, Final, Literal

import msgspec

from holdfast.client.queue_names import as_argument
from holdfast.client.serving import SILENT_MS, QueueServer, servers_of
from holdfast.code.failure import error_line
from holdfast.commands.failures import PARENT_FAILED
from holdfast.commands.flows import LARGE_GROUP
from holdfast.errors import cancelled_text
from holdfast.text import counted, one_line, short_clock, span, times

DOING: Final = {
    "depends": "waits for other jobs",
    "failed": "has failed",
    "throttled": "waits for a throttle",
}


def silence(seen: Mapping[str, int], now_ms: int) -> str:
    """Return since when workers are silent, of which `seen` has the time of each one's last heartbeat; it names the last one."""
    name = max(seen, key=lambda one: seen[one])
    since = f"{span(now_ms - seen[name])}, since {short_clock(seen[name])}"
    if len(seen) == 1:
        return f"worker {one_line(name)} has been silent for {since}"
    return f"{len(seen):,} workers are silent, worker {one_line(name)} for {since}"


def argument(*names: str) -> str:
    """Return names as the last arguments of a command line, whatever they begin with."""
    words = " ".join(map(quote, names))
    return f"-- {words}" if any(name.startswith("-") for name in names) else words


def shown_line(message: str) -> str:
    """Return the line of a message that names the error, at most 200 characters, without control characters."""
    return one_line(error_line(message))[:200]


Facts = Mapping[str, Any]


def _flags(facts: Facts) -> str:
    """Return the flags with which a command line reaches this store and namespace."""
    return str(facts.get("flags", ""))


def _command(facts: Facts, words: str, *names: str) -> str:
    """Return the command line that helps."""
    return f"holdfast {words}{_flags(facts)} {argument(*names)}"


Verdict = Literal["fine", "blocks", "note"]


_MANY_PREEMPTIONS: Final = 5


class Check(msgspec.Struct, frozen=True, gc=False):
    """One check: a sentence, the facts behind it, and a fix, as a command line."""

    check: str
    verdict: Verdict
    text: str
    facts: Facts = {}
    fix: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return `check`, `verdict` (fine, blocks or note), `text`, `facts`, `fix`."""
        return {**msgspec.structs.asdict(self), "facts": dict(self.facts)}


def _exists(facts: Facts) -> Check | None:
    if facts["state"] != "gone":
        return None
    if facts["result"]:
        text = "The job has ended and was deleted; its result is still kept."
        return Check("exists", "note", text, {"result": True})
    if facts.get("cancelled"):
        who, when, queue, _, state, worker, attempts = facts["cancelled"]
        held = f" in worker {worker}" if worker else ""
        text = f"The job was {cancelled_text(who, when / 1000)}; it was {state}{held}, in queue {queue}, tried {times(attempts)}."
        return Check("exists", "blocks", text, {"by": who, "at": when})
    text = "There is no such job: it never existed, was cancelled, or has ended and was deleted."
    return Check("exists", "blocks", text)


def _state(facts: Facts) -> Check | None:
    state, now = facts["state"], facts["now"]
    if state == "gone":
        return None
    shown = {"state": state, "queue": facts["queue"], "attempts": facts["attempts"]}
    if state == "complete":
        return Check("state", "note", "The job is complete.", shown)
    age = span(now - facts["created"])
    tries = f"tried {times(facts['attempts'])}" if facts["attempts"] else "never tried"
    is_let_go = state == "throttled" and "rank" in facts
    doing = "waits again" if is_let_go else DOING.get(state, f"is {state}")
    text = f"The job {doing} in queue {facts['queue']}, put {age} ago, {tries}."
    return Check("state", "fine", text, shown)


def _failure(facts: Facts) -> Check | None:
    if not facts.get("failure"):
        return None
    group, message, when, worker = facts["failure"]
    shown = {"group": group, "message": message, "when": when, "worker": worker}
    shown["in_group"] = facts.get("in_group", 0)
    ago, line = span(facts["now"] - when), shown_line(message)
    if facts["state"] != "failed":
        return Check("failure", "note", f"It last failed {ago} ago, in group {group}: {line}", shown)
    text = f"It failed {ago} ago in group {group} and stays there until it is retried: {line}"
    if group.endswith(PARENT_FAILED) and facts.get("flow"):
        return Check("failure", "blocks", text, shown, _command(facts, "flows retry", facts["flow"][0]))
    return Check("failure", "blocks", text, shown, _command(facts, "jobs retry", facts["jid"]))


def _flow(facts: Facts) -> Check | None:
    if not facts.get("flow"):
        return None
    flow, total = facts["flow"]
    number = int(facts["jid"].rpartition("-")[2]) + 1
    text = f"It is job {number:,} of the {total:,} of flow {one_line(flow)}."
    return Check(
        "flow", "note", text, {"flow": flow, "jobs": total}, _command(facts, "jobs tree", facts["jid"])
    )


def _unique(facts: Facts) -> Check | None:
    if not facts.get("unique"):
        return None
    until, holder = facts["unique"]
    shown, jid = {"until": until, "holder": holder}, one_line(holder)
    if holder == facts["jid"]:
        length = "for a time" if until == "time" else f"until its {until}"
        return Check("unique", "note", f"It holds its unique key {length}.", shown)
    text, fix = f"Job {jid} holds its unique key", _command(facts, "jobs why", holder)
    if facts["state"] in ("failed", "complete"):
        what = "retried" if facts["state"] == "failed" else "put again"
        return Check(
            "unique", "note", f"{text}; until that has ended, this one cannot be {what}.", shown, fix
        )
    return Check("unique", "note", f"{text} now.", shown, fix)


def _log(facts: Facts) -> Check | None:
    lines = facts.get("log")
    if not lines:
        return None
    return Check("log", "note", f"Its last log line: {shown_line(lines[-1])}", {"lines": lines})


def _retries(facts: Facts) -> Check | None:
    if facts["state"] in ("gone", "complete"):
        return None
    if not facts["losses"] and facts["remaining"] >= facts["retries"]:
        return None
    names = ("retries", "remaining", "losses", "max_losses", "loss")
    shown = {name: facts[name] for name in names if name in facts}
    left, lost = max(facts["remaining"], 0), facts["losses"]
    if "max_losses" in facts:
        failures = facts["retries"] - left
        text = (
            f"{failures} of {facts['retries']} failures and {lost} of {facts['max_losses']} losses are used"
        )
    else:
        text = f"{left} of {facts['retries']} retries are left"
        text += f"; its lease was lost {times(lost)}" if lost else ""
    return Check("retries", "note", text + _last_loss(facts) + ".", shown)


def _last_loss(facts: Facts) -> str:
    if not facts.get("loss"):
        return ""
    what, when, attempt, worker, _, cause = facts["loss"]
    died = "its process died" + (f" ({shown_line(cause)})" if cause else "")
    how = died if what == "crashed" else "its lease expired"
    ago = span(facts["now"] - when)
    return f"; the last loss was {ago} ago, attempt {attempt} on {worker}: {how}"


def _preempted(facts: Facts) -> Check | None:
    count = facts.get("preempted", 0)
    if count < _MANY_PREEMPTIONS or facts["state"] == "complete":
        return None
    text = f"It was preempted {times(count)}, at no cost"
    shown: dict[str, object] = {"preempted": count}
    if facts.get("preemption"):
        _, when, _, worker, _, reason = facts["preemption"]
        text += f"; the last time {span(facts['now'] - when)} ago on {worker}" + (
            f" ({reason})" if reason else ""
        )
        shown |= {"when": when, "worker": worker, "reason": reason}
    return Check("preempted", "note", text + ".", shown)


def _unknown(facts: Facts) -> Check | None:
    if not facts.get("unknown") or facts["state"] in ("complete", "failed"):
        return None
    first, count, _, when, worker, error, window = facts["unknown"]
    now = facts["now"]
    shown = {"first": first, "count": count, "when": when, "worker": worker, "error": error}
    shown["unknown_for"] = window
    if not window:
        text = (
            f"It needs a worker of a newer release of holdfast: {shown_line(error)} ({span(now - when)} ago)."
        )
        return Check("unknown", "blocks", text, shown, "pip install --upgrade holdfast-jobs")
    text = (
        f"Worker {worker} tried it {span(now - when)} ago, but does not have its code: {shown_line(error)}."
    )
    text += f" It waits for a worker that has it, and fails in {span(first + window - now)} if there is none."
    fix = f"holdfast worker -q {as_argument(facts['queue'])}{_flags(facts)} --path DIR"
    return Check("unknown", "blocks", text, shown, fix)


def _due(facts: Facts) -> Check | None:
    if "due" not in facts:
        return None
    wait, shown = facts["due"] - facts["now"], {"due": facts["due"]}
    if wait <= 0:
        return Check("due", "fine", f"It was due {span(-wait)} ago; the next pop makes it ready.", shown)
    return Check(
        "due", "blocks", f"It is due in {span(wait)}.", shown, _command(facts, "jobs run", facts["jid"])
    )


def _expires(facts: Facts) -> Check | None:
    if not facts.get("expires"):
        return None
    left, shown = facts["expires"] - facts["now"], {"expires": facts["expires"]}
    if left <= 0:
        return Check("expires", "blocks", "It has expired: the next pop fails it.", shown)
    return Check("expires", "note", f"It fails if it does not start within {span(left)}.", shown)


def _dependencies(facts: Facts) -> Check | None:
    if facts["state"] != "depends":
        return None
    parents = [dict(zip(("jid", "state", "group"), row, strict=True)) for row in facts["parents"]]
    failed = [parent["jid"] for parent in parents if parent["state"] == "failed"]
    names = ", ".join(parent["jid"] for parent in parents[:3])
    count = facts["open"]
    if facts["klass"] == LARGE_GROUP and facts.get("flow"):
        flow = facts["flow"][0]
        text = f"It stands for the group of flow {one_line(flow)}, and ends when all jobs of that have ended."
        return Check("dependencies", "blocks", text, {"flow": flow}, _command(facts, "flows show", flow))
    text = f"It waits for {counted(count, 'other job')}: {names}{', …' if count > 3 else ''}."
    gone = [parent["jid"] for parent in parents if parent["state"] == "gone"]
    fix = _command(facts, "jobs why", parents[0]["jid"]) if parents else ""
    if failed:
        text += f" {failed[0]} has failed, so it waits until that job is retried."
        fix = _command(facts, "jobs retry", *failed)
    elif gone:
        text += f" {gone[0]} does not exist, so it waits forever."
        fix = _command(facts, "jobs cancel", facts["jid"])
    return Check("dependencies", "blocks", text, {"open": count, "parents": parents, "failed": failed}, fix)


def _pause(facts: Facts) -> Check | None:
    if facts["state"] in ("gone", "complete", "failed", "running"):
        return None
    if "pause" not in facts:
        return Check("pause", "fine", f"Queue {facts['queue']} is not paused.")
    who, why, since, until = facts["pause"]
    shown = {"who": who, "why": why, "since": since, "until": until}
    text = f"Queue {facts['queue']} was paused {span(facts['now'] - since)} ago"
    text += (f" by {who}" if who else "") + (f": {shown_line(why)}" if why else "")
    text += f"; the pause ends in {span(until - facts['now'])}." if until else "."
    return Check("pause", "blocks", text, shown, _command(facts, "queues resume", facts["queue"]))


def _throttles(facts: Facts) -> Check | None:
    state = facts["state"]
    if state != "throttled" and not (state in ("waiting", "stalled") and facts["throttles"]):
        return None
    rows: list[dict[str, Any]] = [
        {"id": name, "maximum": most, "used": used, "pending": pending, "place": place,
         "holders": dict(zip(held[::2], held[1::2], strict=True))}
        for name, most, used, pending, place, held in facts["throttles"]
    ]  # fmt: skip
    if state == "throttled" and "rank" not in facts and not any(row["place"] for row in rows):
        text = "Its slot of a throttle was released, so it stays throttled until it is moved or put again."
        fix = _command(facts, "jobs move", facts["queue"], facts["jid"])
        return Check("throttles", "blocks", text, {"throttles": rows}, fix)
    full = [row for row in rows if row["used"] >= row["maximum"] > 0]
    if not full:
        return Check("throttles", "fine", "Its throttles have free slots.", {"throttles": rows})
    first = full[0]
    text = f"Throttle {first['id']} is full: {first['used']:,} of {first['maximum']:,} slots are taken"
    before = first["place"] - 1
    if before > 0:
        text += f", and {counted(before, 'job waits', 'jobs wait')} before it"
    fix = _command(facts, "throttles show", first["id"])
    return Check("throttles", "blocks", text + ".", {"throttles": rows}, fix)


def _workers(facts: Facts) -> Check | None:
    if facts["state"] not in ("waiting", "throttled", "stalled", "scheduled", "depends"):
        return None
    queue, now, found = facts["queue"], facts["now"], servers_of(facts)
    silent = {one.name: one.seen for one in found if one.is_silent(now)}
    alive = [one for one in found if not one.is_silent(now)]
    taking = [one for one in alive if one.takes_jobs(now)]
    rows = [msgspec.structs.asdict(one) | {"silent": one.is_silent(now)} for one in found]
    shown: dict[str, object] = {"workers": rows, "count": len(alive), "silent": len(silent)}
    shown["pattern_workers"] = facts["pattern_workers"]
    if taking:
        return _taking(facts, taking, silent, shown)
    start = f"holdfast worker -q {as_argument(queue)}{_flags(facts)}"
    if alive:
        text = f"All workers of queue {queue} are quiet: they take no jobs until they are resumed."
        return Check(
            "workers", "blocks", text, shown, _command(facts, "workers resume", *(one.name for one in alive))
        )
    if silent:
        whose = "its only worker is" if len(silent) == 1 else "all of its workers are"
        text = f"No worker takes jobs of queue {queue}: {whose} frozen, gone, or cannot reach the store; {silence(silent, now)}."
        return Check("workers", "blocks", text, shown, start)
    if facts["pattern_workers"] and "patterned" not in facts:  # an older core
        text = f"No worker names queue {queue}; {counted(facts['pattern_workers'], 'worker has', 'workers have')} patterns that may match it."
        return Check("workers", "note", text, shown)
    verdict: Verdict = "note" if facts["running"] else "blocks"
    return Check("workers", verdict, f"No worker is known for queue {queue}.", shown, start)


def _taking(
    facts: Facts, taking: Sequence[QueueServer], silent: Mapping[str, int], shown: dict[str, object]
) -> Check:
    """Return the check of a queue whose jobs some workers take."""
    free = sum(max(one.slots - one.busy, 0) for one in taking)
    works = counted(len(taking), "worker works", "workers work")
    text = f"{works} for queue {facts['queue']}, with {counted(free, 'free slot')}"
    if silent:
        text += f"; {silence(silent, facts['now'])}"
    return Check("workers", "fine" if free else "blocks", text + ".", {**shown, "free": free})


def _place(facts: Facts) -> Check | None:
    if "rank" not in facts:
        return None
    ahead, higher = facts["rank"], facts["higher"]
    shown = {"ahead": ahead, "higher_priority": higher}
    shown |= {"lost_leases": facts["lost"], "waiting": facts["waiting"]}
    if not ahead:
        return Check("place", "fine", f"It is the next job of queue {facts['queue']}.", shown)
    text = f"{counted(ahead, 'job is', 'jobs are')} ahead of it"
    return Check("place", "note", text + (f", {higher} of them by priority." if higher else "."), shown)


def _lease(facts: Facts) -> Check | None:
    if facts["state"] != "running":
        return None
    names = ("worker", "token", "lease_end", "worker_seen", "popped", "limit")
    shown = {name: facts[name] for name in names if name in facts}
    worker, now, end = facts["worker"], facts["now"], facts.get("lease_end", 0)
    running = f"{worker} has held it for {span(now - facts['popped'])}"
    seen = f", and was last seen {span(now - facts['worker_seen'])} ago" if "worker_seen" in facts else ""
    if seen and now - facts["worker_seen"] > SILENT_MS:
        running = f"{running}, and is silent: it is frozen, gone, or cannot reach the store"
        seen = f" (last seen {span(now - facts['worker_seen'])} ago, {short_clock(facts['worker_seen'])})"
    if facts["noticed"]:
        text = f"{worker} lost its lease; the job is handed out again in {span(end - now)}." if end > now else (
            f"{worker} lost its lease; the next pop hands the job out again."
        )  # fmt: skip
        return Check("lease", "blocks", text, shown)
    if end <= now:
        queue = facts["queue"]
        if "workers" in facts and not any(one.takes_jobs(now) for one in servers_of(facts)):
            text = f"{running}{seen}; its lease ended {span(now - end)} ago, and no live worker takes jobs of queue {queue}."
            start = f"holdfast worker -q {as_argument(queue)}{_flags(facts)}"
            return Check("lease", "blocks", text, shown, start)
        text = f"{running}{seen}; its lease ended {span(now - end)} ago, which the next pop will detect."
        return Check("lease", "blocks", text, shown, _command(facts, "jobs expire", facts["jid"]))
    return Check("lease", "fine", f"{running}{seen}; its lease has {span(end - now)} left.", shown)


CHECKS: Final[tuple[Callable[[Facts], Check | None], ...]] = (
    _exists, _state, _failure, _flow, _unique, _log, _retries, _preempted, _unknown, _due, _expires, _dependencies, _pause, _throttles,
    _workers, _place, _lease,
)  # fmt: skip
