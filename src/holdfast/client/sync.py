"""The sync client: open, close, run commands."""

import asyncio
import logging
import sys
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from threading import get_ident
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast, overload

from holdfast.client.base import ClientBase
from holdfast.client.bulk import ONE_PUT, Batch, OnePut
from holdfast.client.decorating import Decorating
from holdfast.client.descriptors import Part, SyncMethods
from holdfast.client.handles import Queues, Stats
from holdfast.client.job_lookup import Jobs
from holdfast.client.opening import Opening, note, settle
from holdfast.client.plans import time_of
from holdfast.client.store_options import StoreOptions
from holdfast.client.unserved import without_workers
from holdfast.code.current import put_collector
from holdfast.code.steps import run_steps
from holdfast.commands import Command
from holdfast.commands.base import check_command
from holdfast.commands.jobs import Outcome, PutMany
from holdfast.errors import HoldfastError, UsageError
from holdfast.settings import check_name, check_timeout
from holdfast.wire.exchange import exchange, exchange_all
from holdfast.wire.gather import together
from holdfast.wire.plans import Plan, Runner
from holdfast.wire.sync import DRIVER_CLASSES, Link, Redis

if TYPE_CHECKING:
    from holdfast.client.calls import Call, Group
    from holdfast.client.config import Config
    from holdfast.client.events import Events
    from holdfast.client.flows import FlowHandle
    from holdfast.client.patterns import QueuePatterns
    from holdfast.client.recurring import Recurring
    from holdfast.client.results import SyncResults
    from holdfast.client.throttles import Throttles
    from holdfast.client.topics.scheduler import Scheduler
    from holdfast.client.upkeep import AuditLog, Upkeep
    from holdfast.client.workers import WorkersOf

R = TypeVar("R")
T = TypeVar("T")
log = logging.getLogger("holdfast")


