"""The jobs that were put during a test, read from the store."""

import inspect
from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec

from holdfast.client.aio import AsyncClient
from holdfast.client.handles import Job
from holdfast.client.plans import found_jobs
from holdfast.client.sync import Client
from holdfast.code.naming import klass_name
from holdfast.code.registry import Registered, find
from holdfast.codecs import decode, encode_data
from holdfast.commands.queues import QueueNames
from holdfast.commands.views import OF_QUEUES, ListSet, Page
from holdfast.errors import CodecError, UsageError
from holdfast.models import JobFacts, text
from holdfast.testing.clock import check_client
from holdfast.wire.exchange import exchange
from holdfast.wire.plans import Plan
from holdfast.wire.shards import Shard

SHOWN: Final = 20
PAGE: Final = 512


def assert_put(client: Client | AsyncClient, job: object, *args: object, **kwargs: object) -> Job:
    """Assert that a job was put, and return it, the first if there were several.

    `job` is a function job, a class, a module or a name. A function job's arguments must be those given, defaults
    included; for others the first argument is the whole data, and named ones are items of it. Without arguments, any
    data match. Check other attributes yourself: `assert_put(client, welcome, 7).priority == 10`. It reads the store and
    is never awaited; cancelled jobs are not found. Raises AssertionError, which lists what was put.
    """
    __tracebackhide__ = True
    there = all_put(client)
    wanted = _Wanted(job, args, kwargs)
    for found in there:
        if wanted.fits(found):
            return found
    raise AssertionError(f"{wanted} was not put. {_shown(there)}")


def assert_not_put(client: Client | AsyncClient, job: object, *args: object, **kwargs: object) -> None:
    """Assert that no job was put that `assert_put` would find."""
    __tracebackhide__ = True
    wanted = _Wanted(job, args, kwargs)
    unwanted = [found for found in all_put(client) if wanted.fits(found)]
    if unwanted:
        raise AssertionError(f"{wanted} was put. {_shown(unwanted)}")


def all_put(client: Client | AsyncClient) -> list[Job]:
    """Return all jobs of the namespace, in any state, in the order in which they were put."""
    check_client(client, Client, AsyncClient)
    settings = client.settings
    with Client(client.store_url, namespace=settings.namespace) as reader:
        found = reader.runner.run(_everything(reader.shard))
    handle = client if isinstance(client, Client) else reader
    jobs = [Job.of(facts, handle) for facts in found if facts is not None]
    return sorted(jobs, key=lambda job: (job.facts.created_ms, job.jid))


def _everything(shard: Shard) -> Plan[list[JobFacts | None]]:
    names = yield from exchange(shard, QueueNames())
    sets = [(state, name) for name in names for state in sorted(OF_QUEUES - {"recurring"})]
    jids: dict[str, None] = {}
    for which, name in [*sets, ("completed", "")]:
        jids.update(dict.fromkeys((yield from _members(shard, which, name))))
    return (yield from found_jobs(partial(exchange, shard), list(jids)))


def _members(shard: Shard, which: str, name: str) -> Plan[list[str]]:
    names: list[str] = []
    page: Page = yield from exchange(shard, ListSet(which, name, None, PAGE))
    names += page.names
    while page.next is not None:
        page = yield from exchange(shard, ListSet(which, name, page.next, PAGE))
        names += page.names
    return names


class _Wanted:
    """The job that an assertion looks for."""

    def __init__(self, job: object, args: Sequence[object], kwargs: dict[str, object]) -> None:
        entry = getattr(job, "registered", None)
        name = job if isinstance(job, str) else ""
        self.entry: Registered | None = entry if isinstance(entry, Registered) else find(name)
        self.klass = self.entry.name if self.entry else name or klass_name(job)
        self.args, self.kwargs = args, kwargs
        if self.entry is None and len(args) > 1:
            raise UsageError(
                f"{self.klass} is not a function job: expected one value as its data, not {len(args)} arguments"
            )
        self._call: dict[str, object] | None = None
        if self.entry is not None and (args or kwargs):
            self._call = _call(self.entry, bytes(self.entry.arguments.write(args, kwargs)))

    def fits(self, job: Job) -> bool:
        """Return whether `job` matches."""
        if job.klass_name != self.klass:
            return False
        if not self.args and not self.kwargs:
            return True
        if self.entry is not None:
            try:
                return bool(_call(self.entry, job.facts.data) == self._call)
            except (UsageError, CodecError):
                # It was put with another signature, or with data that are not JSON.
                return False
        try:
            data = decode(job.facts.data)
        except CodecError:
            return False
        if self.args and data != msgspec.json.decode(encode_data(self.args[0])):
            return False
        named = msgspec.json.decode(encode_data(self.kwargs))
        return not named or (isinstance(data, dict) and named.items() <= data.items())

    def __str__(self) -> str:
        given = [*map(repr, self.args), *(f"{name}={value!r}" for name, value in self.kwargs.items())]
        return f"{self.klass}({', '.join(given)})" if given else self.klass


def _call(entry: Registered, data: bytes) -> dict[str, object]:
    """Return the arguments of a function job by name, as the function would get them."""
    args, kwargs = entry.arguments.read(data)
    bound = inspect.signature(entry.function).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.arguments


def _shown(jobs: Sequence[Job]) -> str:
    if not jobs:
        return "Nothing was put."
    lines = [f"  {job.klass_name} {text(job.facts.data)} ({job.state})" for job in jobs[:SHOWN]]
    more = [f"  … and {len(jobs) - SHOWN} more"] if len(jobs) > SHOWN else []
    return "\n".join(["These jobs were put:", *lines, *more])
