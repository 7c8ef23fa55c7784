"""What a request does: it is checked against the user's limits, sent, recognised if it is a repeat, and may wait."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, cast

import msgspec

from holdfast.client.aio import AsyncClient
from holdfast.commands import Command
from holdfast.commands.jobs import Await, Outcome
from holdfast.commands.leases import CompletePop, Pop, Popped, Settlement
from holdfast.commands.operations import audited
from holdfast.console.masking import Mask
from holdfast.errors import DependencyRefused, HoldfastError
from holdfast.models import JobFacts
from holdfast.printable import one_line
from holdfast.web.gateway.exceptions import UNAUDITED
from holdfast.web.gateway.limits import Limits, visible, without_others
from holdfast.web.gateway.problems import Problem
from holdfast.web.gateway.repeats import Repeatable, Seen
from holdfast.web.gateway.results import failed, in_json
from holdfast.web.gateway.verbs import Verb
from holdfast.web.gateway.waiting import Run, Waiters
from holdfast.web.places import AllTaken, Places
from holdfast.web.users import User
from holdfast.wire.waiting import PerLoop

_RunAll = Callable[[list[Command[Any]]], Awaitable[list[Any]]]
MOST_WAITING: Final = 4096
"""Requests that wait at once in one process."""
_SHOWN: Final = 5
_TARGETS: Final = (
    "jids", "jid", "queues", "queue", "name", "key", "topic", "workers", "worker", "group", "jobs",
)  # fmt: skip
"""The fields of which the first that a request has is the target in the audit log."""


class Call(msgspec.Struct, frozen=True):
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
        self._waiters: dict[str, PerLoop[Waiters]] = {}
        self._places = Places(MOST_WAITING)

    async def result(self, call: Call) -> Any:
        """Return the result of a request as values for JSON. Raises Problem, HoldfastError."""
        try:
            return await self._result(call)
        except DependencyRefused as error:
            raise error if call.user.has_all_queues else without_others(error) from None

    async def _result(self, call: Call) -> Any:
        verb, user = call.verb, call.user
        singles = verb.singles(call.request) if verb.is_batch(call.request) else [call.request]
        if not user.has_all_queues:
            singles = await self._limits.checked(verb.name, singles, user, call.client)
        commands = [verb.make_as(one, user.name) for one in singles]
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

    async def _single(self, call: Call, command: Command[Any], run: Run) -> Any:
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
            Pop(take.worker, take.queues, take.limit, take.ttl), seconds, cast("Any", client.run)
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
                f"{error.mine:,} requests of {one_line(user.name)[:100]!r} wait here already, and there is room for no more; "
                "try again without wait, or later.",
            ) from None

    def limit_waits(self, most: int) -> None:
        """Let fewer requests wait at once than there may be otherwise."""
        self._places.most = min(self._places.most, most)

    def _of(self, client: AsyncClient) -> Waiters:
        name: str = client.settings.namespace
        found = self._waiters.get(name)
        if found is None:
            found = self._waiters[name] = PerLoop(lambda: Waiters(client))
        return found.here()

    def give_back(self, call: Call) -> None:
        """Give back the jobs that a request has leased, because nobody reads its response."""
        self._of(call.client).give_back(call.leased)

    def _audited(self, call: Call, commands: list[Command[Any]]) -> list[Command[Any]]:
        verb, user = call.verb, call.user
        if user.role not in ("operator", "admin") or verb.reads or verb.name in UNAUDITED:
            return commands
        target, detail = _described(call.request)
        return [audited(user.name, command, verb.name, target, detail) for command in commands]

    def _masked(self, call: Call, result: Any) -> Any:
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
