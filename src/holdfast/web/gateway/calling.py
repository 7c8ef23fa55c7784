"""What a request does: it is checked against the user's limits, sent, recognised if it is a repeat, and may wait."""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar, cast

import msgspec
from msgspec.structs import replace

from holdfast.client.aio import AsyncClient
from holdfast.commands import Command
from holdfast.commands.dependencies import CompleteX
from holdfast.commands.flows import FlowFacts, FlowGet, FlowStep
from holdfast.commands.jobs import Await, JobGet, Outcome
from holdfast.commands.leases import CompletePop, Pop, Popped, Settlement
from holdfast.commands.operations import audited
from holdfast.commands.options import JobWithOptions, PutWithOptions
from holdfast.commands.recurring import RecurGet
from holdfast.console.masking import Mask
from holdfast.errors import DependencyRefused, HoldfastError, JobNotFound
from holdfast.models import Counts, JobFacts
from holdfast.settings import MAX_BATCH
from holdfast.text import counted, one_line
from holdfast.web.gateway.exceptions import UNAUDITED
from holdfast.web.gateway.problems import Problem
from holdfast.web.gateway.repeats import Repeatable, Seen
from holdfast.web.gateway.results import failed, in_json
from holdfast.web.gateway.verbs import Verb
from holdfast.web.gateway.waiting import Run, WaitingPops
from holdfast.web.places import AllTaken, Places
from holdfast.web.reach import NamedThings, reach_of
from holdfast.web.users import User
from holdfast.wire.waiting import PerLoop

# What a user may do who is limited to some queues and topics: every queue, topic, throttle and job that a
# request names has to be one of these, by the table in `holdfast.web.reach`, and what a result shows of
# others is left out.

_Sent = TypeVar("_Sent")
_MOST_LEASES: Final = 50_000
_MOST_MEMBERS: Final = 8192
_HELD: Final = "other jobs, which are not named here or not yours, depend on this one"


class Limits:
    """Checks requests of limited users. It remembers the queues of leases that it has seen, because workers name them often."""

    def __init__(self) -> None:
        self._leases: dict[tuple[str, str, int], str] = {}

    async def checked(self, verb: str, requests: Sequence[Any], user: User, client: AsyncClient) -> list[Any]:
        """Return requests with the names that the user's workers have in the store.

        Raises Problem if a request names what the user may not use, or reaches further than it may.
        """
        reach = reach_of(verb)
        named = [_named(verb, request, user) for request in requests]
        jids = {
            jid: None
            for one in named
            for jid, token in one.jobs
            if not self._is_known(client, jid, token, user)
        }
        await self._check_jobs(verb, list(jids), user, client, JobGet)
        recurring = list(dict.fromkeys(jid for one in named for jid in one.recurring))
        await self._check_jobs(verb, recurring, user, client, RecurGet)
        await _check_flows([flow for one in named for flow in one.flows], user, client)
        return [reach.with_workers(request, user.worker_name) for request in requests]

    async def _check_jobs(
        self, verb: str, jids: Sequence[str], user: User, client: AsyncClient, kind: Any
    ) -> None:
        for jid, facts in (await _facts(client, jids, kind)).items():
            if facts is None and verb in ("await", "flow_put"):
                # A result is kept longer than its job, and it is not known whose it is.
                raise JobNotFound(f"job {jid} does not exist", "HF_JOB_NOT_FOUND")
            if facts is not None and not user.may_use_queue(facts.queue):
                raise _refusal(user, f"job {one_line(jid)[:100]!r} is in another queue")

    def _is_known(self, client: AsyncClient, jid: str, token: int, user: User) -> bool:
        queue = self._leases.get((client.settings.namespace, jid, token))
        return queue is not None and user.may_use_queue(queue)

    def note(self, client: AsyncClient, result: Any) -> None:
        """Remember the leases in a result. A lease belongs to its queue: moving the job ends it."""
        jobs = result.jobs if isinstance(result, Settlement) else result
        if isinstance(jobs, Popped):
            if len(self._leases) > _MOST_LEASES:
                self._leases.clear()
            name = client.settings.namespace
            self._leases.update({(name, one.jid, one.token): one.queue for one in jobs})


async def _facts(client: AsyncClient, jids: Sequence[str], kind: Any) -> dict[str, Any]:
    """Return the facts of jobs, or of recurring ones, by jid; None for one that does not exist."""
    found: list[Any] = []
    for at in range(0, len(jids), MAX_BATCH):
        command = cast("Command[list[Any]]", kind(list(jids[at : at + MAX_BATCH])))
        found += await client.run(command)
    return dict(zip(jids, found, strict=True))


