"""What is known about both doors between two calls: the jobs as both show them, and what the reference hides."""

from dataclasses import dataclass, field
from typing import Any

from names import JIDS, KIND, SUBJECTS, TEMPLATES, THROTTLES

Job = dict[str, Any]
YOUNGEST = 5
"""So many of the newest jobs of a template are looked at after each call."""

TOLD = frozenset(("put", "popped", "throttled", "timed-out", "done", "failed", "failed-retries"))
"""Lines of the core itself."""


@dataclass
class Call:
    command: str
    words: tuple[Any, ...]

    @property
    def subject(self) -> str | None:
        """The job, queue, … it is about, as text; None where no word names it."""
        place = SUBJECTS[KIND[self.command]][self.command]
        return str(self.words[place]) if place < len(self.words) else None

    def option(self, key: str, first: int) -> Any:
        """The last value of a key among pairs that begin at word `first`; None if there is none."""
        pairs = zip(self.words[first::2], self.words[first + 1 :: 2], strict=False)
        return dict(pairs).get(key)


@dataclass
class View:
    now: float = 1_700_000_000.0
    throttling: bool = False
    ties: bool = False
    """Whether jobs may share priority and time."""
    jobs: dict[str, Job] = field(default_factory=dict[str, Job])
    """As ours shows them."""
    theirs: dict[str, Job] = field(default_factory=dict[str, Job])
    slots: dict[str, tuple[list[str], list[str]]] = field(
        default_factory=dict[str, tuple[list[str], list[str]]]
    )
    """Who holds a throttle and who waits for it, while throttles are looked at."""
    templates: dict[str, Job] = field(default_factory=dict[str, Job])
    spawned: dict[str, int] = field(default_factory=dict[str, int])
    """The highest number that a job of each template ever had."""
    turns: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    """When the first occurrence of each template was due, and its interval; 0 where its interval was changed."""
    since: dict[str, float] = field(default_factory=dict[str, float])
    """When a job became ready at the reference; 0 goes ahead of its class, -1 of everything."""
    priority: int = 0
    due: dict[str, float] = field(default_factory=dict[str, float])
    entered: set[str] = field(default_factory=set[str])
    paused: set[str] = field(default_factory=set[str])
    popped: dict[str, float] = field(default_factory=dict[str, float])
    """When each worker popped last."""
    settings: dict[str, str] = field(default_factory=dict[str, str])
    # What the reference remembers and does not show, each a weakness that some later call meets.
    noticed: set[str] = field(default_factory=set[str])
    renewed: dict[str, Any] = field(default_factory=dict[str, Any])
    """The last line of a job's history when its holder renewed the lock."""
    forgotten: set[str] = field(default_factory=set[str])
    timed_out: set[str] = field(default_factory=set[str])
    remembered: set[str] = field(default_factory=set[str])
    drifted: set[str] = field(default_factory=set[str])
    misindexed: set[str] = field(default_factory=set[str])
    moved: set[str] = field(default_factory=set[str])
    miscounted: set[str] = field(default_factory=set[str])
    beating: set[str] = field(default_factory=set[str])
    tracked: set[str] = field(default_factory=set[str])

    def known(self) -> list[str]:
        """The jids that are looked at after each call."""
        spawned = [
            f"{name}-{number}"
            for name, template in self.templates.items()
            for number in range(max(1, template["count"] - YOUNGEST + 1), template["count"] + 1)
        ]
        older = [
            f"{name}-{number}" for name, most in self.spawned.items() for number in range(1, min(most, 3) + 1)
        ]
        return [*JIDS, *dict.fromkeys(spawned + older)]

    def state(self, jid: str) -> str:
        """Finer than the word in the job object."""
        job = self.jobs.get(jid)
        if job is None:
            return "absent"
        state = str(job["state"])
        if state != "running":
            return state
        if self.in_grace(jid):
            return "grace"
        return "late" if job["expires"] <= self.now else "running"

    def waiting_for(self, jid: str) -> set[str]:
        """The job and all that wait for it, directly or not."""
        found, left = {jid}, [jid]
        while left:
            job = self.jobs.get(left.pop())
            new = {other for other in job["dependents"] if other not in found} if job else set[str]()
            found |= new
            left += new
        return found

    def in_grace(self, jid: str) -> bool:
        """Whether its lock was noticed as lost, and was not renewed since."""
        job = self.theirs[jid]
        return noticed(job) and self.renewed.get(jid) != last_line(job)

    def queue_state(self, name: str) -> str:
        if name in self.paused:
            return "paused"
        states = {self.state(jid) for jid, job in self.jobs.items() if job["queue"] == name}
        if "late" in states:
            return "lost"
        if self.overdue(name):
            return "due"
        if states & {"waiting", "stalled"}:
            return "ready"
        if states & {"running", "grace"}:
            return "busy"
        return "idle" if name in self.entered else "unknown"

    def overdue(self, queue: str) -> list[str]:
        """Jobs that are due and that the reference has not moved yet."""
        return [
            jid
            for jid, job in self.theirs.items()
            if job["state"] == "scheduled" and job["queue"] == queue and self.due.get(jid, 0) <= self.now
        ]

    def state_of(self, call: Call) -> str:
        """The state of what the call is about, as `names.STATES` has it."""
        kind, subject = KIND[call.command], call.subject
        if subject is None:
            return "any" if kind == "all" else "unsaid"
        return str(getattr(self, f"_{kind}")(subject))

    def _all(self, _: str) -> str:
        return "any"

    def _job(self, jid: str) -> str:
        return self.state(jid)

    def _queue(self, name: str) -> str:
        return self.queue_state(name)

    def _group(self, name: str) -> str:
        return "filled" if self.failed_in(name) else "empty"

    def failed_in(self, group: str) -> list[Job]:
        return [
            job for job in self.jobs.values() if job["state"] == "failed" and job["failure"]["group"] == group
        ]

    def _template(self, name: str) -> str:
        return "present" if name in self.templates else "absent"

    def _worker(self, name: str) -> str:
        if name not in self.popped:
            return "unknown"
        held = any(job["worker"] == name and job["state"] == "running" for job in self.jobs.values())
        return "holding" if held else "idle"

    def _tag(self, name: str) -> str:
        return "used" if any(name in map(str, job["tags"]) for job in self.jobs.values()) else "free"

    def _setting(self, key: str) -> str:
        return "set" if key in self.settings else "unset"

    def _throttle(self, name: str) -> str:
        held, awaited = self.slots.get(name, ([], []))
        return "awaited" if awaited else "held" if held else "free"

    def waiting_for_slots(self) -> bool:
        return any(awaited for _, awaited in self.slots.values())


def last_line(job: Job) -> Any:
    """The last line of its history that nobody wrote by `job.log`; None if it was trimmed."""
    told = (line for line in reversed(job["history"] or []) if line["what"] in TOLD)
    return next((line for line in told if line["what"] != "put" or "queue" in line), None)


def noticed(job: Job) -> bool:
    line = last_line(job)
    return bool(job["state"] == "running" and line and line["what"] == "timed-out")


def looks(view: View, call: Call, recurring: bool) -> list[tuple[str, tuple[object, ...]]]:
    """What is read from both doors after a call."""
    named = [word for word in call.words if isinstance(word, str) and word in view.jobs]
    jids = tuple(dict.fromkeys([*view.known(), *named]))
    wanted: list[tuple[str, tuple[object, ...]]] = [("job.getMulti", jids)]
    if recurring:
        wanted += [("recurringJob.get", (name,)) for name in TEMPLATES]
    if view.throttling:
        wanted += [(f"throttle.{what}", (name,)) for name in THROTTLES for what in ("locks", "pending")]
    return wanted
