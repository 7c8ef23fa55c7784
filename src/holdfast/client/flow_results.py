"""The results of a group of any size, as a job that follows it takes them: `def total(counts: Results[int])`."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, Final, Generic, NoReturn, TypeVar, cast, get_args

import msgspec

from holdfast.client.put_handles import decoder_of
from holdfast.code.current import running_job
from holdfast.codecs import from_plain
from holdfast.commands.flows import FlowResults
from holdfast.errors import CodecError, JobNotFound, UsageError

R = TypeVar("R")
Run = Callable[[FlowResults], Any]
_PIECE: Final = 512


class Results(Generic[R]):
    """What the jobs of a group ended with, in the order of the calls; read from the store while it is gone through.

    A function job takes it where `list[…]` would be too large for its data: `for count in counts`, in `async def` jobs `async for`.
    `len(counts)` is their number. It can be gone through several times, by the job that got it. Raises JobNotFound where one has no result.
    """

    __slots__ = ("_count", "_decode", "_flow", "_items", "_run")

    def __init__(
        self,
        flow: str,
        count: int,
        decode: Callable[[bytes], R],
        items: Sequence[R] = (),
        run: Run | None = None,
    ) -> None:
        self._flow, self._count, self._decode = flow, count, decode
        self._items, self._run = items, run

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[R]:
        yield from self._items
        at = len(self._items)
        while at < self._count:
            piece = self._read(at, self._asking()(FlowResults(self._flow, at, _PIECE)))
            yield from piece
            at += len(piece)

    async def __aiter__(self) -> AsyncIterator[R]:
        for item in self._items:
            yield item
        at = len(self._items)
        while at < self._count:
            piece = self._read(at, await self._asking()(FlowResults(self._flow, at, _PIECE)))
            for item in piece:
                yield item
            at += len(piece)

    def _asking(self) -> Run:
        if self._run is not None:
            return self._run
        job = running_job()
        if job is None:
            raise UsageError("Results are read by the job that got them as an argument")
        return cast("Run", job.run)

    def _read(self, at: int, found: Sequence[bytes | None]) -> list[R]:
        if not found:
            self._missing(at)
        try:
            return [
                self._missing(at + n) if one is None else self._decode(one) for n, one in enumerate(found)
            ]
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise CodecError(
                f"a result of flow {self._flow} is not of the type that is declared: {error}"
            ) from error

    def _missing(self, at: int) -> NoReturn:
        raise JobNotFound(f"flow {self._flow}: call {at} of the group has no result", "HF_JOB_NOT_FOUND")

    @classmethod
    def read_from(cls, kind: object, plain: object) -> "Results[Any]":
        """Return the results of `kind`, such as `Results[int]`, for what the data of a job have: a list, or where they are. Raises TypeError."""
        item: Any = (*get_args(kind), Any)[0]
        if isinstance(plain, list):
            items = [msgspec.convert(one, item, dec_hook=from_plain) for one in cast("list[object]", plain)]
            return cls("", len(items), decoder_of(Any), items)
        if isinstance(plain, dict):
            where = msgspec.convert(plain, _Where)
            return cls(where.flow, where.count, decoder_of(item))
        raise TypeError(f"Expected `Results`, got `{type(plain).__name__}`")

    def __repr__(self) -> str:
        return f"<Results of {self._count} calls>"


class _Where(msgspec.Struct, frozen=True, gc=False):
    flow: str
    count: int