async def _check_flows(flows: Sequence[str], user: User, client: AsyncClient) -> None:
    """Raise Problem for a flow that has a job in another queue, or of which no job is kept: it is not known whose that was."""
    found: list[FlowFacts | None] = []
    for at in range(0, len(flows), MAX_BATCH):
        found += await client.run(FlowGet(flows[at : at + MAX_BATCH]))
    if sum(facts.total for facts in found if facts is not None) > _MOST_MEMBERS:
        raise _refusal(user, f"the flows of one request have at most {_MOST_MEMBERS:,} jobs then")
    for facts in found:
        if facts is None:
            continue
        jobs = (await _facts(client, facts.jids, JobGet)).values()
        queues = {one.queue for one in jobs if one is not None}
        if not queues or not all(map(user.may_use_queue, queues)):
            raise _refusal(user, f"flow {one_line(facts.id)[:100]!r} has jobs in other queues")


def _named(verb: str, request: Any, user: User) -> NamedThings:
    """Return what a request names. Raises Problem."""
    reach = reach_of(verb)
    found = NamedThings(is_known=False) if reach.is_whole else reach.named(request)
    for name in found.queues:
        if not user.may_use_queue(name):
            raise _refusal(user, f"queue {one_line(name)[:100]!r} is none of them")
    for name in found.topics:
        if not user.may_use_topic(name):
            raise _refusal(user, f"topic {one_line(name)[:100]!r} is none of them")
    for name in found.throttles:
        if not user.may_use_throttle(name):
            raise _refusal(user, f"throttle {one_line(name)[:100]!r} belongs to none of them")
    if not found.is_known or not (found or reach.is_cut or reach.is_free):
        raise _refusal(user, f"{verb} reaches further")
    return found


# What results show.


async def visible(verb: str, result: Any, user: User, client: AsyncClient) -> Any:
    """Return a result without the parts that the user may not see."""
    if verb == "queues":
        return [name for name in cast("list[str]", result) if user.may_use_queue(name)]
    if verb == "counts":
        return [one for one in cast("list[Counts]", result) if user.may_use_queue(one.name)]
    if verb == "dependents":
        cursor, jids = cast("tuple[str, list[str]]", result)
        return cursor, await _own(client, jids, user)
    if verb == "flow_steps":
        return await _own_steps(cast("list[FlowStep]", result), user, client)
    if verb == "explain":
        return await _explanation(result, user, client)
    if verb in ("job_get", "peek"):
        return await _relatives(cast("list[JobFacts | None]", result), user, client)
    if isinstance(result, list) and not isinstance(result, Popped):
        return [without_others(one) for one in cast("list[object]", result)]
    return result


def without_others(found: Any) -> Any:
    """Return a result, or an error without the names of jobs that are not the user's."""
    return type(found)(_HELD, found.code) if isinstance(found, DependencyRefused) else found


async def _own(client: AsyncClient, jids: Iterable[str], user: User) -> list[str]:
    """Return those of some jids whose jobs are the user's."""
    found = await _facts(client, list(dict.fromkeys(jids)), JobGet)
    return [jid for jid, facts in found.items() if facts is not None and user.may_use_queue(facts.queue)]


async def _own_steps(steps: Sequence[FlowStep], user: User, client: AsyncClient) -> list[FlowStep]:
    """Return the jobs of a flow without those that they wait for outside of it, unless these are the user's."""
    own = await _own(client, [parents.jid for one in steps for parents in one.parents if parents.jid], user)
    return [
        replace(one, parents=[parents for parents in one.parents if not parents.jid or parents.jid in own])
        for one in steps
    ]


async def _relatives(
    jobs: Sequence[JobFacts | None], user: User, client: AsyncClient
) -> list[JobFacts | None]:
    named = [jid for one in jobs if one is not None for jid in (*one.dependencies, *one.dependents)]
    own = frozenset(await _own(client, named, user)) if named else frozenset[str]()
    return [
        one
        and replace(
            one,
            dependencies=tuple([jid for jid in one.dependencies if jid in own]),
            dependents=tuple([jid for jid in one.dependents if jid in own]),
        )
        for one in jobs
    ]


async def _explanation(facts: Mapping[str, Any], user: User, client: AsyncClient) -> dict[str, Any]:
    """Return why a job does not run, without jobs of others that it waits for, or that hold a slot of its throttles."""
    parents, throttles = facts.get("parents", ()), facts.get("throttles", ())
    holders = [jid for row in throttles for jid in row[5][::2]]
    holders += facts.get("unique", ())[1:]
    own = frozenset(await _own(client, [*(row[0] for row in parents), *holders], user))
    changed: dict[str, Any] = {}
    if not own.issuperset(facts.get("unique", ())[1:]):
        changed["unique"] = []
    if "parents" in facts:
        changed["parents"] = [row for row in parents if row[0] in own]
    if "throttles" in facts:
        changed["throttles"] = [[*row[:5], _pairs_of(row[5], own)] for row in throttles]
    return {**facts, **changed}


