"""What a user may do who is limited to some queues and topics: every queue, topic, throttle and job that a request names has to be one of
these, by the table in `holdfast.web.reach`, and what a result shows of others is left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from msgspec.structs import replace

from holdfast.client.aio import AsyncClient
from holdfast.commands import Command
from holdfast.commands.jobs import JobGet
from holdfast.commands.leases import Popped, Settlement
from holdfast.commands.recurring import RecurGet
from holdfast.errors import DependencyRefused, JobNotFound
from holdfast.models import Counts, JobFacts
from holdfast.printable import one_line
from holdfast.settings import MAX_BATCH
from holdfast.web.gateway.problems import Problem
from holdfast.web.reach import Named, reach_of
from holdfast.web.users import User

_MOST_LEASES: Final = 50_000
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
        return [reach.with_workers(request, user.worker_name) for request in requests]

    async def _check_jobs(
        self, verb: str, jids: Sequence[str], user: User, client: AsyncClient, kind: Any
    ) -> None:
        for jid, facts in (await _facts(client, jids, kind)).items():
            if facts is None and verb == "await":
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


def _named(verb: str, request: Any, user: User) -> Named:
    """Return what a request names. Raises Problem."""
    reach = reach_of(verb)
    found = Named(is_known=False) if reach.is_whole else reach.named(request)
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
    """Return a result without what is not the user's."""
    if verb == "queues":
        return [name for name in cast("list[str]", result) if user.may_use_queue(name)]
    if verb == "counts":
        return [one for one in cast("list[Counts]", result) if user.may_use_queue(one.name)]
    if verb == "dependents":
        cursor, jids = cast("tuple[str, list[str]]", result)
        return cursor, await _own(client, jids, user)
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
    own = frozenset(await _own(client, [*(row[0] for row in parents), *holders], user))
    changed: dict[str, Any] = {}
    if "parents" in facts:
        changed["parents"] = [row for row in parents if row[0] in own]
    if "throttles" in facts:
        changed["throttles"] = [[*row[:5], _pairs_of(row[5], own)] for row in throttles]
    return {**facts, **changed}


def _pairs_of(flat: Sequence[str], own: frozenset[str]) -> list[str]:
    return [word for at in range(0, len(flat), 2) if flat[at] in own for word in flat[at : at + 2]]


def _refusal(user: User, why: str) -> Problem:
    name = one_line(user.name)[:100]
    return Problem(403, "forbidden", f"{name!r} is limited to some queues or topics, and {why}.")