class Client(Decorating, ClientBase[Redis], SyncMethods):
    """The sync client of one namespace of one store. Any number of threads may share one, and forked processes may use it.

    `url` is `redis://`, `rediss://` or `unix://`, or a `redis.Redis` whose connections are then used as they are; its
    parts may be given instead (`host=`, `port=`, `db=`, …). The default is HOLDFAST_URL, REDIS_URL, or the embedded store,
    which the first call starts. `hostname` is the worker name, by default the machine's. Other options are those
    of `StoreOptions` and of redis-py. Making a client sends nothing. Raises UsageError.

    `queues["mail"]`, `jobs[jid]`, `workers`, `recurring`, `throttles["printer"]`, `topics["reminders"]`, `events`, `config`,
    `queue_patterns`, `stats`, `upkeep` and `audit` are its parts; `help(client.queues["mail"])` lists the methods of one.
    """

    audit: "Part[AuditLog]" = Part("upkeep.AuditLog")
    config: "Part[Config]" = Part("config.Config")
    events: "Part[Events]" = Part("events.Events")
    queue_patterns: "Part[QueuePatterns]" = Part("patterns.QueuePatterns")
    recurring: "Part[Recurring]" = Part("recurring.Recurring")
    stats: "Part[Stats]" = Part("handles.Stats")
    throttles: "Part[Throttles]" = Part("throttles.Throttles")
    topics: "Part[Scheduler]" = Part("topics.scheduler.Scheduler")
    upkeep: "Part[Upkeep]" = Part("upkeep.Upkeep")
    workers: "Part[WorkersOf]" = Part("workers.WorkersOf")
    _results: "Part[SyncResults]" = Part("results.SyncResults")

    def __init__(
        self,
        url: str | Redis | None = None,
        hostname: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> None:
        opening = settle(url, {"hostname": hostname, **options}, DRIVER_CLASSES)
        super().__init__(opening)
        self.link: Link = _link(opening)
        self.runner = Runner(self.link)
        self.queues = Queues(self)
        self.jobs = Jobs(self)
        self._batches: dict[int, Batch] = {}
        self._loop_allowed = False
        note(self)

    @property
    def schedules(self) -> "Scheduler":
        """`topics`, under the name that older programs use."""
        return self.topics

    def acting_as(self, actor: str) -> "Client":
        """Return this client, with a line in the audit log for each change of a queue, throttle, setting, recurring job, worker or topic.

        It shares the connections of this client, which is the one to close. `actor` is who acts, such as `ada@laptop`. Raises UsageError.
        """
        return ActingClient(self, actor)

    def run(self, command: Command[R], /) -> R:
        """Run one command of `holdfast.commands`. Raises UsageError, Refused, TransportError, CoreMismatch, StoreUnsupported."""
        if not self._loop_allowed and asyncio._get_running_loop() is not None:  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType]
            self._in_a_loop()
        sent: Any = command
        is_put = type(sent) in ONE_PUT
        if is_put:
            collector = put_collector.get()
            if collector is not None:
                return cast("R", collector.take(self, sent))
        else:
            check_command(sent)
        if self._batches:
            batch = self._batches.get(get_ident())
            if batch is not None:
                if is_put:
                    return cast("R", batch.add(sent))
                batch.send()
        return self.runner.run(exchange(self.shard, command))

    def run_all(self, commands: Sequence[Command[R]]) -> list[R | HoldfastError]:
        """Run commands in one pipeline; return the result of each, or the HoldfastError it would have raised."""
        for command in commands:
            check_command(command)
        self._before_call()
        return self.runner.run(exchange_all(self.shard, commands))

    def _plan_of(self, command: Command[R], /) -> Plan[R]:
        """Return the plan of one command, for plans of several; the puts of a batch are sent before."""
        self._before_call()
        return exchange(self.shard, command)

    def _before_call(self) -> None:
        """Before every call that is not a put, warn of a running loop and send the puts of a batch."""
        self._look_for_loop()
        batch = self._batches.get(get_ident()) if self._batches else None
        if batch is not None:
            batch.send()

    def _put_together(self, puts: Sequence[OnePut | PutMany]) -> list[object]:
        """Send puts merged into as few calls as they allow; each gets its own jid or HoldfastError."""
        collector = put_collector.get()
        return self._send_puts(puts) if collector is None else collector.take_all(self, puts)

    def _send_puts(self, puts: Sequence[OnePut | PutMany]) -> list[object]:
        self._look_for_loop()
        return self.runner.run(together(self.shard, puts))

    @contextmanager
    def batch(self) -> Generator[Batch]:
        """Collect the puts of this thread and send them together: at the end, every 512, and before other calls.

        `put` returns its jid at once; the first refusal is raised at the end. If another job holds the unique key of a put, no job gets its
        jid; the handle of a function job then has the `jid` of the other one.
        """
        me = get_ident()
        if me in self._batches:
            raise UsageError("a batch is open in this thread already")
        batch = self._batches[me] = Batch(self._send_puts)
        try:
            yield batch
        finally:
            del self._batches[me]
            batch.send()
        batch.check()

    @overload
    def put(self, flow: "Call[T]", /, *, jid: str | None = None, open: bool = False) -> "FlowHandle[T]": ...
    @overload
    def put(
        self, flow: "Group[T]", /, *, jid: str | None = None, open: bool = False
    ) -> "FlowHandle[list[T]]": ...
    def put(self, flow: object, /, *, jid: str | None = None, open: bool = False) -> "FlowHandle[object]":
        """Put the jobs of a flow, all of them or none: `app.put(chain(fetch.call(url), parse, store))`. Returns its handle.

        `jid` names the flow, its jobs are `<jid>-<number>`; a flow of that jid that was put before stays as it is (`is_new` is False). At most
        512 jobs. Raises UsageError, JobNotFound for a parent that does not exist, JobExists, QueueFull. Core: verbs/flow.lua.
        """
        from holdfast.client.flow_plans import plan
        from holdfast.client.flows import FlowHandle, outline_of

        made = plan(flow, jid, self.settings, open)
        answers = [self.run(command) for command in made.commands()]
        return FlowHandle(self, made.id, outline_of(made), bool(answers[0]))

    def flow(self, jid: str, /) -> "FlowHandle[Any]":
        """Return the handle of a flow that was put before. Its result is that of its last call, also of a group of up to 512 calls, whose
        list only the handle of the put has. Raises JobNotFound. Core: verbs/flow_reading.lua.
        """
        from holdfast.client.flows import FlowHandle, found, outline_found
        from holdfast.commands.flows import FlowGet

        [facts] = self.run(FlowGet([jid]))
        return FlowHandle(self, jid, outline_found(found(jid, facts)), None)

    def wait_for(self, jid: str, timeout: float | None = None) -> Outcome:
        """Wait until a job has ended, at most `timeout` seconds; return its Outcome, which may still be `open`."""
        return self._results.wait_for(check_name("jid", jid), check_timeout(timeout))

    def store_time(self) -> float:
        """Return epoch seconds by the clock that times refer to: this machine's; in a test root, the one that a test moves."""
        return self.runner.run(time_of(self.shard))

    def result_of(self, jid: str, timeout: float | None = None) -> bytes | None:
        """Wait for the result of a job: JSON bytes, None if it has none.

        Raises JobFailed, JobCancelled, JobNotFound when neither job nor result is kept, TimeoutError.
        """
        outcome = self.wait_for(jid, timeout)
        hint = run_steps(without_workers(self)) if outcome.status == "open" else ""
        return outcome.result_of(jid, self.settings.flags, hint)

    def close(self) -> None:
        """Close idle connections, end listening and the subscriptions of `topics`; the client may be used again."""
        if "events" in self.__dict__:
            self.events.unlisten()
        if "topics" in self.__dict__:
            self.topics.close()
        if "_results" in self.__dict__:
            self._results.close()
        self.link.close()
        if self._database is not None and self._opening.target.existing is None:
            self._database.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _look_for_loop(self) -> None:
        if not self._loop_allowed and asyncio._get_running_loop() is not None:  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType]
            self._in_a_loop()

    def _in_a_loop(self) -> None:
        sentence = (
            "a sync holdfast.Client is used inside a running event loop: use holdfast.AsyncClient there"
        )
        if self.settings.strict_loop:
            raise UsageError(sentence)
        self._loop_allowed = True
        if "IPython" not in sys.modules:
            warnings.warn(sentence, RuntimeWarning, stacklevel=_callers_level())


class ActingClient(Client):
    """A client that shares store, connections and batches with another; what it changes is audited as done by `actor`."""

    def __init__(self, client: Client, actor: str) -> None:
        self._act_for(client, actor)
        self.queues, self.jobs = Queues(self), Jobs(self)

    def run(self, command: Command[R], /) -> R:
        """Run one command, with its line of the audit log."""
        return cast("R", super().run(self._audited(command)))

    def run_all(self, commands: Sequence[Command[R]]) -> list[R | HoldfastError]:
        """Run commands in one pipeline, each with its line of the audit log."""
        return super().run_all(list(map(self._audited, commands)))

    def _plan_of(self, command: Command[R], /) -> Plan[R]:
        return super()._plan_of(self._audited(command))


def _callers_level() -> int:
    """Return how many frames above `_in_a_loop` the program is that uses the client."""
    frame, level = sys._getframe(1), 1  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("holdfast."):
        frame, level = frame.f_back, level + 1
    return level


def _link(opening: Opening) -> Link:
    if opening.target.existing is None:
        return Link(opening.settings, opening.target)
    from holdfast.wire.shared import SharedLink  # it imports both kinds of driver

    return SharedLink(opening.settings, opening.target)
