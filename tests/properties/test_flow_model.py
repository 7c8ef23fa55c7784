"""Flows of random shapes, whose jobs end, fail, are retried, moved and cancelled in random orders: the core and a plain-Python model
must never differ, and in the end nothing waits for ever, and nothing is left over."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from mistakes_of_flows import MISTAKES_OF_FLOWS, Mistake
from model_flows import Edge, Flows, Job, Part, Refused
from step_laws import add_up

from holdfast.client.sync import Client
from holdfast.core.library import library
from holdfast.models import JobFacts
from holdfast.testing.clock import START_MS
from holdfast.testing.store import Engine, ScratchStore
from native_door import Door, StoreMessage, rows
from waiting import LONGER

MOST_FLOWS, MOST_JOBS, MOST_EDGES = 4, 24, 3
LEASE_MS = 61_000
KEEP_MS = 3_600_000
TRIES = 200
COMMON: dict[str, Any] = {
    "deadline": None,
    "database": None,
    "print_blob": False,
    "report_multiple_bugs": False,
    "suppress_health_check": list(HealthCheck),
}
QUICK = settings(max_examples=60, stateful_step_count=25, phases=[Phase.generate, Phase.shrink], **COMMON)
DEEP = settings(QUICK, max_examples=400 * LONGER, stateful_step_count=40)
SEARCH = settings(max_examples=3000, stateful_step_count=30, phases=[Phase.generate], **COMMON)

pick = st.data()
policies = st.sampled_from(["fail", "fail", "run", "wait", "rescue"])
ends = st.sampled_from(["result", "result", "result", "skip", "nothing"])


def encoded(args: Sequence[Any]) -> str:
    return json.dumps({"args": list(args), "kwargs": {}})


def place(text: str, number: int) -> str:
    """Where the null of a number stands."""
    at = -1
    for _ in range(number + 1):
        at = text.index("null", at + 1)
    return f"{at} 4"


def words(part: Part) -> list[Any]:
    text = encoded(part.args)
    options = [("group", part.group)] if part.group else []
    for parent, edge in part.edges.items():
        where = place(text, edge.place) if edge.place >= 0 else "-1 0"
        options.append(("edge", f"{edge.policy} {where} {parent}"))
    klass = "holdfast.group" if part.group else "k"
    flat_options = [word for option in options for word in option]
    return ["q", 0, 1, 0, part.jid, klass, text, len(options), *flat_options]


class CoreAndFlows(RuleBasedStateMachine):
    """`door` is set by whoever runs it, on a store with a core that nobody else uses."""

    door: Door

    def __init__(self) -> None:
        super().__init__()
        self.model = Flows()
        self.now = START_MS
        self.number = 0
        self.count = 0
        self.last: tuple[tuple[Any, ...], Any] | None = None
        self.stale: list[tuple[str, int]] = []

    @initialize()
    def begin(self) -> None:
        self.door.ask("FLUSHALL")
        self.door("info", "test", START_MS)
        self.door("config_set", "grace-period", "0")

    # --- calls -----------------------------------------------------------------------------------------------

    def numbered(self, verb: str, *given: Any) -> Any:
        """A call with a request number, which may come again."""
        self.number += 1
        call = (verb, "line", self.number, *given)
        reply = self.reply(*call)
        self.last = call, reply
        return reply

    def reply(self, *call: Any) -> Any:
        try:
            return self.door(*call)
        except StoreMessage as refusal:
            return refusal.code

    def both(self, expected: Any, verb: str, *given: Any) -> Any:
        """Make a call, of which `expected` is a function that does the same to the model."""
        reply = self.numbered(verb, *given)
        assert reply == self.of_model(expected), (verb, given)
        return reply

    def of_model(self, expected: Any) -> Any:
        try:
            return expected()
        except Refused as refusal:
            return str(refusal)

    def result(self, how: str) -> str:
        """A result that no other job has."""
        self.count += 1
        return {"result": f"{self.count}", "skip": f"\0why {self.count}", "nothing": ""}[how]

    def several(self, pick: Any, jobs: Sequence[Job], most: int = 3) -> list[Job]:
        jids = pick.draw(
            st.lists(st.sampled_from([job.jid for job in jobs]), min_size=1, max_size=most, unique=True)
        )
        return [self.model.jobs[jid] for jid in jids]

    # --- puts ------------------------------------------------------------------------------------------------

    def edges(
        self, pick: Any, parents: Sequence[str], at_least: int = 0
    ) -> tuple[dict[str, Edge], list[Any]]:
        """Edges to some of `parents`, and arguments with places for what they end with."""
        found: dict[str, Edge] = {}
        args: list[Any] = []
        if not parents:
            return found, args
        several = st.lists(st.sampled_from(parents), min_size=at_least, max_size=MOST_EDGES, unique=True)
        for parent in pick.draw(several):
            takes = pick.draw(st.booleans())
            found[parent] = Edge(pick.draw(policies), len(args) if takes else -1)
            args += [None] * takes
        return found, args

    def parts(self, pick: Any, flow: str, most: int, outside: Sequence[str] = ()) -> list[Part]:
        parts: list[Part] = []
        for number in range(pick.draw(st.integers(1, most))):
            own = [part.jid for part in parts]
            edges, args = self.edges(pick, [*outside, *own], 1 if own and pick.draw(st.booleans()) else 0)
            # Those outside are noted first.
            edges = dict(sorted(edges.items(), key=lambda pair: pair[0] in own))
            parts.append(Part(f"{flow}-{number}", args, edges))
        return parts

    def has_room(self) -> bool:
        return len(self.model.totals) < MOST_FLOWS and len(self.model.jobs) < MOST_JOBS

    @precondition(has_room)
    @rule(pick=pick)
    def put_a_flow(self, pick: Any) -> None:
        flow = f"f{len(self.model.totals)}"
        outside = list(self.model.jobs) if pick.draw(st.integers(0, 2)) == 0 else []
        parts = self.parts(pick, flow, 6, outside)
        self.both(lambda: self.model.put(flow, parts), "flow_put", flow, "label", *flat(parts))

    @precondition(has_room)
    @rule(
        pick=pick,
        policy=st.sampled_from(["fail", "run", "wait"]),
        gather=st.sampled_from(["list", "pages"]),
        stride=st.integers(1, 2),
    )
    def put_a_flow_with_a_large_group(self, pick: Any, policy: str, gather: str, stride: int) -> None:
        flow = f"f{len(self.model.totals)}"
        parts = [Part(f"{flow}-0", [], {}, f"{policy} {gather} {stride}")]
        for number in range(1, pick.draw(st.integers(2, 3))):
            edges, args = self.edges(pick, [part.jid for part in parts], 1)
            parts.append(Part(f"{flow}-{number}", args, edges))
        self.both(lambda: self.model.put(flow, parts), "flow_put", flow, "label", *flat(parts))
        self.add(pick, flow)

    def add(self, pick: Any, flow: str) -> None:
        group = self.model.groups[flow]
        is_repeat = pick.draw(st.booleans())
        before = pick.draw(st.sampled_from([0, 0, 0, 1, -1]))
        member = max((group.put if is_repeat else group.members) - before, 0)
        start = group.first + member * group.stride
        parts = []
        for first in range(start, start + pick.draw(st.integers(1, 3)) * group.stride, group.stride):
            parts.append(Part(f"{flow}-{first}", [], {}))
            if group.stride == 2:
                edges, args = self.edges(pick, [f"{flow}-{first}"], 1)
                parts.append(Part(f"{flow}-{first + 1}", args, edges))
        given = (flow, start, int(is_repeat), "", "", 0, 0, *flat(parts))
        self.both(lambda: self.model.add(flow, start, is_repeat, parts), "flow_add", *given)

    def has_groups(self) -> bool:
        return bool(self.model.groups) and len(self.model.jobs) < MOST_JOBS

    @precondition(has_groups)
    @rule(pick=pick)
    def add_members(self, pick: Any) -> None:
        self.add(pick, pick.draw(st.sampled_from(sorted(self.model.groups))))

    @precondition(lambda self: self.model.groups)
    @rule(pick=pick)
    def close_a_group(self, pick: Any) -> None:
        flow = pick.draw(st.sampled_from(sorted(self.model.groups)))
        self.both(lambda: self.model.close(flow), "flow_close", flow)

    @precondition(lambda self: self.last)
    @rule()
    def the_last_numbered_call_comes_again(self) -> None:
        assert self.last
        call, reply = self.last
        assert self.reply(*call) == reply

    # --- workers ---------------------------------------------------------------------------------------------

    @rule(n=st.sampled_from([1, 2, 9]))
    def pop(self, n: int) -> None:
        ready = len(self.model.of_state("waiting"))
        lost = [job for job in self.model.of_state("running") if job.is_lost]
        popped = rows(self.door("pop", "w", "", 0, n, 0, "q", 0))
        granted = {row.jid for row in popped}
        for job in lost:
            facts = self.door.job(job.jid) if job.jid not in granted else None
            if facts and facts.failure and facts.state == "failed":
                self.model.fail(job.jid, facts.failure.group, facts.failure.message)
        assert min(n, ready) <= len(popped) <= min(n, len(self.model.of_state("waiting")) + len(lost))
        for row in popped:
            job = self.model.jobs[row.jid]
            if job.is_lost:
                self.stale.append((job.jid, job.token))
            self.model.popped(job, row.token)

    @precondition(lambda self: self.model.of_state("running"))
    @rule(pick=pick)
    def complete_jobs(self, pick: Any) -> None:
        jobs = self.several(pick, self.model.of_state("running"))
        given, done = list[Any](), list[tuple[str, str, bool]]()
        for job in jobs:
            result = self.result(pick.draw(ends))
            keep = bool(result) and pick.draw(st.booleans())
            given += [job.jid, job.token, "", KEEP_MS * keep, result]
            done.append((job.jid, result, keep))
            self.stale.append((job.jid, job.token))
        assert self.door("complete", "w", *given) == [len(jobs)]
        for one in done:
            self.model.complete(*one)

    @precondition(lambda self: self.model.of_state("running"))
    @rule(pick=pick)
    def fail_jobs(self, pick: Any) -> None:
        jobs = self.several(pick, self.model.of_state("running"), 2)
        message = f"broke {self.result('result')}"
        given = [word for job in jobs for word in (job.jid, job.token, "")]
        assert self.door("fail", "w", "Broken", message, *given) == [len(jobs)]
        for job in jobs:
            self.stale.append((job.jid, job.token))
            self.model.fail(job.jid, "Broken", message)

    @precondition(lambda self: self.model.of_state("running"))
    @rule(pick=pick, kind=st.sampled_from(["one", "list"]))
    def a_job_ends_with_a_flow(self, pick: Any, kind: str) -> None:
        job = pick.draw(st.sampled_from(self.model.of_state("running")))
        flow = f"own{len(self.model.totals)}"
        parts = self.parts(pick, flow, 3)
        numbers = st.integers(0, len(parts) - 1)
        last = pick.draw(st.lists(numbers, min_size=1, max_size=1 if kind == "one" else 3, unique=True))
        given = (job.jid, job.token, "", KEEP_MS, kind, flow, "label", len(last), *last, *flat(parts))
        assert self.door("end_with_flow", "w", *given) == [b"depends"]
        self.model.end_with(job.jid, kind, flow, parts, last)
        self.stale.append((job.jid, job.token))

    @precondition(lambda self: self.model.of_state("running"))
    @rule()
    def leases_are_lost(self) -> None:
        self.now += LEASE_MS
        self.door("clock", self.now)
        for job in self.model.of_state("running"):
            job.is_lost = True

    @precondition(lambda self: self.stale)
    @rule(pick=pick)
    def a_job_is_settled_that_is_not_held(self, pick: Any) -> None:
        jid, token = pick.draw(st.sampled_from(self.stale))
        job = self.model.jobs[jid]
        if job.state == "running" and job.token == token:
            return
        done, *refused = self.door("complete", "w", jid, token, "", 0, "9999")
        assert [done, refused[0]] == [0, jid.encode()]

    # --- operators -------------------------------------------------------------------------------------------

    def act(self, action: str, *jids: str) -> list[Any]:
        given = [word for jid in jids for word in (jid, "")]
        reply = self.numbered("act", action, "", "", "", "", 0, "", 0, 0, *given)
        return [one if isinstance(one, int) else one.decode().partition(" ")[0] for one in reply]

    def retried(self, jid: str) -> Any:
        return self.of_model(lambda: self.model.retry(jid) or 1)

    @precondition(lambda self: self.model.of_state("failed"))
    @rule(pick=pick)
    def retry_jobs(self, pick: Any) -> None:
        jids = [job.jid for job in self.several(pick, self.model.of_state("failed", "gone"))]
        reply = self.act("retry", *jids)
        assert reply == [self.retried(jid) for jid in jids], jids

    @precondition(lambda self: self.model.of_state("failed"))
    @rule(group=st.sampled_from(["Broken", "q-ParentFailed"]))
    def retry_a_group_of_failures(self, group: str) -> None:
        jids = [job.jid for job in self.model.of_state("failed") if job.failure and job.failure[0] == group]
        count = self.numbered("unfail", "q", group, 200)
        order = [jid for jid in jids if self.retried(jid) == 1]
        assert count == len(order)

    @precondition(lambda self: self.model.jobs)
    @rule(pick=pick)
    def cancel_jobs(self, pick: Any) -> None:
        jids = [job.jid for job in self.several(pick, list(self.model.jobs.values()))]
        self.both(lambda: self.model.cancel(jids), "cancel", *jids)

    @precondition(lambda self: self.model.totals)
    @rule(pick=pick, last_first=st.booleans())
    def cancel_a_flow(self, pick: Any, last_first: bool) -> None:
        flow = pick.draw(st.sampled_from(sorted(self.model.totals)))
        jids = [jid for jid in self.model.jobs if jid.startswith(f"{flow}-")]
        if last_first:
            jids.reverse()
        self.both(lambda: self.model.cancel(jids), "cancel", *jids)

    @precondition(lambda self: self.model.jobs)
    @rule(pick=pick, is_put=st.booleans())
    def a_job_begins_a_new_life(self, pick: Any, is_put: bool) -> None:
        alive = [job for job in self.model.jobs.values() if job.state != "gone"]
        if not alive:
            return
        ended = [job for job in alive if job.state in ("complete", "failed")]
        job = pick.draw(st.sampled_from(ended if ended and pick.draw(st.booleans()) else alive))
        if job.state == "running":
            self.stale.append((job.jid, job.token))
        if is_put and not job.is_group:
            args = [None] * len(job.args)
            reply = self.numbered("put", "move", "q", 0, 1, 0, job.jid, "k", encoded(args))
            refused = len(reply) > 1 and reply[1:] and reply[-1] != b"again"
            expected = self.of_model(lambda: self.model.move(job.jid, args))
            assert bool(refused) == (expected is not None), reply
        else:
            reply = self.numbered("move", "q", 0, job.jid, "", "", "", "", 0)
            expected = self.of_model(lambda: self.model.move(job.jid, None) or job.jid.encode())
            assert reply == expected

    # --- laws ------------------------------------------------------------------------------------------------

    @invariant()
    def core_and_model_agree(self) -> None:
        if not self.model.jobs:
            return
        found = dict(zip(self.model.jobs, self.door.look("job_get", *self.model.jobs), strict=True))
        for jid, row in found.items():
            self.same(self.model.jobs[jid], JobFacts.from_job_row(row) if row else None)
        add_up(self.door, {jid.encode(): row for jid, row in found.items() if row})
        self.same_groups()
        self.same_keys()

    def same(self, job: Job, facts: JobFacts | None) -> None:
        assert (facts.state if facts else "gone") == ("running" if job.state == "running" else job.state), job
        if not facts:
            return
        assert json.loads(facts.data)["args"] == (job.args if not job.is_group else []), job
        assert set(facts.dependencies) == set(job.edges), job
        assert set(facts.dependents) == {child.jid for child in self.model.children(job.jid)}, job
        if job.state == "failed":
            assert facts.failure
            assert (facts.failure.group, facts.failure.message) == job.failure

    def same_groups(self) -> None:
        for flow, group in self.model.groups.items():
            [row] = self.door.look("flow_get", flow)
            counts = row[3:9]
            ended = [group.count(how) for how in ("done", "failed", "cancelled")]
            assert counts == [group.members, group.stride, *ended, int(group.is_open)], flow
            if group.members and (group.gather == "pages" or not group.has_ended):
                results = [decoded(one) for one in self.door.look("flow_results", flow, 0, 100)]
                assert results == [decoded(one) for one in self.model.results(flow)], flow
            members = [self.model.jobs[jid] for jid in self.model.members(flow)]
            failed = [job for job in members if job.is_counted and job.state == "failed"]
            assert len(failed) == group.count("failed"), flow

    def same_keys(self) -> None:
        """Of each kind of key that depends on flows there are those that somebody needs."""
        names, jobs = self.door.names(), self.model.jobs.values()
        here = {job.jid for job in jobs if job.state != "gone"}
        of_kind = {
            kind: {name.removeprefix(kind) for name in names if name.startswith(kind)}
            for kind in ("j:", "x:", "d:", "f:")
        }
        assert of_kind["j:"] == here
        assert of_kind["x:"] <= here
        assert of_kind["d:"] == {jid for jid in here if self.model.children(jid)}
        assert of_kind["f:"] == {job.failure[0] for job in jobs if job.state == "failed" and job.failure}
        assert ("D:q" in names, "fq:q" in names, "l:q" in names) == tuple(
            any(job.state == state for job in jobs) for state in ("depends", "failed", "running")
        )
        assert "u" not in names

    # --- the end ---------------------------------------------------------------------------------------------

    def teardown(self) -> None:
        self.finish()
        self.core_and_model_agree()
        self.nothing_waits_in_vain()
        self.nothing_is_left()

    def finish(self) -> None:
        """All that is ready is done, and all that failed is tried again, until nothing changes."""
        for flow in self.model.groups:
            self.both(lambda flow=flow: self.model.close(flow), "flow_close", flow)
        for _ in range(TRIES):
            before = self.shown()
            self.leases_are_lost()
            self.pop(9)
            for job in self.model.of_state("running"):
                result = self.result("result")
                assert self.door("complete", "w", job.jid, job.token, "", 0, result) == [1]
                self.model.complete(job.jid, result, False)
            for job in self.model.of_state("failed"):
                expected = self.retried(job.jid)
                assert self.act("retry", job.jid) == [expected], job
            if self.shown() == before:
                return
        pytest.fail("the work did not end")

    def shown(self) -> dict[str, tuple[str, int]]:
        """What the jobs are, and how often each has ended."""
        return {jid: (job.state, len(job.ends)) for jid, job in self.model.jobs.items()}

    def nothing_waits_in_vain(self) -> None:
        """A job waits only for one that cannot be tried again, or that waits itself; told without the model."""
        states = {jid: self.door.state(jid) for jid in self.model.jobs}
        for jid in [jid for jid, state in states.items() if state == "depends"]:
            facts = self.door.job(jid)
            assert facts
            is_group = self.model.jobs[jid].is_group
            waits_for = self.model.members(jid.removesuffix("-0")) if is_group else facts.dependencies
            assert any(states[other] in ("failed", "depends") for other in waits_for), facts

    def nothing_is_left(self) -> None:
        left = [job.jid for job in self.model.of_state("depends", "failed")]
        if left:
            self.both(lambda: self.model.cancel(left), "cancel", *left)
        self.core_and_model_agree()
        if self.model.totals:
            assert self.door("flow_forget", "", 0, *self.model.totals) == [1] * len(self.model.totals)
        kinds = ("j:", "a:", "z:", "aw:", "ar:", "i:", "k:", "m:", "E:", "x:", "b:")
        left_over = {name for name in self.door.names() if not name.startswith(kinds)}
        assert left_over <= {"", "C", "E", "H", "Q", "R", "T", "c", "s:q", "q:q", "n:q"}


def decoded(result: str | bytes | None) -> Any:
    """A result, as a value in a tuple: `()` where there is none."""
    return (json.loads(result),) if result else ()


def flat(parts: Sequence[Part]) -> list[Any]:
    return [word for part in parts for word in words(part)]


@pytest.fixture
def door(engine: Engine) -> Iterator[Door]:
    """A store of its own, which every run empties."""
    with ScratchStore(engine) as store, Client(store.url, namespace="test-flows") as client:
        yield Door(client)


def machine(door: Door, text: str) -> type[CoreAndFlows]:
    door.ask("FUNCTION", "LOAD", "REPLACE", text)
    made: Any = type("Machine", (CoreAndFlows,), {"door": door})
    return made


def test_flows_do_what_the_model_does(door: Door) -> None:
    run_state_machine_as_test(machine(door, library().text), settings=QUICK)


@pytest.mark.full
def test_flows_do_what_the_model_does_for_long(door: Door) -> None:
    run_state_machine_as_test(machine(door, library().text), settings=DEEP)


def test_mistakes_of_flows_still_fit_the_core() -> None:
    for mistake in MISTAKES_OF_FLOWS:
        assert mistake.made_in(library().text) != library().text


@pytest.mark.full
@pytest.mark.parametrize("mistake", MISTAKES_OF_FLOWS, ids=lambda mistake: mistake.name)
def test_the_model_of_flows_finds(mistake: Mistake, door: Door) -> None:
    try:
        run_state_machine_as_test(machine(door, mistake.made_in(library().text)), settings=SEARCH)
    except Exception:
        return  # a reply that differs, or one that cannot even be read
    pytest.fail("the mistake escaped")