def _pairs_of(flat: Sequence[str], own: frozenset[str]) -> list[str]:
    return [word for at in range(0, len(flat), 2) if flat[at] in own for word in flat[at : at + 2]]


def _meeting_own_jobs(command: _Sent) -> _Sent:
    """Return a command whose unique keys meet jobs of the queue that is put into only: others may not be the user's."""
    if isinstance(command, PutWithOptions):
        return cast("_Sent", replace(command, job=_own_job(command.job)))
    if isinstance(command, CompleteX):
        follow = [replace(one, job=_own_job(one.job)) for one in command.follow]
        return cast("_Sent", replace(command, follow=follow))
    return command


def _own_job(job: JobWithOptions) -> JobWithOptions:
    options = job.options
    if not options.unique_key:
        return job
    return replace(job, options=replace(options, on_conflict=f"own {options.on_conflict or 'keep'}"))


def _refusal(user: User, why: str) -> Problem:
    name = one_line(user.name)[:100]
    return Problem(403, "forbidden", f"{name!r} is limited to some queues or topics, and {why}.")


_RunAll = Callable[[list[Command[Any]]], Awaitable[list[Any]]]
MOST_WAITING: Final = 4096
"""Requests that wait at once in one process."""
_SHOWN: Final = 5
_TARGETS: Final = (
    "jids", "jid", "flows", "flow", "queues", "queue", "name", "key", "topic", "workers", "worker", "group", "jobs",
)  # fmt: skip
"""The fields of which the first that a request has is the target in the audit log."""


class GatewayCall(msgspec.Struct, frozen=True):
    """One request: its verb, user, client, and key ("" for none). `leased` gets the jobs that it has leased."""

    verb: Verb
    user: User
    client: AsyncClient
    request: Any
    key: str = ""
    leased: list[JobFacts] = []


class Caller:
    """Makes the calls of one application."""

    def __init__(self, mask: Mask) -> None:
        self._mask, self._limits, self._seen = mask, Limits(), Seen()
        self._waiters: dict[str, PerLoop[WaitingPops]] = {}
        self._places = Places(MOST_WAITING)

    async def result(self, call: GatewayCall) -> Any:
        """Return the result of a request as values for JSON. Raises Problem, HoldfastError."""
        try:
            return await self._result(call)
        except DependencyRefused as error:
            raise error if call.user.has_all_queues else without_others(error) from None

    async def _result(self, call: GatewayCall) -> Any:
        verb, user = call.verb, call.user
        singles = verb.singles(call.request) if verb.is_batch(call.request) else [call.request]
        if not user.has_all_queues:
            singles = await self._limits.checked(verb.name, singles, user, call.client)
        commands = [verb.make_as(one, user.name) for one in singles]
        if not user.has_all_queues:
            commands = [_meeting_own_jobs(one) for one in commands]
        run: Run = cast("Any", call.client.run)
        run_all, repeatable = _together(verb, call.client), None
        if call.key:
            base = (user.name, call.client.settings.namespace, verb.name, call.key)
            given = [getattr(one, "jid", "") is not None for one in singles]
            repeatable = Repeatable(call.client, base, commands, given)
            commands, run = repeatable.commands, repeatable.run
            repeatable.check(self._seen)
            if any(one.numbered for one in commands):
                run_all = repeatable.run_all
        sent = self._audited(call, commands)
        if verb.is_batch(call.request):
            found = await run_all(sent)
            if repeatable is not None:
                repeatable.note(found)
            if not user.has_all_queues:
                found = [without_others(one) for one in found]
            found = self._masked(call, found)
            return [
                failed(one) if isinstance(one, HoldfastError) else verb.result(command, one)
                for command, one in zip(commands, found, strict=True)
            ]
        single = self._single(call, sent[0], run)
        result = await (single if repeatable is None else repeatable.recognised(single))
        if isinstance(result, (Popped, Settlement)):
            call.leased.extend(result.jobs if isinstance(result, Settlement) else result)
        if not user.has_all_queues:
            self._limits.note(call.client, result)
            result = await visible(verb.name, result, user, call.client)
        return verb.result(commands[0], self._masked(call, result))

    async def _single(self, call: GatewayCall, command: Command[Any], run: Run) -> Any:
        given: object = command
        seconds: float = getattr(call.request, "wait", 0.0)
        if isinstance(given, (Pop, CompletePop)):
            _note_worker(call.client, given.worker)
            if seconds:
                with self._place(call.user):
                    return await self._taken(call.client, given, seconds, run)
            if isinstance(given, Pop):
                return await self._of(call.client).leased(given, run)
        if isinstance(given, Await) and seconds:
            with self._place(call.user):
                return await _ends(call.client, given, seconds)
        return await run(command)

    async def _taken(self, client: AsyncClient, take: Pop | CompletePop, seconds: float, run: Run) -> Any:
        waiters = self._of(client)
        if isinstance(take, Pop):
            return await waiters.pop(take, seconds, run)
        settled = cast("Settlement", await run(take))
        if settled.jobs or not take.limit:
            return settled
        jobs = await waiters.pop(
            Pop(take.worker, take.queues, take.limit, take.ttl, level=take.level),
            seconds,
            cast("Any", client.run),
        )
        return Settlement(settled.lost, jobs)

    @contextmanager
    def _place(self, user: User) -> Generator[None]:
        """Hold one of the places for requests that wait. Raises Problem if this user gets no more."""
        try:
            with self._places.taken(user.name):
                yield
        except AllTaken as error:
            raise Problem(
                429,
                "too-many-requests",
                f"{one_line(user.name)[:100]!r} has {counted(error.mine, 'waiting request')} already, and may have no more: "
                "try again later, or without wait.",
            ) from None

    def limit_waits(self, most: int) -> None:
        """Lower the largest number of requests that wait at the same time."""
        self._places.most = min(self._places.most, most)

    def _of(self, client: AsyncClient) -> WaitingPops:
        name: str = client.settings.namespace
        found = self._waiters.get(name)
        if found is None:
            found = self._waiters[name] = PerLoop(lambda: WaitingPops(client))
        return found.here()

    def give_back(self, call: GatewayCall) -> None:
        """Give back the jobs that a request has leased, because its client has gone."""
        self._of(call.client).give_back(call.leased)

    def _audited(self, call: GatewayCall, commands: list[Command[Any]]) -> list[Command[Any]]:
        verb, user = call.verb, call.user
        if user.role not in ("operator", "admin") or verb.reads or verb.name in UNAUDITED:
            return commands
        target, detail = _described(call.request)
        return [audited(user.name, command, verb.name, target, detail) for command in commands]

    def _masked(self, call: GatewayCall, result: Any) -> Any:
        """Return a result with what has to be hidden replaced, for everybody who does not do the work."""
        return result if call.user.sees_data(call.verb.reads) else self._mask.within(result)

    def end_waits(self) -> None:
        """End all waits, with no jobs."""
        for one in self._waiters.values():
            one.here().end()

    async def close(self) -> None:
        """End all waits, and finish what was begun."""
        for one in self._waiters.values():
            await one.here().close()


