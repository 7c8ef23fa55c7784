"""Commands that put jobs with options: tags, throttles, dependencies, backoff, deadlines."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

import msgspec

from holdfast.bounds import (
    Level,
    Losses,
    Milliseconds,
    Name,
    OptionalName,
    ParentJids,
    Priority,
    Retries,
    TagNames,
    ThrottleNames,
)
from holdfast.commands.base import (
    CommandBase,
    Reply,
    Word,
    note_jids,
    raise_refusal,
    refusals_by_index,
    standing_jid,
)
from holdfast.commands.jobs import Mode, PutBase, budgets, list_pairs
from holdfast.errors import Refused
from holdfast.ids import mint_jid

MAX_WEIGHT: Final = 1024
"""The largest sum of `JobWithOptions.weight` in one call."""


class ExtraOptions(msgspec.Struct, frozen=True, gc=False):
    """Options of a job. None, 0 and empty mean: not given. If the job exists, tags and throttles replace those that it
    has, and other options that are not given stay.

    `backoff`: the pause between attempts as the core writes it, `kind:first:longest:jitter` in milliseconds and
    percent (`exponential:1000:600000:25`). `expires_ms`: do not start the job later than this after the put.
    `limit_ms`: the longest run. `keep_ms`: how long to keep the result, 0: not at all, None: the default of its code.
    `trace`: the trace that the put belongs to, up to 1,024 bytes (code/tracing.py); it applies to this put only.
    `unique_key`: a key of the klass, with which at most one job exists at a time; `unique_for` its `end` (""), its `start`, or that many
    milliseconds. `on_conflict`: what becomes of a put that meets one: `keep` ("") that one, `raise`, `replace` it or `cancel` it.
    `debounce_max_ms`: a job that is replaced again and again starts at most that long after its first put.
    `needs`: the least level of a worker that may run the job (1: release 0.3); others requeue it at no cost.
    """

    tags: TagNames | None = None
    throttles: ThrottleNames = ()
    depends: ParentJids = ()
    backoff: str = ""
    expires_ms: Milliseconds = 0
    limit_ms: Milliseconds = 0
    keep_ms: Milliseconds | None = None
    trace: str = ""
    unique_key: OptionalName = ""
    unique_for: str = ""
    on_conflict: str = ""
    debounce_max_ms: Milliseconds = 0
    needs: Level = 0

    @property
    def replaces(self) -> bool:
        """Whether it may give its data to another job: a repeat does not know that by its own jid."""
        return self.on_conflict.endswith("replace")

    def words(self) -> list[Word]:
        """The number of options, then (option, value) pairs."""
        pairs = list_pairs(self.tags, self.throttles or None, self.depends)
        for field, word in _SINGLE:
            value = getattr(self, field)
            if value or (value is not None and field == "keep_ms"):
                pairs += (word, value)
        return [len(pairs) // 2, *pairs]


_SINGLE: Final = tuple(
    (field, field.removesuffix("_ms"))
    for field in ExtraOptions.__struct_fields__
    if field not in ("tags", "throttles", "depends")
)
"""The options of one value, and the word of each in a call."""


class JobWithOptions(msgspec.Struct, frozen=True, gc=False):
    """One job of a `PutX`."""

    klass: Name
    data: bytes = b"{}"
    jid: Name = msgspec.field(default_factory=mint_jid)
    options: ExtraOptions = ExtraOptions()

    def words(self) -> list[Word]:
        """The words of the job and its options."""
        return [self.jid, self.klass, self.data, *self.options.words()]

    @property
    def weight(self) -> int:
        """The share of this job in MAX_WEIGHT: 2, with options 3, plus 1 for each option, plus 2 for each dependency."""
        options = (len(self.options.words()) - 1) // 2
        return 2 + (options > 0) + options + len(self.options.depends)


class PutWithOptions(PutBase, frozen=True, gc=False):
    """Put one job with options, otherwise as `Put`. Core: verbs/put.lua."""

    verb: ClassVar[str] = "put_x"

    queue: Name
    job: JobWithOptions
    priority: Priority = 0
    retries: Retries = 5
    delay_ms: Milliseconds = 0
    mode: Mode = "new"
    max_losses: Losses | None = None

    @property
    def jid(self) -> str:
        """The jid of the job."""
        return self.job.jid

    @property
    def numbered(self) -> bool:
        return self.mode in ("move", "old") or self.job.options.replaces

    @property
    def data(self) -> bytes:
        """The data of the job."""
        return self.job.data

    def words(self) -> Sequence[Word]:
        priority, retries, delay = self.priority, self.retries, self.delay_ms
        return PutX(self.queue, (self.job,), priority, retries, delay, self.mode, self.max_losses).words()

    def read(self, reply: Reply) -> str:
        if len(reply) > 1:
            if (standing := standing_jid(reply[2])) is not None:
                return standing
            raise_refusal(reply[2])
        if self.mode != "new":
            note_jids((self.jid,), reply)
        return self.jid


class PutX(PutBase, frozen=True, gc=False):
    """Put jobs with options, with a sum of weights up to MAX_WEIGHT. Returns a jid or refusal for each job, in order.

    Core: verbs/put.lua.
    """

    verb: ClassVar[str] = "put_x"

    queue: Name
    jobs: Sequence[JobWithOptions]
    priority: Priority = 0
    retries: Retries = 5
    delay_ms: Milliseconds = 0
    mode: Mode = "new"
    max_losses: Losses | None = None

    @property
    def numbered(self) -> bool:
        return self.mode in ("move", "old") or any(job.options.replaces for job in self.jobs)

    @property
    def generated_jids(self) -> Sequence[str]:
        return [job.jid for job in self.jobs] if self.mode == "new" else []

    def words(self) -> Sequence[Word]:
        paid = budgets(self.retries, self.max_losses)
        words: list[Word] = [self.mode, self.queue, self.priority, paid, self.delay_ms]
        for job in self.jobs:
            words += job.words()
        return words

    def read(self, reply: Reply) -> Sequence[str | Refused]:
        jids: list[str | Refused] = [job.jid for job in self.jobs]
        for index, refused in refusals_by_index(reply).items():
            if refused is not None:
                jids[index] = refused
        for at in range(1, len(reply), 2):
            jids[int(reply[at])] = standing_jid(reply[at + 1]) or jids[int(reply[at])]
        if self.mode != "new":
            note_jids(jids, reply)
        return jids


VERBS: Mapping[str, type[CommandBase]] = {PutX.verb: PutX}
