"""What must become of the jobs of flows, in plain Python: each call changes a few objects in memory.

Texts of results are JSON; one that begins with a zero byte skips what takes it. A job that is deleted stays here, in the state `gone`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Ended:
    """How a job ended: with the text of a result ("": none), or with the group and the message of a failure."""

    result: str = ""
    group: str = ""
    message: str = ""
    is_cancelled: bool = False
    skipped: str | None = None

    @property
    def kind(self) -> str:
        if self.group:
            return "cancelled" if self.is_cancelled else "failed"
        return "skips" if self.result.startswith("\0") else "complete"

    @property
    def outcome(self) -> Any:
        if not self.group:
            return {"ok": True, "result": json.loads(self.result or "null"), "failure": None}
        return {"ok": False, "result": None, "failure": self.failure}

    @property
    def failure(self) -> Any:
        return {"group": self.group, "message": self.message}


def skipped(why: str) -> Ended:
    return Ended(group="skipped", message=why, is_cancelled=True, skipped=why)


CANCELLED = Ended(group="cancelled", message="by a program", is_cancelled=True)


@dataclass
class Edge:
    """`place` is the number of the argument that takes what the parent ends with, -1: none does. The parent has taken note of one that
    `is_linked`: of one that its end could not close, it has not."""

    policy: str
    place: int
    is_linked: bool = True

    @property
    def needs_result(self) -> bool:
        return self.policy in ("fail", "wait") and self.place >= 0


@dataclass
class Group:
    """A large group; `ends` has how counted members ended: `done`, `failed` or `cancelled`, and what is shown of that."""

    policy: str
    gather: str
    stride: int
    first: int
    members: int = 0
    put: int = 0
    """How many of them came by calls that may be repeated."""
    is_open: bool = True
    has_ended: bool = False
    ends: dict[str, tuple[str, Any]] = field(default_factory=dict)

    def count(self, how: str) -> int:
        return sum(kind == how for kind, _ in self.ends.values())

    @property
    def is_over(self) -> bool:
        ended = len(self.ends) if self.policy == "run" else self.count("done")
        return not self.is_open and ended >= self.members


@dataclass
class Job:
    jid: str
    args: list[Any]
    edges: dict[str, Edge]
    state: str = "depends"
    got: dict[int, Any] = field(default_factory=dict)
    waited_for: dict[str, Edge] = field(default_factory=dict)
    is_counted: bool = False
    is_group: bool = False
    kind: str = ""
    """How it ends as its parents do, "": it does not."""
    failure: tuple[str, str] | None = None
    kept: str | None = None
    """The text of its result, as long as that is kept beside it."""
    token: int = 0
    is_lost: bool = False
    ends: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Part:
    """A job that is going to be put, with its edges by parent."""

    jid: str
    args: list[Any]
    edges: dict[str, Edge]
    group: str = ""


class Refused(Exception):
    pass


def flow_of(jid: str) -> str:
    return jid.rpartition("-")[0]


class Flows:
    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.totals: dict[str, int] = {}
        self.groups: dict[str, Group] = {}

    def of_state(self, *states: str) -> list[Job]:
        return [job for job in self.jobs.values() if job.state in states]

    def children(self, jid: str) -> list[Job]:
        """Those that wait for a job, as far as that knows it."""
        return [
            job
            for job in self.jobs.values()
            if job.state in ("depends", "failed") and jid in job.edges and job.edges[jid].is_linked
        ]

    # --- puts ------------------------------------------------------------------------------------------------

    def put(self, flow: str, parts: Sequence[Part]) -> int:
        if flow in self.totals:
            return 0
        self.check(parts)
        self.totals[flow] = len(parts)
        if parts[0].group:
            policy, gather, stride = parts[0].group.split()
            self.groups[flow] = Group(policy, gather, int(stride), len(parts))
        self.put_all(parts)
        return 1

    def check(self, parts: Sequence[Part]) -> None:
        own: set[str] = set()
        for part in parts:
            for parent, edge in part.edges.items():
                if parent not in own:
                    self.check_outside(parent, edge)
            own.add(part.jid)

    def check_outside(self, parent: str, edge: Edge) -> None:
        job = self.jobs[parent]
        if edge.policy == "rescue":
            raise Refused("HF_BAD_ARGUMENT")
        if job.state == "gone" and job.kept is None:
            raise Refused("HF_JOB_NOT_FOUND")
        is_over = job.state in ("gone", "complete")
        if is_over and edge.place >= 0 and edge.policy != "run" and job.kept is None:
            raise Refused("HF_DEPENDENCY_REFUSED")

    def put_all(self, parts: Sequence[Part]) -> None:
        """Jobs whose parents failed before fail once all are there."""
        doomed: list[tuple[str, str]] = []
        own = {part.jid for part in parts}
        for part in parts:
            outside = {parent: edge for parent, edge in part.edges.items() if parent not in own}
            job = Job(part.jid, list(part.args), {}, is_group=bool(part.group), waited_for=part.edges)
            self.jobs[part.jid] = job
            for parent, edge in outside.items():
                doomed += [(part.jid, why) for why in self.wait_for(job, parent, edge)]
            job.edges |= {parent: edge for parent, edge in part.edges.items() if parent in own}
            if not job.edges and not job.is_group:
                self.make_ready(job)
        for jid, why in dict(doomed).items():
            self.fail_for_parent(self.jobs[jid], why)

    def wait_for(self, job: Job, name: str, edge: Edge) -> list[str]:
        """A job waits for one that was there before. Returns why it has to fail, if it has."""
        parent = self.jobs[name]
        failed = parent.failure if parent.state == "failed" else None
        ended = Ended(group=failed[0], message=failed[1]) if failed else Ended(parent.kept or "")
        if parent.state in ("gone", "complete") or (failed and edge.policy == "run"):
            if edge.place >= 0:
                job.got[edge.place] = taken(edge, ended)
            return []
        job.edges[name] = edge
        return [reason(name, ended)] if failed and edge.policy == "fail" else []

    def add(self, flow: str, start: int, is_repeat: bool, parts: Sequence[Part]) -> int:
        group = self.groups[flow]
        before = group.put if is_repeat else group.members
        done = group.first + before * group.stride - start
        if done < 0 or (done > 0 and not is_repeat):
            raise Refused("HF_WRONG_STATE")
        new = renumbered(flow, parts[done:], group.first + group.members * group.stride)
        if not new:
            return 0
        if not group.is_open:
            raise Refused("HF_FLOW_CLOSED")
        self.check(new)
        group.members += len(new) // group.stride
        group.put += len(new) // group.stride if is_repeat else 0
        self.put_all(new)
        for part in new[group.stride - 1 :: group.stride]:
            self.jobs[part.jid].is_counted = True
        return len(new)

    def close(self, flow: str) -> int:
        group = self.groups[flow]
        if not group.is_open:
            return 0
        group.is_open = False
        self.settle(flow)
        return 1

    # --- leases ----------------------------------------------------------------------------------------------

    def popped(self, job: Job, token: int) -> None:
        """A worker got a job, which had to be ready. It must have been right to start."""
        assert job.state == "waiting" or (job.state == "running" and job.is_lost), f"{job.jid} is {job.state}"
        assert token > job.token, f"the token of {job.jid} does not grow"
        for parent, edge in job.waited_for.items():
            assert self.may_start(self.jobs[parent], edge), f"{job.jid} starts before {parent} has ended so"
        job.state, job.token, job.is_lost = "running", token, False

    def may_start(self, parent: Job, edge: Edge) -> bool:
        """Whether a parent ever ended as a policy needs it. What only waits for its order does not hold a job back for ever that is retried."""
        is_over = parent.state == "gone"
        if edge.policy == "rescue":
            return "failed" in parent.ends or "cancelled" in parent.ends or is_over
        if edge.policy == "run":
            return bool(parent.ends)
        return "complete" in parent.ends or (edge.place < 0 and ("skips" in parent.ends or is_over))

    def complete(self, jid: str, result: str, keep: bool) -> None:
        job = self.jobs[jid]
        job.state, job.failure, job.is_lost = "complete", None, False
        if keep:
            job.kept = "null" if result.startswith("\0") else result
        self.ended(job, Ended(result))

    def fail(self, jid: str, group: str, message: str) -> None:
        job = self.jobs[jid]
        job.state, job.failure, job.is_lost = "failed", (group, message), False
        self.ended(job, Ended(group=group, message=message))

    def end_with(self, jid: str, kind: str, flow: str, parts: Sequence[Part], last: Sequence[int]) -> None:
        job = self.jobs[jid]
        self.put(flow, parts)
        job.state, job.kind, job.is_lost = "depends", kind, False
        job.edges = {f"{flow}-{number}": Edge("fail", place) for place, number in enumerate(last)}
        job.waited_for = {}

    # --- ends ------------------------------------------------------------------------------------------------

    def ended(self, job: Job, ended: Ended) -> None:
        job.ends.append(ended.kind)
        if ended.kind == "skips":
            ended = skipped(ended.result[1:])
        if job.is_counted:
            self.count(job, ended)
        self.tell_children(job, ended)

    def tell_children(self, job: Job, ended: Ended) -> None:
        for child in self.children(job.jid):
            edge = child.edges.get(job.jid)
            if edge is None or not edge.is_linked or child.state not in ("depends", "failed"):
                continue
            takes_it = edge.policy != "wait" or edge.place >= 0
            if ended.skipped is not None and edge.policy != "run" and takes_it:
                self.skip(child, ended.skipped)
            elif edge.policy == "rescue" and not ended.group:
                self.skip(child, f"{job.jid} is complete")
            elif edge.policy == "fail" and ended.group:
                self.fail_for_parent(child, reason(job.jid, ended))
            elif edge.policy != "wait" or not ended.group or ended.skipped is not None:
                self.close_edge(child, job.jid, ended)

    def close_edge(self, child: Job, parent: str, ended: Ended) -> None:
        edge = child.edges[parent]
        edge.is_linked = False
        if edge.needs_result and not ended.result:
            self.fail_for_parent(child, f"{parent} has ended, but it has no result")
            return
        if edge.place >= 0:
            child.got[edge.place] = taken(edge, ended)
        del child.edges[parent]
        if not child.edges:
            self.release(child)

    def release(self, child: Job) -> None:
        if child.kind:
            texts = [child.got[place] for place in sorted(child.got)]
            child.got = {}
            self.complete_waiting(child, json.dumps(texts if child.kind == "list" else texts[0]), True)
        else:
            self.revived(child)
            self.make_ready(child)

    def make_ready(self, job: Job) -> None:
        for place, value in job.got.items():
            job.args[place] = value
        job.got, job.state, job.failure = {}, "waiting", None

    def fail_for_parent(self, job: Job, message: str) -> None:
        if job.state != "depends":
            return
        job.state, job.failure = "failed", ("q-ParentFailed", message)
        self.ended(job, Ended(group="q-ParentFailed", message=message))

    def complete_waiting(self, job: Job, result: str, keep: bool) -> bool:
        if job.state not in ("depends", "failed"):
            return False
        self.revived(job)
        job.kind = ""
        self.complete(job.jid, result, keep)
        return True

    def skip(self, job: Job, why: str) -> None:
        if job.state in ("depends", "failed"):
            self.delete(job, skipped(why))

    def delete(self, job: Job, ended: Ended) -> None:
        self.revived(job)
        job.state, job.edges, job.got, job.kind = "gone", {}, {}, ""
        self.ended(job, ended)

    # --- large groups ----------------------------------------------------------------------------------------

    def revived(self, job: Job) -> None:
        """A failure of a member does not count any more."""
        if job.is_counted and job.state == "failed":
            del self.groups[flow_of(job.jid)].ends[job.jid]

    def count(self, job: Job, ended: Ended) -> None:
        flow = flow_of(job.jid)
        how = "done" if not ended.group else "cancelled" if ended.is_cancelled else "failed"
        assert job.jid not in self.groups[flow].ends, f"{job.jid} ends twice"
        self.groups[flow].ends[job.jid] = how, ended
        self.settle(flow, job.jid, ended if ended.group else None)

    def settle(self, flow: str, jid: str = "", ended: Ended | None = None) -> None:
        group, own = self.groups[flow], self.jobs[f"{flow}-0"]
        if group.is_over:
            result, problem = self.gathered(flow)
            if problem:
                self.fail_for_parent(own, problem)
            elif self.complete_waiting(own, result, True):
                group.has_ended = True
        elif ended and group.policy != "run":
            if ended.skipped is not None:
                self.skip(own, ended.skipped)
            elif ended.is_cancelled or group.policy == "fail":
                self.fail_for_parent(own, reason(jid, ended))

    def gathered(self, flow: str) -> tuple[str, str]:
        """What the job of a group ends with, or why it cannot."""
        group = self.groups[flow]
        if group.gather == "pages":
            return json.dumps({"flow": flow, "count": group.members}), ""
        texts = self.results(flow)
        for jid, text in zip(self.members(flow), texts, strict=True):
            if not text:
                return "", f"{jid} has no result"
        return f"[{','.join(filter(None, texts))}]", ""

    def members(self, flow: str) -> list[str]:
        group = self.groups[flow]
        return [f"{flow}-{group.first + (n + 1) * group.stride - 1}" for n in range(group.members)]

    def results(self, flow: str) -> list[str | None]:
        """What members ended with: of a group that runs in any case, outcomes; None of one that has not, or has no result."""
        group, found = self.groups[flow], list[str | None]()
        for jid in self.members(flow):
            how, ended = group.ends.get(jid, ("", None))
            if not how:
                found.append(None)
            elif group.policy == "run":
                found.append(json.dumps(ended.outcome))
            else:
                found.append(ended.result if how == "done" else None)
        return found

    # --- operators -------------------------------------------------------------------------------------------

    def look_again(self, job: Job) -> None:
        """A failed job that waited is going to be tried again: what it waited for may have ended meanwhile. Raises Refused."""
        if job.is_group:
            group = self.groups[flow_of(job.jid)]
            if group.count("cancelled") and group.policy != "run":
                raise Refused("HF_WRONG_STATE")
            if group.is_over and self.gathered(flow_of(job.jid))[1]:
                raise Refused("HF_WRONG_STATE")
            return
        for name, edge in list(job.edges.items()):
            parent = self.jobs[name]
            if parent.state not in ("complete", "gone"):
                edge.is_linked = True
            elif edge.policy == "rescue" or (edge.needs_result and parent.kept is None):
                raise Refused("HF_WRONG_STATE")
            else:
                if edge.place >= 0:
                    job.got[edge.place] = taken(edge, Ended(parent.kept or ""))
                del job.edges[name]

    def retry(self, jid: str) -> None:
        """Raises Refused."""
        job = self.jobs[jid]
        if job.state == "gone":
            raise Refused("HF_JOB_NOT_FOUND")
        if job.state != "failed":
            raise Refused("HF_WRONG_STATE")
        self.look_again(job)
        self.begin_again(job)

    def begin_again(self, job: Job) -> None:
        if not job.edges and not job.is_group:
            self.release(job)
            return
        self.revived(job)
        job.state, job.failure = "depends", None
        if job.is_group and self.groups[flow_of(job.jid)].is_over:
            self.settle(flow_of(job.jid))

    def move(self, jid: str, args: list[Any] | None) -> None:
        """A new life, with new arguments if they are given. Raises Refused."""
        job = self.jobs[jid]
        if job.is_group and job.state == "complete":
            raise Refused("HF_WRONG_STATE")
        if job.state == "failed":
            self.look_again(job)
        if job.state == "complete":
            job.is_counted = False
        if args is not None:
            job.args = list(args)
        job.is_lost = False
        self.begin_again(job)

    def cancel(self, jids: Sequence[str]) -> list[int]:
        """Raises Refused."""
        alive = [jid for jid in dict.fromkeys(jids) if self.jobs[jid].state not in ("complete", "gone")]
        for jid in alive:
            for child in self.children(jid):
                if child.edges[jid].policy == "wait" and child.jid not in jids:
                    raise Refused("HF_DEPENDENCY_REFUSED")
        reply = []
        for jid in jids:
            job = self.jobs[jid]
            is_there = job.state not in ("complete", "gone")
            reply.append(int(is_there))
            if is_there:
                self.delete(job, CANCELLED)
        return reply


def taken(edge: Edge, ended: Ended) -> Any:
    """What a child gets of a parent."""
    if edge.policy == "run":
        return ended.outcome
    return ended.failure if edge.policy == "rescue" else json.loads(ended.result)


def renumbered(flow: str, parts: Sequence[Part], number: int) -> list[Part]:
    """Jobs as they are called that come behind others."""
    names = {part.jid: f"{flow}-{number + at}" for at, part in enumerate(parts)}
    return [
        Part(
            names[part.jid],
            part.args,
            {names.get(parent, parent): edge for parent, edge in part.edges.items()},
        )
        for part in parts
    ]


def reason(parent: str, ended: Ended) -> str:
    """Why a job fails whose parent did not complete; it names the first that did not."""
    if ended.group != "q-ParentFailed":
        return f"{parent} did not complete: {ended.group}: {ended.message}"
    _, _, first = ended.message.partition(", because ")
    return f"{parent} did not complete, because {first or ended.message}"
