"""Flows: the list, one of them as a graph, a timeline and a table of its jobs, and what is done to it."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
from starlette.exceptions import HTTPException

from holdfast.client.reasons import argument
from holdfast.code.failure import error_line
from holdfast.commands.flows import ENDED, FlowFacts, FlowStep, StepParents, counts_of
from holdfast.commands.job_rows import JobRow
from holdfast.console.filters import MAX_LENGTH, term
from holdfast.console.read.flows import GONE, FlowAction, FlowDetail, FlowLine
from holdfast.console.read.queries import Page
from holdfast.errors import UsageError, WrongState
from holdfast.settings import check_whole
from holdfast.text import counted, duration
from holdfast.web.context import Context
from holdfast.web.pages.job import Recipe, curl
from holdfast.web.pages.job_actions import WORDS_FROM, Change, change_some
from holdfast.web.views import ActionRoute, Body, Done, Question, View

# The jobs of a flow as its page draws them: those that are alike are one node.

_FOLDED_FROM: Final = 5
"""Jobs that are alike are one node if they are at least this many."""
_MOST_NODES: Final = 120
"""If there would be more nodes than this, also fewer jobs that are alike are one."""
_LOOKS: Final = 8
"""How often jobs are told apart by what they wait for, and by what waits for them."""
_WORST: Final = (
    "failed",
    "running",
    "stalled",
    "throttled",
    "unfinished",
    "waiting",
    "scheduled",
    "depends",
    "complete",
    GONE,
)
"""States in the order in which they are named; a node has the first one that one of its jobs has."""


_BAR: Final = (
    "complete",
    "failed",
    GONE,
    "running",
    "stalled",
    "throttled",
    "unfinished",
    "waiting",
    "scheduled",
    "depends",
)
"""States in the order in which a bar has them: from those that have ended to those that have not begun."""


_NAME: Final = 14
"""Characters of a name before how many jobs there are."""


class FlowNode(msgspec.Struct, frozen=True):
    """A job of a flow, or several that are alike: of one klass, with the same jobs before and behind them, or with jobs that are alike.

    `first` is the number of its first job, and its name; `waits_for` names nodes, `outside` jobs that are not of the flow, each with the
    policy. `ready_ms` is when the first of its jobs was ready for a worker, `start_ms` when the first began, `end_ms` when the last
    one ended, if all that began have; 0 where that is not known. `members` is how many calls a large group has, which its job stands for.
    """

    first: int
    klass: str
    jids: tuple[str, ...]
    state: str
    counts: Mapping[str, int]
    waits_for: tuple[tuple[int, str], ...] = ()
    outside: tuple[tuple[str, str], ...] = ()
    ready_ms: int = 0
    start_ms: int = 0
    end_ms: int = 0
    members: int | None = None

    @property
    def many(self) -> int:
        """How many jobs are drawn together, 0 for a single one."""
        return self.members if self.members is not None else len(self.jids) if len(self.jids) > 1 else 0

    @property
    def is_single(self) -> bool:
        """Whether it is one job, and no group."""
        return self.members is None and len(self.jids) == 1

    @property
    def name(self) -> str:
        """Its klass, and how many jobs it has if they are several."""
        name = "group" if self.members is not None else self.klass or self.jids[0]
        return name if self.is_single else f"{name} × {self.many:,}"

    @property
    def short_name(self) -> str:
        """The last part of its klass, and how many jobs it has if they are several."""
        name = self.klass.rpartition(".")[2] or self.klass
        if self.is_single:
            return name
        return f"{name if len(name) <= _NAME else name[: _NAME - 1] + '…'} × {self.many:,}"

    @property
    def title(self) -> str:
        """What it is, with all states."""
        if self.is_single:
            return f"{self.klass}, {self.state}: {self.jids[0]}"
        return f"{self.name}: {self._states(len(_WORST))}"

    @property
    def note(self) -> str:
        """Its state; of several jobs how many are in which of the two states that matter most."""
        return self.state if self.is_single else self._states(2)

    def _states(self, most: int) -> str:
        named = [f"{count:,} {state}" for state, count in self.ranked]
        return ", ".join(named[:most]) + (" …" if len(named) > most else "")

    @property
    def ranked(self) -> tuple[tuple[str, int], ...]:
        """How many of its jobs are in which state, what matters most first."""
        return ranked(self.counts)

    @property
    def bar(self) -> tuple[tuple[str, int], ...]:
        """The same in the order of a bar; nothing for a single job."""
        return () if self.is_single else in_bar(self.counts)

    @property
    def ran_as(self) -> str:
        """The state that stands for its time: running while one of its jobs runs, else failed if one has failed."""
        return "running" if self.counts.get("running") or self.counts.get("unfinished") else self.state


def in_bar(counts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Return states and how many jobs are in each, in the order of a bar."""
    return tuple((state, counts[state]) for state in _BAR if counts.get(state))


