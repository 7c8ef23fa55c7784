"""The laws of `reliability.md` 10.2, checked on what the core answers, without a look at the model."""

from collections import Counter
from dataclasses import dataclass, field
from math import inf
from struct import unpack
from typing import Any

from calls import Call

from holdfast.commands.operations import OperationFacts
from native_door import Door

INDEXED = 1 << 48
PLACES = {"waiting": 1, "running": 2, "stalled": 3, "throttled": 4, "scheduled": 5, "depends": 6, "failed": 9}


@dataclass
class Ledger:
    """Who was handed what, by the replies: leases do not overlap (L4), tokens grow (L5), stale hands change nothing
    (L6), and a life ends once (L7). `open` maps jids to worker, token and end of the lease, `over` holds those whose
    life has ended."""

    open: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    over: set[str] = field(default_factory=set)
    tokens: dict[str, int] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)

    def heard(self, call: Call, answer: Any, now: int) -> None:
        """Books a call and its answer. What comes again under a number has no effect, but that a pop may do so."""
        name, args = call
        if isinstance(answer, str) and answer.startswith("HF_"):
            return
        if name in ("once", "pop_once", "complete_pop_once"):
            line, number, *rest = args
            again, self.numbers[line] = self.numbers.get(line) == number, number
            name, args = (
                (rest[0], tuple(rest[1:])) if name == "once" else (name.removesuffix("_once"), tuple(rest))
            )
            if again and name != "pop" and name != "complete_pop":
                return
        booked = getattr(self, f"on_{name}", None)
        if booked is not None:
            booked(args, answer, now)

    # --- leases begin ------------------------------------------------------------------------------------------

    def on_pop(self, args: Any, rows: Any, now: int) -> None:
        for row in rows:
            jid, token, end = row[0], row[4], row[5]
            held = self.open.get(jid)
            if held is not None and held[:2] == (args[0], token):
                continue  # the answer of an earlier pop, again
            assert held is None or held[2] <= now, f"two leases of {jid}"
            assert jid not in self.over, f"{jid} was handed out after its end"
            assert token > self.tokens.get(jid, 0), f"the token of {jid} does not grow"
            self.open[jid], self.tokens[jid] = (args[0], token, end), token

    def on_complete_pop(self, args: Any, answer: Any, now: int) -> None:
        self.of_batch(args[0], args[4], (len(args[4]) - len(answer[0]), answer[0]), "end")
        self.on_pop(args, answer[1], now)

    def on_heartbeat(self, args: Any, answer: Any, now: int) -> None:
        for (worker, jid, token, _), end in zip(args[1], answer, strict=True):
            if end > 0:
                self.accept(worker, jid, token)
                self.open[jid] = worker, token, end

    def on_expire(self, args: Any, answer: Any, now: int) -> None:
        for worker, jid, token in args[0]:
            if self.open.get(jid, ("", 0))[:2] == (worker, token):
                self.open[jid] = worker, token, now

    def on_release(self, args: Any, answer: Any, now: int) -> None:
        for worker, jid, token in args[2]:
            if self.open.get(jid, ("", 0))[:2] == (worker, token):
                del self.open[jid]

    # --- leases end --------------------------------------------------------------------------------------------

    def accept(self, worker: str, jid: str, token: int) -> None:
        assert self.open.get(jid, ("", 0))[:2] == (worker, token), f"a stale hand on {jid} was accepted"

    def settled(self, worker: str, held: Any, how: str) -> None:
        for jid, token in dict.fromkeys((one[0], one[1]) for one in held):
            self.accept(worker, jid, token)
            assert jid not in self.over, f"a second end of {jid}"
            del self.open[jid]
            if how == "end":
                self.over.add(jid)

    def of_batch(self, worker: str, held: Any, answer: Any, how: str) -> None:
        """A jid that is named twice is settled once, and refused the other time."""
        accepted = Counter(one[0] for one in held) - Counter(jid for jid, _ in answer[1])
        assert accepted.total() == answer[0]
        for jid, times in accepted.items():
            assert times == 1, f"{jid} was settled twice"
            token = self.open.get(jid, ("", 0))[1]
            self.settled(worker, [one for one in held if one[:2] == (jid, token)] or [(jid, -1)], how)

    def on_complete(self, args: Any, answer: Any, now: int) -> None:
        self.of_batch(args[0], args[1], answer, "end")

    def on_fail(self, args: Any, answer: Any, now: int) -> None:
        self.of_batch(args[0], args[3], answer, "end")

    def on_advance(self, args: Any, answer: Any, now: int) -> None:
        self.of_batch(args[0], args[3], answer, "on")

    def on_retry(self, args: Any, answer: Any, now: int) -> None:
        for one, left in zip(args[4], answer, strict=True):
            if isinstance(left, int) and self.open.get(one[0], ("", 0))[:2] == (args[0], one[1]):
                self.settled(args[0], [one], "on" if left >= 0 else "end")

    def on_complete_x(self, args: Any, answer: Any, now: int) -> None:
        worker, jid, token, _, on, _jobs = args
        if answer != "again":
            self.settled(worker, [(jid, token)], "on" if on[0] else "end")

    def on_timeout(self, args: Any, answer: Any, now: int) -> None:
        for jid in args[0]:
            self.open.pop(jid, None)

    # --- lives begin -------------------------------------------------------------------------------------------

    def lives(self, jid: str) -> None:
        self.open.pop(jid, None)
        self.over.discard(jid)

    def on_put(self, args: Any, answer: Any, now: int) -> None:
        # A job that was there and was moved is named too: `again`.
        moves = args[0] in ("move", "old")
        for index, job in enumerate(args[-1]):
            if index not in answer[1] or (moves and answer[1][index] == "again"):
                self.lives(job[0])

    on_put_x = on_put

    def on_move(self, args: Any, answer: Any, now: int) -> None:
        self.lives(args[2])

    def on_cancel(self, args: Any, answer: Any, now: int) -> None:
        for jid, gone in zip(args[0], answer, strict=True):
            if gone:
                self.lives(jid)
                self.tokens.pop(jid, None)

    def on_act(self, args: Any, answer: Any, now: int) -> None:
        action, _, jobs = args
        for (jid, _), result in zip(jobs, answer, strict=True):
            if result != 1:
                continue
            if action in ("retry", "move", "move-back", "cancel", "delete"):
                self.lives(jid)
            if action == "expire":
                self.open.pop(jid, None)
            if action in ("cancel", "delete"):
                self.tokens.pop(jid, None)

    def on_act_in(self, args: Any, answer: Any, now: int) -> None:
        self.on_act(args[1:], answer, now)

    def on_audited(self, args: Any, answer: Any, now: int) -> None:
        booked = getattr(self, f"on_{args[3]}", None)
        if booked is not None:
            booked(args[4:], answer, now)

    def forget(self, alive: set[str]) -> None:
        """A job that is gone takes its tokens along: the next one of its name is another job."""
        self.tokens = {jid: token for jid, token in self.tokens.items() if jid in alive}
        self.over &= alive

    def looked(self, over: set[str]) -> None:
        """Whose life is over, as their rows say: a pop may end one, an unfail begin another."""
        self.over = over


