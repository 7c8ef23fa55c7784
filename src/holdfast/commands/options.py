"""Putting jobs with wishes: tags, throttles, dependencies, backoff, deadlines."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

import msgspec

from holdfast.commands.base import Reply, Spoken, Word, named, refuse
from holdfast.commands.jobs import Mode, SpokenPut, budgets, list_pairs
from holdfast.errors import Refused
from holdfast.ids import mint_jid

MAX_WEIGHT: Final = 1024
"""What a call may carry, as `Wished.weight` counts it."""
MAX_TAGS: Final = 64
MAX_THROTTLES: Final = 16
MAX_DEPENDS: Final = 450
"""Of one job in one put; `depend` adds more."""


class ExtraOptions(msgspec.Struct, frozen=True, gc=False):
    """What may be wished for a job. None, 0 and empty mean nothing; a job that is put again has no other tags and throttles
    then, and all else as before.

    `backoff` is the pause between tries as the core writes it, `kind:first:most:jitter` in milliseconds and
    percent (`exponential:1000:600000:25`). `expires_ms`: do not start later than so long after the put.
    `limit_ms`: longest run. `keep_ms`: how long the result is kept, 0: not at all, None: as its code says. `trace`: which
    trace the put belongs to, up to 1,024 bytes that come back with the job (code/tracing.py); it belongs to one put.
    """

    tags: Sequence[str] | None = None
    throttles: Sequence[str] = ()
    depends: Sequence[str] = ()
    backoff: str = ""
    expires_ms: int = 0
    limit_ms: int = 0
    keep_ms: int | None = None
    trace: str = ""

    def words(self) -> list[Word]:
        """The number of options, then (option, value) pairs."""
        pairs = list_pairs(self.tags, self.throttles or None, self.depends)
        if self.backoff:
            pairs += ("backoff", self.backoff)
        if self.expires_ms:
            pairs += ("expires", self.expires_ms)
        if self.limit_ms:
            pairs += ("limit", self.limit_ms)
        if self.keep_ms is not None:
            pairs += ("keep", self.keep_ms)
        if self.trace:
            pairs += ("trace", self.trace)
        return [len(pairs) // 2, *pairs]


class JobWithOptions(msgspec.Struct, frozen=True, gc=False):
    """One job of a `PutX`."""

    klass: str
    data: bytes = b"{}"
    jid: str = msgspec.field(default_factory=mint_jid)
    wish: ExtraOptions = ExtraOptions()

    def words(self) -> list[Word]:
        """The job and its wish."""
        return [self.jid, self.klass, self.data, *self.wish.words()]

    @property
    def weight(self) -> int:
        """How much of a call this job takes: 2, with options 3, each option 1, a parent 2."""
        options = (len(self.wish.words()) - 1) // 2
        return 2 + (options > 0) + options + len(self.wish.depends)


class PutWithOptions(SpokenPut, frozen=True, gc=False):
    """Put one job with wishes, otherwise as `Put`. Core: verbs/put_x.lua."""

    verb: ClassVar[str] = "put_x"

    queue: str
    job: JobWithOptions
    priority: int = 0
    retries: int = 5
    delay_ms: int = 0
    mode: Mode = "new"
    max_losses: int | None = None

    @property
    def jid(self) -> str:
        """The job's name."""
        return self.job.jid

    @property
    def data(self) -> bytes:
        """The job's data."""
        return self.job.data

    def words(self) -> Sequence[Word]:
        priority, retries, delay = self.priority, self.retries, self.delay_ms
        return PutX(self.queue, (self.job,), priority, retries, delay, self.mode, self.max_losses).words()

    def read(self, reply: Reply) -> str:
        if len(reply) > 1:
            refuse(reply[2])
        return self.jid


class PutX(SpokenPut, frozen=True, gc=False):
    """Put jobs with wishes, together of up to MAX_WEIGHT. Answers one jid or refusal a job, in their order.

    Core: verbs/put_x.lua.
    """

    verb: ClassVar[str] = "put_x"

    queue: str
    jobs: Sequence[JobWithOptions]
    priority: int = 0
    retries: int = 5
    delay_ms: int = 0
    mode: Mode = "new"
    max_losses: int | None = None

    @property
    def minted(self) -> Sequence[str]:
        return [job.jid for job in self.jobs] if self.mode == "new" else []

    def words(self) -> Sequence[Word]:
        paid = budgets(self.retries, self.max_losses)
        words: list[Word] = [self.mode, self.queue, self.priority, paid, self.delay_ms]
        for job in self.jobs:
            words += job.words()
        return words

    def read(self, reply: Reply) -> Sequence[str | Refused]:
        jids: list[str | Refused] = [job.jid for job in self.jobs]
        for index, refused in named(reply).items():
            if refused is not None:
                jids[index] = refused
        return jids


VERBS: Mapping[str, type[Spoken]] = {PutX.verb: PutX}
