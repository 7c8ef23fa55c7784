"""What a user may do who is limited to some queues and topics: every queue, topic and job that a request names has to be one of these."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from holdfast.client.aio import AsyncClient
from holdfast.commands.jobs import JobGet
from holdfast.commands.leases import Popped, Settlement
from holdfast.commands.recurring import RecurGet
from holdfast.commands.views import OF_QUEUES, OF_TOPICS
from holdfast.errors import JobNotFound
from holdfast.models import Counts
from holdfast.printable import one_line
from holdfast.web.gateway.problems import Problem
from holdfast.web.users import User

_FREE: Final = frozenset(("info", "worker_seen"))
"""Verbs that name nothing and show nothing of queues."""
_FILTERED: Final = frozenset(("queues", "counts"))
"""Verbs whose result is cut to the user's queues."""
_WHOLE: Final = frozenset(("unfail", "throttle_release", "tagged", "worker_jobs"))
"""Verbs that name something, and reach further."""
_MOVING: Final = ("retry", "fail", "move")
"""Actions of `act` whose value is a queue."""
_MOST_LEASES: Final = 50_000


class Limits:
    """Checks requests of limited users. It remembers the queues of leases that it has seen, because workers name them often."""

    def __init__(self) -> None:
        self._leases: dict[tuple[str, str, int], str] = {}

    async def check(self, verb: str, requests: Sequence[Any], user: User, client: AsyncClient) -> None:
        """Raise Problem if a request names what the user may not use, or reaches further than it may."""
        for request in requests:
            _check_names(verb, request, user)
        templates = verb.startswith("recur")
        jids = {
            jid: None
            for request in requests
            for jid, token in _jids(verb, request)
            if not self._is_known(client, jid, token, user)
        }
        if not jids:
            return
        command = RecurGet(list(jids)) if templates else JobGet(list(jids))
        found = cast("Sequence[Any]", await client.run(cast("Any", command)))
        for jid, facts in zip(jids, found, strict=True):
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


def visible(verb: str, result: Any, user: User) -> Any:
    """Return a result without what is not the user's."""
    if verb == "queues":
        return [name for name in cast("list[str]", result) if user.may_use_queue(name)]
    if verb == "counts":
        return [one for one in cast("list[Counts]", result) if user.may_use_queue(one.name)]
    return result


def _check_names(verb: str, request: Any, user: User) -> None:
    if verb in ("list", "scan"):
        named: Mapping[str, Iterable[str]] = {
            "queue": [request.name] if request.set in OF_QUEUES else (),
            "topic": [request.name] if request.set in OF_TOPICS else (),
        }
    else:
        named = {"queue": _queues(verb, request), "topic": _topics(request)}
    queues, topics = list(named["queue"]), list(named["topic"])
    for name in queues:
        if not user.may_use_queue(name):
            raise _refusal(user, f"queue {one_line(name)[:100]!r} is none of them")
    for name in topics:
        if not user.may_use_topic(name):
            raise _refusal(user, f"topic {one_line(name)[:100]!r} is none of them")
    names_something = queues or topics or any(True for _ in _jids(verb, request))
    if verb in _WHOLE or (not names_something and verb not in _FREE | _FILTERED):
        raise _refusal(user, f"{verb} reaches further")


def _queues(verb: str, request: Any) -> list[str]:
    found = [getattr(request, "queue", None), getattr(request, "next_queue", None)]
    found += getattr(request, "queues", ())
    found += [one.queue for one in getattr(request, "follow", ())]
    if verb == "act" and request.action in _MOVING:
        found += [request.common, *(value for _, value in request.jobs)]
    return [name for name in found if name]


def _topics(request: Any) -> list[str]:
    found = [getattr(request, "topic", None), *getattr(request, "topics", ())]
    return [name for name in found if name]


def _jids(verb: str, request: Any) -> Iterable[tuple[str, int]]:
    """Yield the jids that a request names, with their tokens if it names leases, else 0."""
    jid, token = getattr(request, "jid", None), getattr(request, "token", 0)
    if jid and (verb != "put" or request.mode != "only"):
        yield jid, token
    for field in ("jids", "depends", "parents"):
        for one in getattr(request, field, None) or ():
            yield one, 0
    for one in getattr(request, "jobs", ()):
        yield (one[0], 0) if isinstance(one, tuple) else (one.jid, one.token)
    for one in getattr(request, "follow", ()):
        for parent in one.depends or ():
            yield parent, 0


def _refusal(user: User, why: str) -> Problem:
    name = one_line(user.name)[:100]
    return Problem(403, "forbidden", f"{name!r} is limited to some queues or topics, and {why}.")