def _together(verb: Verb, client: AsyncClient) -> _RunAll:
    """Return the function that sends the commands of a batch, in as few calls as they allow."""
    if verb.name == "put":
        return cast("_RunAll", client._put_together)  # pyright: ignore[reportPrivateUsage]
    return client.run_all


def _note_worker(client: AsyncClient, worker: str) -> None:
    """List a program that pops as a worker, with the call that it makes."""
    seen = client._heartbeat_of(worker)  # pyright: ignore[reportPrivateUsage]
    if seen is not None:
        sent: asyncio.Future[bool] = asyncio.ensure_future(client.run(seen))
        sent.add_done_callback(lambda one: one.cancelled() or one.exception())


async def _ends(client: AsyncClient, command: Await, seconds: float) -> list[Outcome]:
    """Return how jobs ended, when all have ended or the time is over."""
    jids = list(dict.fromkeys(command.jids))
    ended: Any = client._ends_of(jids, seconds)  # pyright: ignore[reportPrivateUsage]
    ends: dict[str, Outcome] = {jid: outcome async for jid, outcome in ended}
    return [ends.get(jid) or Outcome("open") for jid in command.jids]


def _described(request: Any) -> tuple[str, str]:
    """Return target and detail of a request for the audit log; data are left out."""
    names = request.__struct_fields__
    target = next((name for name in _TARGETS if name in names), "")
    rest = {
        name: value
        for name in names
        if name != target and (value := getattr(request, name)) and not isinstance(value, msgspec.Raw)
    }
    if getattr(request, "action", "") == "data":
        rest.pop("common", None)
    detail = msgspec.json.encode(in_json(rest)).decode() if rest else ""
    return _text(getattr(request, target)) if target else "", detail


def _text(value: Any) -> str:
    if type(value) is not list:
        return str(value)
    parts = cast("list[object]", value)
    names = [_name(one) for one in parts]
    return ", ".join(names) if len(names) <= _SHOWN else f"{', '.join(names[:_SHOWN])} … ({len(names)})"


def _name(value: object) -> str:
    if isinstance(value, tuple):
        return str(cast("tuple[object, ...]", value)[0])
    return str(getattr(value, "jid", value))