def ranked(counts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Return states and how many jobs are in each, what matters most first."""
    return tuple((state, counts[state]) for state in _WORST if counts.get(state))


def nodes_of(jobs: Sequence[JobRow], steps: Sequence[FlowStep]) -> tuple[FlowNode, ...]:
    """Return the nodes of a flow, by the number of their first job. Without steps, all jobs of a klass are alike."""
    known = list(steps) if len(steps) == len(jobs) else [FlowStep(job.klass) for job in jobs]
    waits = [tuple(step.parents) for step in known]
    alike: dict[Hashable, list[int]] = defaultdict(list)
    for number, mark in enumerate(_marks(known, waits)):
        alike[mark].append(number)
    groups = list(_groups(alike.values(), _FOLDED_FROM))
    if len(groups) > _MOST_NODES:
        groups = list(alike.values())
    groups.sort()
    node_of = {number: group[0] for group in groups for number in group}
    ready = _ready(jobs, waits)
    return tuple(_node(group, jobs, known, waits, node_of, ready) for group in groups)


def _groups(alike: Iterable[list[int]], least: int) -> Iterator[list[int]]:
    for group in alike:
        if len(group) >= least:
            yield group
        else:
            yield from ([number] for number in group)


def _marks(steps: Sequence[FlowStep], waits: Sequence[tuple[StepParents, ...]]) -> list[int]:
    """Return a number for each job that is the same for jobs that are alike.

    At first by klass and depth; then by those of the jobs before and behind it, again and again.
    """
    followers: dict[tuple[StepParents, ...], list[int]] = defaultdict(list)
    for number, parents in enumerate(waits):
        followers[parents].append(number)
    marks = _numbered([(step.klass, depth) for step, depth in zip(steps, _depths(waits), strict=True)])
    for _ in range(_LOOKS):
        behind: list[set[tuple[str, int]]] = [set() for _ in steps]
        before: dict[tuple[StepParents, ...], frozenset[object]] = {}
        for parents, numbers in followers.items():
            own = {marks[number] for number in numbers}
            before[parents] = frozenset(
                (one.policy, one.jid or marks[at]) for one in parents for at in _range(one)
            )
            for one in parents:
                for at in () if one.jid else _range(one):
                    behind[at].update((one.policy, mark) for mark in own)
        found = _numbered([(marks[at], before[waits[at]], frozenset(behind[at])) for at in range(len(steps))])
        if max(found, default=0) == max(marks, default=0):
            break
        marks = found
    return marks


def _numbered(keys: Sequence[Hashable]) -> list[int]:
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def _range(parent: StepParents) -> range:
    """Return the numbers of the jobs that are waited for; one number, of no job, for a job that is not of the flow."""
    return range(1) if parent.jid else range(parent.first, parent.last + 1)


def _depths(waits: Sequence[tuple[StepParents, ...]]) -> list[int]:
    """Return for each job how many steps come before it: jobs wait for earlier ones."""
    depths: list[int] = []
    for parents in waits:
        before = [max(depths[one.first : one.last + 1], default=0) for one in parents if not one.jid]
        depths.append(1 + max(before) if before else 0)
    return depths


def _node(
    group: Sequence[int],
    jobs: Sequence[JobRow],
    steps: Sequence[FlowStep],
    waits: Sequence[tuple[StepParents, ...]],
    node_of: Mapping[int, int],
    ready: Sequence[int],
) -> FlowNode:
    rows = [jobs[number] for number in group]
    counts = Counter(row.state for row in rows)
    edges = {one for number in group for one in waits[number]}
    is_open = any(row.state in ("running", "stalled") for row in rows)
    return FlowNode(
        group[0],
        steps[group[0]].klass,
        tuple(row.jid for row in rows),
        next((state for state in _WORST if counts[state]), GONE),
        dict(counts),
        tuple(sorted({(node_of[at], one.policy) for one in edges if not one.jid for at in _range(one)})),
        tuple(sorted({(one.jid, one.policy) for one in edges if one.jid})),
        _first(ready[number] for number in group),
        _first(row.popped_ms for row in rows),
        0 if is_open else max(map(ended_ms, rows)),
    )


def _ready(jobs: Sequence[JobRow], waits: Sequence[tuple[StepParents, ...]]) -> list[int]:
    """Return since when each job waited for a worker: since it came into its queue, or since the last job that it waits for ended.

    0 of one that waits for others or for a time, or never waited for a worker. (Records of jobs that have ended do not have it.)
    """
    ends = [ended_ms(job) for job in jobs]
    last: dict[tuple[StepParents, ...], int] = {}
    found: list[int] = []
    for job, parents in zip(jobs, waits, strict=True):
        if parents not in last:
            before = [max(ends[one.first : one.last + 1], default=0) for one in parents if not one.jid]
            last[parents] = max(before, default=0)
        is_held = job.state in ("depends", "scheduled") or (job.state == "failed" and not job.popped_ms)
        moment = max(job.queued_ms, last[parents])
        found.append(0 if is_held else min(moment, job.popped_ms or moment))
    return found


def _large(node: FlowNode, facts: FlowFacts) -> FlowNode:
    """Return the node of the job that stands for a large group, with its calls."""
    members = facts.members
    if members is None or node.first:
        return node
    counts = counts_of(facts, ())
    state = next((state for state in _WORST if counts.get(state)), node.state)
    is_open = "unfinished" in counts
    end_ms = 0 if is_open else node.end_ms  # the end of a job that never ran may not be known
    start_ms = facts.created_ms if is_open or end_ms else 0
    return msgspec.structs.replace(
        node, members=members.total, counts=counts, state=state, start_ms=start_ms, end_ms=end_ms
    )


def ended_ms(row: JobRow) -> int:
    """Return when a job ended, 0 if it has not, or is gone."""
    return row.ended_ms or (row.failed_ms if row.state == "failed" else 0)


def _first(times: Iterable[int]) -> int:
    return min((time for time in times if time), default=0)


# The pages.

_MOST_ROWS: Final = 60
"""Rows of a timeline."""
_MOST_CHANGED: Final = 5000
"""Jobs that a page retries or cancels: more are changed by the shell."""
_MOST_DRAWN, _MOST_EDGES, _MOST_COLUMNS = 120, 400, 40
"""The largest graph that is drawn: nodes, edges and steps after each other; the table has the others."""


class FlowsQuery(msgspec.Struct, frozen=True):
    """Which page of flows."""

    after: str = ""
    first: int = 1
    limit: int = 25


class FlowsPage(msgspec.Struct, frozen=True):
    """A page of flows, the newest first."""

    now_ms: int
    found: Page[FlowLine]
    query: FlowsQuery


async def flows(ctx: Context, query: FlowsQuery) -> FlowsPage:
    """Return a page of flows."""
    ctx.now_ms = await ctx.console.now_ms()
    found = await ctx.console.flows(after=query.after, limit=query.limit)
    return FlowsPage(ctx.now_ms, found, query)


class FlowQuery(msgspec.Struct, frozen=True):
    """Which jobs of a flow are in the table: those in a state, or of a node; from the one at `after` on, which is the `first` one."""

    state: str = ""
    node: int | None = None
    after: int = 0
    first: int = 1
    limit: int = 100


class JobOfFlow(msgspec.Struct, frozen=True):
    """A job of a flow in a table; `error` is the line of its failure message that says most."""

    jid: str
    klass: str
    state: str
    queue: str
    attempts: int
    ready_ms: int
    start_ms: int
    end_ms: int
    error: str = ""
    group: str = ""


class FlowPage(msgspec.Struct, frozen=True):
    """One flow: its state, how many of its jobs are in which state, its nodes, and a page of its jobs.

    `jobs` are those of the `matching` ones (-1: that is not known) that the query names, `next` is where the following ones begin (0: there are
    none). `end_ms` is when the last job ended, 0 while one has not.
    """

    now_ms: int
    facts: FlowFacts
    query: FlowQuery
    state: str
    counts: Mapping[str, int]
    nodes: tuple[FlowNode, ...]
    jobs: tuple[JobOfFlow, ...]
    matching: int
    next: int
    end_ms: int
    recipes: tuple[Recipe, ...] = ()
    returned_by: str = ""

    @property
    def ended(self) -> int:
        """How many of its jobs have ended."""
        return sum(self.counts.get(state, 0) for state in ENDED)

    @property
    def total(self) -> int:
        """How many jobs are counted."""
        return sum(self.counts.values())

    @property
    def ranked(self) -> tuple[tuple[str, int], ...]:
        """How many jobs are in which state, what matters most first."""
        return ranked(self.counts)

    @property
    def bar(self) -> tuple[tuple[str, int], ...]:
        """The same in the order of a bar: from those that have ended to those that have not begun."""
        return in_bar(self.counts)

    @property
    def open(self) -> int:
        """How many of its jobs a cancel changes."""
        return sum(count for state, count in self.counts.items() if state not in ("complete", "gone"))

    @property
    def node(self) -> FlowNode | None:
        """The node whose jobs are in the table, if it is those of one."""
        return next((one for one in self.nodes if one.first == self.query.node), None)

    @property
    def drawn(self) -> tuple[FlowNode, ...]:
        """The nodes in the graph."""
        depths: dict[int, int] = {}
        for node in self.nodes:
            depths[node.first] = 1 + max((depths[parent] for parent, _ in node.waits_for), default=0)
        return tuple(one for one in self.nodes if depths[one.first] <= _MOST_COLUMNS)[:_MOST_DRAWN]

    @property
    def outside(self) -> tuple[str, ...]:
        """The jobs in the graph that are not of the flow."""
        return tuple(dict.fromkeys(jid for node in self.drawn for jid, _ in node.outside))

    @property
    def edges(self) -> tuple[tuple[str, str, str], ...]:
        """The edges of the graph: from which node to which, and the policy; a job that is not of the flow has a hyphen before its jid."""
        found = [
            *(
                (str(parent), str(node.first), policy)
                for node in self.drawn
                for parent, policy in node.waits_for
            ),
            *((f"-{jid}", str(node.first), policy) for node in self.drawn for jid, policy in node.outside),
        ]
        return tuple(found[:_MOST_EDGES])

    @property
    def policies(self) -> frozenset[str]:
        """The policies that edges of the flow have."""
        return frozenset(policy for node in self.nodes for _, policy in (*node.waits_for, *node.outside))

    @property
    def rows(self) -> tuple[FlowNode, ...]:
        """The rows of the timeline."""
        return self.nodes[:_MOST_ROWS]

    @property
    def last_ms(self) -> int:
        """The end of the timeline."""
        return self.end_ms or self.now_ms


async def flow(ctx: Context, name: str, query: FlowQuery) -> FlowPage:
    """Return one flow."""
    ctx.now_ms = await ctx.console.now_ms()
    found = await ctx.console.flow(name)
    nodes = tuple(_large(node, found.facts) for node in nodes_of(found.jobs, found.steps))
    some, matching, following = await _page(ctx, found, nodes, query)
    return FlowPage(
        ctx.now_ms,
        found.facts,
        query,
        found.state,
        found.counts,
        nodes,
        tuple(_row(one) for one in ctx.site.mask.within(some)),
        matching,
        following,
        0 if found.state == "running" else max(map(ended_ms, found.jobs)),
        _recipes(ctx, name),
        found.returned_by,
    )


async def _page(
    ctx: Context, found: FlowDetail, nodes: Sequence[FlowNode], query: FlowQuery
) -> tuple[tuple[JobRow, ...], int, int]:
    """Return the jobs that a query names, how many match (-1: that is not known), and where the next ones begin (0: there are none)."""
    begin, limit = check_whole("after", query.after, 0, 1 << 40), check_whole("limit", query.limit, 1, 512)
    if found.facts.members is not None and query.node is None:
        page = await ctx.console.jobs_of_flow(found.facts.id, query.state, first=begin, limit=limit)
        return page.jobs, -1 if query.state else found.facts.total, max(page.next, 0)
    chosen = _chosen(found.jobs, nodes, query)
    following = begin + limit if begin + limit < len(chosen) else 0
    return tuple(chosen[begin : begin + limit]), len(chosen), following


def _chosen(jobs: Sequence[JobRow], nodes: Sequence[FlowNode], query: FlowQuery) -> list[JobRow]:
    """Return the jobs that a query names. Raises UsageError for a node that the flow does not have."""
    if query.node is None:
        own = None
    elif found := [one for one in nodes if one.first == query.node]:
        own = frozenset(found[0].jids)
    else:
        raise UsageError(f"node: this flow has no node {query.node}")
    return [job for job in jobs if query.state in ("", job.state) and (own is None or job.jid in own)]


def _row(job: JobRow) -> JobOfFlow:
    error = error_line(job.message) if job.state == "failed" else ""
    return JobOfFlow(
        job.jid,
        job.klass,
        job.state,
        job.queue,
        job.attempts,
        job.queued_ms,
        job.popped_ms,
        ended_ms(job),
        error,
        job.group,
    )


def _recipes(ctx: Context, jid: str) -> tuple[Recipe, ...]:
    return tuple(
        Recipe(
            action,
            f"holdfast flows {action}{ctx.console.flags} {argument(jid)}",
            curl(ctx, f"/flows/{action}", {"jid": jid}),
            f"from holdfast import Client\n\nClient({where}).flow({jid!r}).{action}()",
        )
        for action in ("retry", "cancel")
        for where in [f"namespace={ctx.namespace!r}" if ctx.namespace != "default" else ""]
    )


# What is done to flows.


class OneFlow(Body, frozen=True, kw_only=True):
    """A flow."""

    jid: str


async def retry(ctx: Context, body: OneFlow) -> Done | Question:
    """Retry the failed jobs of a flow; those that failed for others wait for these again."""
    return await _change(ctx, body, "retry")


async def cancel(ctx: Context, body: OneFlow) -> Done | Question:
    """Cancel the jobs of a flow that are not complete, the last ones first."""
    return await _change(ctx, body, "cancel")


_NOTHING: Final[Mapping[str, str]] = {
    "retry": "Nothing to change: no job of this flow has failed.",
    "cancel": "Nothing to change: all jobs of this flow are complete or gone.",
}


async def _change(ctx: Context, body: OneFlow, action: FlowAction) -> Done | Question:
    jids = await ctx.console.changed_by_flow(body.jid, action)
    keys = ("flows", f"flow:{body.jid}")
    if not jids:
        return Done(text=_NOTHING[action], changed=0, keys=keys)
    if len(jids) > _MOST_CHANGED:
        command = f"holdfast flows {action}{ctx.console.flags} {argument(body.jid)}"
        raise UsageError(
            f"these are {counted(len(jids), 'job')}, more than the {_MOST_CHANGED:,} that a page changes: use `{command}`"
        )
    is_large = action == "cancel" and len(jids) > WORDS_FROM
    if is_large and not ctx.can("admin"):
        raise HTTPException(403, f"To cancel more than {WORDS_FROM:,} jobs requires the role admin.")
    if not body.confirm or (is_large and body.confirm not in ("cancel", "api")):
        return _question(ctx, body, action, jids)
    change = Change(jid=jids, confirm=body.confirm)
    done = await change_some(action, ctx, change, jids, children_first=action == "cancel")
    return msgspec.structs.replace(
        done, keys=(*keys, *done.keys), undo=done.undo if action == "cancel" else None
    )


def _question(ctx: Context, body: OneFlow, action: FlowAction, jids: list[str]) -> Question:
    jobs = counted(len(jids), "failed job" if action == "retry" else "job")
    details = ["Jobs that failed because an earlier one did wait for it again."]
    if action == "cancel":
        seconds = ctx.site.options.undo_seconds if len(term("jid", *jids)) <= MAX_LENGTH else 0
        undo = f"It can be undone for {duration(seconds)}." if seconds else "It cannot be undone."
        details = ["Complete jobs stay as they are. Workers of running ones are told to stop.", undo]
    return Question(
        title=f"{action.capitalize()} {jobs}?",
        text=f"Flow {body.jid}.",
        button=f"{action.capitalize()} {jobs}",
        details=tuple(details),
        word="cancel" if action == "cancel" and len(jids) > WORDS_FROM else "",
    )


async def close(ctx: Context, body: OneFlow) -> Done | Question:
    """Add no more calls to the group of an open flow: what follows it starts once all have ended."""
    found = await ctx.console.flow(body.jid)
    if found.facts.members is None:
        raise WrongState(f"flow {body.jid:.200} has no group that can be open", "HF_WRONG_STATE")
    if not body.confirm:
        return Question(
            title="Close this flow?",
            text=f"Flow {body.jid}.",
            button="Close it",
            details=("Its program can add no more calls. What follows them starts once all have ended.",),
        )
    is_new = await ctx.console.close_flow(body.jid)
    text = f"Flow {body.jid}: {'closed' if is_new else 'it was closed before'}."
    return Done(text=text, changed=int(is_new), keys=("flows", f"flow:{body.jid}"))


async def forget(ctx: Context, body: OneFlow) -> Done | Question:
    """Take a flow off the list; its jobs stay as they are."""
    await ctx.console.flow(body.jid)
    if not body.confirm:
        return Question(
            title="Take this flow off the list?",
            text=f"Flow {body.jid}.",
            button="Take it off the list",
            details=(
                "Its jobs stay as they are, but nothing shows any more that they belong together. It cannot be undone.",
            ),
        )
    [is_off] = await ctx.console.forget_flows(body.jid)
    if not is_off:
        sentence = f"the jobs of flow {body.jid:.200} have not all ended: it stays on the list"
        raise WrongState(sentence, "HF_WRONG_STATE")
    return Done(text=f"Flow {body.jid}: off the list.", keys=("flows",), place="/flows")


VIEWS: Final = (
    View(path="/flows", template="flows.html", load=flows, query=FlowsQuery, summary="A page of flows."),
    View(path="/flows/{name}", template="flow.html", load=flow, query=FlowQuery, summary="One flow."),
)
ACTIONS: Final = (
    ActionRoute(
        noun="flows", verb="retry", body=OneFlow, run=retry, summary="Retry the failed jobs of a flow."
    ),
    ActionRoute(
        noun="flows",
        verb="cancel",
        body=OneFlow,
        run=cancel,
        summary="Cancel the jobs of a flow that are not complete.",
    ),
    ActionRoute(
        noun="flows", verb="close", body=OneFlow, run=close, summary="Add no more calls to an open flow."
    ),
    ActionRoute(noun="flows", verb="forget", body=OneFlow, run=forget, summary="Take a flow off the list."),
)