def states_agree(door: Door, jids: list[str]) -> set[str]:
    """What rows of jobs, counts and relatives say fits together (L3, L9, L12). Returns the jids whose life is over."""
    rows = {row[0]: row for row in door.look("job_get", *jids) if row}
    states = {jid: row[2].decode() for jid, row in rows.items()}
    for jid, row in rows.items():
        assert states[jid] == "depends" or not row[21], f"{jid} is {states[jid]} before its parents"
        assert states[jid] != "depends" or row[21], f"{jid} waits for nobody"
        for parent in row[21]:
            assert states.get(parent, "complete") != "complete", f"{jid} waits for {parent} in vain"
            assert jid in rows[parent][22], f"{parent} does not know of {jid}"
    add_up(door, rows)
    return {jid.decode() for jid, state in states.items() if state in ("failed", "complete")}


def add_up(door: Door, rows: dict[bytes, Any]) -> None:
    """The counts of each queue, by the rows of its jobs. One that was let go by a throttle counts as waiting, and one
    whose lease ended as stalled, which their rows do not tell."""
    by_queue: dict[bytes, Counter[str]] = {}
    for row in rows.values():
        by_queue.setdefault(row[3], Counter())[row[2].decode()] += 1
    complete = 0
    for states in by_queue.values():
        complete += states.pop("complete", 0)
    for count in door.look("counts"):
        states = by_queue.pop(count[0], Counter())
        told = {state: int(count[place]) for state, place in PLACES.items()}
        for state in ("scheduled", "depends", "failed"):
            assert told[state] == states[state], (count[0], state)
        assert told["running"] + told["stalled"] == states["running"], count[0]
        ready = states["waiting"] + states["stalled"] + states["throttled"]
        assert told["waiting"] + told["throttled"] == ready, count[0]
        assert told["throttled"] <= states["throttled"], count[0]
    assert not any(by_queue.values()), f"jobs in queues that nobody knows: {by_queue}"
    assert len(door.look("jobs_complete", 0, 1000)) == complete


def index_holds(door: Door) -> None:
    """A queue that could hand out a job is in the index, and one that has something due is in the timer in time."""
    ready = {name.decode() for name in door.ask("ZRANGE", door.key("R"), 0, -1)}
    now = float(door.ask("HGET", door.root, "clock"))
    for [name, _, _, _, *more] in door.look("counts"):
        queue, paused = name.decode(), more[4]
        entered = int(door.ask("GET", door.key(f"s:{queue}")) or 0) >= INDEXED
        has_ready = door.ask("EXISTS", door.key(f"w:{queue}"))
        assert entered or not has_ready, f"{queue} has ready jobs and was not entered"
        assert entered or queue not in ready, f"{queue} is in the index and would be entered again"
        limit, used, *_ = door.look("throttle_get", f"ql:q:{queue}")
        if paused or (limit and used >= limit):
            continue
        control = door.ask("GET", door.key(f"q:{queue}"))
        due = unpack("<d", control[:8])[0] if control else inf
        timer = float(door.ask("ZSCORE", door.key("T"), queue) or inf)
        # A pause that ended by itself is a timer.
        is_found = queue in ready or timer <= now
        assert is_found or not has_ready, f"{queue} has ready jobs and is not in the index"
        assert is_found or timer <= due, f"{queue} has something due at {due}, and the timer says {timer}"


def operations_add_up(door: Door) -> None:
    """The counts of an operation are those of the jobs that are kept beside it, which no hour has taken yet."""
    for row in door.look("operations", 0, 64):
        id, _, refused, parts, count = door.look("operation_get", row[0], 0, 64)
        facts = OperationFacts.from_row(row[0], row[1])
        assert facts.changed == sum(len(part) // 2 for part in parts), id
        assert count == len(parts), id
        assert len(refused) == min(facts.refused, 100), id


def slots_hold(door: Door, names: list[str], before: dict[str, int]) -> None:
    """No throttle has more holders than its limit, but for those it had when the limit was lowered (L8)."""
    for name in names:
        maximum, used, *_ = door.look("throttle_get", name)
        assert maximum == 0 or used <= maximum or used <= before.get(name, 0), (
            f"{used} hold {maximum} slots of {name}"
        )
        before[name] = used
