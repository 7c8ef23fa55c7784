"""Put jobs by name, without their code: what `@app.job` functions and classes would have put."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, Final, NamedTuple, cast

from holdfast.client.put_options import NOTHING, make_put
from holdfast.code.signature import Arguments
from holdfast.codecs import MAX_DATA_CAP, decode
from holdfast.errors import CodecError, HoldfastError, TransportError, UsageError
from holdfast.settings import DEFAULT_LOSSES, MAX_BATCH
from holdfast.text import counted
from holdfast.wire.gather import together
from holdfast.wire.plans import Plan
from holdfast.wire.shards import Shard

_NAMED: Final = re.compile(r"([^\W\d]\w*)=(.*)", re.DOTALL)
_FUNCTION_OPTIONS: Final[Mapping[str, Any]] = {"retries": 0, "max_losses": DEFAULT_LOSSES}
"""The budgets of a function job that declares none; `code/job_options.py` sends them with each put."""
_MOST_BYTES: Final = 8 << 20


def _any_function(*args: object, **kwargs: object) -> None:
    """Stand for a function whose parameters are not known here."""


class NamedCode(NamedTuple):
    """The code of a job by its name: a function, or a class or module (`is_class`). `limit` is in bytes of data."""

    name: str
    is_class: bool
    limit: int

    def options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of a put: those that were given, and for a function its budgets."""
        own = {name: value for name, value in given.items() if value is not None}
        return own if self.is_class else {**_FUNCTION_OPTIONS, **own}

    def data(self, text: str | bytes | None, words: Sequence[str] = ()) -> object:
        """Return the data of a put from JSON text (None: none is given) and the arguments on a command line.

        For a function the text is an array of its positional arguments, or an object of its named ones. Raises UsageError.
        """
        value = NOTHING if text is None else _parsed(text)
        if self.is_class:
            if words:
                raise UsageError("arguments are for functions; the data of a class is one value")
            return NOTHING if text is None else text.strip()
        args, kwargs = _arguments(value, words)
        return Arguments(_any_function, self.name).write(args, kwargs, self.limit)


def value_of(text: str) -> object:
    """Return the value of text that is JSON, the text itself otherwise."""
    with suppress(CodecError):
        return cast("object", decode(text))
    return text


def _parsed(text: str | bytes) -> object:
    """Return the value of JSON text. Raises UsageError."""
    try:
        return cast("object", decode(text))
    except CodecError as error:
        raise UsageError(str(error)) from None


def _arguments(value: object, words: Sequence[str]) -> tuple[list[object], dict[str, object]]:
    args: list[object] = []
    kwargs: dict[str, object] = {}
    if isinstance(value, list):
        args = [*cast("list[object]", value)]
    elif isinstance(value, dict):
        kwargs = {**cast("dict[str, object]", value)}
    elif value is not NOTHING:
        raise UsageError(
            f"data of a function: expected an array of its arguments or an object of named ones, got {value!r:.80}"
        )
    for word in words:
        named = _NAMED.fullmatch(word)
        if named is None:
            args.append(value_of(word))
        elif named[1] in kwargs:
            raise UsageError(f"argument {named[1]!r} is given twice")
        else:
            kwargs[named[1]] = value_of(named[2])
    return args, kwargs


class Line(NamedTuple):
    """One line of the input, by its number, and the data in it."""

    number: int
    data: object
    size: int


class PutLine(NamedTuple):
    """What became of one line: the jid of its job, or of the one that holds its unique key, or the refusal."""

    number: int
    jid: str
    refused: HoldfastError | None


def steps_of(code: NamedCode, lines: IO[bytes]) -> Iterator[list[Line]]:
    """Yield the lines of JSON in steps of up to 512, each for one `put_step`. Empty lines are left out.

    Raises UsageError for a line that cannot be put; the message has the number of jobs in the steps before.
    """
    step: list[Line] = []
    done = size = 0
    try:
        for line in _lines(code, lines):
            step.append(line)
            size += line.size
            if len(step) == MAX_BATCH or size > _MOST_BYTES:
                yield step
                done, step, size = done + len(step), [], 0
    except UsageError as error:
        raise UsageError(
            f"{error}; {counted(done, 'job')} of the lines before {'was' if done == 1 else 'were'} put"
        ) from None
    if step:
        yield step


def _lines(code: NamedCode, lines: IO[bytes]) -> Iterator[Line]:
    number = 0
    while text := lines.readline(MAX_DATA_CAP + 1):
        number += 1
        if not text.strip():
            continue
        try:
            if len(text) > MAX_DATA_CAP:
                raise UsageError(f"expected at most {MAX_DATA_CAP} bytes")
            yield Line(number, code.data(text), len(text))
        except UsageError as error:
            raise UsageError(f"line {number}: {error}") from None


def put_step(
    shard: Shard, queue: str, code: NamedCode, lines: Sequence[Line], options: Mapping[str, Any]
) -> Plan[list[PutLine]]:
    """Put a job for each line, in as few calls as possible. Returns what became of each. Raises UsageError, TransportError."""
    puts = [make_put(shard.settings, queue, code.name, line.data, options) for line in lines]
    found: list[PutLine] = []
    for line, put, result in zip(lines, puts, (yield from together(shard, puts)), strict=True):
        if isinstance(result, TransportError):
            raise result
        refused = result if isinstance(result, HoldfastError) else None
        # If another job holds the unique key, the result of the put is the jid of that job.
        found.append(PutLine(line.number, result if isinstance(result, str) else put.jid, refused))
    return found
